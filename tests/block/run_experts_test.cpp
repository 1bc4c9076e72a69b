// SPDX-License-Identifier: Apache-2.0

#include "mica/block/detail/run_experts.hpp"

#include "mica/base/rng.hpp"
#include "mica/base/visit.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/scalar.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

namespace mica::test::run_experts_test {
namespace {

using List = TypeList<format::F32, format::Q8_0>;
using block::Choice;

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 2 - 1);
  return out;
}

/// A matrix as numbers, and as the bytes of a format.
struct Weights {
  std::size_t rows, cols;
  format::Id id;
  std::vector<std::byte> bytes;
  std::vector<float> values;  // (rows, cols), after encoding

  Weights(std::size_t r, std::size_t c, format::Id format, std::uint64_t seed)
      : rows(r), cols(c), id(format), values(random(r * c, seed)) {
    visit_id<List>(id, [&](auto type) {
      using F = typename decltype(type)::type;
      for (std::size_t i = 0; i < values.size(); i += F::block_size) {
        typename F::Block block;
        F::encode(&values[i], block);
        F::decode(block, &values[i]);
        const auto* const at = reinterpret_cast<const std::byte*>(&block);
        bytes.insert(bytes.end(), at, at + sizeof block);
      }
    });
  }
  [[nodiscard]] tensor::AnyMatrix<List> matrix() const { return {id, bytes.data(), rows, cols}; }

  [[nodiscard]] std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> y(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < cols; ++c) y[r] += static_cast<double>(values[r * cols + c]) * x[c];
    }
    return y;
  }
};

struct OneExpert {
  Weights gate, up, down;
  std::vector<float> gate_bias, up_bias, down_bias;
};

/// Experts that count who holds them, and write down what they see.
struct Shelf {
  std::vector<OneExpert> experts;
  bool biased = false;
  std::size_t bad = 1000;                             // the expert that cannot be read
  std::map<std::size_t, int> held, taken, announced;  // by expert
  std::map<std::size_t, std::vector<float>> in;       // by expert: the rows that went into its first products
  std::map<std::size_t, std::size_t> hidden_rows;

  static constexpr bool divides = false;

  [[nodiscard]] ranks::Part outputs() const { return ranks::all_of(experts[0].down.matrix().rows()); }
  void prefetch(std::size_t e) { ++announced[e]; }
  [[nodiscard]] bool acquire(std::size_t e) {
    CHECK(announced[e] > taken[e]);
    if (e == bad) return false;
    ++held[e];
    ++taken[e];
    return true;
  }
  void release(std::size_t e) { --held[e]; }
  [[nodiscard]] bool nothing_held() const {
    return std::all_of(held.begin(), held.end(), [](const auto& entry) { return entry.second == 0; });
  }
  [[nodiscard]] block::GatedWeights<List> expert(std::size_t e) const {
    const OneExpert& one = experts[e];
    block::GatedWeights<List> out{one.gate.matrix(), one.up.matrix(), one.down.matrix()};
    if (biased) {
      out.gate_bias = one.gate_bias.data();
      out.up_bias = one.up_bias.data();
      out.down_bias = one.down_bias.data();
    }
    return out;
  }
  void inputs(std::size_t e, MatrixView<const float> rows) {
    CHECK(held[e] == 1);
    for (std::size_t r = 0; r < rows.rows(); ++r) in[e].insert(in[e].end(), rows[r].begin(), rows[r].end());
  }
  void hidden(std::size_t e, MatrixView<const float> rows) {
    CHECK(rows.cols() == experts[e].gate.rows);
    hidden_rows[e] += rows.rows();
  }
};

/// A mixture, some tokens, and the experts that each of them uses.
struct Mixture {
  block::ExpertsConfig config;
  std::size_t width;
  format::Id id = format::F32::id;  // of gates and ups
  bool biased = false;
  format::Id down = id;
  std::size_t tokens = 29;
  bool observed = false;
  Shelf shelf = {};
  std::vector<float> x = {};
  std::vector<Choice> choices = {};  // (tokens, used)

