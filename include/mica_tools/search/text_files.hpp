// SPDX-License-Identifier: Apache-2.0
//
// The files of a folder that a search may read: regular files in it and in the folders below, without hidden
// ones. Links are not followed.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/io/detail/path.hpp"
#include "mica/io/file.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <sys/stat.h>

namespace mica::search {

/// A file as it was found. Another size or time of change: its text may be another.
struct FileState {
  std::string path;              // from the folder on, with /
  std::uint64_t size = 0;        // bytes
  std::int64_t modified_ns = 0;  // as io::FileIdentity

  friend bool operator==(const FileState&, const FileState&) = default;
};

/// Larger files are left out: a text of this size is a log or a table.
inline constexpr std::uint64_t max_file_bytes = std::uint64_t{16} << 20;

/// Raises ErrorCode::file for a path that is missing or no folder.
inline void check_folder(const std::string& folder) {
  MICA_CHECK(io::exists(folder), file, escaped(folder), ": no such folder");
  MICA_CHECK(io::is_folder(folder), file, escaped(folder), ": is a file, a folder is needed");
}

/// The files below a folder by their paths. Hidden ones, links, and folders without the permission to read
/// are left out. Raises ErrorCode::file as check_folder(), and for any other error while a folder is read.
[[nodiscard]] inline std::vector<FileState> find_files(const std::string& folder) {
  check_folder(folder);
  std::vector<FileState> files;
  std::vector<std::string> unread = {""};  // folders below it
  while (!unread.empty()) {
    const std::string below = std::move(unread.back());
    unread.pop_back();
    const std::string path = join(folder, "/", below);
    const bool is_read = io::detail::for_each_beside(path, [&](int fd, const char* name) {
      struct ::stat found {};
      if (*name == '.' || ::fstatat(fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0) return true;
      if (S_ISDIR(found.st_mode)) unread.push_back(join(below, name, "/"));
      if (!S_ISREG(found.st_mode)) return true;
      const io::FileIdentity identity = io::detail::identity_of(found);
      if (identity.size > 0 && identity.size <= max_file_bytes)
        files.push_back({join(below, name), identity.size, identity.modified_ns});
      return true;
    });
    MICA_CHECK(is_read || errno == EACCES || (errno == ENOENT && !below.empty()), file, escaped(path),
               ": cannot be read: ", io::detail::errno_text(errno));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

/// The path of a file for the system.
[[nodiscard]] inline std::string path_in(const std::string& folder, std::string_view path) {
  return (std::filesystem::path(folder) / path).string();
}

/// The text of a file that was found: an empty one of a file that is binary or not UTF-8; nullopt if the file
/// cannot be read, or has gone. Raises ErrorCode::failed if the process can open no further files.
[[nodiscard]] inline std::optional<std::string> read_text_file(const std::string& path) {
  std::optional<io::File> file;
  try {
    file = io::File::open(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    return std::nullopt;
  }
  if (file->size() > max_file_bytes) return std::nullopt;
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  try {
    file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  } catch (const Error&) {
    return std::nullopt;
  }
  if (text.find('\0') != text.npos || !text::is_utf8(text)) text.clear();
  return text;
}

/// Whether the name of a file says that its text is Markdown.
[[nodiscard]] inline bool is_markdown(std::string_view path) noexcept {
  return path.ends_with(".md") || path.ends_with(".markdown") || path.ends_with(".mdx") ||
         path.ends_with(".MD");
}

}  // namespace mica::search
