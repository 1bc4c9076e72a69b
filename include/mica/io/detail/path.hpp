// SPDX-License-Identifier: Apache-2.0
//
// Parts of paths, paths without links, and the entries of folders. By POSIX: every user of a file would
// compile <filesystem>, and in libstdc++ 12 its canonical() crashes where memory is refused.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
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
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path.c_str(), nullptr), &std::free);
  if (found == nullptr && errno == ENOMEM) throw std::bad_alloc();
  return found == nullptr ? std::string() : std::string(found.get());
}

/// Calls `f(descriptor of the folder, name)` for each entry of the folder in which a path lies, until it
/// returns false. A folder that cannot be read has no entries.
template <class F>
void for_each_beside(std::string_view path, F&& f) {
  struct Close {
    void operator()(::DIR* open) const noexcept { ::closedir(open); }
  };
  const std::string folder(folder_part(path));
  const std::unique_ptr<::DIR, Close> open(::opendir(folder.empty() ? "." : folder.c_str()));
  while (const ::dirent* const entry = open ? ::readdir(open.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !f(::dirfd(open.get()), entry->d_name)) return;
  }
}

}  // namespace mica::io::detail
