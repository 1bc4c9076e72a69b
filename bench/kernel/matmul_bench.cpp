// SPDX-License-Identifier: Apache-2.0
//
// usage: matmul_bench [FORMAT] [--targets NAME] [--json FILE]
//
// One thread, the file's layout, rows of 4,096. For each format: 24 rows are compared with the specification, then one
// token over a matrix larger than any cache (GB/s of weights, beside the speed of reading) and 3, 8 and 512 tokens over
// one that stays in the third level (GMAC/s, beside the peak of the byte dot). Best and median of half a second.

#define MICA_USER_CODECS_INL "kernel/peak-inl.hpp"
#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/kernel/highway/dispatch.hpp"

#include <string>

namespace mica::kernel::highway {
HWY_EXPORT(dots);
HWY_EXPORT(read_all);
HWY_EXPORT(target_name);
}  // namespace mica::kernel::highway

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t cols = 4096;
constexpr std::size_t tokens = 512;

bench::Limits measure_limits() {
  using namespace mica::kernel::highway;
  std::int32_t sink = 1;
  const auto read = HWY_DYNAMIC_POINTER(read_all);
  return bench::measure_limits(
      HWY_DYNAMIC_DISPATCH(target_name)(),
      [&](const std::uint8_t* bytes, std::size_t n) { read(bytes, n, &sink); },
      [&] { return HWY_DYNAMIC_DISPATCH(dots)(1000000, &sink); });
}

template <class F>
void fill(typename F::Block& block, CounterRng& rng) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&block);
  for (std::size_t i = 0; i < sizeof(block); ++i) bytes[i] = static_cast<std::uint8_t>(rng.next());
  if constexpr (requires { block.d.bits; }) block.d = to_half(0.01f);
  if constexpr (requires { block.dmin; }) block.dmin = to_half(0.02f);
  if constexpr (requires { block.m; }) block.m = to_half(-0.1f);
  if constexpr (requires { F::set_scale(block, Half()); }) F::set_scale(block, to_half(0.01f));
  if constexpr (requires { block.exponent; }) block.exponent = 120;
  if constexpr (F::block_size == 1 && EncodableFormat<F>) {
    const auto value = static_cast<float>(rng.uniform() - 0.5);
    F::encode(&value, block);
  }
}

/// Activations in both forms.
struct Inputs {
  bench::Pages<float> values{tokens * cols};
  bench::Pages<std::int8_t> codes{tokens * cols};
  bench::Pages<float> scales{tokens * cols / 32};
  bench::Pages<std::int16_t> sums{tokens * cols / 16};

  Inputs() {
    CounterRng rng(1);
    for (float& v : values) v = static_cast<float>(rng.uniform() - 0.5);
    kernel::Scalar::quantize({{values.data(), tokens, cols}, quantized(tokens), 0, tokens});
  }
  [[nodiscard]] kernel::QuantizedRows quantized(std::size_t n) {
    return {codes.data(), scales.data(), sums.data(), n, cols};
  }
};

template <class G>
struct FileForm {
  using type = G;
};
template <class F>
struct FileForm<tensor::Packed<F>> {
  using type = F;
};

/// G: a format, or its packed form.
template <class G>
struct Bench {
  using F = typename FileForm<G>::type;
  std::size_t rows;
  bench::Pages<typename F::Block> blocks;
  bench::Pages<float> y;
  Inputs& inputs;

  Bench(std::size_t bytes, Inputs& in)
      : rows(bytes / (cols / F::block_size * sizeof(typename F::Block)) / 32 * 32),
        blocks(rows * (cols / F::block_size)),
        y(tokens * rows),
        inputs(in) {
    CounterRng rng(2);
    const std::size_t distinct = std::min<std::size_t>(blocks.size(), 4096 * 256 / F::block_size);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (i < distinct)
        fill<F>(blocks[i], rng);
      else
        blocks[i] = blocks[i - distinct];
    }
    if constexpr (tensor::is_packed<G>) pack_in_place();
  }
  void pack_in_place() {
    const std::size_t panel = tensor::Rows16::rows * cols / F::block_size;  // blocks
    std::vector<typename F::Block> copy(panel);
    for (std::size_t i = 0; i < blocks.size(); i += panel) {
      std::copy_n(blocks.data() + i, panel, copy.data());
      tensor::pack(tensor::Matrix<F>(copy.data(), tensor::Rows16::rows, cols),
                   reinterpret_cast<std::byte*>(blocks.data() + i));
    }
  }
  template <class K>
  void run(std::size_t n, std::size_t last) {
    kernel::MatmulArgs<G> a;
    a.w = {blocks.data(), rows, cols};
    a.x = {{inputs.values.data(), n, cols}, inputs.quantized(n)};
    a.y = {y.data(), n, rows};
    a.last = last;
    K::template matmul<G>(a);
  }
  void check() {
    for (const std::size_t n : std::initializer_list<std::size_t>{1, 3, 11}) {
      run<kernel::Scalar>(n, 24);
      const std::vector<float> expected(y.begin(), y.begin() + static_cast<long>(n * rows));
      run<kernel::Highway>(n, 24);
      if (!std::equal(expected.begin(), expected.end(), y.begin())) {
        std::fprintf(stderr, "%s: not what the specification says\n", std::string(F::name).c_str());
        std::exit(1);
      }
    }
  }
  bench::Spread time(std::size_t n) {
    return bench::time([&] { run<kernel::Highway>(n, rows); });
  }
  [[nodiscard]] double gb() const {
    return static_cast<double>(blocks.size() * sizeof(typename F::Block)) / 1e9;
  }
  [[nodiscard]] double gmac(std::size_t n) const { return static_cast<double>(rows * cols * n) / 1e9; }
};

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
    Bench<F> decode(std::size_t{192} << 20, inputs);
    decode.check();
    const auto t = decode.time(1);
    std::printf(" | %5.1f %5.1f  %3.0f %%", decode.gb() / t.best, decode.gb() / t.median,
                100 * decode.gb() / t.best / limits.read_gbs);
    record(json, name, 1, "GB/s", decode.gb() / t.best, decode.gb() / t.median);
  }
  Bench<F> prefill(std::size_t{2} << 20, inputs);
  for (const std::size_t n : {std::size_t{3}, std::size_t{8}, tokens}) {
    const auto t = prefill.time(n);
    std::printf(" | %5.0f %5.0f  %3.0f %%", prefill.gmac(n) / t.best, prefill.gmac(n) / t.median,
                100 * prefill.gmac(n) / t.best / limits.gops);
    record(json, name, n, "GMAC/s", prefill.gmac(n) / t.best, prefill.gmac(n) / t.median);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view chosen;
  std::FILE* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--targets") {
      if (++i < argc && bench::limit_targets(argv[i])) continue;
      std::fprintf(stderr, "--targets needs an instruction set of this machine and program\n");
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
      measure<F>(inputs, limits, json);
      if constexpr (PackableFormat<F>) measure<tensor::Packed<F>>(inputs, limits, json);
    }
  });
  if (json != nullptr) std::fclose(json);
}
