// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous reads without a thread: the kernel's queue (Linux,
// io_submit(2)). They are asynchronous for files that were opened with O_DIRECT; for others io_submit reads
// at once.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#ifdef __linux__
#include <linux/aio_abi.h>

#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mica::io {

/// Move-only. One thread at a time.
class ReadQueue {
 public:
  /// The tag of a result without a read.
  static constexpr auto no_tag = static_cast<std::uint64_t>(-1);

  /// How a read ended.
  struct Done {
    std::uint64_t tag = no_tag;  // of begin(); no_tag: all reads have ended, and how is not known
    std::int64_t bytes = -1;     // that were read; negative: an error
  };

  /// A queue for at most this many reads. It is created by the first read, because closing a queue takes tens
  /// of milliseconds and a plan reads nothing. Without a queue of the system every read is refused.
  explicit ReadQueue(unsigned max) noexcept : max_(max) {}
  /// Pending reads move too; assignment swaps the queues.
  ReadQueue(ReadQueue&& other) noexcept : context_(std::exchange(other.context_, 0)), max_(other.max_) {}
  ReadQueue& operator=(ReadQueue&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(max_, other.max_);
    return *this;
  }
  ~ReadQueue() { close(); }

  /// Begins to read; `to` belongs to the queue until wait() returns the tag. False: the system refused it.
  [[nodiscard]] bool begin([[maybe_unused]] int fd, [[maybe_unused]] std::uint64_t offset,
                           [[maybe_unused]] std::span<std::byte> to,
                           [[maybe_unused]] std::uint64_t tag) noexcept {
#ifdef __linux__
    if (context_ == 0 && !make()) return false;
    ::iocb request{};
    request.aio_data = tag;
    request.aio_lio_opcode = IOCB_CMD_PREAD;
    request.aio_fildes = static_cast<std::uint32_t>(fd);
    request.aio_buf = reinterpret_cast<std::uintptr_t>(to.data());
    request.aio_nbytes = to.size();
    request.aio_offset = static_cast<std::int64_t>(offset);
    ::iocb* list = &request;
    return ::syscall(SYS_io_submit, context_, 1, &list) == 1;
#else
    return false;
#endif
  }
  /// Waits for one of the pending reads. Requires one. Where the system cannot wait for one, waits for all,
  /// and every later read is refused.
  [[nodiscard]] Done wait() noexcept {
#ifdef __linux__
    ::io_event event{};
    while (::syscall(SYS_io_getevents, context_, 1, 1, &event, nullptr) != 1) {
      if (errno == EINTR) continue;
      close();
      return {};
    }
    return {event.data, event.res};
#else
    return {};
#endif
  }

 private:
  /// Waits for pending reads, and ends the queue.
  void close() noexcept {
#ifdef __linux__
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);
#endif
    context_ = 0;
  }
#ifdef __linux__
  /// Creates the queue once.
  [[nodiscard]] bool make() noexcept {
    if (max_ != 0 && ::syscall(SYS_io_setup, max_, &context_) != 0) context_ = 0;
    max_ = 0;
    return context_ != 0;
  }
  ::aio_context_t context_ = 0;
#else
  int context_ = 0;
#endif
  unsigned max_;  // 0: it was tried
};

}  // namespace mica::io