  /// Draws weights, tokens and choices.
  void draw() {
    const std::size_t ff = config.ff_width;
    for (std::size_t e = 0; e < config.count; ++e) {
      const std::uint64_t seed = 100 * e;
      shelf.experts.push_back({{ff, width, id, seed},
                               {ff, width, id, seed + 1},
                               {width, ff, down, seed + 2},
                               random(ff, seed + 3),
                               random(ff, seed + 4),
                               random(width, seed + 5)});
    }
    shelf.biased = biased;
    x = random(tokens * width, 7);
    choices.resize(tokens * config.used);
    for (std::size_t t = 0; t < tokens; ++t) {
      auto logits = random(config.count, 1000 + t);
      for (float& logit : logits) logit *= 3;
      block::choose_experts(config, logits, nullptr,
                            std::span(choices).subspan(t * config.used, config.used));
    }
  }

  [[nodiscard]] bool quantized_input() const { return id != format::F32::id; }
  [[nodiscard]] bool quantized_hidden() const { return down != format::F32::id; }

  /// The sum over experts, in doubles, of numbers as they are before activations are quantised.
  [[nodiscard]] std::vector<double> exact() const {
    std::vector<double> y(tokens * width);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t i = 0; i < config.used; ++i) {
        const Choice& choice = choices[t * config.used + i];
        const OneExpert& one = shelf.experts[choice.expert];
        const auto weight = static_cast<double>(choice.weight);
        std::vector<double> in(x.begin() + static_cast<std::ptrdiff_t>(t * width),
                               x.begin() + static_cast<std::ptrdiff_t>((t + 1) * width));
        if (config.weighted_input) {
          for (double& v : in) v *= weight;
        }
        auto gate = one.gate.times(in), up = one.up.times(in);
        for (std::size_t r = 0; r < gate.size(); ++r) {
          const double g = gate[r] + (biased ? static_cast<double>(one.gate_bias[r]) : 0);
          const double u = up[r] + (biased ? static_cast<double>(one.up_bias[r]) : 0);
          gate[r] = g / (1 + std::exp(-g)) * u;
        }
        const auto out = one.down.times(gate);
        for (std::size_t r = 0; r < width; ++r) {
          const double value = out[r] + (biased ? static_cast<double>(one.down_bias[r]) : 0);
          y[t * width + r] += (config.weighted_input ? 1 : weight) * value;
        }
      }
    }
    return y;
  }

  /// y = the experts of tokens [first, first + n), with scratch for `capacity` rows. False: one could not be read.
  template <class E>
  bool run(E& executor, std::size_t first, std::size_t n, std::size_t capacity, std::vector<float>& y) {
    const std::size_t ff = config.ff_width, rows = n * config.used, wide = std::max(width, ff);
    std::vector<Choice> chosen(choices.begin() + static_cast<std::ptrdiff_t>(first * config.used),
                               choices.begin() + static_cast<std::ptrdiff_t>((first + n) * config.used));
    std::vector<std::uint32_t> expert(config.count), begin(config.count + 1), token(rows);
    std::vector<float> weight(rows), values(capacity * width, NAN), gate(capacity * ff, NAN), up(gate);
    Codes in(n, width), gathered(capacity, wide);
    block::ExpertScratch scratch;
    scratch.capacity = capacity;
    scratch.rows = {chosen, expert, begin, token, weight};
    scratch.rows.sort(config.used);
    scratch.values = {values.data(), capacity, width};
    scratch.gate_out = {gate.data(), capacity, ff};
    scratch.up_out = {up.data(), capacity, ff};
    const MatrixView<const float> tokens_in(x.data() + first * width, n, width);
    kernel::Input input{tokens_in, {}};
    if (quantized_input()) {
      input.codes = in.rows(n, width);
      kernel::Scalar::quantize(kernel::QuantizeArgs{tokens_in, input.codes, 0, n});
      scratch.input_codes = gathered.rows(capacity, width);
    }
    if (quantized_hidden()) scratch.hidden_codes = gathered.rows(capacity, ff);
    y.assign(n * width, 0.0f);
    const block::ExpertsContext<Shelf> context{.config = config,
                                               .x = input,
                                               .quantized_input = quantized_input(),
                                               .quantized_hidden = quantized_hidden(),
                                               .observed = observed,
                                               .scratch = scratch,
                                               .source = shelf,
                                               .y = {y.data(), n, width}};
    return block::run_experts<kernel::Scalar, List>(executor, context);
  }

  /// All tokens, `step` at a time, in batches of no more than `capacity` rows.
  template <class E>
  std::vector<float> all(E& executor, std::size_t step, std::size_t capacity) {
    std::vector<float> out;
    for (std::size_t first = 0; first < tokens; first += step) {
      std::vector<float> y;
      REQUIRE(run(executor, first, std::min(step, tokens - first), capacity, y));
      CHECK(shelf.nothing_held());
      out.insert(out.end(), y.begin(), y.end());
    }
    return out;
  }

 private:
  struct Codes {
    Codes(std::size_t n, std::size_t cols) : codes(n * cols), scales(n * cols / 32), sums(n * cols / 16) {}
    [[nodiscard]] kernel::QuantizedRows rows(std::size_t n, std::size_t cols) {
      return {codes.data(), scales.data(), sums.data(), n, cols};
    }
    std::vector<std::int8_t> codes;
    std::vector<float> scales;
    std::vector<std::int16_t> sums;
  };
};

