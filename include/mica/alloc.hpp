// SPDX-License-Identifier: Apache-2.0
//
// The room alloc: where bytes come from.
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/alloc/tracked.hpp"
