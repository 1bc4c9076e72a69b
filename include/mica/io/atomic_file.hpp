// SPDX-License-Identifier: Apache-2.0
//
// A file that exists whole or not at all: written under a temporary name in the same folder, brought to the
// disk, then renamed. After a crash the folder holds the old file or the new one, and at worst a leftover
// ".NAME.PID-N.part", which the next writer of NAME removes (detail/part_file.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bytes.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/io/detail/part_file.hpp"
#include "mica/io/detail/path.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <fcntl.h>
#include <sys/stat.h>

namespace mica::io {

/// The access rights of a file that did not exist before.
enum class Access : std::uint8_t {
  umask,  ///< all that the process's umask allows
  owner,  ///< only the owner (0600), and no pipe or device: for files with texts of users
};

/// Collects the new contents of a file; commit() puts them in place, and without it nothing has happened.
/// A path that names a pipe, a device or a descriptor of this process (/dev/stdout) is written to directly: a
/// file behind it is appended to, and a named pipe is waited for until a process reads it. Not thread-safe.
/// A file that existed keeps its mode, and its owner and group as far as the process may change them; a
/// different group gets the rights of others. Access lists and attributes are not kept.
class AtomicFile {
 public:
  /// Raises ErrorCode::file when the folder is missing or not writable, or the path is empty, a folder, has a
  /// zero byte, or is one that `access` excludes.
  explicit AtomicFile(std::string path, Access access = Access::umask);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() { discard(); }

  /// Appends. Raises ErrorCode::failed when the system cannot take the bytes (a full disk, a quota, a limit
  /// on the size of files where the process ignores SIGXFSZ; a process that does not is ended by it).
  void write(std::span<const std::byte> bytes) {
    MICA_ASSERT(fd_);
    while (!bytes.empty()) {
      const ::ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      MICA_CHECK(written > 0, failed, detail::shown(path_), ": writing failed after ", size_,
                 " bytes: ", detail::errno_text(errno));
      size_ += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      if (size_ - pushed_ >= push_bytes) push();
    }
  }
  void write(std::string_view text) { write(bytes_of(text.data(), text.size())); }

  /// Bytes written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Makes the contents durable and gives them the name. Call once, last.
  /// Raises ErrorCode::failed; the previous file is then still in place.
  void commit();

 private:
  /// Bytes that wait in the page cache: twice as many, and those of one call. Written pages count as memory
  /// of the control group.
  static constexpr std::uint64_t push_bytes = std::uint64_t{8} << 20;

  [[nodiscard]] bool in_place() const noexcept { return temporary_.empty(); }
  /// Begins to write the last bytes to the disk, and waits for those before them, which leave the page cache.
  /// What fails here, fails in commit() too.
  void push() noexcept {
#if defined(__linux__)
    constexpr unsigned whole =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    const auto at = [](std::uint64_t bytes) { return static_cast<::off64_t>(bytes); };
    static_cast<void>(::sync_file_range(fd_.get(), at(pushed_), at(size_ - pushed_), SYNC_FILE_RANGE_WRITE));
    if (pushed_ > written_ && ::sync_file_range(fd_.get(), at(written_), at(pushed_ - written_), whole) == 0)
      static_cast<void>(::posix_fadvise(fd_.get(), 0, at(pushed_), POSIX_FADV_DONTNEED));
#endif
    written_ = pushed_;
    pushed_ = size_;
  }
  /// A file that is replaced may be private, so the new one is until it has the mode of the former. After
  /// open() nothing throws before the name is kept.
  void create_temporary(Access access) {
    const ::mode_t mode = access == Access::owner ? 0600 : 0666;
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::string name =
          join(detail::folder_part(path_), detail::part_name(detail::name_part(path_), ::getpid(), attempt));
      fd_ = detail::Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
      if (fd_ && detail::lock_part(fd_)) {
        temporary_ = std::move(name);
        return;
      }
      MICA_CHECK(fd_ || errno == EEXIST, file, detail::shown(path_),
                 ": cannot be written: ", detail::errno_text(errno));
    }
    raise(ErrorCode::file, detail::shown(path_),
          ": a hundred leftover .part files stand in the way of a temporary name");
  }
  /// Gives the new file the mode, owner and group of the former.
  void take_over_access() const noexcept {
    if (!replaces_) return;
    ::mode_t mode = former_.st_mode & 0777;
    const bool group = ::fchown(fd_.get(), former_.st_uid, former_.st_gid) == 0 ||
                       ::fchown(fd_.get(), static_cast<::uid_t>(-1), former_.st_gid) == 0;
    if (!group) mode = (mode & 0707) | (mode & 0007) << 3;
    static_cast<void>(::fchmod(fd_.get(), mode));  // refused: it stays its owner's
  }
  /// The lock is released last: without it another writer may take the part for that of a dead process.
  void discard() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    fd_.close();
  }

  std::string path_;
  std::string temporary_;  // empty: path_ itself is open
  bool replaces_ = false;  // a file that exists:
  struct ::stat former_ = {};
  detail::Descriptor fd_;
  std::uint64_t size_ = 0;
  std::uint64_t pushed_ = 0, written_ = 0;  // bytes that push() gave to the disk, and that arrived there
};