/// A mixture of each kind that run_experts() tells apart.
std::vector<Mixture> mixtures() {
  std::vector<Mixture> out;
  const block::ExpertsConfig odd{.count = 9, .used = 3, .ff_width = 70};
  const block::ExpertsConfig even{.count = 6, .used = 2, .ff_width = 96};
  for (const bool weighted_input : {false, true}) {
    for (const bool biased : {false, true}) {
      out.push_back({.config = odd, .width = 67, .biased = biased});
      out.push_back({.config = even, .width = 64, .id = format::Q8_0::id, .biased = biased});
      for (std::size_t i = out.size() - 2; i < out.size(); ++i) out[i].config.weighted_input = weighted_input;
    }
  }
  out.push_back({.config = {.count = 5, .used = 2, .ff_width = 33}, .width = 64, .id = format::Q8_0::id});
  out.back().down = format::F32::id;  // rows that no block of 32 divides
  out.push_back({.config = {.count = 5, .used = 2, .ff_width = 64}, .width = 33, .down = format::Q8_0::id});
  out.push_back({.config = {.count = 4, .used = 4, .ff_width = 1}, .width = 5});
  out.push_back({.config = {.count = 1, .used = 1, .ff_width = 131}, .width = 130});
  for (Mixture& mixture : out) mixture.draw();
  return out;
}

}  // namespace

TEST_CASE("a mixture is the weighted sum of its experts") {
  exec::Inline executor;
  for (Mixture& mixture : mixtures()) {
    CAPTURE(mixture.width);
    CAPTURE(mixture.biased);
    CAPTURE(mixture.config.weighted_input);
    const auto exact = mixture.exact();
    const auto y = mixture.all(executor, mixture.tokens, mixture.tokens * mixture.config.used);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      error += std::pow(static_cast<double>(y[i]) - exact[i], 2);
      size += std::pow(exact[i], 2);
    }
    CHECK(std::sqrt(error / size) < (mixture.quantized_input() || mixture.quantized_hidden() ? 2e-2 : 1e-6));
  }
}

TEST_CASE("a mixture gives the same bits for any step, team and room for rows") {
  exec::Inline executor;
  exec::Team team(3);
  for (Mixture& mixture : mixtures()) {
    CAPTURE(mixture.width);
    const std::size_t n = mixture.tokens, used = mixture.config.used;
    const auto expected = mixture.all(executor, n, n * used);
    CHECK(mixture.all(executor, 1, used) == expected);
    CHECK(mixture.all(executor, 5, 5) == expected);
    CHECK(mixture.all(executor, n, n) == expected);  // several batches
    CHECK(mixture.all(executor, n, n + 1) == expected);
    CHECK(mixture.all(team, n, n) == expected);
    CHECK(mixture.all(team, 7, 7 * used) == expected);
  }
}

