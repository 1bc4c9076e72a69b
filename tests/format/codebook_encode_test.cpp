// SPDX-License-Identifier: Apache-2.0
//
// Encoding with codebooks: the searches for an entry and for a block beside others that try everything.

#include "mica/base/rng.hpp"
#include "mica/format/detail/codebooks.hpp"
#include "mica_tools/encode/encode.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

namespace mica::codebook_encode_test {
namespace {

using format::search::Four;

float gaussian(CounterRng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * rng.uniform()));
}

/// The vectors of a codebook, without signs.
template <unsigned bits, std::size_t n, class Entries>
std::vector<std::array<float, n>> spelt(const Entries& entries, const std::int8_t* levels) {
  std::vector<std::array<float, n>> out;
  for (const auto entry : entries) {
    std::int8_t code[n];
    format::codebook::spell<bits, n>(levels, entry, 0, code);
    std::copy_n(code, n, out.emplace_back().begin());
  }
  return out;
}

/// A format with magnitudes as its drawing says, for a search of its own.
template <class F>
struct Drawing;

template <const auto& entries, unsigned bits, std::size_t numbers, const auto& levels>
struct Vectors {
  static constexpr std::size_t n = numbers;
  static std::vector<std::array<float, n>> all() { return spelt<bits, n>(entries, levels); }
};

namespace book = format::codebook;

template <>
struct Drawing<format::IQ2_XXS> : Vectors<book::iq2_xxs, 2, 8, book::iq2_levels> {
  static constexpr bool even = true;
};
template <>
struct Drawing<format::IQ2_XS> : Vectors<book::iq2_xs, 2, 8, book::iq2_levels> {
  static constexpr bool even = true;
};
template <>
struct Drawing<format::IQ2_S> : Vectors<book::iq2_s, 2, 8, book::iq2_levels> {
  static constexpr bool even = false;
};
template <>
struct Drawing<format::IQ3_XXS> : Vectors<book::iq3_xxs, 3, 4, book::iq3_xxs_levels> {
  static constexpr bool even = true;
};
template <>
struct Drawing<format::IQ3_S> : Vectors<book::iq3_s, 3, 4, book::iq3_s_levels> {
  static constexpr bool even = false;
};

using Codebooks = TypeList<format::IQ1_S, format::IQ1_M, format::IQ2_XXS, format::IQ2_XS, format::IQ2_S,
                           format::IQ3_XXS, format::IQ3_S>;

double error_of(const float* x, const float* w, const float* q, float s, std::size_t n, std::size_t turned) {
  double error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double miss = std::fabs(double{x[i]}) - (i == turned ? -1 : 1) * double{s} * double{q[i]};
    error += double{w[i]} * miss * miss;
  }
  return error;
}

/// The least error of eight values in scale s: every entry, and where an odd number of signs must become
/// even, every sign.
template <class F>
double least_of_eight(const std::vector<std::array<float, Drawing<F>::n>>& vectors, const float* x,
                      const float* w, float s) {
  constexpr std::size_t n = Drawing<F>::n;
  const bool odd =
      Drawing<F>::even && std::count_if(x, x + 8, [](float value) { return value < 0; }) % 2 != 0;
  double right = 0, extra = std::numeric_limits<double>::infinity();
  for (std::size_t at = 0; at < 8; at += n) {
    double best = std::numeric_limits<double>::infinity(), best_turned = best;
    for (const auto& q : vectors) {
      best = std::min(best, error_of(x + at, w + at, q.data(), s, n, n));
      for (std::size_t turned = 0; odd && turned < n; ++turned)
        best_turned = std::min(best_turned, error_of(x + at, w + at, q.data(), s, n, turned));
    }
    right += best;
    extra = std::min(extra, best_turned - best);
  }
  return odd ? right + extra : right;
}

double least_of_eight_iq1(const std::vector<std::array<float, 8>>& vectors, const float* x, const float* w,
                          float s) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& q : vectors) {
    double error = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const double miss = double{x[i]} - double{s} * double{q[i]};
      error += double{w[i]} * miss * miss;
    }
    best = std::min(best, error);
  }
  return best;
}

