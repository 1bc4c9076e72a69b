// SPDX-License-Identifier: Apache-2.0
//
// Unit: the model of mica::open(), for all families and formats.

#include "mica/runtime/open.hpp"

MICA_INSTANTIATE_MODEL(mica::arch::All, mica::format::All)
