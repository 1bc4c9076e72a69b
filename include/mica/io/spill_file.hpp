// SPDX-License-Identifier: Apache-2.0
//
// A file without a name that one process writes and reads in aligned blocks, past the page cache where the
// system allows it: for data that does not fit into memory. The system removes it when the process ends. One
// read may be pending during computation.
#pragma once

#include "mica/io/detail/descriptor.hpp"
#include "mica/io/read_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <fcntl.h>
#include <sys/stat.h>

namespace mica::io {

/// Everything after the constructor is noexcept and returns whether it succeeded. Offsets, lengths and
/// addresses are multiples of `alignment`. Not thread-safe.
class SpillFile {
 public:
  static constexpr std::size_t alignment = 4096;  // bytes; direct reads and writes need it

  /// Makes a file in folder_of(folder). Empty when that fails; *error is then errno.
  [[nodiscard]] static std::optional<SpillFile> make(std::string_view folder = {},
                                                     int* error = nullptr) noexcept;
  /// The folder itself; for an empty one that of TMPDIR, else /var/tmp, which is on a disk.
  [[nodiscard]] static std::string folder_of(std::string_view folder) {
    const char* const chosen = std::getenv("TMPDIR");
    return !folder.empty() ? std::string(folder) : chosen != nullptr ? chosen : "/var/tmp";
  }

  /// A pending read moves too; assignment swaps the files.
  SpillFile(SpillFile&& other) noexcept
      : fd_(std::move(other.fd_)),
        queue_(std::move(other.queue_)),
        direct_(other.direct_),
        pending_(std::exchange(other.pending_, {})) {}
  SpillFile& operator=(SpillFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(queue_, other.queue_);
    std::swap(direct_, other.direct_);
    std::swap(pending_, other.pending_);
    return *this;
  }
  ~SpillFile() { static_cast<void>(finish_read()); }

  /// Whether it bypasses the page cache.
  [[nodiscard]] bool direct() const noexcept { return direct_; }

  /// False with the reason in errno.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
    if (fd_.write_at(offset, from, alignment) < from.size()) return false;
    forget(offset, from.size());
    return true;
  }
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> to) noexcept {
    if (fd_.read_at(offset, to, alignment) < to.size()) return false;
    forget(offset, to.size());
    return true;
  }
  /// Begins to read; `to` belongs to the file until finish_read(). At most one read is pending.
  void begin_read(std::uint64_t offset, std::span<std::byte> to) noexcept {
    static_cast<void>(finish_read());
    pending_ = {offset, to, direct_ && queue_.begin(fd_.get(), offset, to, 0)};
  }
  /// Waits for it; true when none is pending.
  [[nodiscard]] bool finish_read() noexcept {
    const Pending pending = std::exchange(pending_, {});
    if (pending.to.empty()) return true;
    const std::int64_t got = pending.queued ? queue_.wait().bytes : 0;
    const std::size_t done = got < 0 ? 0 : static_cast<std::size_t>(got) / alignment * alignment;
    return read(pending.offset + done, pending.to.subspan(std::min(done, pending.to.size())));
  }

 private:
  /// A read that begin_read() began.
  struct Pending {
    std::uint64_t offset = 0;
    std::span<std::byte> to = {};
    bool queued = false;
  };

  SpillFile(detail::Descriptor fd, bool direct) noexcept : fd_(std::move(fd)), direct_(direct) {}

  /// Drops the pages of the file from the page cache.
  void forget([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::size_t bytes) const noexcept {
#ifdef POSIX_FADV_DONTNEED
    if (!direct_) {
      static_cast<void>(::posix_fadvise(fd_.get(), static_cast<::off_t>(offset), static_cast<::off_t>(bytes),
                                        POSIX_FADV_DONTNEED));
    }
#endif
  }

  detail::Descriptor fd_;
  ReadQueue queue_{1};
  bool direct_ = false;
  Pending pending_;
};

inline std::optional<SpillFile> SpillFile::make(std::string_view folder, int* error) noexcept try {
  const std::string in = folder_of(folder);
#if defined(O_TMPFILE) && defined(O_DIRECT)
  for (const int flag : {O_DIRECT, 0}) {
    detail::Descriptor fd(::open(in.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flag, 0600));
    if (fd) return SpillFile(std::move(fd), flag != 0);
  }
#endif
  std::string name = in + "/mica-XXXXXX";
  detail::Descriptor fd(::mkstemp(name.data()));
  if (!fd) {
    if (error != nullptr) *error = errno;
    return std::nullopt;
  }
  ::unlink(name.c_str());
  return SpillFile(std::move(fd), false);
} catch (...) {  // no memory for a name
  if (error != nullptr) *error = ENOMEM;
  return std::nullopt;
}

}  // namespace mica::io