TEST_CASE("a token does not depend on what other tokens choose") {
  exec::Inline executor;
  for (Mixture& mixture : mixtures()) {
    const std::size_t n = mixture.tokens, used = mixture.config.used, width = mixture.width;
    const auto before = mixture.all(executor, n, n);
    for (std::size_t i = used; i < mixture.choices.size(); ++i) {  // all others use the first experts
      mixture.choices[i].expert = static_cast<std::uint32_t>(i % used);
    }
    const auto after = mixture.all(executor, n, n);
    CHECK(std::memcmp(before.data(), after.data(), width * sizeof(float)) == 0);
    CHECK((mixture.config.count == used || before != after));
  }
}

TEST_CASE("an expert is taken once for all its tokens, and one without tokens is not") {
  exec::Inline executor;
  Mixture mixture{.config = {.count = 12, .used = 2, .ff_width = 10}, .width = 8, .tokens = 3};
  mixture.draw();
  static_cast<void>(mixture.all(executor, 3, 6));
  std::map<std::size_t, int> used;
  for (const Choice& choice : mixture.choices) used[choice.expert] = 1;
  CHECK(mixture.shelf.taken == used);
}

TEST_CASE("an expert that cannot be read ends the mixture, and none stays held") {
  exec::Inline executor;
  Mixture mixture{.config = {.count = 9, .used = 3, .ff_width = 10}, .width = 8};
  mixture.draw();
  const auto expected = mixture.all(executor, mixture.tokens, mixture.tokens);
  for (std::size_t bad = 0; bad < 9; ++bad) {
    CAPTURE(bad);
    mixture.shelf.bad = bad;
    for (const std::size_t capacity : {mixture.tokens, mixture.tokens * 3}) {
      std::vector<float> y;
      CHECK_FALSE(mixture.run(executor, 0, mixture.tokens, capacity, y));
      CHECK(mixture.shelf.nothing_held());
    }
  }
  mixture.shelf.bad = 1000;
  CHECK(mixture.all(executor, mixture.tokens, mixture.tokens) == expected);
}

TEST_CASE("an observed mixture shows each expert the rows of its tokens") {
  exec::Inline executor;
  for (const bool weighted_input : {false, true}) {
    Mixture mixture{.config = {.count = 5, .used = 2, .ff_width = 10, .weighted_input = weighted_input},
                    .width = 8,
                    .observed = true};
    mixture.draw();
    static_cast<void>(mixture.all(executor, mixture.tokens, mixture.tokens));
    std::map<std::size_t, std::vector<float>> expected;
    std::map<std::size_t, std::size_t> rows;
    for (std::size_t i = 0; i < mixture.choices.size(); ++i) {
      const Choice& choice = mixture.choices[i];
      ++rows[choice.expert];
      for (std::size_t c = 0; c < 8; ++c) {
        expected[choice.expert].push_back(mixture.x[i / 2 * 8 + c] * (weighted_input ? choice.weight : 1.0f));
      }
    }
    CHECK(mixture.shelf.in == expected);
    CHECK(mixture.shelf.hidden_rows == rows);
  }
}

TEST_CASE("a weight that is no number reaches the output") {
  exec::Inline executor;
  for (Mixture& mixture : mixtures()) {
    mixture.choices[0].weight = NAN;
    const auto y = mixture.all(executor, mixture.tokens, mixture.tokens);
    for (std::size_t i = 0; i < mixture.width; ++i) CHECK(std::isnan(y[i]));
    CHECK(std::all_of(y.begin() + static_cast<std::ptrdiff_t>(mixture.width), y.end(),
                      [](float v) { return std::isfinite(v); }));
  }
}

}  // namespace mica::test::run_experts_test
