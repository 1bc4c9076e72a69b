// SPDX-License-Identifier: Apache-2.0
//
// The room ranks: one model on several machines, processes or threads.
#pragma once

#include "mica/ranks/concept.hpp"
#include "mica/ranks/division.hpp"
#include "mica/ranks/several.hpp"
#include "mica/ranks/threads.hpp"
