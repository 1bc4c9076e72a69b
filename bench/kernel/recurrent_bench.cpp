// SPDX-License-Identifier: Apache-2.0
//
// usage: recurrent_bench [--json FILE]
//
// One thread, one layer with a delta rule as large models have it: width 2,048, 32 value heads of 128 x 128,
// 8,192 channels through a convolution of four taps, projections 2,048 -> 12,288 and 4,096 -> 2,048 in Q4_K.
// Each result is compared with the specification first. Microseconds of a layer per token, for one token with
// states and weights that come from memory, and for 16 and 512 tokens. The limit of the rule is reading and
// writing the state at the speed of reading (one token), or four float operations per number of the state and
// token at the rate of multiply-adds. Best and median of half a second.

#define MICA_USER_CODECS_INL "kernel/peak-inl.hpp"
#include "kernel/measure.hpp"
#include "mica/base/rng.hpp"
#include "mica/kernel/highway/dispatch.hpp"

namespace mica::kernel::highway {
HWY_EXPORT(float_multiply_adds);
HWY_EXPORT(read_all);
HWY_EXPORT(target_name);
}  // namespace mica::kernel::highway

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t tokens = 512, heads = 32, dim = 128, taps = 4;
constexpr std::size_t width = 2048, channels = 8192, inner = heads * dim, projected = channels + inner;
/// Layers of states and of weights: more than a cache holds.
constexpr std::size_t state_layers = 40, weight_layers = 5;

bench::Limits measure_limits() {
  using namespace mica::kernel::highway;
  std::int32_t sink = 1;
  const auto read = HWY_DYNAMIC_POINTER(read_all);
  return bench::measure_limits(
      HWY_DYNAMIC_DISPATCH(target_name)(),
      [&](const std::uint8_t* bytes, std::size_t n) { read(bytes, n, &sink); },
      [&] { return HWY_DYNAMIC_DISPATCH(float_multiply_adds)(1000000, &sink); });
}

void fill(bench::Pages<float>& numbers, CounterRng& rng) {
  for (float& x : numbers) x = static_cast<float>(rng.uniform() - 0.5);
}

struct Layer {
  bench::Pages<float> x{tokens * channels};  // before the convolution
  bench::Pages<float> y{tokens * channels};  // queries and keys of 16 heads, values of 32
  bench::Pages<float> out{tokens * inner};
  bench::Pages<float> weight{channels * taps};
  bench::Pages<float> window{(taps - 1) * channels};
  bench::Pages<float> gates{tokens * heads * 2};
  bench::Pages<float> states{state_layers * heads * dim * dim};
  std::size_t layer = 0;

  Layer() {
    CounterRng rng(1);
    fill(x, rng);
    fill(weight, rng);
    for (float& gate : gates) gate = static_cast<float>(rng.uniform());
  }
  template <class K>
  void conv(std::size_t n) {
    K::causal_conv({{x.data(), n, channels},
                    weight.data(),
                    taps,
                    {window.data(), taps - 1, channels},
                    {y.data(), n, channels},
                    0,
                    channels});
  }
  template <class K>
  void delta(std::size_t n, std::size_t last_head = heads) {
    const MatrixView<float> rows(y.data(), n, channels), outs(out.data(), n, inner);
    for (std::size_t h = 0; h < last_head; ++h) {
      float* const state = states.data() + (layer * heads + h) * dim * dim;
      const float* const gate = gates.data() + h;
      K::delta_rule({rows.cols(h / 2 * dim, dim),
                     rows.cols((heads / 2 + h / 2) * dim, dim),
                     rows.cols((heads + h) * dim, dim),
                     gate,
                     gate + heads,
                     2 * heads,
                     {state, dim, dim},
                     outs.cols(h * dim, dim),
                     0,
                     dim});
    }
  }
  /// Of two heads and three tokens, from empty states.
  template <class K>
  std::vector<float> result() {
    std::fill(window.begin(), window.end(), 0.0f);
    std::fill_n(states.begin(), 2 * dim * dim, 0.0f);
    conv<K>(3);
    for (float& v : y) v *= 0.2f;  // keys of a length near 1
    delta<K>(3, 2);
    return std::vector<float>(out.begin(), out.begin() + 3 * inner);
  }
  void check() {
    if (result<kernel::Scalar>() == result<kernel::Highway>()) return;
    std::fprintf(stderr, "recurrent: not what the specification says\n");
    std::exit(1);
  }
};

