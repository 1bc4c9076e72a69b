// SPDX-License-Identifier: Apache-2.0
//
// usage: queue_bench FILE [UNIT_MIB] [--json FILE]
//
// Whether another queue of the system, or more units on their way, would read streamed weights faster. Units
// (64 MiB) of a file are read in order past the page cache, in requests of 4 MiB as UnitReader makes them.
// When the oldest unit is whole, the next one is requested.
//
//   io_submit   io::ReadQueue, which the pager uses
//   io_uring    a ring of the kernel with the same reads
//
// Both in turns, with one, two and three units on their way; the median of the turns. One unit of each is
// compared with the file before anything is timed.
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/io/direct.hpp"
#include "mica/io/read_queue.hpp"

#include <linux/io_uring.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t request_bytes = std::size_t{4} << 20;
constexpr std::size_t max_units = 3;
constexpr std::size_t turns = 7;
constexpr double seconds_a_turn = 1;

/// io_uring(7) with the members of io::ReadQueue.
class UringQueue {
 public:
  explicit UringQueue(unsigned max) {
    ::io_uring_params made{};
    fd_ = static_cast<int>(::syscall(SYS_io_uring_setup, max, &made));
    MICA_CHECK(fd_ >= 0, unsupported, "the system has no io_uring (", std::strerror(errno), ")");
    std::byte* const sent = map(made.sq_off.array + made.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    std::byte* const done =
        map(made.cq_off.cqes + made.cq_entries * sizeof(::io_uring_cqe), IORING_OFF_CQ_RING);
    requests_ =
        reinterpret_cast<::io_uring_sqe*>(map(made.sq_entries * sizeof(::io_uring_sqe), IORING_OFF_SQES));
    results_ = reinterpret_cast<::io_uring_cqe*>(done + made.cq_off.cqes);
    sent_end_ = word(sent, made.sq_off.tail);
    sent_mask_ = *word(sent, made.sq_off.ring_mask);
    order_ = word(sent, made.sq_off.array);
    done_begin_ = word(done, made.cq_off.head);
    done_end_ = word(done, made.cq_off.tail);
    done_mask_ = *word(done, made.cq_off.ring_mask);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;
  ~UringQueue() { ::close(fd_); }

  [[nodiscard]] bool begin(int fd, std::uint64_t offset, std::span<std::byte> to, std::uint64_t tag) {
    const unsigned at = *sent_end_ & sent_mask_;
    ::io_uring_sqe& request = requests_[at];
    request = {};
    request.opcode = IORING_OP_READ;
    request.fd = fd;
    request.addr = reinterpret_cast<std::uintptr_t>(to.data());
    request.len = static_cast<unsigned>(to.size());
    request.off = offset;
    request.user_data = tag;
    order_[at] = at;
    std::atomic_ref(*sent_end_).fetch_add(1, std::memory_order_release);
    return ::syscall(SYS_io_uring_enter, fd_, 1, 0, 0, nullptr, 0) == 1;
  }
  [[nodiscard]] io::ReadQueue::Done wait() {
    const std::atomic_ref end(*done_end_);
    while (*done_begin_ == end.load(std::memory_order_acquire)) {
      if (::syscall(SYS_io_uring_enter, fd_, 0, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0 && errno != EINTR)
        return {};
    }
    const ::io_uring_cqe result = results_[*done_begin_ & done_mask_];
    std::atomic_ref(*done_begin_).fetch_add(1, std::memory_order_release);
    return {result.user_data, result.res};
  }

 private:
  [[nodiscard]] std::byte* map(std::size_t bytes, ::off_t what) const {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, what);
    MICA_CHECK(at != MAP_FAILED, failed, "io_uring cannot be mapped (", std::strerror(errno), ")");
    return static_cast<std::byte*>(at);
  }
  [[nodiscard]] static unsigned* word(std::byte* ring, unsigned offset) {
    return reinterpret_cast<unsigned*>(ring + offset);
  }

  int fd_;
  ::io_uring_sqe* requests_;
  ::io_uring_cqe* results_;
  unsigned *sent_end_, *order_, *done_begin_, *done_end_;
  unsigned sent_mask_, done_mask_;
};

/// A file, and memory for units.
struct Bench {
  io::File file;
  io::detail::Descriptor fd = io::detail::open_direct(file);
  std::size_t unit_bytes;
  std::span<std::byte> memory{};

  [[nodiscard]] std::span<std::byte> slot(std::size_t i) const {
    return memory.subspan(i * unit_bytes, unit_bytes);
  }
  template <class Queue>
  void begin(Queue& queue, std::uint64_t unit, std::size_t i) const {
    const std::uint64_t first = unit % (file.size() / unit_bytes) * unit_bytes;
    for (std::size_t at = 0; at < unit_bytes; at += request_bytes) {
      MICA_CHECK(queue.begin(fd.get(), first + at, slot(i).subspan(at, request_bytes), i), failed,
                 "a read was refused");
    }
  }
};

struct Speed {
  double bytes_per_second = 0;
  double of_one_core = 0;
};

double seconds_of_cores() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const ::timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Units in order from `next` on, `units` of them on their way.
template <class Queue>
Speed read_units(const Bench& bench, Queue& queue, std::size_t units, std::uint64_t& next) {
  using Clock = std::chrono::steady_clock;
  std::array<std::size_t, max_units> pending{};
  std::uint64_t whole = 0;
  const auto begin = [&](std::size_t i) {
    bench.begin(queue, next++, i);
    pending[i] = bench.unit_bytes / request_bytes;
  };
  const auto finish = [&](std::size_t i) {
    while (pending[i] > 0) {
      const io::ReadQueue::Done done = queue.wait();
      MICA_CHECK(done.bytes == static_cast<std::int64_t>(request_bytes), failed, "a read failed");
      --pending[done.tag];
    }
    ++whole;
  };
  const double cores = seconds_of_cores();
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  for (std::size_t i = 0; i < units; ++i) begin(i);
  for (std::size_t i = 0; passed() < seconds_a_turn; i = (i + 1) % units) {
    finish(i);
    begin(i);
  }
  for (std::size_t i = 0; i < units; ++i) finish(i);
  const double seconds = passed();
  return {static_cast<double>(whole * bench.unit_bytes) / seconds, (seconds_of_cores() - cores) / seconds};
}

template <class Queue>
void compare(const Bench& bench, Queue& queue) {
  std::uint64_t first = 0;
  bench.begin(queue, first, 0);
  for (std::size_t left = bench.unit_bytes / request_bytes; left > 0; --left) {
    MICA_CHECK(queue.wait().bytes == static_cast<std::int64_t>(request_bytes), failed, "a read failed");
  }
  std::vector<std::byte> expected(bench.unit_bytes);
  bench.file.read_at(0, expected);
  MICA_CHECK(std::equal(expected.begin(), expected.end(), bench.slot(0).begin()), failed,
             "other bytes than the file's");
  std::ranges::fill(bench.slot(0), std::byte{0});
}

Speed median(std::vector<Speed> speeds) {
  std::ranges::sort(speeds, {}, &Speed::bytes_per_second);
  return speeds[speeds.size() / 2];
}

}  // namespace

int main(int argc, char** argv) try {
  const bool has_json = argc > 2 && std::strcmp(argv[argc - 2], "--json") == 0;
  const int words = has_json ? argc - 2 : argc;
  MICA_CHECK(words == 2 || words == 3, usage, "usage: queue_bench FILE [UNIT_MIB] [--json FILE]");
  const std::size_t mib = words == 3 ? std::strtoull(argv[2], nullptr, 10) : 64;
  MICA_CHECK(mib >= 4 && mib % 4 == 0, usage, "a unit has a multiple of 4 MiB");
  Bench bench{.file = io::File::open(argv[1]), .unit_bytes = mib << 20};
  MICA_CHECK(bench.fd, unsupported, argv[1], ": direct reads are refused");
  MICA_CHECK(bench.file.size() >= bench.unit_bytes, usage, argv[1], ": is smaller than a unit");
  auto memory = alloc::Buffer<std::byte, alloc::Huge>::make({}, max_units * bench.unit_bytes);
  MICA_CHECK(memory, budget, "no memory for the units");
  bench.memory = memory->span();
  const auto max = static_cast<unsigned>(max_units * bench.unit_bytes / request_bytes);
  io::ReadQueue submit(max);
  UringQueue uring(max);
  compare(bench, submit);
  compare(bench, uring);
  std::array<std::array<std::vector<Speed>, 2>, max_units> speeds;
  std::uint64_t next = 0;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t units = 1; units <= max_units; ++units) {
      speeds[units - 1][0].push_back(read_units(bench, submit, units, next));
      speeds[units - 1][1].push_back(read_units(bench, uring, units, next));
    }
  }
  std::FILE* const json = has_json ? std::fopen(argv[argc - 1], "w") : nullptr;
  if (json != nullptr)
    std::fprintf(json, "{\"command\": \"queue_bench FILE %zu\", \"turns\": %zu, \"rows\": [", mib, turns);
  std::printf("| units of %zu MiB on their way | queue | GB/s | of one core |\n|---|---|---|---|\n", mib);
  for (std::size_t units = 1; units <= max_units; ++units) {
    for (const std::size_t kind : {0, 1}) {
      const Speed speed = median(speeds[units - 1][kind]);
      const char* const name = kind == 0 ? "io_submit" : "io_uring";
      std::printf("| %zu | %s | %.2f | %.1f %% |\n", units, name, speed.bytes_per_second / 1e9,
                  100 * speed.of_one_core);
      if (json != nullptr)
        std::fprintf(
            json, "%s{\"units\": %zu, \"queue\": \"%s\", \"bytes_per_second\": %.0f, \"of_one_core\": %.4f}",
            units + kind == 1 ? "" : ", ", units, name, speed.bytes_per_second, speed.of_one_core);
    }
  }
  if (json != nullptr) {
    std::fprintf(json, "]}\n");
    std::fclose(json);
  }
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
