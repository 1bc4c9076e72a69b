// SPDX-License-Identifier: Apache-2.0
//
// Attention over one chunk: the vector kernels against the specification, the specification against a plain
// softmax.

#include "kernel/chunk.hpp"
#include "mica/kernel/highway.hpp"

#include <cmath>

namespace mica::attention_test {
namespace {

using kernel::Visible;
using test::Chunk;

#define MICA_BLOCK_ELEMENTS                                                                        \
  format::Rotated<format::Q6_0>, format::Plain<format::Q6_0>, format::Rotated<format::Q5_1>,       \
      format::Rotated<format::Q5_0>, format::Rotated<format::Q4_1>, format::Rotated<format::Q4_0>, \
      format::Rotated<format::IQ4_NL>, format::Rotated<format::Q4_S>, format::Plain<format::Q4_0>, \
      format::KIVI4, format::KIVI2, format::KVARN4, format::KVARN3, format::KVARN2

constexpr float inf = std::numeric_limits<float>::infinity();

TEST_CASE_TEMPLATE("attention equals the specification for any width of a head", E, format::F16, format::Q8_0,
                   format::F32, format::BF16, MICA_BLOCK_ELEMENTS) {
  CounterRng rng(1);
  for (const std::size_t head_dim :
       std::initializer_list<std::size_t>{1, 3, 8, 16, 20, 33, 64, 80, 96, 128, 256, 512}) {
    Chunk<E>(head_dim, {{0, 37}, {0, 38}, {0, 39}, {0, 40}, {0, 41}}, rng).check();
  }
}

TEST_CASE_TEMPLATE("attention equals the specification for any number of rows and any view", E, format::F16,
                   format::Q8_0, format::F32, format::BF16, MICA_BLOCK_ELEMENTS) {
  CounterRng rng(2);
  for (const std::size_t rows : std::initializer_list<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 66}) {
    std::vector<Visible> whole(rows, Visible{0, 256}), causal, mixed;
    for (std::size_t r = 0; r < rows; ++r) {
      causal.push_back({0, static_cast<std::uint16_t>(95 + r / 2)});
      const auto first = static_cast<std::uint16_t>(rng.next() % 200);
      mixed.push_back({first, static_cast<std::uint16_t>(first + rng.next() % 57)});
    }
    Chunk<E>(24, whole, rng).check();
    Chunk<E>(64, causal, rng).check();
    Chunk<E>(20, mixed, rng).check();
    if (rows > 9) Chunk<E>(128, mixed, rng).check();
  }
}

TEST_CASE_TEMPLATE("a row that sees nothing keeps its state", E, format::F16, format::Q8_0,
                   MICA_BLOCK_ELEMENTS) {
  CounterRng rng(3);
  Chunk<E>(16, {{5, 5}, {3, 20}, {0, 0}}, rng).check();
  Chunk<E>(16, {{0, 0}}, rng).check();
}

TEST_CASE_TEMPLATE("a query that is not finite makes its own row NaN", E, format::F16, format::Q8_0,
                   MICA_BLOCK_ELEMENTS) {
  CounterRng rng(4);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), inf}) {
    Chunk<E> chunk(32, {{0, 40}, {0, 40}, {0, 40}}, rng);
    chunk.q[33] = bad;
    chunk.check();
    const auto result = chunk.template run<kernel::Highway>(true);
    CHECK(std::isfinite(result.total[0]));
    CHECK(result.total[32] != result.total[32]);
    CHECK(std::isfinite(result.total[64]));
  }
}

TEST_CASE_TEMPLATE("a query of zeros sees all tokens alike", E, format::F16, format::Q8_0, format::F32,
                   format::BF16, MICA_BLOCK_ELEMENTS) {
  CounterRng rng(5);
  Chunk<E> chunk(16, {{4, 21}}, rng);
  std::fill(chunk.q.begin(), chunk.q.end(), -0.0f);
  chunk.check();
  CHECK(chunk.template run<kernel::Highway>(true).p[4] == 1.0f);
}

