// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/recognizer.hpp"

#include "errors.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::recognizer_test {

using namespace constraint;

namespace {

/// A language of rules that are all known.
Language with_rules(std::unique_ptr<Expressions> expressions, ExprId start, std::vector<ExprId> bodies) {
  return {std::move(expressions), std::make_unique<FixedRules>(std::move(bodies)), start};
}

/// Rules that are made when they are called: rule n is "n, then rule n + 1, or nothing".
class Counting final : public Rules {
 public:
  ExprId body(RuleId rule, Expressions& x) override {
    ++made;
    const auto n = static_cast<std::uint32_t>(rule);
    return x.optional(x.cat(x.literal(std::to_string(n) + ","), x.call(RuleId{n + 1})));
  }
  std::size_t made = 0;
};

/// Whether a state leads to an accepting one over at most n states. d is any byte that no expression names.
bool leads_to_a_text(Recognizer& recognizer, StateId state, std::size_t n) {
  std::set<StateId> seen = {state};
  std::vector<StateId> open = {state};
  for (std::size_t at = 0; at < open.size() && at < n; ++at) {
    if (recognizer.accepts(open[at])) return true;
    for (const char c : std::string_view("abcd")) {
      const StateId next = recognizer.step(open[at], static_cast<std::uint8_t>(c));
      if (next != StateId::dead && seen.insert(next).second) open.push_back(next);
    }
  }
  return false;
}

}  // namespace

TEST_CASE("the states of a random expression are those of a slow matcher, and none is a dead end") {
  CounterRng rng(21);
  const auto texts = texts_of("abc", 4);
  for (int round = 0; round < 300; ++round) {
    const Tree tree = random_tree(rng, 1 + draw(rng, 3), Extra::logic);
    auto expressions = std::make_unique<Expressions>();
    const ExprId e = tree.expression(*expressions);
    if (!expressions->accepts_some(e)) continue;
    Language language = regular(std::move(expressions), e);
    Recognizer recognizer(language);
    for (const std::string& text : texts) {
      CAPTURE(text);
      const StateId state = after(recognizer, text);
      REQUIRE(recognizer.accepts(state) == tree.matches(text));
      if (state != StateId::dead) REQUIRE(leads_to_a_text(recognizer, state, 2000));
    }
  }
}

TEST_CASE("rules that call each other read nested texts") {
  auto expressions = std::make_unique<Expressions>();
  Expressions& x = *expressions;
  // value: "[" (value ("," value)*)? "]" | digits. pair: "(" value value ")" is ambiguous in its digits.
  const ExprId value = x.call(RuleId{0}), pair = x.call(RuleId{1});
  const ExprId digits = x.repeat(x.set(ByteSet('0', '9')), 1);
  const ExprId list = x.cat(
      {x.literal("["), x.optional(x.cat(value, x.repeat(x.cat(x.literal(","), value), 0))), x.literal("]")});
  Language language =
      with_rules(std::move(expressions), value,
                 {x.alt({list, digits, pair}), x.cat({x.literal("("), value, value, x.literal(")")})});
  Recognizer recognizer(language);
  for (const std::string_view text : {"1", "[]", "[1,[22,(12)],([]333)]"}) CHECK(accepts(recognizer, text));
  for (const std::string_view text : {"", "[", "[1,]", "(1)", "[1", "1]"})
    CHECK_FALSE(accepts(recognizer, text));
  CHECK(after(recognizer, "[,") == StateId::dead);
  CHECK(after(recognizer, "(1") != StateId::dead);
}

TEST_CASE("nesting is as deep as memory allows, and equal depths share states on the way back") {
  auto expressions = std::make_unique<Expressions>();
  Expressions& x = *expressions;
  const ExprId value = x.call(RuleId{0});
  Language language =
      with_rules(std::move(expressions), value, {x.cat({x.literal("["), x.optional(value), x.literal("]")})});
  Recognizer recognizer(language);
  const std::size_t n = 50'000;
  CHECK(accepts(recognizer, std::string(n, '[') + std::string(n, ']')));
  const std::size_t states = recognizer.size(), bytes = recognizer.bytes();
  CHECK(accepts(recognizer, std::string(n, '[') + std::string(n, ']')));  // all states are known
  CHECK(recognizer.size() == states);
  CHECK(recognizer.bytes() == bytes);
  CHECK_FALSE(accepts(recognizer, std::string(n, '[') + std::string(n - 1, ']')));
}

