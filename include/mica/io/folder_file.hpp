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

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::io {

namespace detail {

/// Whether a path lies in a folder. Both are canonical.
[[nodiscard]] inline bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// Where a Hugging Face cache keeps the bytes of a canonical folder's files; empty for other folders. `blobs`
/// that is a link itself does not count: its target is part of the same download.
[[nodiscard]] inline std::filesystem::path blobs_of(const std::filesystem::path& folder) {
  for (std::filesystem::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    const std::filesystem::path repository = at.parent_path();
    if (at.filename() == "snapshots" && repository.filename().string().starts_with("models--"))
      return repository / "blobs";
  }
  return {};
}

}  // namespace detail

/// The path of a file of a model's folder, which need not exist. Raises ErrorCode::file when it is a link
/// that leaves the folder. Limit: a folder that another process changes between this check and the opening is
/// not guarded.
[[nodiscard]] inline std::string folder_file(const std::string& folder, std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code error;
  const std::filesystem::path own = std::filesystem::canonical(folder, error);
  if (error) return path.string();  // opening it reports the error
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (error) return path.string();
  const std::filesystem::path blobs = detail::blobs_of(own);
  MICA_CHECK(
      detail::lies_in(target, own) || (!blobs.empty() && detail::lies_in(target, blobs)), file,
      escaped(path.string(), 400), ": is a link to ", escaped(target.string(), 400),
      ", outside of the folder; if that file belongs to the model, put a copy of it in place of the link");
  return path.string();
}

}  // namespace mica::io
