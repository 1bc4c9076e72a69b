// SPDX-License-Identifier: Apache-2.0
//
// The room base: errors, checks, type lists, half floats, views, numbers from a seed.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/bytes.hpp"
#include "mica/base/error.hpp"
#include "mica/base/finite.hpp"
#include "mica/base/half.hpp"
#include "mica/base/log.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/base/rng.hpp"
#include "mica/base/token_id.hpp"
#include "mica/base/type_list.hpp"
#include "mica/base/visit.hpp"
