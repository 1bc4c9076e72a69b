// SPDX-License-Identifier: Apache-2.0
//
// Before a long write: the free space of the disk, and one writer to a folder at a time.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <fcntl.h>
#include <sys/file.h>

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

/// An advisory lock of a folder, held until the object is destroyed or the process ends. Move-only.
class FolderLock {
 public:
  /// Raises ErrorCode::file when the folder cannot be opened, failed when another process holds its lock.
  /// On file systems without locks it succeeds and locks nothing.
  explicit FolderLock(const std::string& folder)
      : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    MICA_CHECK(fd_, file, folder, ": cannot be opened: ", detail::errno_text(errno));
    const bool held = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    MICA_CHECK(held, failed, folder, ": another process is writing there; wait for it to end");
  }

 private:
  detail::Descriptor fd_;
};

}  // namespace mica::io
