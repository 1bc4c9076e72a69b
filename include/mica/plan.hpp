// SPDX-License-Identifier: Apache-2.0
//
// The room plan: what a model will need.
#pragma once

#include "mica/plan/plan.hpp"
#include "mica/plan/solve.hpp"
