// SPDX-License-Identifier: Apache-2.0
//
// A file that is only read. Many threads may use one File, because each read has its own offset. Not here:
// writing (atomic_file.hpp), mapping (map.hpp), reads that bypass the page cache (direct.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica/io/detail/path.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <fcntl.h>
#include <sys/stat.h>

namespace mica::io {

/// The identity of a file and of its contents: it changes when the file is written.
struct FileIdentity {
  std::uint64_t device = 0;      // st_dev and st_ino: the same for all names of a file
  std::uint64_t inode = 0;       // of the device
  std::uint64_t size = 0;        // bytes
  std::int64_t modified_ns = 0;  // the last write, nanoseconds since 1970

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

namespace detail {

[[nodiscard]] inline FileIdentity identity_of(const struct ::stat& s) noexcept {
#ifdef __APPLE__
  const ::timespec modified = s.st_mtimespec;
#else
  const ::timespec modified = s.st_mtim;
#endif
  return {static_cast<std::uint64_t>(s.st_dev), static_cast<std::uint64_t>(s.st_ino),
          static_cast<std::uint64_t>(s.st_size),
          static_cast<std::int64_t>(modified.tv_sec) * 1'000'000'000 +
              static_cast<std::int64_t>(modified.tv_nsec)};
}

}  // namespace detail

/// A regular file, open for reading until the object goes. Thread-safe.
class File {
 public:
  /// Raises ErrorCode::file when the path is empty or missing (with the nearest name beside it), a folder,
  /// not a regular file, not readable, or has a zero byte; failed when the process can open no further files.
  /// Errors show a path without its control characters.
  [[nodiscard]] static File open(std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes in the file when it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return identity_.size; }
  [[nodiscard]] const FileIdentity& identity() const noexcept { return identity_; }  // when it was opened
  /// For system calls that this class does not wrap; the object still owns it.
  [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }

  /// Fills `to` with the bytes from `offset` on.
  /// Raises ErrorCode::file when the file ends earlier, ErrorCode::failed when the system cannot read it.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const {
    const std::size_t got = fd_.read_at(offset, to);
    if (got == to.size()) return;
    MICA_CHECK(errno == 0, failed, detail::shown(path_), ": reading ", to.size(), " bytes failed at byte ",
               offset + got, ": ", detail::errno_text(errno));
    raise(ErrorCode::file, detail::shown(path_), ": truncated: ends at byte ", offset + got, ", ",
          to.size() - got, " of ", to.size(), " bytes before the end of the requested range");
  }

  /// Pages of a range that no process maps leave the page cache, where they count towards a control group.
  void forget([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t count) const noexcept {
#ifdef POSIX_FADV_DONTNEED
    static_cast<void>(::posix_fadvise(fd_.get(), static_cast<::off_t>(offset), static_cast<::off_t>(count),
                                      POSIX_FADV_DONTNEED));
#endif
  }

  /// Whether the system reads ahead of read_at(), as it does by default. The page cache then has more pages
  /// than were read.
  void read_ahead([[maybe_unused]] bool ahead) const noexcept {
#ifdef POSIX_FADV_RANDOM
    static_cast<void>(::posix_fadvise(fd_.get(), 0, 0, ahead ? POSIX_FADV_NORMAL : POSIX_FADV_RANDOM));
#endif
  }

  /// Raises ErrorCode::file when the file was written to or cut since it was opened. Cost: one system call.
  void check_unchanged() const {
    struct ::stat status {};
    MICA_CHECK(::fstat(fd_.get(), &status) == 0, failed, detail::shown(path_),
               ": cannot be examined: ", detail::errno_text(errno));
    const FileIdentity now = detail::identity_of(status);
    MICA_CHECK(now == identity_, file, detail::shown(path_), ": changed while in use (", identity_.size,
               " bytes when opened, ", now.size, " now); open it again");
  }

 private:
  File(std::string path, detail::Descriptor fd, FileIdentity identity)
      : path_(std::move(path)), fd_(std::move(fd)), identity_(identity) {}

  std::string path_;
  detail::Descriptor fd_;
  FileIdentity identity_;
};

/// Whether a path exists; links are followed. Raises ErrorCode::file where the system cannot tell: where
/// access is denied, or a disk fails.
[[nodiscard]] inline bool exists(const std::string& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  const int reason = errno;
  MICA_CHECK(reason == ENOENT || reason == ENOTDIR || reason == ENAMETOOLONG, file, detail::shown(path),
             ": cannot be looked for: ", detail::errno_text(reason));
  return false;
}
/// Whether a path is a folder; links are followed. False where access is denied.
[[nodiscard]] inline bool is_folder(const std::string& path) noexcept {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

namespace detail {

[[noreturn]] inline void raise_missing(const std::string& path) {
  std::string text = join(shown(path), ": no such file");
  if (path.front() != '/') {
    const std::string folder = real_path(".");
    if (!folder.empty()) text += join(" (current folder ", shown(folder), ")");
  }
  if (const auto near = near_file(path)) text += join("; did you mean ", escaped(*near), "?");
  raise(ErrorCode::file, text);
}

}  // namespace detail

inline File File::open(std::string path) {
  detail::check_path(path);
  // O_NONBLOCK: a named pipe must be refused below, not waited for here.
  detail::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) detail::raise_missing(path);
    const bool lacks =
        error == EMFILE || error == ENFILE || error == ENOMEM;  // the process, and not the file
    raise(lacks ? ErrorCode::failed : ErrorCode::file, detail::shown(path),
          ": cannot be opened: ", detail::errno_text(error));
  }
  struct ::stat status {};
  MICA_CHECK(::fstat(fd.get(), &status) == 0, file, detail::shown(path),
             ": cannot be examined: ", detail::errno_text(errno));
  MICA_CHECK(!S_ISDIR(status.st_mode), file, detail::shown(path), ": is a folder, a file is needed");
  MICA_CHECK(S_ISREG(status.st_mode), file, detail::shown(path),
             ": is not a regular file (a pipe, socket or device)");
  return File(std::move(path), std::move(fd), detail::identity_of(status));
}

}  // namespace mica::io
