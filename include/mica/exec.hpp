// SPDX-License-Identifier: Apache-2.0
//
// The room exec: threads.
#pragma once

#include "mica/exec/concept.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/observed.hpp"
#include "mica/exec/partition.hpp"
#include "mica/exec/team.hpp"
