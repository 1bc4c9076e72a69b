// SPDX-License-Identifier: Apache-2.0

#include "mica/block/scratch.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace mica::test::scratch_test {
namespace {

constexpr char first_key = 0, second_key = 0;

struct Views {
  MatrixView<float> rows;
  std::span<std::uint32_t> items;
  block::CodeBuffer codes;
  MatrixView<float> first, second;  // lie over each other
  MatrixView<float> kept, other;
};

Views cut(block::Scratch& scratch) {
  Views v;
  v.rows = scratch.rows(7);
  v.items = scratch.items<std::uint32_t>(3);
  v.codes = scratch.codes(5, 40);
  const std::size_t at = scratch.at();
  v.first = scratch.rows(11);
  scratch.rewind(at);
  v.second = scratch.rows(9);
  v.kept = scratch.kept(&first_key, 4);
  v.other = scratch.kept(&second_key, 2);
  scratch.input(70);
  scratch.branch(false);
  return v;
}

}  // namespace

TEST_CASE("what is counted without memory is enough for what is cut from it") {
  const block::StepSizes sizes{.chunk = 6, .width = 8};
  block::ScratchNeeds needs;
  block::Scratch counting(sizes, needs);
  cut(counting);
  CHECK(needs.input_width == 70);
  CHECK_FALSE(needs.branch);
  CHECK(needs.kept_width() == 6);
  for (const std::size_t n : {1u, 4u, 6u}) {
    CAPTURE(n);
    std::vector<std::byte> frame(needs.bytes);
    std::vector<float> kept(sizes.chunk * needs.kept_width());
    block::Scratch scratch(sizes, needs, n, frame.data(), kept.data());
    const Views v = cut(scratch);
    CHECK(v.rows.rows() == n);
    CHECK(v.rows.cols() == 7);
    CHECK(v.codes.rows(5, 64).cols == 64);
    CHECK(v.first.data() == v.second.data());
    const auto* const end = reinterpret_cast<const std::byte*>(v.first.data() + n * 11);
    CHECK(end <= frame.data() + frame.size());
    CHECK(reinterpret_cast<const std::byte*>(v.items.data()) >=
          reinterpret_cast<const std::byte*>(v.rows.data() + n * 7));
    CHECK(v.kept.data() == kept.data());
    CHECK(v.other.data() == kept.data() + sizes.chunk * 4);
    CHECK(v.other.rows() == n);
  }
}

TEST_CASE("the frame is as large as the largest block, and a key is planned once") {
  const block::StepSizes sizes{.chunk = 6, .width = 8};
  block::ScratchNeeds needs;
  for (const std::size_t width : {10u, 300u, 20u}) {
    block::Scratch scratch(sizes, needs);
    static_cast<void>(scratch.rows(width));
    static_cast<void>(scratch.kept(&first_key, 4));
  }
  CHECK(needs.bytes >= 6 * 300 * sizeof(float));
  CHECK(needs.bytes < 6 * 300 * sizeof(float) + 128);
  CHECK(needs.kept_width() == 4);
}

}  // namespace mica::test::scratch_test
