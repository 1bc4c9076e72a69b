// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/detail/far_counts.hpp"

#include "mica/base/error.hpp"
#include "mica/constraint/regex.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mica::test::far_counts_test {

using namespace constraint;
using constraint::detail::FarCounts;

namespace {

const std::vector<std::string> texts = texts_of("abc", 5);

/// The same texts and beginnings of texts of n bytes or fewer.
void check_alike(Expressions& x, ExprId a, ExprId b, std::uint32_t n) {
  for (const std::string& text : texts) {
    if (text.size() > n) break;
    CAPTURE(text);
    ExprId p = a, q = b;
    for (const char c : text) {
      p = x.derivative(p, static_cast<std::uint8_t>(c));
      q = x.derivative(q, static_cast<std::uint8_t>(c));
    }
    REQUIRE(x.nullable(p) == x.nullable(q));
    REQUIRE(x.accepts_some(p) == x.accepts_some(q));
  }
}

ExprId random_counts(Expressions& x, CounterRng& rng, std::size_t depth) {
  const ExprId inner =
      depth == 0 ? random_tree(rng, 1, Extra::none).expression(x) : random_counts(x, rng, depth - 1);
  const auto min = static_cast<std::uint32_t>(draw(rng, 6));
  const ExprId counted = x.repeat(inner, min, min + static_cast<std::uint32_t>(draw(rng, 6)));
  return draw(rng, 3) == 0 ? counted : x.cat(counted, random_tree(rng, 1, Extra::none).expression(x));
}

}  // namespace

TEST_CASE("expressions without far counts have the same short texts and beginnings") {
  CounterRng rng(51);
  std::size_t changed = 0, too_large = 0;
  for (int round = 0; round < 600; ++round) {
    Expressions x;
    FarCounts far(x);
    std::vector<ExprId> parts = {random_counts(x, rng, draw(rng, 2))};
    const std::size_t kind = draw(rng, 4);
    if (kind > 0)
      parts.push_back(kind == 3 ? random_tree(rng, 2, Extra::logic).expression(x) : random_counts(x, rng, 1));
    if (kind > 1 && draw(rng, 2) == 0)
      parts[1] = x.repeat(x.set(ByteSet('a', 'c')), draw(rng, 2) == 0 ? 0U : 1U,
                          5 + static_cast<std::uint32_t>(draw(rng, 25)));
    const ExprId e = kind == 1 ? x.alt(parts) : x.both(parts);
    const auto n = static_cast<std::uint32_t>(draw(rng, 5));
    const ExprId without = far.without(e, n);
    CHECK(far.without(without, n) == without);
    changed += without != e;
    try {
      check_alike(x, e, without, n);
    } catch (const Error&) {
      ++too_large;  // for a search
    }
  }
  CHECK(changed > 200);
  CHECK(too_large < 30);
}

TEST_CASE("counts that differ far away leave one expression") {
  Expressions x;
  FarCounts far(x);
  const auto words = [&](const char* count, std::uint32_t most) {
    return x.both(parse_regex("([^ ]+ +){" + std::string(count) + "}[^ ]+", x),
                  x.repeat(x.set(ByteSet(0, 255)), 0, most));
  };
  const ExprId some = far.without(words("0,99", 300), 16);
  CHECK(some == parse_regex("([^ ]+ +)*[^ ]+", x));
  CHECK(far.without(words("0,50", 211), 16) == some);
  CHECK(far.without(words("0,9", 211), 16) == some);
  CHECK(far.without(words("0,8", 211), 16) != some);  // 16 bytes can begin 9 words
  CHECK(far.without(words("0,99", 16), 16) != some);  // a beginning of 16 bytes may need one more
  CHECK(far.without(words("20,99", 300), 16) == far.without(words("25,90", 280), 16));
  CHECK(far.without(x.repeat(x.literal("a"), 162, 162), 16) == x.repeat(x.literal("a"), 17));
}

}  // namespace mica::test::far_counts_test
