// SPDX-License-Identifier: Apache-2.0
//
// Reads that go on while others compute, without a thread of ours: the kernel's own queue (Linux,
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
  /// The tag of the answer where the system gives none.
  static constexpr auto nobody = static_cast<std::uint64_t>(-1);

  /// How a read ended.
  struct Done {
    std::uint64_t tag = nobody;
    std::int64_t bytes = -1;  // that were read; negative: an error
  };

  /// Room for so many reads. The system is asked with the first of them, for it takes tens of milliseconds to
  /// let go of a queue, and a plan reads nothing. Where it has none, no read is taken.
  explicit ReadQueue(unsigned most) noexcept : most_(most) {}
  ReadQueue(ReadQueue&& other) noexcept : context_(std::exchange(other.context_, 0)), most_(other.most_) {}
  ReadQueue& operator=(ReadQueue&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(most_, other.most_);
    return *this;
  }
  ~ReadQueue() {
#ifdef __linux__
    if (context_ != 0) ::syscall(SYS_io_destroy, context_);  // waits for what is under way
#endif
  }

  /// Begins to read; `to` is the queue's until wait() answers the tag. False where the system did not take
  /// it.
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
  /// Waits for one of the reads under way; there is one.
  [[nodiscard]] Done wait() noexcept {
#ifdef __linux__
    ::io_event event{};
    while (::syscall(SYS_io_getevents, context_, 1, 1, &event, nullptr) != 1) {
      if (errno != EINTR) return {};
    }
    return {event.data, event.res};
#else
    return {};
#endif
  }

 private:
#ifdef __linux__
  /// Asks once.
  [[nodiscard]] bool make() noexcept {
    if (most_ != 0 && ::syscall(SYS_io_setup, most_, &context_) != 0) context_ = 0;
    most_ = 0;
    return context_ != 0;
  }
  ::aio_context_t context_ = 0;
#else
  int context_ = 0;
#endif
  unsigned most_;  // 0: the system was asked
};

}  // namespace mica::io
