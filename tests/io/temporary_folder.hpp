// SPDX-License-Identifier: Apache-2.0
//
// A folder for the files of one test case, and the ways in which tests look at files and at refusals.

#pragma once

#include "mica/base/error.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// Made when the object is, removed with all it holds when the object goes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mica-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

  /// Creates a file and answers its path.
  std::string file(std::string_view name, std::span<const std::byte> bytes) const {
    std::ofstream out(path(name), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(out.good());
    return path(name);
  }
  std::string file(std::string_view name, std::string_view text) const {
    return file(name, std::as_bytes(std::span(text)));
  }

  [[nodiscard]] std::size_t entries() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::filesystem::path path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Bytes that differ from their neighbours at every distance a test cares for.
inline std::vector<std::byte> numbered_bytes(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>((i * 131 + i / 251 * 7) & 0xFF);
  return bytes;
}

/// The error that a call raises; the test fails when it raises none.
template <class Call>
Error refusal(Call&& call) {
  std::optional<Error> raised;
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    raised = error;
  }
  REQUIRE_MESSAGE(raised, "nothing was refused");
  return *raised;
}

/// Whether a text mentions all parts.
template <class... Parts>
bool mentions(const Error& error, const Parts&... parts) {
  const bool all = ((error.message().find(parts) != std::string::npos) && ...);
  if (!all) MESSAGE(error.message());
  return all;
}

}  // namespace mica::test
