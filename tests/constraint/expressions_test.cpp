// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/expressions.hpp"

#include "errors.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::expressions_test {

using namespace constraint;

namespace {

ExprId letters(Expressions& x, std::string_view text) {
  ByteSet set;
  for (const char c : text) set.insert(static_cast<std::uint8_t>(c));
  return x.set(set);
}

}  // namespace

TEST_CASE("a random expression accepts what a slow matcher accepts") {
  CounterRng rng(11);
  const auto texts = texts_of("abc", 5);
  for (int round = 0; round < 400; ++round) {
    const Tree tree = random_tree(rng, 1 + draw(rng, 3), Extra::logic);
    Expressions x;
    const ExprId e = tree.expression(x);
    CAPTURE(round);
    bool some = false;
    for (const std::string& text : texts) {
      CAPTURE(text);
      const bool accepts = tree.matches(text);
      some = some || accepts;
      REQUIRE(x.accepts(e, text) == accepts);
    }
    if (some) CHECK(x.accepts_some(e));
    if (!x.accepts_some(e)) CHECK_FALSE(some);
  }
}

TEST_CASE("an expression that accepts nothing is known, also where only a search can tell") {
  Expressions x;
  const ExprId a = letters(x, "a"), ab = letters(x, "ab");
  const ExprId even = x.repeat(x.cat(a, a), 0), odd = x.cat(a, even);
  CHECK_FALSE(x.accepts_some(x.both(even, odd)));
  CHECK(x.accepts_some(x.both(even, x.complement(odd))));
  CHECK_FALSE(x.accepts_some(x.both(x.repeat(ab, 3, 5), x.complement(x.repeat(ab, 2, 6)))));
  CHECK(x.accepts_some(x.both(x.repeat(ab, 3, 7), x.complement(x.repeat(ab, 2, 6)))));
  CHECK_FALSE(x.accepts_some(x.cat(a, x.both(x.literal("ab"), x.literal("ac")))));
  CHECK_FALSE(x.accepts_some(x.both(x.multiple_of(7, 0), x.literal("15"))));
  CHECK(x.accepts_some(x.complement(x.literal("a"))));
  CHECK_FALSE(x.accepts_some(ExprId::none));
}

