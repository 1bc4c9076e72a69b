// SPDX-License-Identifier: Apache-2.0
//
// Decoding: against the files of the conformance kit, and against the blocks taken apart.

#include "kernel/formats.hpp"
#include "kernel/guarded.hpp"
#include "mica/format/lists.hpp"
#include "shared.hpp"

#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>

namespace mica::decode_test {
namespace {

template <class F>
std::string file_name(const std::string& suffix) {
  std::string name(F::name);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name + suffix;
}

template <class T>
std::vector<T> read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE(bytes.size() % sizeof(T) == 0);
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(out.data()), bytes.data(), bytes.size());
  return out;
}

TEST_CASE_TEMPLATE_DEFINE("blocks decode to the bits of the conformance kit", F, kit) {
  const auto folder =
      test::shared_dir("blocks decode to the bits of the conformance kit", "conformance/dequant");
  if (!folder) return;
  const auto blocks = read<typename F::Block>(*folder / file_name<F>(".q"));
  const auto expected = read<float>(*folder / file_name<F>(".f32"));
  REQUIRE(!blocks.empty());
  REQUIRE(expected.size() == blocks.size() * F::block_size);
  std::vector<float> values(expected.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) F::decode(blocks[b], values.data() + b * F::block_size);
  CHECK(test::differences(values.data(), expected.data(), values.size()) == 0);
}
TEST_CASE_TEMPLATE_APPLY(kit, test::KitFormats);

