// SPDX-License-Identifier: Apache-2.0
//
// One writer to a folder at a time: an advisory lock that ends with the process.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"

#include <cerrno>
#include <string>
#include <fcntl.h>
#include <sys/file.h>

namespace mica::io {

/// Held until the object is destroyed. Move-only.
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
