// SPDX-License-Identifier: Apache-2.0
//
// Parts of paths, paths without links, paths in error texts, and the entries of folders. By POSIX: every user
// of a file would compile <filesystem>, and in libstdc++ 12 its canonical() crashes where memory is refused.
#pragma once

#include "mica/base/assert.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>
#include <dirent.h>

namespace mica::io::detail {

/// The folder of a path, with its slash; empty for the current one.
[[nodiscard]] inline std::string_view folder_part(std::string_view path) noexcept {
  return path.substr(0, path.rfind('/') + 1);  // without a slash: npos + 1 is 0
}
[[nodiscard]] inline std::string_view name_part(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

/// The absolute path without links, ".", and "..", or empty when it leads to no file; errno then says why.
[[nodiscard]] inline std::string real_path(const std::string& path) {
  const struct Found {
    char* text;
    ~Found() { std::free(text); }
  } found = {::realpath(path.c_str(), nullptr)};
  if (found.text == nullptr && errno == ENOMEM) throw std::bad_alloc();
  return found.text == nullptr ? std::string() : std::string(found.text);
}

/// Calls `f(descriptor of the folder, name)` for each entry of the folder in which a path lies, until it
/// returns false. False: the folder cannot be read, and errno says why.
/// Iterators of std::filesystem end the process where they find no memory.
template <class F>
bool for_each_beside(std::string_view path, F&& f) {
  struct Open {
    ::DIR* entries;
    ~Open() {
      if (entries != nullptr) ::closedir(entries);
    }
  };
  const std::string folder(folder_part(path));
  const Open open = {::opendir(folder.empty() ? "." : folder.c_str())};
  if (open.entries == nullptr) return false;
  while (const ::dirent* const entry = ::readdir(open.entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !f(::dirfd(open.entries), entry->d_name)) break;
  }
  return true;
}

/// The names in a folder, sorted. A folder that cannot be read has none.
[[nodiscard]] inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for_each_beside(folder + "/", [&](int, std::string_view name) {
    names.emplace_back(name);
    return true;
  });
  std::sort(names.begin(), names.end());
  return names;
}

/// The bytes at `at` of UTF-8 text that are one control: of ASCII, of C1, or of text direction. 0: none is
/// there.
[[nodiscard]] inline std::size_t control_bytes(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  if (at < text.size() && (byte(0) < 0x20 || byte(0) == 0x7F)) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) return 2;
  if (byte(0) == 0xE2 && byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F)) return 3;
  if (byte(0) == 0xE2 && byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) return 3;
  if (byte(0) == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 3;
  return 0;
}

[[nodiscard]] inline bool has_controls(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (control_bytes(text, at) != 0) return true;
  }
  return false;
}

/// The path for an error text, since file names may come from index files, shards and downloads: control
/// bytes, C1 and the controls of text direction as \xNN; of more than 512 bytes the first 384 and the last
/// 128.
[[nodiscard]] inline std::string shown(std::string_view path) {
  constexpr char digits[] = "0123456789abcdef";
  constexpr std::size_t first = 384, last = 128;
  std::string out;
  for (std::size_t at = 0, escaped = 0; at < path.size(); ++at) {
    if (at == first && path.size() > first + last) {
      out += "...";
      at = path.size() - last;
      escaped = 0;
    }
    if (escaped == 0) escaped = control_bytes(path, at);
    if (escaped == 0) {
      out += path[at];
    } else {
      --escaped;
      const auto byte = static_cast<unsigned char>(path[at]);
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

/// Raises ErrorCode::file for a path that is empty or has a zero byte.
inline void check_path(const std::string& path) {
  MICA_CHECK(!path.empty(), file, "no file: its path is empty");
  MICA_CHECK(path.find('\0') == std::string::npos, file, shown(path),
             ": a name with a zero byte, behind which no system reads on");
}

}  // namespace mica::io::detail
