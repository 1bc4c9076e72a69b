// SPDX-License-Identifier: Apache-2.0
//
// Reads in large blocks that bypass the page cache, so that gigabytes of weights displace nothing in it and
// are not charged to the process twice. Where the system refuses that, reads are buffered, and their pages
// are dropped from the cache.
//
//   file      ...|--block--|--block--|--block--|...     4 KiB aligned blocks of up to 4 MiB
//   wanted          [======================]
//   path          bounce   straight    bounce        straight where offset and memory are aligned
#pragma once

#include "mica/base/bits.hpp"
#include "mica/base/log.hpp"
#include "mica/io/file.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace mica::io {

namespace detail {

/// A second descriptor of a file, past the page cache; none, and errno says why, where the system refuses
/// that. Raises ErrorCode::file when another file has the name now.
[[nodiscard]] inline Descriptor open_direct(const File& file) {
  Descriptor fd;
#if defined(O_DIRECT)
  fd = Descriptor(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
#elif defined(F_NOCACHE)
  fd = Descriptor(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && ::fcntl(fd.get(), F_NOCACHE, 1) != 0) fd.close();
#else
  errno = ENOTSUP;
#endif
  if (!fd) return fd;
  struct ::stat status {};
  const bool same = ::fstat(fd.get(), &status) == 0 && identity_of(status) == file.identity();
  MICA_CHECK(same, file, file.path(), ": was replaced or changed since it was opened; open it again");
  return fd;
}

}  // namespace detail

/// A second way into an open File. Thread-safe when each call has its own bounce buffer.
class DirectReader {
 public:
  /// Offsets, lengths and addresses of direct reads are multiples of this.
  static constexpr std::size_t alignment = 4096;
  /// The maximum of one request to the device.
  static constexpr std::size_t block_bytes = std::size_t{4} << 20;
  /// A bounce buffer smaller than this is refused: one aligned block must fit at any address.
  static constexpr std::size_t min_bounce_bytes = 2 * alignment;

  /// Requires that `file` and the sink's context outlive the reader.
  /// When direct reads are refused, now or by the first read, says so once through `log` and reads buffered.
  explicit DirectReader(const File& file, LogSink log = {})
      : file_(file), log_(log), fd_(detail::open_direct(file)) {
    if (!fd_) fall_back(detail::errno_text(errno));
    direct_.store(static_cast<bool>(fd_), std::memory_order_relaxed);
  }

  /// Fills `to` with the bytes from `offset` on. `bounce` is scratch memory of the caller, of any alignment
  /// and at least min_bounce_bytes; 1-4 MiB reach the disk's speed when direct reads are refused. Raises
  /// ErrorCode::file when the file ends earlier, ErrorCode::failed when the system cannot read it.
  void read(std::uint64_t offset, std::span<std::byte> to, std::span<std::byte> bounce) const;

  /// False once the reads have become buffered.
  [[nodiscard]] bool direct() const noexcept { return direct_.load(std::memory_order_relaxed); }

 private:
  /// One read of aligned place, length and memory; 0 at the end of the file, and when reads became buffered.
  [[nodiscard]] std::size_t read_some(std::uint64_t offset, std::span<std::byte> to) const {
    while (true) {
      const ::ssize_t got = ::pread(fd_.get(), to.data(), to.size(), static_cast<::off_t>(offset));
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      MICA_CHECK(errno == EINVAL, failed, file_.path(), ": reading ", to.size(), " bytes failed at byte ",
                 offset, ": ", detail::errno_text(errno));
      fall_back(detail::errno_text(EINVAL));  // the file system accepted the flag and refused the read
      return 0;
    }
  }
  void read_buffered(std::uint64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
      const std::span<std::byte> part = to.first(std::min(to.size(), block_bytes));
      file_.read_at(offset, part);
      file_.forget(offset, part.size());
      offset += part.size();
      to = to.subspan(part.size());
    }
  }
  void fall_back(std::string_view reason) const {
    const bool was_direct = direct_.exchange(false, std::memory_order_relaxed);
    if (was_direct || !fd_) {
      log_(LogLevel::info,
           join(file_.path(), ": direct reads are refused (", reason, "); reading through the page cache"));
    }
  }

  const File& file_;
  LogSink log_;
  detail::Descriptor fd_;
  mutable std::atomic<bool> direct_{false};
};

namespace detail {

/// The aligned middle of a buffer, a whole number of aligned units long.
[[nodiscard]] inline std::span<std::byte> aligned_part(std::span<std::byte> bytes,
                                                       std::size_t alignment) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t skipped = round_up(address, std::uintptr_t{alignment}) - address;
  return bytes.subspan(skipped, (bytes.size() - skipped) / alignment * alignment);
}

}  // namespace detail

inline void DirectReader::read(std::uint64_t offset, std::span<std::byte> to,
                               std::span<std::byte> bounce) const {
  MICA_CHECK(bounce.size() >= min_bounce_bytes, usage, "a bounce buffer of ", bounce.size(), " bytes; ",
             min_bounce_bytes, " are the least");
  bounce = detail::aligned_part(bounce, alignment);
  bounce = bounce.first(std::min(bounce.size(), block_bytes));
  while (!to.empty()) {
    if (!direct()) return read_buffered(offset, to);
    const auto skipped = static_cast<std::size_t>(offset % alignment);
    const bool straight = skipped == 0 && to.size() >= alignment &&
                          reinterpret_cast<std::uintptr_t>(to.data()) % alignment == 0;
    std::size_t got = 0;
    if (straight) {
      got = read_some(offset, to.first(std::min(to.size() / alignment * alignment, block_bytes)));
    } else {
      const std::size_t needed = std::min(to.size(), bounce.size() - skipped);
      const std::size_t read =
          read_some(offset - skipped, bounce.first(round_up(skipped + needed, alignment)));
      got = std::min(needed, read - std::min(read, skipped));
      std::memcpy(to.data(), bounce.data() + skipped, got);
      if (read > 0 && got == 0) {  // the system ended the read before the place that is wanted
        read_buffered(offset, to.first(needed));
        got = needed;
      }
    }
    if (!direct()) continue;
    MICA_CHECK(got > 0, file, file_.path(), ": truncated: ends at byte ", offset, ", ", to.size(),
               " bytes before the end of the requested range");
    offset += got;
    to = to.subspan(got);
  }
}

}  // namespace mica::io
