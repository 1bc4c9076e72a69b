// SPDX-License-Identifier: Apache-2.0
//
// usage: matmul_bench [FORMAT] [--targets NAME] [--reading apart|in_order] [--json FILE]
//
// One thread, the file's layout, rows of 4,096. For each format: 24 rows are compared with the specification, then one
// token over a matrix larger than any cache (GB/s of weights, beside the speed of reading) and 3, 8 and 512 tokens over
// one that stays in the third level (GMAC/s, beside the peak of the byte dot). Best and median of half a second.
// --reading: the order in which packed rows meet one token; without it the first run finds out the faster one.

#define MICA_USER_CODECS_INL "kernel/peak-inl.hpp"
#include "kernel/product.hpp"
#include "mica/kernel/highway/dispatch.hpp"
#include "mica/kernel/highway/reading.hpp"

#include <optional>
#include <string>

namespace mica::kernel::highway {
HWY_EXPORT(dots);
HWY_EXPORT(read_all);
HWY_EXPORT(target_name);
}  // namespace mica::kernel::highway

namespace {

using namespace bench;  // NOLINT: a program

bench::Limits measure_limits() {
  using namespace mica::kernel::highway;
  std::int32_t sink = 1;
  const auto read = HWY_DYNAMIC_POINTER(read_all);
  return bench::measure_limits(
      HWY_DYNAMIC_DISPATCH(target_name)(),
      [&](const std::uint8_t* bytes, std::size_t n) { read(bytes, n, &sink); },
      [&] { return HWY_DYNAMIC_DISPATCH(dots)(1000000, &sink); });
}

/// One line of JSON per measurement, when asked for.
void record(std::FILE* json, std::string_view format, std::size_t n, const char* unit, double best,
            double median) {
  if (json == nullptr) return;
  std::fprintf(json,
               "{\"format\": \"%s\", \"tokens\": %zu, \"unit\": \"%s\", \"best\": %.2f, \"median\": %.2f}\n",
               std::string(format).c_str(), n, unit, best, median);
}

template <class F>
void measure(Inputs& inputs, const bench::Limits& limits, std::FILE* json) {
  const std::string name = std::string(F::name) + (tensor::is_packed<F> ? " packed" : "");
  std::printf("%-14s", name.c_str());
  {
    Product<F> decode(std::size_t{192} << 20, inputs);
    decode.template check<kernel::Highway>();
    const auto t = bench::time([&] { decode.template run<kernel::Highway>(1, decode.rows); });
    std::printf(" | %5.1f %5.1f  %3.0f %%", decode.gb() / t.best, decode.gb() / t.median,
                100 * decode.gb() / t.best / limits.read_gbs);
    record(json, name, 1, "GB/s", decode.gb() / t.best, decode.gb() / t.median);
  }
  Product<F> prefill(std::size_t{2} << 20, inputs);
  for (const std::size_t n : {std::size_t{3}, std::size_t{8}, tokens}) {
    const auto t = bench::time([&] { prefill.template run<kernel::Highway>(n, prefill.rows); });
    std::printf(" | %5.0f %5.0f  %3.0f %%", prefill.gmac(n) / t.best, prefill.gmac(n) / t.median,
                100 * prefill.gmac(n) / t.best / limits.gops);
    record(json, name, n, "GMAC/s", prefill.gmac(n) / t.best, prefill.gmac(n) / t.median);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  using mica::kernel::highway::Reading;
  std::string_view chosen;
  std::optional<Reading> reading;
  std::FILE* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--targets") {
      if (++i < argc && bench::limit_targets(argv[i])) continue;
      std::fprintf(stderr, "--targets needs an instruction set of this machine and program\n");
      return 2;
    }
    if (word == "--reading") {
      const std::string_view order = ++i < argc ? argv[i] : "";
      if (order == "apart") reading = Reading::apart;
      if (order == "in_order") reading = Reading::in_order;
      if (reading) continue;
      std::fprintf(stderr, "--reading needs apart or in_order\n");
      return 2;
    }
    if (word != "--json") {
      chosen = word;
    } else if (++i == argc || (json = std::fopen(argv[i], "w")) == nullptr) {
      std::fprintf(stderr, "--json needs a file that can be written\n");
      return 2;
    }
  }
  const bench::Limits limits = measure_limits();
  std::printf("%s: read %.1f GB/s, byte dot %.0f GMAC/s (one thread)\n", limits.target, limits.read_gbs,
              limits.gops);
  if (json != nullptr) {
    std::fprintf(json, "{\"target\": \"%s\", \"read_gbs\": %.2f, \"dot_gmacs\": %.1f}\n", limits.target,
                 limits.read_gbs, limits.gops);
  }
  std::printf(
      "               | 1 token, GB/s      | 3 tokens, GMAC/s   | 8 tokens           | 512 tokens\n"
      "               |  best   med  limit |  best   med  limit |  best   med  limit |  best   med  limit\n");
  Inputs inputs;
  format::All::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (F::vector_codec) {
      if (!chosen.empty() && F::name != chosen) return;
      mica::kernel::highway::reading_choice<F>().set(reading);
      measure<F>(inputs, limits, json);
      if constexpr (PackableFormat<F>) measure<tensor::Packed<F>>(inputs, limits, json);
    }
  });
  if (json != nullptr) std::fclose(json);
}