TEST_CASE_TEMPLATE_DEFINE("a block taken apart gives its values, codes in their range", F, apart) {
  CounterRng rng(1);
  for (int turn = 0; turn < 50; ++turn) {
    typename F::Block block;
    test::fill_random<F>(block, rng);
    float values[F::block_size];
    format::Codes<F::block_size, F::group> codes;
    F::decode(block, values);
    F::unpack(block, codes);
    for (std::size_t i = 0; i < F::block_size; ++i) {
      const float scaled =
          codes.d * static_cast<float>(codes.scale[i / F::group]) * static_cast<float>(codes.code[i]);
      const float value =
          F::has_mins ? scaled - codes.dmin * static_cast<float>(codes.min[i / F::group]) : scaled;
      REQUIRE(test::same(values[i], value));
      REQUIRE(codes.code[i] + F::code_offset >= 0);
      REQUIRE(codes.code[i] + F::code_offset <= F::code_max);
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(apart, test::IntegerFormats);

/// A number without the powers of two in it.
long odd_part(std::int32_t number) {
  long odd = std::abs(number);
  while (odd != 0 && odd % 2 == 0) odd /= 2;
  return odd;
}

TEST_CASE_TEMPLATE_DEFINE("weighted sums of 32 products are exact in a float, or round once, for any bytes",
                          F, bounds) {
  CounterRng rng(2);
  for (int turn = 0; turn < 200; ++turn) {
    typename F::Block block;
    test::fill_random<F>(block, rng);
    if (turn < 4) {
      const int bytes[] = {0x00, 0x7F, 0x80, 0xFF};
      std::memset(static_cast<void*>(&block), bytes[turn], sizeof(block));
    }
    format::Codes<F::block_size, F::group> codes;
    F::unpack(block, codes);
    for (std::size_t s = 0; s < F::block_size; s += 32) {
      long sum = 0;
      for (std::size_t g = s / F::group; g < (s + 32) / F::group; ++g) {
        long of_group = 0;
        for (std::size_t i = g * F::group; i < (g + 1) * F::group; ++i)
          of_group += std::abs(codes.code[i]) * 127;
        sum += of_group * std::abs(codes.scale[g]);
        REQUIRE(of_group * odd_part(codes.scale[g]) < 1 << 24);
      }
      if (F::id != format::NVFP4::id) REQUIRE(sum < 1 << 24);
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(bounds, test::IntegerFormats);

TEST_CASE("a hand-made Q4_K block decodes as its drawing says") {
  format::Q4_K::Block block = {};
  block.d = to_half(0.5f);
  block.dmin = to_half(0.25f);
  block.scales[1] = 3 | (2 << 6);    // scale 1 = 3, upper bits of scale 5
  block.scales[5] = 7 | (1 << 6);    // min 1 = 7, upper bits of min 5
  block.scales[9] = 5 | (6 << 4);    // scale 5 = 32 + 5, min 5 = 16 + 6
  block.nibbles[2] = 0x90;           // value 34 = code 9, group 1
  block.nibbles[2 * 32 + 4] = 0xB0;  // value 2 * 64 + 32 + 4 = 164, code 11, group 5
  float values[256];
  format::Q4_K::decode(block, values);
  CHECK(values[34] == 0.5f * 3 * 9 - 0.25f * 7);
  CHECK(values[35] == -0.25f * 7);
  CHECK(values[164] == 0.5f * 37 * 11 - 0.25f * 22);
  CHECK(values[0] == 0);
}

TEST_CASE("a hand-made Q6_K block decodes as its drawing says") {
  format::Q6_K::Block block = {};
  block.d = to_half(2.0f);
  block.scales[0] = 1;
  block.scales[13] = -3;
  block.low[1] = 0x07;             // value 1: low bits 7
  block.high[1] = 0x02;            // value 1: high bits 2
  block.low[64 + 32 + 19] = 0x0C;  // half 1, quarter 1, j 19: value 128 + 32 + 19 = 179, group 11
  block.low[64 + 16] = 0xA0;       // half 1, quarter 2, j 16: value 128 + 64 + 16 = 208, group 13
  block.high[32 + 16] = 0x30;      // its high bits 3
  float values[256];
  format::Q6_K::decode(block, values);
  CHECK(values[1] == 2.0f * (39 - 32));
  CHECK(values[179] == 0);
  CHECK(values[208] == 2.0f * -3 * (58 - 32));
}

/// Root mean square of decoded minus source, over rows of 256.
template <class F>
double rmse(const std::vector<typename F::Block>& blocks, const std::vector<float>& source) {
  double sum = 0;
  float values[F::block_size];
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    F::decode(blocks[b], values);
    for (std::size_t i = 0; i < F::block_size; ++i) {
      const double error =
          static_cast<double>(values[i]) - static_cast<double>(source[b * F::block_size + i]);
      sum += error * error;
    }
  }
  return std::sqrt(sum / static_cast<double>(source.size()));
}

TEST_CASE_TEMPLATE("encoding loses no more than the conformance kit's encoder", F, format::Q8_0,
                   format::Q4_0) {
  const auto folder =
      test::shared_dir("encoding loses no more than the conformance kit's encoder", "conformance/quant");
  if (!folder) return;
  const auto all = read<float>(*folder / "src.f32");
  const auto theirs = read<typename F::Block>(*folder / file_name<F>(".q"));
  REQUIRE(theirs.size() * F::block_size == all.size());
  const std::size_t bounds[] = {0, 56, 72, 88, 96};  // gaussian, heavy tail, shifted and outliers, the rest
  for (std::size_t part = 0; part < 4; ++part) {
    const std::size_t first = bounds[part] * 256, last = bounds[part + 1] * 256;
    const std::vector<float> source(all.begin() + static_cast<long>(first),
                                    all.begin() + static_cast<long>(last));
    const std::vector<typename F::Block> reference(theirs.begin() + static_cast<long>(first / F::block_size),
                                                   theirs.begin() + static_cast<long>(last / F::block_size));
    std::vector<typename F::Block> ours(reference.size());
    for (std::size_t b = 0; b < ours.size(); ++b) F::encode(source.data() + b * F::block_size, ours[b]);
    INFO("part " << part);
    CHECK(rmse<F>(ours, source) <= rmse<F>(reference, source) * 1.001);
  }
}

TEST_CASE_TEMPLATE("zeros encode to zeros", F, format::Q8_0, format::Q4_0, format::F16, format::BF16,
                   format::F32) {
  std::vector<float> values(F::block_size, 0.0f);
  typename F::Block block;
  F::encode(values.data(), block);
  std::fill(values.begin(), values.end(), 1.0f);
  F::decode(block, values.data());
  for (const float v : values) CHECK(v == 0.0f);
}

}  // namespace
}  // namespace mica::decode_test
