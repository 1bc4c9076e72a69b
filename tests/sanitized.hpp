// SPDX-License-Identifier: Apache-2.0
//
// Whether a test runs under the address or the thread sanitizer: memory and time are then the sanitizer's.
#pragma once

namespace mica::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace mica::test
