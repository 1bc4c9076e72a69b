// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions with assertions as expressions. What an assertion means depends on what follows it, so
// the expression of a part is made together with that of the text after it, from right to left:
//
//   (?!ab)[a-z]+$   $      what follows may be empty: then it is; else the part accepts nothing
//                   [a-z]+ before what follows
//                   (?!ab) what follows, without the texts that begin with ab
#pragma once

#include "mica/base/assert.hpp"
#include "mica/constraint/detail/pattern_reader.hpp"
#include "mica/constraint/expressions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::constraint::detail {

/// A part of a regular expression. A part without assertions is an expression, with the number of its
/// characters.
struct RegexPart {
  enum class Kind : std::uint8_t { expression, begin, end, cat, alt, repeat, lookahead, not_lookahead };
  static constexpr std::uint32_t unlimited = Expressions::unlimited;

  Kind kind = Kind::expression;
  bool looks = false;  // has lookaheads
  ExprId e = ExprId::empty;
  std::uint32_t min_length = 0, max_length = 0;  // in characters, of Kind::expression
  std::uint32_t min = 0, max = 0;                // times, of Kind::repeat
  std::size_t pos = 0;                           // in the pattern, of Kind::repeat
  std::vector<RegexPart> parts = {};             // of Kind::cat and the later ones

  [[nodiscard]] bool plain() const noexcept { return kind == Kind::expression; }
};

/// Joins parts.
class RegexBuilder {
 public:
  using Part = RegexPart;
  using Kind = RegexPart::Kind;

  explicit RegexBuilder(Expressions& expressions) noexcept : x_(expressions) {}

  [[nodiscard]] static Part character(ExprId e) { return {.e = e, .min_length = 1, .max_length = 1}; }
  [[nodiscard]] static Part anchor(Kind kind) { return {.kind = kind}; }
  [[nodiscard]] static Part lookahead(Part body, bool negative) {
    return nested(negative ? Kind::not_lookahead : Kind::lookahead, one(std::move(body)), true);
  }
  [[nodiscard]] Part cat(std::vector<Part> parts);
  [[nodiscard]] Part alt(std::vector<Part> parts);
  [[nodiscard]] Part repeat(Part part, std::uint32_t min, std::uint32_t max, std::size_t pos);

 private:
  [[nodiscard]] static std::vector<Part> one(Part part) {
    std::vector<Part> out;
    out.push_back(std::move(part));
    return out;
  }
  [[nodiscard]] static Part nested(Kind kind, std::vector<Part> parts, bool looks = false) {
    for (const Part& part : parts) looks = looks || part.looks;
    Part out{.kind = kind, .looks = looks};
    out.parts = std::move(parts);
    return out;
  }
  [[nodiscard]] static std::uint32_t sum(std::uint32_t a, std::uint32_t b) noexcept {
    return a > Part::unlimited - b ? Part::unlimited : a + b;
  }
  [[nodiscard]] static std::uint32_t product(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{a} * b, Part::unlimited));
  }
  [[nodiscard]] bool join(const Part& left, Part& right);

  Expressions& x_;
};

/// Puts a part before another one, if both are one expression then. A lookahead that ends within the
/// characters after it is an intersection with them.
inline bool RegexBuilder::join(const Part& left, Part& right) {
  if (!right.plain()) return false;
  if (left.plain()) {
    right.e = x_.cat(left.e, right.e);
    right.min_length = sum(left.min_length, right.min_length);
    right.max_length = sum(left.max_length, right.max_length);
    return true;
  }
  const bool looks = left.kind == Kind::lookahead || left.kind == Kind::not_lookahead;
  if (!looks || !left.parts[0].plain() || left.parts[0].max_length > right.min_length) return false;
  const ExprId seen = x_.cat(left.parts[0].e, ExprId::any);
  right.e = x_.both(left.kind == Kind::lookahead ? seen : x_.complement(seen), right.e);
  return true;
}

inline RegexPart RegexBuilder::cat(std::vector<Part> parts) {
  std::vector<Part> joined;  // from right to left
  for (std::size_t i = parts.size(); i > 0; --i) {
    if (joined.empty() || !join(parts[i - 1], joined.back())) joined.push_back(std::move(parts[i - 1]));
  }
  if (joined.empty()) return {};
  if (joined.size() == 1) return std::move(joined[0]);
  std::reverse(joined.begin(), joined.end());
  return nested(Kind::cat, std::move(joined));
}