TEST_CASE_TEMPLATE("capped scores equal the specification", E, format::F16, format::Q8_0,
                   MICA_BLOCK_ELEMENTS) {
  CounterRng rng(8);
  for (const float softcap : {0.5f, 3.0f, 50.0f}) {
    Chunk<E> chunk(24, {{0, 256}, {3, 20}, {17, 95}, {5, 5}}, rng);
    chunk.softcap = softcap;
    chunk.q[30] = std::numeric_limits<float>::quiet_NaN();
    chunk.check();
  }
}

TEST_CASE_TEMPLATE("values that are added to others equal the specification", E, format::F16, format::Q8_0,
                   MICA_BLOCK_ELEMENTS) {
  CounterRng rng(10);
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{20, 64, 128}) {
    Chunk<E> chunk(head_dim, {{0, 256}, {5, 5}, {3, 20}, {17, 95}, {0, 0}}, rng);
    const auto alone = chunk.template run<kernel::Scalar>(true);
    chunk.adds = true;
    chunk.check();
    const auto added = chunk.template run<kernel::Scalar>(true);
    for (std::size_t i = 0; i < added.out.size(); ++i) {
      const bool seen = i / head_dim != 1 && i / head_dim != 4;
      const auto expected = static_cast<double>(seen ? alone.out[i] : 0.0f) + 7;
      CHECK(static_cast<double>(added.out[i]) == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("the softmax finds the first of equal maxima, passes over NaN and keeps a NaN in front") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> crossed(40, -1.0f);  // the later zero is in an earlier lane of four, eight or sixteen
  crossed[5] = -0.0f;
  crossed[16] = 0;
  const std::vector<std::vector<float>> scores = {
      {-1, -0.0f, 0, -0.0f}, {0, -0.0f}, {-3, nan, 2, 1}, {nan, 5}, {-inf, -inf}, {7}, crossed};
  for (const std::size_t first : std::initializer_list<std::size_t>{0, 3, 16}) {
    for (const std::size_t length : std::initializer_list<std::size_t>{1, 4, 21, 200}) {
      for (const std::vector<float>& turn : scores) {
        const auto run = [&](auto kernels, bool fast8) {
          std::vector<float> p(kernel::chunk_tokens + 2, 9.0f);  // p, then max and sum
          for (std::size_t j = 0; j < length; ++j) p[first + j] = turn[j % turn.size()];
          const Visible visible{static_cast<std::uint16_t>(first),
                                static_cast<std::uint16_t>(first + length)};
          kernel::AttentionArgs a;
          a.q = {p.data(), 1, 0};
          a.visible = &visible;
          a.p = {p.data(), 1, kernel::chunk_tokens};
          a.max = p.data() + kernel::chunk_tokens;
          a.sum = a.max + 1;
          a.fast8 = fast8;
          decltype(kernels)::attention_softmax(a);
          return p;
        };
        for (const bool fast8 : {false, true}) {
          const auto expected = run(kernel::Scalar{}, fast8);
          test::for_each_target([&] {
            INFO("from " << first << ", " << length << " scores, the first " << turn[0] << ", fast8 "
                         << fast8);
            CHECK(test::differences(expected.data(), run(kernel::Highway{}, fast8).data(), expected.size()) ==
                  0);
          });
        }
      }
    }
  }
}

TEST_CASE("the largest queries and keys stay exact") {
  CounterRng rng(6);
  Chunk<format::Q8_0> chunk(512, {{0, 16}, {0, 16}}, rng);
  for (const int byte : {127, -128}) {
    std::memset(chunk.tiles[0]->data(), byte, 512 * 16);
    for (std::size_t i = 0; i < chunk.q.size(); ++i) chunk.q[i] = i < 512 ? 1.0f : -1.0f;
    chunk.check();
  }
}

TEST_CASE("the largest weights and values stay exact") {
  CounterRng rng(11);
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{7, 40, 64}) {
    Chunk<format::Q8_0> chunk(head_dim, std::vector<Visible>(17, Visible{0, 256}), rng);
    std::fill(chunk.q.begin(), chunk.q.end(), 0.0f);  // all tokens weigh the same
    for (const int byte : {127, -128}) {
      for (const auto& tile : chunk.tiles) {
        std::byte* const values = tile->data() + format::Q8_0::key_tile_bytes(head_dim);
        std::memset(values, byte, format::Q8_0::padded(head_dim) * 16);
        for (std::size_t slot = 0; slot < 16; ++slot)
          std::memcpy(values + format::Q8_0::padded(head_dim) * 16 + slot * sizeof(Half), "\0\x3C", 2);  // 1
      }
      chunk.check();
      const auto result = chunk.run<kernel::Scalar>(true);
      for (const float v : result.out)
        CHECK(static_cast<double>(v) == doctest::Approx(256.0 * byte).epsilon(1e-6));
    }
  }
}

TEST_CASE("a value that is not finite makes the rows that see it NaN") {
  CounterRng rng(12);
  for (const std::size_t rows : std::initializer_list<std::size_t>{2, 20}) {
    std::vector<Visible> visible(rows, Visible{0, 90});
    visible.back() = {0, 89};
    Chunk<format::Q8_0> chunk(64, visible, rng);
    std::vector<float> head(64, 1.0f);
    head[5] = inf;
    format::Q8_0::store_value(chunk.tiles[5]->data() + format::Q8_0::key_tile_bytes(64), 9, 64, head.data());
    chunk.check();
    const auto result = chunk.run<kernel::Highway>(true);
    for (std::size_t r = 0; r < rows; ++r) CHECK(std::isfinite(result.total[r * 64]) == (r + 1 == rows));
  }
}

TEST_CASE("with fast8 queries and weights of one byte change probabilities and outputs little") {
  CounterRng rng(13);
  Chunk<format::Q8_0> chunk(32, {{0, 40}}, rng);
  const auto exact = chunk.run<kernel::Highway>(true);
  chunk.fast8 = true;
  const auto bytes = chunk.run<kernel::Highway>(true);
  float largest = 0, difference = 0, outputs = 0;
  for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(exact.out[i]));
  for (std::size_t i = 0; i < 32; ++i) outputs = std::max(outputs, std::abs(exact.out[i] - bytes.out[i]));
  for (std::size_t j = 0; j < 40; ++j) difference = std::max(difference, std::abs(exact.p[j] - bytes.p[j]));
  CHECK(difference > 1e-5f);
  CHECK(difference < 0.02f);
  CHECK(outputs > 0);
  CHECK(outputs < 0.02f * largest);
}

