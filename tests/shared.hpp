// SPDX-License-Identifier: Apache-2.0
//
// Where tests find what is not part of this tree: the conformance kit and the program. A test that lacks
// one of them says so by name and leaves.

#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace mica::test {

/// Prints that the running test case, or the named part of it, was left out.
inline void skipped(std::string_view name, std::string_view why) {
  std::printf("skipped: %.*s (%.*s)\n", static_cast<int>(name.size()), name.data(),
              static_cast<int>(why.size()), why.data());
}

/// A file or folder of the conformance kit; empty, with the skip printed by `name`, when it is not there.
/// The environment variable MICA_SHARED wins over the path that the build was configured with.
inline std::optional<std::filesystem::path> shared_dir(std::string_view name,
                                                       const std::string& inside = {}) {
  const char* chosen = std::getenv("MICA_SHARED");
  std::filesystem::path path = chosen != nullptr ? chosen : MICA_SHARED;
  if (!inside.empty()) path /= inside;
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  skipped(name, "the conformance kit has no " + path.string());
  return std::nullopt;
}

}  // namespace mica::test
