// SPDX-License-Identifier: Apache-2.0

#include "io/temporary_folder.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica_tools/quantize/quantize.hpp"
#include "quantize/small_model.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace mica::test::convert_test {
namespace {

using format::Id;
using quantize::Converter;
using quantize::ImportanceEntry;

template <Executor E>
std::vector<std::byte> converted(const gguf::Document& document, E& executor, Id to, std::size_t slice,
                                 const ImportanceEntry* importance = nullptr) {
  std::vector<std::byte> out;
  Converter<E> converter(document, executor, {}, slice);
  converter.convert(document.tensors().front(), to, importance, [&](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  });
  return out;
}

}  // namespace

TEST_CASE(
    "a tensor is the same for any slice and any number of workers, in every format that can be written") {
  SmallModel model;
  model.add("blk.0.attn_q.weight", {512, 37});
  const auto document = model.document();
  exec::Inline alone;
  exec::Team team(3);
  format::Encodable::for_each([&](auto type) {
    constexpr Id id = decltype(type)::type::id;
    CAPTURE(format::name(id));
    const auto expected = converted(document, alone, id, 1 << 20);
    CHECK(expected.size() == 37 * format::info(id).row_bytes(512));
    CHECK(converted(document, alone, id, 1) == expected);
    CHECK(converted(document, team, id, 512 * 5) == expected);
    std::vector<float> values(512);
    format::known_codecs.find(id).decode(std::span(expected).first(format::info(id).row_bytes(512)), values);
    double error = 0;
    for (std::size_t i = 0; i < 512; ++i)
      error += std::pow(static_cast<double>(values[i] - model.last()[i]), 2);
    CHECK(std::sqrt(error / 512) < 0.6);  // numbers of -1 to 1; the coarsest formats have one bit
  });
}

TEST_CASE("each expert is written with its own importance") {
  SmallModel model;
  model.add("blk.0.ffn_up_exps.weight", {256, 5, 2});
  const auto document = model.document();
  exec::Inline alone;
  ImportanceEntry entry;
  entry.counts = {1, 1};
  for (std::size_t i = 0; i < 512; ++i) entry.sums.push_back(i < 256 ? 1.0F : (i % 2 == 0 ? 100.0F : 0.001F));
  const auto plain = converted(document, alone, format::Q4_K::id, 1 << 20);
  const auto weighted = converted(document, alone, format::Q4_K::id, 1 << 20, &entry);
  const std::size_t half = plain.size() / 2;
  CHECK(std::equal(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(half), weighted.begin()));
  CHECK_FALSE(std::equal(plain.begin() + static_cast<std::ptrdiff_t>(half), plain.end(),
                         weighted.begin() + static_cast<std::ptrdiff_t>(half)));
}

TEST_CASE("a number that is not finite is refused by the name of its tensor") {
  SmallModel model;
  model.add("blk.0.attn_q.weight", {256, 4});
  model.last()[700] = std::numeric_limits<float>::quiet_NaN();
  const auto document = model.document();
  exec::Inline alone;
  const Error error = refusal([&] { return converted(document, alone, format::Q8_0::id, 1).size(); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "blk.0.attn_q.weight"));
  CHECK(mentions(error, "rows 2 and 3"));
}

TEST_CASE("a copy is the tensor's bytes, piece by piece") {
  SmallModel model;
  model.add("blk.0.attn_q.weight", {256, 9});
  const auto document = model.document();
  exec::Inline alone;
  std::uint64_t done = 0;
  Converter<exec::Inline> converter(
      document, alone, [&](std::uint64_t values) { done += values; }, 100);
  std::vector<std::byte> out;
  std::size_t pieces = 0;
  converter.copy(document.tensors().front(), [&](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    ++pieces;
  });
  CHECK(pieces == 24);  // 9216 bytes by 400
  CHECK(done == 2304);
  CHECK(std::memcmp(out.data(), model.last().data(), out.size()) == 0);
}

}  // namespace mica::test::convert_test
