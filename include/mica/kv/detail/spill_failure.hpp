// SPDX-License-Identifier: Apache-2.0
//
// Why keys and values could not be written to a file, such as a full disk. A refusal for this reason is no
// lack of memory.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"

#include <string>

namespace mica::kv {

struct SpillFailure {
  std::string folder;
  int error = 0;  // errno

  [[nodiscard]] explicit operator bool() const noexcept { return error != 0; }
};

/// "/var/tmp: keys and values could not be written to a file there: No space left on device; TMPDIR names
/// another folder"
[[nodiscard]] inline std::string text(const SpillFailure& failure) {
  return join(escaped(failure.folder), ": keys and values could not be written to a file there: ",
              io::detail::errno_text(failure.error), "; TMPDIR names another folder");
}

}  // namespace mica::kv
