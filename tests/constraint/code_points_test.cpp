// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/code_points.hpp"

#include "mica/constraint/detail/pattern_reader.hpp"
#include "mica/text/utf8.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace mica::test::code_points_test {

using namespace constraint;

namespace {

std::string utf8(std::uint32_t code_point) {
  std::string out;
  constraint::detail::append_utf8(code_point, out);
  return out;
}

/// Where something happens: ends of lengths in UTF-8, of surrogates, and some in the middle.
const std::vector<std::uint32_t> borders = {
    0,      1,       'a',     'b',     0x7E,    0x7F,    0x80,    0x81,     0x7FF,    0x800,
    0xFFF,  0x1000,  0x20AC,  0xCFFF,  0xD000,  0xD7FE,  0xD7FF,  0xE000,   0xE001,   0xFFFE,
    0xFFFF, 0x10000, 0x10001, 0x1F600, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFE, 0x10FFFF};

CodePoints random_set(CounterRng& rng) {
  CodePoints out;
  for (std::size_t n = draw(rng, 5); n > 0; --n) {
    const std::uint32_t first = borders[draw(rng, borders.size())];
    if (draw(rng, 2) == 0) {
      out.insert(first);
    } else {
      out.insert(first, first + static_cast<std::uint32_t>(draw(rng, 0x5000)));
    }
  }
  return out;
}

bool is_scalar(std::uint32_t c) { return c <= CodePoints::max && (c < 0xD800 || c > 0xDFFF); }

}  // namespace

TEST_CASE("ranges that overlap or are adjacent become one, and the others are sorted") {
  CodePoints set = {{10, 20}, {30, 40}};
  set.insert(21, 25);
  set.insert(50, 60);
  set.insert(1);
  set.insert(9, 8);  // nothing
  CHECK(set == CodePoints{{1, 1}, {10, 25}, {30, 40}, {50, 60}});
  set.insert(26, 29);
  CHECK(set.ranges().size() == 3);
  set.insert(0, 100);
  CHECK(set == CodePoints{{0, 100}});
  set.insert(CodePoints::max, 0xFFFFFFFF);
  CHECK(set.contains(CodePoints::max));
  CHECK_FALSE(set.contains(CodePoints::max - 1));
}

TEST_CASE("no set has a surrogate") {
  CHECK(CodePoints{{0xD800, 0xDFFF}}.empty());
  CHECK(CodePoints{{0xD801, 0xD900}}.empty());
  CHECK(CodePoints{{0xD7FF, 0xE000}} == CodePoints{{0xD7FF, 0xD7FF}, {0xE000, 0xE000}});
  CHECK(CodePoints{{0xDC00, 0xE005}} == CodePoints{{0xE000, 0xE005}});
  CHECK(CodePoints{{0xD000, 0xD900}} == CodePoints{{0xD000, 0xD7FF}});
  CHECK(CodePoints().complement() == CodePoints::all());
  CHECK(CodePoints::all().complement().empty());
  CHECK_FALSE(CodePoints{{'a', 'a'}}.complement().contains(0xDABC));
}

TEST_CASE("union, intersection and complement are those of sets") {
  CounterRng rng(1);
  for (int round = 0; round < 300; ++round) {
    const CodePoints a = random_set(rng), b = random_set(rng);
    CodePoints all = a, common = a;
    all |= b;
    common &= b;
    for (const std::uint32_t c : borders) {
      const bool in_a = a.contains(c), in_b = b.contains(c);
      CHECK(all.contains(c) == (in_a || in_b));
      CHECK(common.contains(c) == (in_a && in_b));
      CHECK(a.complement().contains(c) == !in_a);
    }
    CHECK(a.complement().complement() == a);
    CHECK(((all &= a) == a));
  }
}

TEST_CASE("the UTF-8 of a set is that of its characters and of no others") {
  CounterRng rng(2);
  for (int round = 0; round < 60; ++round) {
    const CodePoints set = random_set(rng);
    Expressions x;
    const ExprId e = encode_utf8(x, set);
    CHECK((e == ExprId::none) == set.empty());
    for (const std::uint32_t border : borders) {
      for (const std::uint32_t c : {border, border + 0x1234, border - 1}) {
        if (is_scalar(c)) CHECK(x.accepts(e, utf8(c)) == set.contains(c));
      }
    }
  }
}

TEST_CASE("every character is well formed, and every well-formed character is one") {
  Expressions x;
  const ExprId e = encode_utf8(x, CodePoints::all());
  CHECK(x.size() < 40);
  for (std::uint32_t c = 0; c <= CodePoints::max; c += c < 0x3000 ? 1 : 61) {
    if (is_scalar(c)) CHECK(x.accepts(e, utf8(c)));
  }
  CounterRng rng(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (std::size_t n = 1 + draw(rng, 4); n > 0; --n) {
      constexpr std::uint8_t edges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2,
                                        0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF};
      bytes.push_back(static_cast<char>(edges[draw(rng, std::size(edges))]));
    }
    const std::size_t n = text::utf8_sequence_bytes(bytes);
    const bool surrogate =
        bytes.starts_with("\xED") && static_cast<std::uint8_t>(bytes[n > 1 ? 1 : 0]) >= 0xA0;
    CHECK(x.accepts(e, bytes) == (n == bytes.size() && !surrogate));
  }
}

TEST_CASE("an expression of a set stays small") {
  Expressions x;
  CodePoints odd;  // the worst: no two are adjacent
  for (std::uint32_t c = 0; c < 0x4000; c += 2) odd.insert(c);
  static_cast<void>(encode_utf8(x, odd));
  CHECK(x.size() < 100);  // continuations are shared
  Expressions y;
  static_cast<void>(encode_utf8(y, {{0x3041, 0x309F}, {0x30A1, 0x30FF}, {0x4E00, 0x9FFF}}));
  CHECK(y.size() < 40);
}

}  // namespace mica::test::code_points_test
