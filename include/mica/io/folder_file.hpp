// SPDX-License-Identifier: Apache-2.0
//
// Which files a folder of a model may use. Such folders are downloaded from strangers, and a link in
// one can point at any file of this machine. A link may lead to a file of the folder itself and, in a Hugging
// Face cache, to the bytes of the same repository:
//
//   models--OWNER--NAME / snapshots / REVISION / config.json  ->  models--OWNER--NAME / blobs / HASH
//
// The folder may be a link itself: the caller named it.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/path.hpp"

#include <string>
#include <string_view>

namespace mica::io {

namespace detail {

/// Whether a path lies in a folder. Both are without links.
[[nodiscard]] inline bool lies_in(std::string_view path, std::string_view folder) {
  if (folder.ends_with('/')) folder.remove_suffix(1);
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// Where a Hugging Face cache keeps the bytes of the files of a folder, which is REPOSITORY/snapshots or below it;
/// empty for other folders. `blobs` that is a link itself does not count: its target is part of the same
/// download.
[[nodiscard]] inline std::string blobs_of(std::string_view folder) {
  constexpr std::string_view snapshots = "/snapshots";
  for (std::size_t at = folder.rfind(snapshots); at != folder.npos && at != 0;
       at = folder.rfind(snapshots, at - 1)) {
    const std::size_t end = at + snapshots.size();
    const std::string_view repository = folder.substr(0, at);
    const bool whole = end == folder.size() || folder[end] == '/';
    if (whole && name_part(repository).starts_with("models--"))
      return std::string(repository).append("/blobs");
  }
  return {};
}

}  // namespace detail

/// "FOLDER/name"
[[nodiscard]] inline std::string in_folder(const std::string& folder, std::string_view name) {
  return join(folder, folder.empty() || folder.ends_with('/') ? "" : "/", name);
}

/// The path of a file of a model's folder, which need not exist. Raises ErrorCode::file when it is a link
/// that leaves the folder. Limit: a folder that another process changes between this check and the opening is
/// not guarded.
[[nodiscard]] inline std::string folder_file(const std::string& folder, std::string_view name) {
  std::string path = in_folder(folder, name);
  const std::string own = detail::real_path(folder), target = detail::real_path(path);
  if (own.empty() || target.empty()) return path;  // opening it reports the error
  const std::string blobs = detail::blobs_of(own);
  MICA_CHECK(
      detail::lies_in(target, own) || (!blobs.empty() && detail::lies_in(target, blobs)), file,
      escaped(path, 400), ": is a link to ", escaped(target, 400),
      ", outside of the folder; if that file belongs to the model, put a copy of it in place of the link");
  return path;
}

}  // namespace mica::io
