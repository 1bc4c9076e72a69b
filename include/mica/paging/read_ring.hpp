// SPDX-License-Identifier: Apache-2.0
//
// Memory through which groups of weights pass, two at a time: one that is used, and one on its way. They take turns at both ends, so that
// any two that fit together do.
//
//   | 7: used |     | 8: on its way |    then    | 9: on its way ... | | 8: used |
//
// Reads go past the page cache and on by themselves (io/read_queue.hpp). Where the system refuses the one or the other, they happen
// when they are waited for, which is said once.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/log.hpp"
#include "mica/gguf/source.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/io/read_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <unistd.h>

namespace mica::paging {

/// A part of a file, whole blocks of 4,096 bytes; the last of them may reach beyond its end.
struct Stretch {
  std::uint32_t source = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// Holds two groups at most. One thread; nothing throws after construction.
template <mica::Allocator A>
class ReadRing {
 public:
  static constexpr std::size_t alignment = 4096;
  /// What is asked of the device in one request.
  static constexpr std::size_t request_bytes = std::size_t{4} << 20;

  /// Raises ErrorCode::budget when the allocator refuses. Sources are files and outlive the ring.
  ReadRing(A allocator, std::size_t bytes, std::span<const gguf::Source> sources, LogSink log);
  ~ReadRing() { forget_all(); }
  ReadRing(ReadRing&&) = default;
  ReadRing& operator=(ReadRing&&) = default;

  /// Begins to read a group; false where there is no room for it now.
  [[nodiscard]] bool begin(std::size_t group, std::span<const Stretch> stretches) noexcept;
  [[nodiscard]] bool has(std::size_t group) const noexcept { return find(group) != nullptr; }
  /// Where the group lies, stretch behind stretch, when it is there; null where it could not be read, or was not begun.
  [[nodiscard]] const std::byte* wait(std::size_t group) noexcept;
  /// Forgets a group; one that is on its way is waited for.
  void forget(std::size_t group) noexcept;
  void forget_all() noexcept {
    while (!loads_.empty()) forget(loads_.back().group);
  }

  /// Bytes read so far.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  struct File {
    io::detail::Descriptor direct;
    int fd;  // what reads go to
    int buffered;
    std::uint64_t size;
  };
  struct Load {
    std::size_t group;
    std::size_t at;
    std::size_t bytes;
    std::span<const Stretch> stretches;
    std::size_t pending = 0;    // requests
    std::uint64_t missing = 0;  // bytes
    bool whole = false;
  };

