// SPDX-License-Identifier: Apache-2.0
//
// Checks the free space of a disk before a long write.
#pragma once

#include "mica/base/assert.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace mica::io {

/// Free bytes of the disk of a path; the path itself need not exist. Empty where they are not known.
[[nodiscard]] inline std::optional<std::uint64_t> free_space(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path();
  const fs::space_info space = fs::space(folder.empty() ? fs::path(".") : folder, error);
  if (error) return std::nullopt;
  return space.available;
}

/// Refuses a file that does not fit beside what is there, which includes the file that it will replace.
/// Other processes may write meanwhile, so success is no promise. Devices, pipes and folders without a known
/// size pass. Raises ErrorCode::failed with the bytes that are needed and that are free.
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
