// SPDX-License-Identifier: Apache-2.0
//
// Two checks. MICA_CHECK guards external input (files, prompts, options): always on, throws mica::Error.
// MICA_ASSERT guards preconditions: in debug builds only, so no code may rely on it.
#pragma once

#include "mica/base/error.hpp"

#include <cassert>

/// Raises mica::Error(mica::ErrorCode::code, joined parts) unless the condition holds.
#define MICA_CHECK(condition, code, ...)                     \
  do {                                                       \
    if (!(condition)) [[unlikely]] {                         \
      ::mica::raise(::mica::ErrorCode::code, {__VA_ARGS__}); \
    }                                                        \
  } while (false)

/// Documents and, in debug builds, verifies a precondition.
#define MICA_ASSERT(condition) assert(condition)
