// SPDX-License-Identifier: Apache-2.0
//
// The most memory that a call takes at one time: counted by the sanitizer where it can be asked (clang),
// else by an operator new that replaces that of the program. One file of a program includes this.
#pragma once

#include "fuzz/input.hpp"

#include <algorithm>
#include <cstddef>

#if defined(__has_feature) && __has_include(<sanitizer/allocator_interface.h>)
#if __has_feature(address_sanitizer)
#define MICA_FUZZ_SANITIZED 1
#endif
#endif

#ifdef MICA_FUZZ_SANITIZED
#include <sanitizer/allocator_interface.h>

namespace mica::fuzz {

struct Counted {
  std::ptrdiff_t live = 0, peak = 0;  // bytes
};
inline constinit thread_local Counted counted;

/// The most bytes that a call has allocated at one time.
template <class Call>
std::size_t peak_of(Call&& call) {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t bytes) {
        counted.live += static_cast<std::ptrdiff_t>(bytes);
        counted.peak = std::max(counted.peak, counted.live);
      },
      [](const volatile void* at) {
        if (at == nullptr) return;
        counted.live -=
            static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(const_cast<const void*>(at)));
      });
  static_cast<void>(installed);
  counted = {};
  call();
  return static_cast<std::size_t>(counted.peak);
}

}  // namespace mica::fuzz

#else
#include "gguf/counted_heap.hpp"

namespace mica::fuzz {

using test::peak_of;

}  // namespace mica::fuzz

#endif

namespace mica::fuzz {

/// accepted(), with no more memory than opening a file of that many bytes may take.
template <class F>
bool accepted_within(std::size_t file_bytes, F&& f) {
  bool answer = false;
  const std::size_t peak = peak_of([&] { answer = accepted(f); });
  require(peak <= 4 * file_bytes + (std::size_t{16} << 20), "opening takes four times the file and 16 MiB");
  return answer;
}

}  // namespace mica::fuzz