/// Writes a file through `fill(AtomicFile&)`; when it throws, the path is as it was.
template <class Fill>
void write_atomically(std::string path, Fill&& fill) {
  AtomicFile out(std::move(path));
  fill(out);
  out.commit();
}

namespace detail {

/// Whether a path names a descriptor of this process, whatever that is.
[[nodiscard]] inline bool names_descriptor(std::string_view path) noexcept {
  return path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
         path.starts_with("/proc/self/fd/");
}

}  // namespace detail

inline AtomicFile::AtomicFile(std::string path, Access access) : path_(std::move(path)) {
  detail::check_path(path_);
  const bool descriptor = detail::names_descriptor(path_);
  if (!descriptor && ::lstat(path_.c_str(), &former_) == 0 &&
      S_ISLNK(former_.st_mode)) {  // write what the link points to, keep the link
    std::string target = detail::real_path(path_);
    MICA_CHECK(!target.empty(), file, detail::shown(path_),
               ": is a link that leads nowhere: ", detail::errno_text(errno));
    path_ = std::move(target);
  }
  replaces_ = ::stat(path_.c_str(), &former_) == 0;
  MICA_CHECK(!replaces_ || !S_ISDIR(former_.st_mode), file, detail::shown(path_),
             ": is a folder, cannot be written as a file");
  if (replaces_ && (descriptor || !S_ISREG(former_.st_mode))) {
    MICA_CHECK(access != Access::owner, file, detail::shown(path_),
               ": is not a regular file (a pipe, socket or device), and this file must be one");
    fd_ = detail::Descriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    MICA_CHECK(fd_, file, detail::shown(path_), ": cannot be written: ", detail::errno_text(errno));
    return;
  }
  detail::remove_dead_parts(path_);
  create_temporary(replaces_ ? Access::owner : access);
}

inline void AtomicFile::commit() {
  MICA_ASSERT(fd_);
  if (in_place()) {
    fd_.close();
    return;
  }
  take_over_access();
  MICA_CHECK(::fsync(fd_.get()) == 0, failed, detail::shown(path_), ": bringing ", size_,
             " bytes to the disk failed: ", detail::errno_text(errno));
  const std::string folder(detail::folder_part(path_));  // nothing throws after the name is given
  MICA_CHECK(std::rename(temporary_.c_str(), path_.c_str()) == 0, failed, detail::shown(path_), ": renaming ",
             detail::shown(temporary_), " failed: ", detail::errno_text(errno));
  temporary_.clear();
  fd_.close();  // and the lock goes
  // The name is durable once the folder is. A file system that cannot sync folders promises no more.
  const detail::Descriptor parent(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (parent) ::fsync(parent.get());
}

}  // namespace mica::io
