// SPDX-License-Identifier: Apache-2.0
//
// The speed of a disk without the page cache: in order, as streamed weights are read, and at random places,
// as rows of an embedding are.
//
//   in order    | 4 MiB | 4 MiB | 4 MiB | ...      16 under way
//   scattered   .. | 4 KiB | .... | 4 KiB | ..      32 under way
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/rng.hpp"
#include "mica/io/direct.hpp"
#include "mica/io/read_queue.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mica::io {

/// Bytes per second.
struct DiskSpeed {
  double in_order = 0;   // reads of 4 MiB
  double scattered = 0;  // reads of 4 KiB
};

/// Reads parts of one file past the page cache for some time, into memory of the caller. One thread.
class DiskProbe {
 public:
  /// Bytes of a read, and reads at a time: in order, and scattered.
  static constexpr std::size_t large_bytes = std::size_t{4} << 20;
  static constexpr std::size_t large_under_way = 16;
  static constexpr std::size_t small_bytes = 4096;
  static constexpr std::size_t small_under_way = 32;

  /// Bytes of memory for the probe. Use huge pages (alloc/huge.hpp), as for weights, because small pages make
  /// reads slower.
  static constexpr std::size_t memory_bytes = large_bytes * large_under_way;

  /// File and memory outlive the probe; memory begins at a multiple of 4,096. Raises ErrorCode::unsupported
  /// where the system refuses direct reads or has no queue for them, because the page cache would be measured
  /// instead, and ErrorCode::usage for a file of less than 4 MiB.
  DiskProbe(const File& file, std::span<std::byte> memory)
      : file_(file), fd_(detail::open_direct(file)), memory_(memory) {
    MICA_CHECK(fd_, unsupported, file.path(), ": direct reads are refused (", detail::errno_text(errno),
               "), and others measure the page cache; use a file on another disk");
    MICA_CHECK(file.size() >= large_bytes, usage, file.path(), ": has ", file.size(),
               " bytes; measuring a disk needs ", large_bytes, " at least");
    MICA_CHECK(memory.size() >= memory_bytes, usage, "measuring a disk needs memory of ", memory_bytes,
               " bytes; found ", memory.size());
  }

  /// Takes twice `seconds`. Raises ErrorCode::failed when a read fails.
  [[nodiscard]] DiskSpeed measure(double seconds = 0.5) {
    const std::uint64_t blocks = file_.size() / large_bytes;
    CounterRng random(static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()));
    std::uint64_t next = random.next() % blocks;  // not always the same places, which the device may cache
    DiskSpeed speed;
    speed.in_order =
        rate(large_bytes, large_under_way, seconds, [&] { return next++ % blocks * large_bytes; });
    speed.scattered = rate(small_bytes, small_under_way, seconds,
                           [&] { return random.next() % (file_.size() / small_bytes) * small_bytes; });
    return speed;
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Keeps `under_way` reads pending; next() returns the offset of each.
  template <class Next>
  [[nodiscard]] double rate(std::size_t bytes, std::size_t under_way, double seconds, Next next) {
    std::uint64_t done = 0;
    const auto begin = [&](std::uint64_t i) {
      MICA_CHECK(queue_.begin(fd_.get(), next(), place(i, bytes), i), unsupported, file_.path(),
                 ": the system has no queue for reads (io_submit), without which a disk is not measured");
    };
    const auto start = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    for (std::size_t i = 0; i < under_way; ++i) begin(i);
    std::size_t pending = under_way;
    while (pending > 0) {
      const ReadQueue::Done read = queue_.wait();
      --pending;
      MICA_CHECK(read.bytes > 0, failed, file_.path(), ": reading ", bytes, " bytes failed");
      done += static_cast<std::uint64_t>(read.bytes);
      if (passed() >= seconds) continue;
      begin(read.tag);
      ++pending;
    }
    return static_cast<double>(done) / passed();
  }
  [[nodiscard]] std::span<std::byte> place(std::uint64_t i, std::size_t bytes) const noexcept {
    return memory_.subspan(static_cast<std::size_t>(i) * bytes, bytes);
  }

  const File& file_;
  detail::Descriptor fd_;
  std::span<std::byte> memory_;
  ReadQueue queue_{small_under_way};
};

}  // namespace mica::io
