// SPDX-License-Identifier: Apache-2.0
//
// Reads units of weights into memory of the caller, several at a time, past the page cache and while others
// compute (io/read_queue.hpp). Where the system refuses either, reads happen in the wait, and the log gets
// one message.
#pragma once

#include "mica/base/log.hpp"
#include "mica/gguf/source.hpp"
#include "mica/io/direct.hpp"
#include "mica/io/read_queue.hpp"
#include "mica/paging/concept.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <unistd.h>

namespace mica::paging {

/// A part of a file, whole blocks of 4,096 bytes; the last of them may reach beyond its end.
struct ByteRange {
  std::uint32_t source = 0;  // the number of the file
  std::uint64_t offset = 0;  // a multiple of 4,096
  std::size_t bytes = 0;     // a multiple of 4,096
};

/// A pending unit: its ranges, one after the other, from an address that is a multiple of 4,096.
struct UnitRead {
  std::span<const ByteRange> byte_ranges;  // outlive the read
  std::byte* to = nullptr;                 // memory for all ranges, which outlives the read
  std::size_t pending = 0;                 // requests that have not ended
  std::uint64_t missing = 0;               // bytes that are not in memory yet
  std::uint64_t uncounted = 0;             // bytes of it that reads() does not count yet
};

/// One thread; nothing throws after construction. Reads are known by their place in a list of the caller,
/// always the same one.
class UnitReader {
 public:
  static constexpr std::size_t alignment = 4096;  // of offsets, sizes and addresses
  /// The size of one request to the device.
  static constexpr std::size_t request_bytes = std::size_t{4} << 20;

  /// Sources are files; they and the sink's context outlive the reader. Raises ErrorCode::file for one that
  /// was replaced since it was opened.
  UnitReader(std::span<const gguf::Source> sources, LogSink log) : log_(log) {
    for (const gguf::Source& source : sources) {
      source.require_weights();
      io::detail::Descriptor direct = io::detail::open_direct(*source.file());
      if (!direct) {
        log(LogLevel::info, join(source.path(), ": direct reads are refused (", io::detail::errno_text(errno),
                                 "); weights are read through the page cache, and not ahead"));
      }
      const int buffered = source.file()->descriptor();
      const int fd = direct ? direct.get() : buffered;
      files_.push_back({&source, std::move(direct), fd, buffered, source.size()});
    }
  }

  /// Begins reads[i], whose ranges and address are set.
  void begin(std::span<UnitRead> reads, std::size_t i) noexcept {
    UnitRead& read = reads[i];
    read.pending = 0;
    read.missing = 0;
    std::byte* to = read.to;
    for (const ByteRange& range : read.byte_ranges) {
      const File& file = files_[range.source];
      for (std::size_t done = 0; done < range.bytes; done += request_bytes) {
        const std::size_t n = std::min(request_bytes, range.bytes - done);
        const std::uint64_t offset = range.offset + done;
        read.missing += std::min<std::uint64_t>(n, file.size - std::min(file.size, offset));
        if (file.fd == file.buffered) {
          advise_soon(file.fd, offset, n);
        } else if (queue_.begin(file.fd, offset, {to + done, n}, i)) {
          ++read.pending;
        }
      }
      to += range.bytes;
    }
    read.uncounted = read.missing;
  }
  /// Waits for reads[i]. False: it could not be read; the sink got the name of the file and the reason.
  [[nodiscard]] bool finish(std::span<UnitRead> reads, std::size_t i) noexcept {
    UnitRead& read = reads[i];
    if (read.uncounted == 0 && read.missing == 0) return true;
    const auto begin = std::chrono::steady_clock::now();
    settle(reads, i);
    const bool whole = read.missing == 0 || read_now(read);
    counts_.waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (whole) counts_.bytes += std::exchange(read.uncounted, 0);
    return whole;
  }
  /// Waits until reads[i] is not written any more.
  void settle(std::span<UnitRead> reads, std::size_t i) noexcept {
    while (reads[i].pending > 0) {
      const io::ReadQueue::Done done = queue_.wait();
      if (done.tag >= reads.size()) {  // all have ended; finish() reads what may be missing
        for (UnitRead& read : reads) read.pending = 0;
        return;
      }
      UnitRead& read = reads[done.tag];
      --read.pending;
      if (done.bytes > 0) read.missing -= std::min(read.missing, static_cast<std::uint64_t>(done.bytes));
    }
  }

  /// Bytes that finish() answered for, and the time it took.
  [[nodiscard]] const Reads& reads() const noexcept { return counts_; }

 private:
  struct File {
    const gguf::Source* source;
    io::detail::Descriptor direct;
    int fd;  // the destination of reads
    int buffered;
    std::uint64_t size;
  };

  static constexpr unsigned max_requests = 1024;

  /// All of a unit, without the queue.
  [[nodiscard]] bool read_now(UnitRead& read) noexcept {
    std::byte* to = read.to;
    for (const ByteRange& range : read.byte_ranges) {
      File& file = files_[range.source];
      const std::size_t end = static_cast<std::size_t>(
          std::min<std::uint64_t>(range.bytes, file.size - std::min(file.size, range.offset)));
      for (std::size_t done = 0; done < end;) {
        const std::size_t n = std::min(range.bytes - done, request_bytes);
        const auto offset = static_cast<::off_t>(range.offset + done);
        const ::ssize_t got = ::pread(file.fd, to + done, n, offset);
        if (got < 0 && errno == EINTR) continue;
        const auto read_bytes = static_cast<std::size_t>(std::max<::ssize_t>(got, 0));
        const bool crooked =
            got < 0 ? errno == EINVAL : read_bytes % alignment != 0 && done + read_bytes < end;
        if (crooked && file.fd != file.buffered) {  // the file system took the flag and not the read
          file.fd = file.buffered;
          continue;
        }
        if (got <= 0) {
          tell_failure(file, range.offset + done, std::min(n, end - done), got < 0 ? errno : 0);
          return false;
        }
#ifdef POSIX_FADV_DONTNEED
        if (file.fd == file.buffered) ::posix_fadvise(file.fd, offset, got, POSIX_FADV_DONTNEED);
#endif
        done += read_bytes;
      }
      to += range.bytes;
    }
    read.missing = 0;
    return true;
  }
  /// A read of `bytes` bytes at `offset` failed. error: errno, 0 at the end of the file.
  void tell_failure(const File& file, std::uint64_t offset, std::size_t bytes, int error) const noexcept try {
    const std::string why =
        error != 0 ? io::detail::errno_text(error)
                   : join("the file became shorter while it was in use, it had ", file.size, " bytes");
    log_(LogLevel::error, join(file.source->path(), ": reading ", bytes, " bytes of weights failed at byte ",
                               offset, ": ", why));
  } catch (...) {  // no memory for a text
  }
  /// Announces reads to the system, where they go through its cache.
  static void advise_soon([[maybe_unused]] int fd, [[maybe_unused]] std::uint64_t offset,
                          [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef POSIX_FADV_WILLNEED
    static_cast<void>(
        ::posix_fadvise(fd, static_cast<::off_t>(offset), static_cast<::off_t>(bytes), POSIX_FADV_WILLNEED));
#endif
  }

  LogSink log_;
  std::vector<File> files_;
  io::ReadQueue queue_{max_requests};
  Reads counts_;
};

}  // namespace mica::paging
