// SPDX-License-Identifier: Apache-2.0
//
// Whether a disk has room, asked before minutes of writing and not after.
#pragma once

#include "mica/base/assert.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace mica::io {

/// Refuses a file that does not fit beside what is there, which includes the file that it will replace. Others may write in
/// the meantime: a yes is no promise. Devices, pipes and folders that do not tell are passed.
/// Raises ErrorCode::failed with what is needed and what is free.
inline void require_free_space(const std::string& path, std::uint64_t bytes) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  const fs::path folder = fs::path(path).parent_path();
  const fs::space_info space = fs::space(folder.empty() ? fs::path(".") : folder, error);
  if (error) return;
  MICA_CHECK(bytes <= space.available, failed, path, ": needs ", bytes, " bytes, and the disk has ",
             space.available, " free");
}

}  // namespace mica::io