TEST_CASE_TEMPLATE("kernels store keys and values as the element does", E, format::Q8_0,
                   format::Plain<format::Q4_0>, format::Plain<format::Q4_1>, format::Plain<format::Q5_0>,
                   format::Plain<format::Q5_1>, format::Plain<format::Q6_0>, format::Rotated<format::Q4_0>,
                   format::Rotated<format::Q4_1>, format::Rotated<format::Q5_0>,
                   format::Rotated<format::Q5_1>, format::Rotated<format::Q6_0>) {
  static_assert(kernel::Stores<kernel::Highway, E> && !kernel::Stores<kernel::Scalar, E>);
  CounterRng rng(14);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t head_dim :
       std::initializer_list<std::size_t>{1, 3, 8, 16, 20, 33, 48, 64, 128, 512}) {
    std::vector<float> heads(16 * head_dim);
    test::fill_noise(heads, rng);
    std::fill_n(heads.begin() + static_cast<std::ptrdiff_t>(2 * head_dim), head_dim, 0.0f);
    heads[3 * head_dim] = inf;
    heads[4 * head_dim] = nan;
    for (std::size_t i = 0; i < head_dim; ++i) {
      heads[5 * head_dim + i] *= 1e-6f;                         // scales below 2^-14
      heads[6 * head_dim + i] *= 1e-40f;                        // subnormal
      heads[8 * head_dim + i] = static_cast<float>(i % 9) - 4;  // ties
      heads[9 * head_dim + i] *= 1e30f;                         // above F16
    }
    heads[10 * head_dim] = 65504;  // the largest half
    heads[11 * head_dim] = 65505;  // just above it
    for (const bool values : {false, true}) {
      for (const auto& slots : std::initializer_list<std::pair<std::size_t, std::size_t>>{// first, number

                                                                                          {0, 16},
                                                                                          {0, 1},
                                                                                          {1, 3},
                                                                                          {3, 6},
                                                                                          {4, 4},
                                                                                          {7, 9},
                                                                                          {15, 1}}) {
        const auto run = [&](auto store) {
          std::vector<std::byte> tile(values ? E::value_tile_bytes(head_dim) : E::key_tile_bytes(head_dim),
                                      std::byte{0xEE});
          const float* const x = heads.data() + slots.first * head_dim;
          store(kernel::StoreArgs{tile.data(), slots.first, {x, slots.second, head_dim}, values});
          return tile;
        };
        const auto expected = run(kernel::scalar::store<E>);
        test::for_each_target([&] {
          INFO("head_dim " << head_dim << ", slots from " << slots.first << ", " << slots.second);
          CHECK(run(kernel::Highway::store<E>) == expected);
        });
      }
    }
  }
}