  [[nodiscard]] const Load* find(std::size_t group) const noexcept {
    for (const Load& load : loads_) {
      if (load.group == group) return &load;
    }
    return nullptr;
  }
  [[nodiscard]] Load* find(std::size_t group) noexcept {
    return const_cast<Load*>(std::as_const(*this).find(group));
  }
  [[nodiscard]] std::size_t place(std::size_t bytes) const noexcept;
  void request(Load& load) noexcept;
  /// Tells the system what will be read, where reads go through its cache.
  static void advise_soon([[maybe_unused]] int fd, [[maybe_unused]] std::uint64_t offset,
                          [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef POSIX_FADV_WILLNEED
    static_cast<void>(
        ::posix_fadvise(fd, static_cast<::off_t>(offset), static_cast<::off_t>(bytes), POSIX_FADV_WILLNEED));
#endif
  }
  void finish(Load& load) noexcept;
  [[nodiscard]] bool read_now(const Load& load) noexcept;

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  static constexpr unsigned most_requests = 1024;

  alloc::Buffer<std::byte, A> memory_;
  std::vector<File> files_;
  io::ReadQueue queue_{most_requests};
  std::vector<Load> loads_;  // in the order in which they were begun
  std::uint64_t bytes_read_ = 0;
};

template <mica::Allocator A>
ReadRing<A>::ReadRing(A allocator, std::size_t bytes, std::span<const gguf::Source> sources, LogSink log)
    : memory_(allocator) {
  auto memory = alloc::Buffer<std::byte, A>::make(allocator, bytes, alignment);
  MICA_CHECK(
      memory, budget, "weights: ", bytes,
      " bytes to read them through do not fit the memory budget; use a larger one or a smaller quantisation");
  memory_ = std::move(*memory);
  loads_.reserve(2);
  if constexpr (A::dry) return;
  for (const gguf::Source& source : sources) {
    io::detail::Descriptor direct;
#if defined(O_DIRECT)
    direct = io::detail::Descriptor(::open(source.path().c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
#endif
    if (!direct) {
      log(LogLevel::info, join(source.path(), ": direct reads are refused (", io::detail::errno_text(errno),
                               "); weights are read through the page cache, and not ahead"));
    }
    const int buffered = source.file()->descriptor();
    const int fd = direct ? direct.get() : buffered;
    files_.push_back({std::move(direct), fd, buffered, source.size()});
  }
}

/// Where so many bytes have room: at the end at which the other load is not.
template <mica::Allocator A>
std::size_t ReadRing<A>::place(std::size_t bytes) const noexcept {
  if (bytes > memory_.size() || loads_.size() == 2) return none;
  if (loads_.empty()) return 0;
  const Load& other = loads_.front();
  if (other.at != 0) return bytes <= other.at ? 0 : none;
  const std::size_t at = (memory_.size() - bytes) / alignment * alignment;
  return at >= other.bytes ? at : none;
}

template <mica::Allocator A>
bool ReadRing<A>::begin(std::size_t group, std::span<const Stretch> stretches) noexcept {
  std::size_t bytes = 0;
  for (const Stretch& stretch : stretches) bytes += stretch.bytes;
  const std::size_t at = place(bytes);
  if (at == none) return false;
  request(loads_.emplace_back(Load{.group = group, .at = at, .bytes = bytes, .stretches = stretches}));
  return true;
}

template <mica::Allocator A>
void ReadRing<A>::request(Load& load) noexcept {
  std::size_t at = load.at;
  for (const Stretch& stretch : load.stretches) {
    const File& file = files_[stretch.source];
    for (std::size_t done = 0; done < stretch.bytes; done += request_bytes) {
      const std::size_t n = std::min(request_bytes, stretch.bytes - done);
      const std::uint64_t offset = stretch.offset + done;
      load.missing += std::min<std::uint64_t>(n, file.size - std::min(file.size, offset));
      if (file.fd == file.buffered) {
        advise_soon(file.fd, offset, n);
      } else if (queue_.begin(file.fd, offset, memory_.span().subspan(at + done, n), load.group)) {
        ++load.pending;
      }
    }
    at += stretch.bytes;
  }
}

/// Waits for the requests of a load.
template <mica::Allocator A>
void ReadRing<A>::finish(Load& load) noexcept {
  while (load.pending > 0) {
    const io::ReadQueue::Done done = queue_.wait();
    if (done.tag == io::ReadQueue::nobody) load.pending = 0;  // what is missing is read now
    for (Load& each : loads_) {
      if (each.group != done.tag || each.pending == 0) continue;
      --each.pending;
      if (done.bytes > 0) each.missing -= std::min(each.missing, static_cast<std::uint64_t>(done.bytes));
      break;
    }
  }
}

template <mica::Allocator A>
const std::byte* ReadRing<A>::wait(std::size_t group) noexcept {
  Load* const load = find(group);
  if (load == nullptr) return nullptr;
  finish(*load);
  if (!load->whole) {
    if (load->missing > 0 && !read_now(*load)) {
      forget(group);
      return nullptr;
    }
    load->whole = true;
    bytes_read_ += load->bytes;
  }
  return memory_.data() + load->at;
}

/// All of a load, without the queue.
template <mica::Allocator A>
bool ReadRing<A>::read_now(const Load& load) noexcept {
  std::size_t at = load.at;
  for (const Stretch& stretch : load.stretches) {
    File& file = files_[stretch.source];
    const std::size_t end = static_cast<std::size_t>(
        std::min<std::uint64_t>(stretch.bytes, file.size - std::min(file.size, stretch.offset)));
    for (std::size_t done = 0; done < end;) {
      const std::size_t n = std::min(stretch.bytes - done, request_bytes);
      const auto offset = static_cast<::off_t>(stretch.offset + done);
      const ::ssize_t got = ::pread(file.fd, memory_.data() + at + done, n, offset);
      if (got < 0 && errno == EINTR) continue;
      const bool crooked =
          got < 0 ? errno == EINVAL : static_cast<std::size_t>(got) % alignment != 0 && done + got < end;
      if (crooked && file.fd != file.buffered) {  // the file system took the flag and not the read
        file.fd = file.buffered;
        continue;
      }
      if (got <= 0) return false;
#ifdef POSIX_FADV_DONTNEED
      if (file.fd == file.buffered) ::posix_fadvise(file.fd, offset, got, POSIX_FADV_DONTNEED);
#endif
      done += static_cast<std::size_t>(got);
    }
    at += stretch.bytes;
  }
  return true;
}

template <mica::Allocator A>
void ReadRing<A>::forget(std::size_t group) noexcept {
  Load* const load = find(group);
  if (load == nullptr) return;
  finish(*load);  // the system may still write there
  loads_.erase(loads_.begin() + (load - loads_.data()));
}

}  // namespace mica::paging