inline RegexPart RegexBuilder::alt(std::vector<Part> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  std::vector<Part> others;  // with assertions
  std::vector<ExprId> plain;
  Part joined{.min_length = Part::unlimited};
  for (Part& part : parts) {
    if (!part.plain()) {
      others.push_back(std::move(part));
      continue;
    }
    plain.push_back(part.e);
    joined.min_length = std::min(joined.min_length, part.min_length);
    joined.max_length = std::max(joined.max_length, part.max_length);
  }
  joined.e = x_.alt(std::move(plain));
  if (others.empty()) return joined;
  if (joined.e != ExprId::none) others.push_back(std::move(joined));
  return nested(Kind::alt, std::move(others));
}

inline RegexPart RegexBuilder::repeat(Part part, std::uint32_t min, std::uint32_t max, std::size_t pos) {
  if (max == 0) return {};
  if (min == 1 && max == 1) return part;
  if (part.plain()) {
    return {.e = x_.repeat(part.e, min, max),
            .min_length = product(part.min_length, min),
            .max_length = product(part.max_length, max)};
  }
  if (max == 1) {
    std::vector<Part> parts = one(std::move(part));
    parts.emplace_back();
    return alt(std::move(parts));
  }
  Part out = nested(Kind::repeat, one(std::move(part)));
  out.min = min;
  out.max = max;
  out.pos = pos;
  return out;
}

/// Makes expressions of parts and of what follows them.
class RegexAssertions {
 public:
  using Part = RegexPart;
  using Kind = RegexPart::Kind;

  /// What follows a part: where the part ends at the beginning of the text, and elsewhere.
  struct Rest {
    ExprId first, later;
  };

  /// pattern: for messages.
  RegexAssertions(Expressions& expressions, std::string_view pattern) noexcept
      : x_(expressions), pattern_(pattern) {}

  /// The part and what follows. Raises ErrorCode::unsupported for a lookahead in a repetition that looks at
  /// more than the characters after it in the repetition, and ErrorCode::limit.
  [[nodiscard]] Rest before(const Part& part, Rest rest);

 private:
  static constexpr std::size_t max_steps = 200'000;

  [[nodiscard]] Rest repeat_before(const Part& part, Rest rest);
  [[nodiscard]] ExprId repeat_later(const Part& body, ExprId rest, std::uint32_t min, std::uint32_t max);
  [[nodiscard]] Rest looking_repeat(const Part& part, Rest rest);
  [[nodiscard]] ExprId in_the_middle(const Part& part);
  [[nodiscard]] bool may_be_empty(const Part& part, bool at_begin, bool at_end) const;
  [[nodiscard]] ExprId not_empty(ExprId e) {
    return x_.nullable(e) ? x_.both(e, x_.complement(ExprId::empty)) : e;
  }
  [[nodiscard]] Rest plain_before(ExprId e, Rest rest) {
    const bool nullable = x_.nullable(e);
    const ExprId later = rest.later == ExprId::any && nullable ? rest.later : x_.cat(e, rest.later);
    if (rest.first == rest.later) return {later, later};
    const ExprId longer = x_.cat(not_empty(e), rest.later);
    return {nullable ? x_.alt(rest.first, longer) : longer, later};
  }
  [[nodiscard]] ExprId if_empty(ExprId rest) const noexcept {
    return x_.nullable(rest) ? ExprId::empty : ExprId::none;
  }

  Expressions& x_;
  std::string_view pattern_;
  std::size_t steps_ = 0;
};

inline RegexAssertions::Rest RegexAssertions::before(const Part& part, Rest rest) {
  MICA_CHECK(++steps_ <= max_steps, limit, "the regular expression '", shown(pattern_),
             "' has too many anchors in nested repetitions: write them outside");
  switch (part.kind) {
    case Kind::expression:
      return plain_before(part.e, rest);
    case Kind::begin:
      return {rest.first, ExprId::none};
    case Kind::end:
      return {if_empty(rest.first), if_empty(rest.later)};
    case Kind::cat:
      for (std::size_t i = part.parts.size(); i > 0; --i) rest = before(part.parts[i - 1], rest);
      return rest;
    case Kind::alt: {
      std::vector<ExprId> first, later;
      for (const Part& each : part.parts) {
        const Rest made = before(each, rest);
        first.push_back(made.first);
        later.push_back(made.later);
      }
      return {x_.alt(std::move(first)), x_.alt(std::move(later))};
    }
    case Kind::repeat:
      return part.looks ? looking_repeat(part, rest) : repeat_before(part, rest);
    default: {
      Rest seen = before(part.parts[0], {ExprId::any, ExprId::any});
      if (part.kind == Kind::not_lookahead) seen = {x_.complement(seen.first), x_.complement(seen.later)};
      return {x_.both(seen.first, rest.first), x_.both(seen.later, rest.later)};
    }
  }
}