/// The least error of a group in scale s.
template <class F>
double least_of_group(const float* x, const float* w, float s) {
  double sum = 0;
  if constexpr (F::code_max == format::IQ1_S::code_max) {
    static const auto up = spelt<2, 8>(book::iq1, book::iq1_levels[0]);
    static const auto down = spelt<2, 8>(book::iq1, book::iq1_levels[1]);
    double all_up = 0, all_down = 0, each = 0;
    for (std::size_t i = 0; i < F::group; i += 8) {
      const double a = least_of_eight_iq1(up, x + i, w + i, s), b = least_of_eight_iq1(down, x + i, w + i, s);
      all_up += a;
      all_down += b;
      each += std::min(a, b);
    }
    return F::group == 32 ? std::min(all_up, all_down) : each;
  } else {
    static const auto vectors = Drawing<F>::all();
    for (std::size_t i = 0; i < F::group; i += 8) sum += least_of_eight<F>(vectors, x + i, w + i, s);
  }
  return sum;
}

/// Tries all scales of all groups with a few d, every entry and every sign.
template <class F>
double brute_force(const float* x, const float* w) {
  constexpr int scales = F::code_max == format::IQ1_S::code_max ? 8 : 16;
  float peak = 0;
  for (std::size_t i = 0; i < 256; ++i) peak = std::max(peak, std::fabs(x[i]));
  const float top = F::code_max / 2.0f * (2 * scales - 1);
  double best = std::numeric_limits<double>::infinity();
  for (const float share : {1.0f, 0.8f}) {
    const float d = share * peak / top;
    double error = 0;
    for (std::size_t g = 0; g < 256; g += F::group) {
      double least = std::numeric_limits<double>::infinity();
      for (int k = 0; k < scales; ++k) {
        least = std::min(least, least_of_group<F>(x + g, w + g, d * static_cast<float>(2 * k + 1)));
      }
      error += least;
    }
    best = std::min(best, error);
  }
  return best;
}

template <class F>
double error_of_encoder(const float* x, const float* w) {
  typename F::Block block;
  format::Encoder<F>::encode(x, w, block);
  float back[256];
  F::decode(block, back);
  double error = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    const double miss = double{x[i]} - double{back[i]};
    error += double{w[i]} * miss * miss;
  }
  return error;
}

/// The four searches with the right signs and with a wrong one, beside every entry with every sign.
template <class Codebook>
void check_entries(const float (&level)[Codebook::levels], CounterRng& rng) {
  constexpr std::size_t n = Codebook::numbers;
  Four x[n], w[n], levels[Codebook::levels];
  for (std::size_t k = 0; k < 4; ++k) {
    const float scale = 0.02f + 0.08f * static_cast<float>(rng.uniform());
    for (std::size_t c = 0; c < Codebook::levels; ++c) levels[c].at[k] = scale * level[c];
    for (std::size_t i = 0; i < n; ++i) {
      x[i].at[k] = std::fabs(gaussian(rng));
      w[i].at[k] = std::exp(gaussian(rng));
    }
  }
  format::search::FoundEntries found[2];
  format::search::EntrySearch<Codebook, true>(x, w, levels).find(found);
  format::search::FoundEntries right[1];
  format::search::EntrySearch<Codebook, false>(x, w, levels).find(right);
  for (std::size_t k = 0; k < 4; ++k) {
    const auto error = [&](std::size_t entry, std::size_t turned) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double q = double{levels[Codebook::number(entry, i)].at[k]};
        const double miss = double{x[i].at[k]} - (i == turned ? -q : q);
        sum += double{w[i].at[k]} * miss * miss;
      }
      return sum;
    };
    double best = std::numeric_limits<double>::infinity(), best_wrong = best;
    double of_found_wrong = best;
    for (std::size_t e = 0; e < Codebook::size; ++e) {
      best = std::min(best, error(e, n));
      for (std::size_t i = 0; i < n; ++i) best_wrong = std::min(best_wrong, error(e, i));
    }
    for (std::size_t i = 0; i < n; ++i)
      of_found_wrong = std::min(of_found_wrong, error(found[1].entry[k], i));
    CHECK(error(found[0].entry[k], n) == doctest::Approx(best).epsilon(1e-5));
    CHECK(double{found[0].error.at[k]} == doctest::Approx(best).epsilon(1e-5));
    CHECK(of_found_wrong == doctest::Approx(best_wrong).epsilon(1e-5));
    CHECK(double{found[1].error.at[k]} == doctest::Approx(best_wrong).epsilon(1e-5));
    CHECK(right[0].entry[k] == found[0].entry[k]);
  }
}

