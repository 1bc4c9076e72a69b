// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a GGUF file: refused by an error, or opened with what such a file promises.

#include "fuzz/gguf_checks.hpp"
#include "fuzz/input.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::fuzz::gguf_fuzz {

MICA_FUZZ_TARGET(gguf) {
  open_and_check(std::as_bytes(std::span(data, size)));
  return 0;
}

}  // namespace mica::fuzz::gguf_fuzz
