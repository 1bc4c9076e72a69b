// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a GGUF file: refused by an error, or opened with what such a file promises.

#include "fuzz/gguf_checks.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mica::fuzz::open_and_check(std::as_bytes(std::span(data, size)));
  return 0;
}