/// A block of random entries, signs, shifts and scales.
template <class F>
typename F::Block random_block(CounterRng& rng) {
  typename F::Block block;
  std::uint8_t bytes[sizeof block];
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  std::memcpy(&block, bytes, sizeof block);
  const Half d = to_half(0.001f);
  if constexpr (requires { block.d; }) {
    block.d = d;
  } else {
    F::set_scale(block, d);
  }
  return block;
}

}  // namespace

TEST_CASE("the entry that is found has the least error of all, with the right signs and with a wrong one") {
  using namespace format::search;
  CounterRng rng(1);
  constexpr float iq2[] = {8, 25, 43};
  constexpr float iq3_xxs[] = {4, 12, 20, 28, 36, 44, 52, 62}, iq3_s[] = {3, 9, 15, 21, 27, 33, 39, 45};
  for (int i = 0; i < 20; ++i) {
    check_entries<SplitCodebook<book::iq1, 2>>(iq2, rng);
    check_entries<SplitCodebook<book::iq2_xxs, 2>>(iq2, rng);
    check_entries<SplitCodebook<book::iq2_xs, 2>>(iq2, rng);
    check_entries<SplitCodebook<book::iq2_s, 2>>(iq2, rng);
    check_entries<SplitCodebook<book::iq3_xxs, 3>>(iq3_xxs, rng);
    check_entries<SplitCodebook<book::iq3_s, 3>>(iq3_s, rng);
  }
}

TEST_CASE("no search with every entry, every sign and every scale of two d has a smaller weighted error") {
  Codebooks::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    CAPTURE(F::name);
    CounterRng rng(2);
    double ours = 0, theirs = 0;
    for (int b = 0; b < 6; ++b) {
      float x[256], w[256];
      double squares = 0;
      for (std::size_t i = 0; i < 256; ++i) {
        x[i] = 0.03f * gaussian(rng);
        w[i] = std::exp(gaussian(rng));
        squares += double{w[i]} * double{x[i]} * double{x[i]};
      }
      // A d that undoes three quarters of the shrinking adds at most that to a share of the squares.
      const double found = error_of_encoder<F>(x, w), least = brute_force<F>(x, w), share = least / squares;
      const bool three_bits = TypeList<format::IQ3_XXS, format::IQ3_S>::contains<F>;
      const double allowed = three_bits ? least : least * (1 + 0.5625 * share / (1 - share));
      CHECK(found <= 1.02 * allowed);
      ours += found;
      theirs += allowed;
    }
    CHECK(ours <= theirs);
  });
}

TEST_CASE("blocks of random entries, signs and scales come back exactly") {
  Codebooks::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    CAPTURE(F::name);
    CounterRng rng(3);
    int exact = 0;
    for (int b = 0; b < 100; ++b) {
      const typename F::Block block = random_block<F>(rng);
      float values[256], back[256], weights[256];
      F::decode(block, values);
      for (float& w : weights) w = std::exp(gaussian(rng));
      typename F::Block again;
      format::Encoder<F>::encode(values, weights, again);
      F::decode(again, back);
      exact += std::equal(values, values + 256, back) ? 1 : 0;
    }
    CHECK(exact >= 97);  // not all: scales of a block may be close to multiples of another number
  });
}

TEST_CASE("a block is the same whatever was encoded before it") {
  Codebooks::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    CAPTURE(F::name);
    CounterRng rng(4);
    std::vector<float> rows(4 * 256);
    for (float& x : rows) x = gaussian(rng);
    constexpr std::size_t bytes = sizeof(typename F::Block);
    std::vector<std::byte> all(4 * bytes), last(bytes, std::byte{0xFF});
    format::encode_rows<F>(rows, 256, {}, all.data());
    format::encode_rows<F>(std::span(rows).last(256), 256, {}, last.data());
    CHECK(std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(bytes)));
  });
}

}  // namespace mica::codebook_encode_test