TEST_CASE("a search finds a long text among many short ways that lead nowhere") {
  Expressions x;
  const ExprId a = letters(x, "a"), ab = letters(x, "ab");
  // The set of positions after an a has 2^40 values; a text of 41 letters is near.
  const ExprId marked = x.cat({x.repeat(ab, 0), a, x.repeat(ab, 40, 40)});
  CHECK(x.accepts_some(x.both(marked, x.repeat(ab, 0, 100))));
  CHECK(x.size() < 20'000);
  // And a short one beside a long count.
  CHECK(x.accepts_some(x.both(x.cat(x.repeat(a, 0, 100'000), x.literal("b")), x.complement(x.literal("b")))));
}

TEST_CASE("between two edges the derivative is the same") {
  CounterRng rng(12);
  for (int round = 0; round < 200; ++round) {
    Expressions x;
    ExprId e = random_tree(rng, 3, Extra::logic).expression(x);
    for (std::size_t steps = draw(rng, 3); steps > 0; --steps)
      e = x.derivative(e, static_cast<std::uint8_t>('a' + draw(rng, 3)));
    const ByteSet edges = x.edges(e);
    for (unsigned byte = 1; byte < 256; ++byte) {
      if (edges.contains(static_cast<std::uint8_t>(byte))) continue;
      REQUIRE(x.derivative(e, static_cast<std::uint8_t>(byte)) ==
              x.derivative(e, static_cast<std::uint8_t>(byte - 1)));
    }
  }
}

TEST_CASE("equal expressions have the same id") {
  Expressions x;
  const ExprId a = x.literal("a"), b = x.literal("b"), c = x.literal("cc");
  CHECK(x.cat(x.cat(a, b), c) == x.cat(a, x.cat(b, c)));
  CHECK(x.alt({a, c, b}) == x.alt({c, x.alt(b, a), a}));
  const ExprId many = x.repeat(a, 0), some = x.repeat(b, 1);
  CHECK(x.both(x.both(many, some), c) == x.both({c, some, many, some}));
  CHECK(x.alt(a, b) == letters(x, "ab"));
  CHECK(x.literal("cc") == c);
  CHECK(x.alt({ExprId::none, a}) == a);
  CHECK(x.alt({a, ExprId::any}) == ExprId::any);
  CHECK(x.cat(a, ExprId::none) == ExprId::none);
  CHECK(x.cat(ExprId::empty, a) == a);
  CHECK(x.both(a, ExprId::any) == a);
  CHECK(x.both(letters(x, "ab"), letters(x, "bc")) == b);
  CHECK(x.complement(x.complement(c)) == c);
  CHECK(x.repeat(a, 1, 1) == a);
  CHECK(x.repeat(x.repeat(a, 0), 0) == x.repeat(a, 0));
  CHECK(x.repeat(ExprId::empty, 3, 9) == ExprId::empty);
}

TEST_CASE("repetitions of repetitions are one where no count is left out") {
  for (std::uint32_t m = 0; m < 4; ++m) {
    for (std::uint32_t n : {m, m + 1, m + 3, Expressions::unlimited}) {
      for (std::uint32_t p = 0; p < 4; ++p) {
        for (std::uint32_t q : {p, p + 1, p + 2, Expressions::unlimited}) {
          Expressions x;
          const ExprId e = x.repeat(x.repeat(x.literal("a"), m, n), p, q);
          for (std::size_t length = 0; length < 24; ++length) {
            bool accepted = false;
            for (std::uint64_t times = p; times <= std::min<std::uint64_t>(q, 30) && !accepted; ++times)
              accepted = times * m <= length && length <= times * n;
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(p);
            CAPTURE(q);
            REQUIRE(x.accepts(e, std::string(length, 'a')) == accepted);
          }
        }
      }
    }
  }
  Expressions x;
  const ExprId a = x.literal("a");
  CHECK(x.repeat(x.repeat(a, 1, 100), 1, 100) == x.repeat(a, 1, 10'000));
  CHECK(x.repeat(x.repeat(a, 1, 1'000'000), 1, 1'000'000) != x.repeat(a, 1, Expressions::unlimited));
}

TEST_CASE("a table is one of its texts and then what follows it") {
  CounterRng rng(13);
  const auto texts = texts_of("ab", 6);
  for (int round = 0; round < 100; ++round) {
    Expressions x;
    std::vector<Branch> branches;
    std::vector<Tree> trees;
    for (std::size_t n = draw(rng, 6); n > 0; --n) {
      trees.push_back(random_tree(rng, 1, Extra::none));
      branches.push_back({texts[draw(rng, 30)], trees.back().expression(x)});
    }
    const ExprId e = x.table(branches);
    for (const std::string& text : texts) {
      bool accepted = false;
      for (std::size_t i = 0; i < trees.size(); ++i) {
        const std::string_view begin = branches[i].text;
        accepted = accepted || (text.starts_with(begin) && trees[i].matches(text.substr(begin.size())));
      }
      REQUIRE(x.accepts(e, text) == accepted);
    }
  }
}

TEST_CASE("multiples are those of integer arithmetic") {
  Expressions x;
  for (const std::uint32_t divisor : {1U, 2U, 3U, 7U, 10U, 25U, 1000U, 2'147'483'647U}) {
    const ExprId e = x.multiple_of(divisor, 0), hundredths = x.multiple_of(divisor, 2);
    for (std::uint64_t value = 0; value < 3000; value += 1 + value / 50) {
      CHECK(x.accepts(e, std::to_string(value)) == (value % divisor == 0));
      CHECK(x.accepts(e, std::to_string(value) + ".000") == (value % divisor == 0));
      CHECK_FALSE(x.accepts(e, std::to_string(value) + ".5"));
      std::string digits = std::to_string(value);
      digits.insert(0, digits.size() < 3 ? 3 - digits.size() : 0, '0');
      digits.insert(digits.size() - 2, ".");
      CHECK(x.accepts(hundredths, digits) == (value % divisor == 0));
      CHECK(x.accepts(hundredths, digits + "0") == (value % divisor == 0));
      CHECK_FALSE(x.accepts(hundredths, digits + "1"));
      CHECK(x.accepts(hundredths, std::to_string(value)) == (value * 100 % divisor == 0));
    }
  }
}

TEST_CASE("derivatives around calls keep what follows, and calls are found at the beginning only") {
  Expressions x;
  const ExprId call = x.call(RuleId{3}), other = x.call(RuleId{4});
  const ExprId a = x.literal("a"), b = x.literal("b");
  const ExprId e = x.cat({x.optional(a), x.alt(x.cat(call, b), x.cat(b, other)), a});
  CHECK(x.has_calls(e));
  CHECK(x.begins_with_call(e));
  CHECK(x.begins_with_byte(e));
  std::vector<Call> calls;
  x.calls(e, calls);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].rule == RuleId{3});
  CHECK(calls[0].then == x.cat(b, a));
  std::vector<ExprId> after_b;
  x.derive(e, 'b', after_b);
  REQUIRE(after_b.size() == 1);
  CHECK(after_b[0] == x.cat(other, a));
  const ExprId many = x.repeat(x.cat(call, b), 2, 5);
  calls.clear();
  x.calls(many, calls);
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].then == x.cat(b, x.repeat(x.cat(call, b), 1, 4)));
  std::vector<ExprId> nothing;
  x.derive(call, 'a', nothing);
  CHECK(nothing.empty());
}

TEST_CASE("long sequences and deep alternatives need no deep stack") {
  Expressions x(std::size_t{256} << 20);
  ExprId chain = ExprId::empty;
  for (int i = 0; i < 100'000; ++i) chain = x.cat(x.optional(letters(x, i % 2 == 0 ? "a" : "b")), chain);
  CHECK(x.nullable(chain));
  CHECK(x.edges(chain).contains('a'));
  ExprId deep = x.literal("x");
  for (int i = 0; i < 500; ++i) deep = x.cat(x.optional(x.cat(x.literal("a"), deep)), x.literal("b"));
  CHECK(x.accepts(deep, "ab") == false);
  CHECK(x.accepts(deep, "b"));
}

TEST_CASE("memory, readings and searches have limits, with sentences") {
  CHECK(limit_of([] {
          Expressions small(1 << 16);
          for (int i = 0; i < 100'000; ++i) static_cast<void>(small.literal(std::to_string(i)));
        }).find("bytes of expressions") != std::string::npos);
  CHECK(limit_of([] {
          Expressions x;
          std::vector<ExprId> parts;
          for (int i = 0; i < 30'000; ++i) parts.push_back(x.literal(std::to_string(i + 100)));
          static_cast<void>(x.alt(std::move(parts)));
        }).find("readings of a text") != std::string::npos);
  CHECK(limit_of([] {
          Expressions x;
          const ExprId a = letters(x, "a"), ab = letters(x, "ab");
          const ExprId marked = x.cat({x.repeat(ab, 0), a, x.repeat(ab, 17, 17)});
          const ExprId again = x.cat({x.repeat(ab, 0), a, ab, x.repeat(ab, 16, 16)});
          static_cast<void>(x.accepts_some(x.both(marked, x.complement(x.alt(again, x.literal("c"))))));
        }).find("did not tell whether") != std::string::npos);
}

}  // namespace mica::test::expressions_test