TEST_CASE_TEMPLATE("the largest queries and codes of blocks stay exact", E, format::Plain<format::Q6_0>,
                   format::Plain<format::Q5_1>, format::Plain<format::Q5_0>, format::Plain<format::Q4_1>,
                   format::Plain<format::Q4_0>, format::Plain<format::IQ4_NL>, format::Plain<format::Q4_S>) {
  CounterRng rng(9);
  Chunk<E> chunk(512, {{0, 16}, {0, 16}}, rng);
  for (const int byte : {0xFF, 0}) {
    std::byte* const tile = chunk.tiles[0]->data();
    std::memset(tile, byte, 512 * 16 / 2);
    std::memset(tile + 512 * 16 / 2, byte, 512 * 16 / 8 * E::high_words);
    for (std::size_t i = 0; i < chunk.q.size(); ++i) chunk.q[i] = i < 512 ? 1.0f : -1.0f;
    chunk.check();
  }
}

TEST_CASE_TEMPLATE("the specification of attention is a softmax over dot products", E, format::F16,
                   format::Q8_0, format::F32, format::BF16, MICA_BLOCK_ELEMENTS) {
  CounterRng rng(7);
  const std::size_t head_dim = 40, first = 3, last = 50;
  Chunk<E> chunk(head_dim, {{first, last}}, rng);
  SUBCASE("as they are") {}
  SUBCASE("capped") { chunk.softcap = 4; }
  const auto result = chunk.template run<kernel::Scalar>(true);
  std::vector<double> weight(last), out(head_dim);
  std::vector<float> head(head_dim);
  double sum = 0;
  for (std::size_t j = first; j < last; ++j) {
    E::load_key(chunk.pointers[j / 16], j % 16, head_dim, head.data());
    double dot = 0;
    for (std::size_t i = 0; i < head_dim; ++i)
      dot += static_cast<double>(chunk.q[i]) * static_cast<double>(head[i]);
    const double score = dot * 0.37, cap = chunk.softcap;
    sum += weight[j] = std::exp(cap == 0 ? score : cap * std::tanh(score / cap));
  }
  for (std::size_t j = first; j < last; ++j) {
    E::load_value(chunk.pointers[j / 16] + E::key_tile_bytes(head_dim), j % 16, head_dim, head.data());
    for (std::size_t i = 0; i < head_dim; ++i) out[i] += weight[j] / sum * static_cast<double>(head[i]);
  }
  for (std::size_t i = 0; i < head_dim; ++i)
    CHECK(static_cast<double>(result.total[i]) == doctest::Approx(out[i]).epsilon(0.002));
}

}  // namespace
}  // namespace mica::attention_test