TEST_CASE("a call at the end of a rule needs no stack") {
  auto expressions = std::make_unique<Expressions>();
  Expressions& x = *expressions;
  const ExprId rule = x.call(RuleId{0});
  Language language = with_rules(std::move(expressions), rule, {x.optional(x.cat(x.literal("a"), rule))});
  Recognizer recognizer(language);
  CHECK(accepts(recognizer, std::string(10'000, 'a')));
  CHECK(recognizer.size() < 5);
}

TEST_CASE("all readings of an ambiguous text are followed") {
  auto expressions = std::make_unique<Expressions>();
  Expressions& x = *expressions;
  const ExprId sum = x.call(RuleId{0}), a = x.literal("a");
  // sum: a | a sum | a sum sum: the number of readings grows faster than 2^n
  Language language =
      with_rules(std::move(expressions), sum, {x.alt({a, x.cat(a, sum), x.cat({a, sum, sum})})});
  Recognizer recognizer(language);
  CHECK(accepts(recognizer, std::string(200, 'a')));
  CHECK_FALSE(accepts(recognizer, std::string(200, 'a') + "b"));
}

TEST_CASE("a rule that may be empty is passed, also many times") {
  auto expressions = std::make_unique<Expressions>();
  Expressions& x = *expressions;
  const ExprId spaces = x.call(RuleId{0}), item = x.call(RuleId{1});
  const ExprId start = x.cat({spaces, x.repeat(x.cat({item, spaces, spaces}), 0), spaces});
  Language language = with_rules(
      std::move(expressions), start,
      {x.optional(x.cat(x.literal(" "), spaces)), x.cat({x.literal("x"), spaces, x.literal("y")})});
  Recognizer recognizer(language);
  for (const std::string_view text : {"", "  ", " x y  xy", "xyxy"}) CHECK(accepts(recognizer, text));
  for (const std::string_view text : {"x", "yx", "x y y"}) CHECK_FALSE(accepts(recognizer, text));
}

TEST_CASE("rules are made when a text reaches them, once each") {
  auto expressions = std::make_unique<Expressions>();
  const ExprId start = expressions->call(RuleId{0});
  auto rules = std::make_unique<Counting>();
  const Counting& counting = *rules;
  Language language{std::move(expressions), std::move(rules), start};
  Recognizer recognizer(language);
  CHECK(counting.made == 1);
  CHECK(accepts(recognizer, "0,1,2,3,"));
  CHECK_FALSE(accepts(recognizer, "0,2,"));
  CHECK(counting.made == 5);
}

TEST_CASE("the one byte that can follow is known, and several are told from none") {
  auto expressions = std::make_unique<Expressions>();
  Expressions& x = *expressions;
  const ExprId start = x.alt(x.literal("abc"), x.literal("abd"));
  Language language = regular(std::move(expressions), start);
  Recognizer recognizer(language);
  CHECK(recognizer.only_byte(recognizer.start()).found);
  CHECK(recognizer.only_byte(recognizer.start()).byte == 'a');
  CHECK_FALSE(recognizer.only_byte(after(recognizer, "ab")).found);
  CHECK_FALSE(recognizer.only_byte(after(recognizer, "abc")).found);
  CHECK_FALSE(recognizer.only_byte(StateId::dead).found);
  CHECK_FALSE(recognizer.can_continue(after(recognizer, "abc")));
  CHECK(recognizer.can_continue(after(recognizer, "ab")));
}

TEST_CASE("the empty language has only the dead state, and that of the empty text accepts at once") {
  Language nothing = regular(std::make_unique<Expressions>(), ExprId::none);
  Recognizer none(nothing);
  CHECK(none.start() == StateId::dead);
  CHECK_FALSE(none.accepts(none.start()));
  CHECK(none.step(StateId::dead, 'a') == StateId::dead);
  Language empty = regular(std::make_unique<Expressions>(), ExprId::empty);
  Recognizer one(empty);
  CHECK(one.accepts(one.start()));
  CHECK(one.step(one.start(), 'a') == StateId::dead);
}

TEST_CASE("limits end with a sentence") {
  CHECK(limit_of([] {  // a rule that calls itself before any byte
          auto expressions = std::make_unique<Expressions>();
          Expressions& x = *expressions;
          const ExprId rule = x.call(RuleId{0});
          Language language =
              with_rules(std::move(expressions), rule, {x.alt(x.literal("y"), x.cat(rule, x.literal("x")))});
          Recognizer recognizer(language, {.max_items = 500});
        })
            .find("a rule calls itself before any byte") != std::string::npos);
  CHECK(limit_of([] {
          auto expressions = std::make_unique<Expressions>();
          Expressions& x = *expressions;
          const ExprId value = x.call(RuleId{0});
          Language language = with_rules(std::move(expressions), value,
                                         {x.cat({x.literal("["), x.optional(value), x.literal("]")})});
          Recognizer recognizer(language, {.max_bytes = 100'000});
          static_cast<void>(after(recognizer, std::string(100'000, '[')));
        }).find("allowed are 100000") != std::string::npos);
}

}  // namespace mica::test::recognizer_test
