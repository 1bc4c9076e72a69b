// SPDX-License-Identifier: Apache-2.0
//
// Whether a disk has room, asked before minutes of writing and not after.
#pragma once

#include "mica/base/assert.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace mica::io {

/// What the disk of a path has free, in bytes; the path itself need not exist. Empty where it does not tell.
[[nodiscard]] inline std::optional<std::uint64_t> free_space(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path();
  const fs::space_info space = fs::space(folder.empty() ? fs::path(".") : folder, error);
  if (error) return std::nullopt;
  return space.available;
}

/// Refuses a file that does not fit beside what is there, which includes the file that it will replace.
/// Others may write in the meantime: a yes is no promise. Devices, pipes and folders that do not tell are
/// passed. Raises ErrorCode::failed with what is needed and what is free.
inline void require_free_space(const std::string& path, std::uint64_t bytes) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  const auto free = free_space(path);
  MICA_CHECK(!free || bytes <= *free, failed, path, ": needs ", bytes, " bytes, and the disk has ", *free,
             " free");
}

}  // namespace mica::io
