// SPDX-License-Identifier: Apache-2.0
//
// The path of a file without links. Not by std::filesystem::canonical, which in libstdc++ 12 crashes where memory
// is refused.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

namespace mica::io::detail {

/// The absolute path without links, ".", and "..", or empty when it leads to no file; errno then says why.
[[nodiscard]] inline std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr), &std::free);
  if (found == nullptr && errno == ENOMEM) throw std::bad_alloc();
  return found == nullptr ? std::string() : std::string(found.get());
}

}  // namespace mica::io::detail