/// A repetition whose body has anchors. Only its first times can be at the beginning of the text, and only
/// the last ones at the end.
inline RegexAssertions::Rest RegexAssertions::repeat_before(const Part& part, Rest rest) {
  const Part& body = part.parts[0];
  const bool starts_empty = may_be_empty(body, true, false);  // any number of times
  const std::uint32_t min = starts_empty || part.min == 0 ? 0 : part.min - 1;
  const std::uint32_t max = part.max == Part::unlimited ? part.max : part.max - 1;
  const ExprId others = repeat_later(body, rest.later, min, max);
  std::vector<ExprId> first = {before(body, {ExprId::none, others}).first};
  if (part.min == 0 || starts_empty) first.push_back(rest.first);
  if (may_be_empty(body, true, true)) first.push_back(if_empty(rest.first));
  return {x_.alt(std::move(first)), repeat_later(body, rest.later, part.min, part.max)};
}

inline ExprId RegexAssertions::repeat_later(const Part& body, ExprId rest, std::uint32_t min,
                                            std::uint32_t max) {
  const ExprId once = in_the_middle(body);
  const ExprId repeated = x_.cat(x_.repeat(once, min, max), rest);
  if (max == 0 || !x_.nullable(rest)) return repeated;
  const ExprId last = before(body, {ExprId::empty, ExprId::empty}).later;
  const std::uint32_t min_before = may_be_empty(body, false, true) || min == 0 ? 0 : min - 1;
  const std::uint32_t max_before = max == Part::unlimited ? max : max - 1;
  return x_.alt(repeated, x_.cat(x_.repeat(once, min_before, max_before), last));
}

/// Lookaheads before a single character, repeated up to the end of the text: (?:(?!ab).)*$. They hold at each
/// character.
inline RegexAssertions::Rest RegexAssertions::looking_repeat(const Part& part, Rest rest) {
  if (part.min == 0 && rest.first == ExprId::any && rest.later == ExprId::any) return rest;
  const Part& body = part.parts[0];
  const bool to_the_end = rest.first == ExprId::empty && rest.later == ExprId::empty;
  const bool alone = body.kind == Kind::cat && body.parts.back().plain() &&
                     body.parts.back().min_length == 1 && body.parts.back().max_length == 1;
  Rest seen{ExprId::any, ExprId::any};
  bool fits = to_the_end && alone;
  for (std::size_t i = body.parts.size() - 1; fits && i > 0; --i) {
    const Kind kind = body.parts[i - 1].kind;
    fits = kind == Kind::lookahead || kind == Kind::not_lookahead;
    if (fits) seen = before(body.parts[i - 1], seen);
  }
  MICA_CHECK(
      fits && seen.first == seen.later, unsupported, "the regular expression '", shown(pattern_),
      "' has a lookahead in the repetition at byte ", part.pos,
      ", which may see characters after the repetition: use a lookahead at the beginning of the pattern, or "
      "repeat one character up to $, as in ^(?:(?!ab).)*$");
  const ExprId character = body.parts.back().e;
  const ExprId violated = x_.cat(x_.repeat(character, 0), not_empty(x_.complement(seen.later)));
  const ExprId out = x_.both(x_.repeat(character, part.min, part.max), x_.complement(violated));
  return {out, out};
}

/// The part where it neither begins nor ends the text.
inline ExprId RegexAssertions::in_the_middle(const Part& part) {
  std::vector<ExprId> made;
  for (const Part& each : part.parts) made.push_back(in_the_middle(each));
  switch (part.kind) {
    case Kind::expression:
      return part.e;
    case Kind::cat:
      return x_.cat(made);
    case Kind::alt:
      return x_.alt(std::move(made));
    case Kind::repeat:
      return x_.repeat(made[0], part.min, part.max);
    default:
      return ExprId::none;
  }
}

/// Whether it accepts no characters at a place of the text. It has no lookaheads.
inline bool RegexAssertions::may_be_empty(const Part& part, bool at_begin, bool at_end) const {
  const auto each = [&](const Part& inner) { return may_be_empty(inner, at_begin, at_end); };
  switch (part.kind) {
    case Kind::expression:
      return x_.nullable(part.e);
    case Kind::begin:
      return at_begin;
    case Kind::end:
      return at_end;
    case Kind::alt:
      return std::any_of(part.parts.begin(), part.parts.end(), each);
    case Kind::repeat:
      return part.min == 0 || each(part.parts[0]);
    default:
      return std::all_of(part.parts.begin(), part.parts.end(), each);
  }
}

}  // namespace mica::constraint::detail
