// SPDX-License-Identifier: Apache-2.0
//
// Two checks. MICA_CHECK guards what comes from outside (files, prompts, options): always on, throws mica::Error.
// MICA_ASSERT guards what a caller promised: debug builds only, and never load-bearing.
#pragma once

#include "mica/base/error.hpp"

#include <cassert>

/// Raises mica::Error(mica::ErrorCode::code, joined parts) unless the condition holds.
#define MICA_CHECK(condition, code, ...)                   \
  do {                                                     \
    if (!(condition)) [[unlikely]] {                       \
      ::mica::raise(::mica::ErrorCode::code, __VA_ARGS__); \
    }                                                      \
  } while (false)

/// Documents and, in debug builds, verifies a precondition.
#define MICA_ASSERT(condition) assert(condition)
