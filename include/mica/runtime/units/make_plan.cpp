// SPDX-License-Identifier: Apache-2.0
//
// Unit: the dry run behind plans, for all families and formats.

#include "mica/plan/plan.hpp"

MICA_INSTANTIATE_PLAN(mica::arch::All, mica::format::All)