/// The products around the rule.
struct Projections {
  using F = format::Q4_K;
  static constexpr std::size_t first_blocks = projected * width / F::block_size,
                               blocks_of_layer = first_blocks + width * inner / F::block_size;
  bench::Pages<F::Block> blocks{weight_layers * blocks_of_layer};
  bench::Pages<float> y{tokens * projected};
  bench::Pages<std::int8_t> codes{tokens * inner};
  bench::Pages<float> scales{tokens * inner / 32};
  bench::Pages<std::int16_t> sums{tokens * inner / 16};
  std::size_t layer = 0;

  Projections() {
    CounterRng rng(2);
    for (F::Block& block : blocks) {
      for (auto& byte : block.nibbles) byte = static_cast<std::uint8_t>(rng.next());
      block.d = to_half(0.01f);
    }
  }
  void run(std::size_t n) {
    const F::Block* const w = blocks.data() + layer * blocks_of_layer;
    product(w, projected, width, n);
    product(w + first_blocks, width, inner, n);
  }
  void product(const F::Block* w, std::size_t rows, std::size_t cols, std::size_t n) {
    kernel::MatmulArgs<F> a;
    a.w = {w, rows, cols};
    a.x.codes = {codes.data(), scales.data(), sums.data(), n, cols};
    a.y = {y.data(), n, rows};
    a.last = rows;
    kernel::Highway::matmul<F>(a);
  }
};

/// One line of JSON per measurement, when asked for.
void record(std::FILE* json, const char* operation, std::size_t n, const bench::Spread& t, double us) {
  if (json == nullptr) return;
  std::fprintf(
      json,
      "{\"operation\": \"%s\", \"tokens\": %zu, \"unit\": \"us/token\", \"best\": %.2f, \"median\": %.2f}\n",
      operation, n, t.best * us, t.median * us);
}

void measure(Layer& layer, Projections& projections, const bench::Limits& limits, std::size_t n,
             std::FILE* json) {
  const double us = 1e6 / static_cast<double>(n);
  const auto conv = bench::time([&] { layer.conv<kernel::Highway>(n); });
  std::fill(layer.states.begin(), layer.states.end(), 0.0f);
  const auto delta = bench::time([&] {
    layer.delta<kernel::Highway>(n);
    layer.layer = n == 1 ? (layer.layer + 1) % state_layers : 0;
  });
  const auto products = bench::time([&] {
    projections.run(n);
    projections.layer = (projections.layer + 1) % weight_layers;
  });
  record(json, "causal_conv", n, conv, us);
  record(json, "delta_rule", n, delta, us);
  record(json, "Q4_K products", n, products, us);
  constexpr double numbers = heads * dim * dim;
  const double limit =
      n == 1 ? numbers * 8 / limits.read_gbs / 1e9 : numbers * 4 * static_cast<double>(n) / limits.gops / 1e9;
  std::printf("%6zu | %7.1f %7.1f | %7.1f %7.1f %4.0f %% | %8.1f %8.1f | %5.1f %%\n", n, conv.best * us,
              conv.median * us, delta.best * us, delta.median * us, 100 * limit / delta.best,
              products.best * us, products.median * us, 100 * (conv.best + delta.best) / products.best);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* json = nullptr;
  if (argc > 1 &&
      (argc != 3 || std::string_view(argv[1]) != "--json" || !(json = std::fopen(argv[2], "w")))) {
    std::fprintf(stderr, "usage: recurrent_bench [--json FILE], a file that can be written\n");
    return 2;
  }
  const bench::Limits limits = measure_limits();
  std::printf("%s: read %.1f GB/s, float multiply-adds %.0f G/s (one thread)\n", limits.target,
              limits.read_gbs, limits.gops);
  if (json != nullptr) {
    std::fprintf(json, "{\"target\": \"%s\", \"read_gbs\": %.2f, \"float_gops\": %.1f}\n", limits.target,
                 limits.read_gbs, limits.gops);
  }
  Layer layer;
  layer.check();
  Projections projections;
  std::printf(
      "       | convolution, us | delta rule, us         | Q4_K products, us | both, of\n"
      "tokens |    best     med |    best     med  limit |     best      med | products\n");
  for (const std::size_t n : {std::size_t{1}, std::size_t{16}, tokens})
    measure(layer, projections, limits, n, json);
  if (json != nullptr) std::fclose(json);
}
