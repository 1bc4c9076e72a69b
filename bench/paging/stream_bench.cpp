// SPDX-License-Identifier: Apache-2.0
//
// usage: stream_bench MODEL BUDGET_MIB [--json FILE]
//
// How near streamed weights come to the disk, without a model that computes: units of a file pass through
// paging::Streamed as in the steps of a run, in turns with reads of the same file in order past the page
// cache, 4 MiB each, 16 under way (io::DiskProbe). The bytes that arrive are compared with the file's before
// anything is timed.
//
//   pager      bytes per second of Streamed, and the part of one core that reading them takes
//   in order   the same of plain reads
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/block/lists.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/weights.hpp"
#include "mica/paging/streamed.hpp"
#include "mica_tools/measure/disk_probe.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <sys/resource.h>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t turns = 5;
constexpr double seconds_a_turn = 2;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Time of this process's cores, and of the clock on the wall.
struct Clock {
  double cores;
  double wall;

  [[nodiscard]] static Clock now() {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const ::timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {seconds(usage.ru_utime) + seconds(usage.ru_stime), std::chrono::duration<double>(wall).count()};
  }
};

/// All units of a step, without experts.
template <class Use>
void step(paging::Streamed<>& pager, std::size_t head, Use use) {
  for (std::size_t unit = 0; unit <= head; ++unit) {
    if (!pager.acquire(unit)) fail("a unit cannot be read");
    pager.prefetch(unit + 1);
    use(unit);
    pager.release(unit);
  }
}

/// Whether what arrives is what lies in the file: the first and last bytes of each tensor that is not packed
/// on the way.
void compare(paging::Streamed<>& pager, const gguf::Document& document,
             std::span<const paging::Extent> extents, std::size_t head) {
  step(pager, head, [&](std::size_t unit) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i].unit != unit || pager.packed(i) != extents[i].packed) continue;
      const std::size_t n = std::min<std::size_t>(extents[i].bytes, 4096);
      std::vector<std::byte> ends(n);
      for (const std::uint64_t at : {std::uint64_t{0}, extents[i].bytes - n}) {
        document.sources()[extents[i].source].read_at(extents[i].offset + at, ends);
        if (std::memcmp(pager.data(i) + at, ends.data(), n) != 0) fail("other bytes than the file's");
      }
    }
  });
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) fail("usage: stream_bench MODEL.gguf BUDGET_MIB [--json FILE]");
  std::FILE* const json =
      argc > 4 && std::strcmp(argv[3], "--json") == 0 ? std::fopen(argv[4], "w") : nullptr;
  const auto document = gguf::open(argv[1]);
  const arch::Config config = arch::AnyOf<arch::All>::config(document);
  const model::Weights<format::All, block::All> weights(document, config);
  const std::size_t head = config.layers.size() + 1;
  paging::Streamed<> pager({document, weights.extents(), weights.units(), head, weights.largest_mixture()},
                           {}, {}, std::strtoull(argv[2], nullptr, 10) << 20);
  if (pager.streamed_bytes() == 0) fail("nothing is streamed; give a smaller budget");
  compare(pager, document, weights.extents(), head);
  auto memory = alloc::Buffer<std::byte, alloc::Huge>::make({}, io::DiskProbe::memory_bytes);
  if (!memory) fail("no memory for reads in order");
  const auto sources = document.sources();
  const auto largest = std::max_element(sources.begin(), sources.end(), [](const auto& a, const auto& b) {
    return a.size() < b.size();
  });  // of a packed folder
  io::DiskProbe disk(*largest->file(), memory->span());
  std::vector<double> rates, cores, disk_rates;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const auto before = pager.reads().bytes;
    const Clock begin = Clock::now();
    Clock end = begin;
    while (end.wall - begin.wall < seconds_a_turn) {
      step(pager, head, [](std::size_t) {});
      end = Clock::now();
    }
    rates.push_back(static_cast<double>(pager.reads().bytes - before) / (end.wall - begin.wall));
    cores.push_back((end.cores - begin.cores) / (end.wall - begin.wall));
    disk_rates.push_back(disk.measure(seconds_a_turn).in_order);
  }
  const double rate = median(rates), plain = median(disk_rates), core = median(cores);
  std::printf(
      "| read for each step | pager | in order | pager / in order | of one core |\n|---|---|---|---|---|\n");
  std::printf("| %.0f MiB | %.2f GB/s | %.2f GB/s | %.3f | %.1f %% |\n",
              static_cast<double>(pager.streamed_bytes()) / 1048576.0, rate / 1e9, plain / 1e9, rate / plain,
              core * 100);
  if (json != nullptr) {
    std::fprintf(json,
                 "{\"command\": \"stream_bench MODEL %s\", \"streamed_bytes\": %llu, "
                 "\"pager_bytes_per_second\": %.0f, "
                 "\"in_order_bytes_per_second\": %.0f, \"ratio\": %.3f, \"of_one_core\": %.3f}\n",
                 argv[2], static_cast<unsigned long long>(pager.streamed_bytes()), rate, plain, rate / plain,
                 core);
    std::fclose(json);
  }
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
