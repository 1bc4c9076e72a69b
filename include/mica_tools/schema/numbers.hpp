// SPDX-License-Identifier: Apache-2.0
//
// Expressions of numbers as JSON writes them: ranges by comparing digits, multiples by their remainder. A
// number with a divisor has no exponent, and one with a bound has one digit before the point if it has an
// exponent, so that its digits can be compared while they are written; every number can be written so.
#pragma once

#include "mica/constraint/expressions.hpp"
#include "mica_tools/schema/decimal.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mica::schema {

using constraint::ByteSet;
using constraint::Expressions;
using constraint::ExprId;

/// What a number must be.
struct NumberNeed {
  NumberRange range;
  bool integers = true;   // numbers without a fraction; written without one, too
  bool fractions = true;  // numbers with one
  std::vector<Multiple> multiples;
  std::vector<Multiple> not_multiples;
  std::vector<Decimal> excluded;

  [[nodiscard]] bool contains(const Decimal& value) const {
    if (!range.contains(value) || !(value.is_integer() ? integers : fractions)) return false;
    for (const Multiple& of : multiples) {
      if (!is_multiple(value, of)) return false;
    }
    for (const Multiple& of : not_multiples) {
      if (is_multiple(value, of)) return false;
    }
    return std::find(excluded.begin(), excluded.end(), value) == excluded.end();
  }
};

/// Makes expressions of numbers.
class Numbers {
 public:
  explicit Numbers(Expressions& expressions) : x_(expressions) {
    digit_ = x_.set(ByteSet('0', '9'));
    digits_ = x_.repeat(digit_, 0);
    minus_ = x_.literal("-");
    point_ = x_.literal(".");
    size_ = x_.alt(x_.literal("0"), x_.cat(x_.set(ByteSet('1', '9')), digits_));
    fraction_ = x_.optional(x_.cat(point_, x_.repeat(digit_, 1)));
  }

  /// May accept nothing.
  [[nodiscard]] ExprId number(const NumberNeed& need) {
    const bool bounded = !need.range.is_everything() || !need.multiples.empty() ||
                         !need.not_multiples.empty() || !need.excluded.empty();
    if (need.integers && need.fractions && !bounded) return any();
    ExprId out = in_range(need.range);
    if (need.integers && need.fractions && need.excluded.empty() && need.multiples.empty() &&
        need.not_multiples.empty())
      out = x_.alt(out, with_exponent(need.range));
    if (!need.fractions) out = x_.both(out, integer());
    if (!need.integers) out = x_.both(out, with_fraction());
    for (const Multiple& of : need.multiples) out = x_.both(out, multiple(of));
    for (const Multiple& of : need.not_multiples) out = x_.both(out, x_.complement(multiple(of)));
    for (const Decimal& value : need.excluded) out = x_.both(out, x_.complement(spellings(value)));
    if (!need.fractions && !bounded) return integer();
    return out;
  }

 private:
  /// All numbers of JSON.
  [[nodiscard]] ExprId any() {
    ByteSet e('e', 'e');
    e.insert('E');
    ByteSet sign('+', '+');
    sign.insert('-');
    const ExprId exponent = x_.cat({x_.set(e), x_.optional(x_.set(sign)), x_.repeat(digit_, 1)});
    return x_.cat({x_.optional(minus_), size_, fraction_, x_.optional(exponent)});
  }
  [[nodiscard]] ExprId integer() {
    return x_.alt(size_, x_.cat({minus_, x_.set(ByteSet('1', '9')), digits_}));
  }
  [[nodiscard]] ExprId with_fraction() {
    const ExprId nonzero = x_.cat({digits_, x_.set(ByteSet('1', '9')), digits_});
    return x_.cat({x_.optional(minus_), size_, point_, nonzero});
  }
  [[nodiscard]] ExprId multiple(const Multiple& of) {
    return x_.cat(x_.optional(minus_), x_.multiple_of(of.divisor, of.decimals));
  }
  [[nodiscard]] ExprId spellings(const Decimal& value) {
    ExprId zeros = x_.repeat(x_.literal("0"), 0);
    const std::string digits = value.digits.empty() ? "0" : value.digits;
    ExprId out = value.fraction.empty() ? x_.cat(x_.literal(digits), x_.optional(x_.cat(point_, zeros)))
                                        : x_.cat(x_.literal(digits + "." + value.fraction), zeros);
    if (value.is_zero()) return x_.cat(x_.optional(minus_), out);
    return value.negative ? x_.cat(minus_, out) : out;
  }

  [[nodiscard]] ExprId in_range(const NumberRange& range) {
    std::vector<ExprId> parts;
    const Decimal zero;
    // Zero and above.
    if (!range.max || !range.max->negative) {
      ExprId out = x_.cat(size_, fraction_);
      if (range.min && !range.min->negative) out = x_.both(out, at_least(*range.min, range.above_min));
      if (range.max) out = x_.both(out, at_most(*range.max, range.below_max));
      parts.push_back(out);
    }
    // Below zero: the sizes, with the bounds changed over.
    if (!range.min || range.min->negative) {
      ExprId out = x_.both(x_.cat(size_, fraction_), at_least(zero, true));
      if (range.max && range.max->negative)
        out = x_.both(out, at_least(range.max->negated(), range.below_max));
      if (range.min) out = x_.both(out, at_most(range.min->negated(), range.above_min));
      parts.push_back(x_.cat(minus_, out));
    }
    return x_.alt(parts);
  }

  /// As in_range(), of numbers d.ddd e n.
  [[nodiscard]] ExprId with_exponent(const NumberRange& range) {
    std::vector<ExprId> parts;
    const auto add = [&](const std::optional<Decimal>& min, bool above, const std::optional<Decimal>& max,
                         bool below) {
      const int first = min && !min->is_zero() ? exponent_of(*min) : -max_exponent;
      const int last = max ? exponent_of(*max) : max_exponent;
      if (max && (max->is_zero() || first > last)) return ExprId::none;
      const ExprId any = x_.cat(x_.set(ByteSet('1', '9')), fraction_);
      std::vector<ExprId> out;
      const bool at_first = min && !min->is_zero(), at_last = max.has_value();
      for (const int e : {first, last}) {
        if (e == last && first == last && !out.empty()) break;
        ExprId mantissa = any;
        if (at_first && e == first) mantissa = x_.both(mantissa, at_least(mantissa_of(*min), above));
        if (at_last && e == last) mantissa = x_.both(mantissa, at_most(mantissa_of(*max), below));
        out.push_back(x_.cat(mantissa, exponents(e, e)));
      }
      if (last - first > 1) out.push_back(x_.cat(any, exponents(first + 1, last - 1)));
      return x_.alt(std::move(out));
    };
    if (!range.max || !range.max->negative) {
      const bool bounded = range.min && !range.min->negative;
      parts.push_back(add(bounded ? range.min : std::nullopt, range.above_min, range.max, range.below_max));
    }
    if (!range.min || range.min->negative) {
      const auto min = range.max && range.max->negative ? std::optional(range.max->negated()) : std::nullopt;
      const auto max = range.min ? std::optional(range.min->negated()) : std::nullopt;
      parts.push_back(x_.cat(minus_, add(min, range.below_max, max, range.above_min)));
    }
    return x_.alt(std::move(parts));
  }
  static constexpr int max_exponent = 400;
  /// n of d.ddd * 10^n, of a number that is not 0; and d.ddd.
  [[nodiscard]] static int exponent_of(const Decimal& value) {
    if (!value.digits.empty()) return static_cast<int>(value.digits.size()) - 1;
    return -static_cast<int>(value.fraction.find_first_not_of('0')) - 1;
  }
  [[nodiscard]] static Decimal mantissa_of(const Decimal& value) {
    std::string all = value.digits + value.fraction;
    all.erase(0, all.find_first_not_of('0'));
    Decimal out{false, all.substr(0, 1), all.substr(1)};
    out.fraction.resize(out.fraction.find_last_not_of('0') + 1);
    return out;
  }
  /// e and a number in [first, last], with up to two zeros before it.
  [[nodiscard]] ExprId exponents(int first, int last) {
    const auto sizes = [&](int min, int max) {  // 0 <= min <= max
      NumberRange range;
      range.at_least(*parse_decimal(std::to_string(min)), false);
      range.at_most(*parse_decimal(std::to_string(max)), false);
      const ExprId in = x_.both({size_, at_least(*range.min, false), at_most(*range.max, false)});
      return x_.cat(x_.repeat(x_.literal("0"), 0, 2), in);
    };
    std::vector<ExprId> parts;
    if (last >= 0) parts.push_back(x_.cat(x_.optional(x_.literal("+")), sizes(std::max(first, 0), last)));
    if (first < 0) parts.push_back(x_.cat(minus_, sizes(std::max(-last, 0), -first)));
    if (first <= 0 && last >= 0) parts.push_back(x_.cat(minus_, x_.repeat(x_.literal("0"), 1, 3)));
    ByteSet e('e', 'e');
    e.insert('E');
    return x_.cat(x_.set(e), x_.alt(std::move(parts)));
  }

  /// Decimals without sign that are at least the bound.
  [[nodiscard]] ExprId at_least(const Decimal& bound, bool exclusive) {
    const std::string digits = bound.digits.empty() ? "0" : bound.digits;
    const auto more = static_cast<std::uint32_t>(digits.size());
    std::vector<ExprId> parts = {
        x_.cat({x_.set(ByteSet('1', '9')), x_.repeat(digit_, more), fraction_})};  // more digits
    differing(digits, '>', fraction_, parts);
    parts.push_back(x_.cat(x_.literal(digits), fraction_at_least(bound.fraction, exclusive)));
    return x_.alt(std::move(parts));
  }
  [[nodiscard]] ExprId at_most(const Decimal& bound, bool exclusive) {
    const std::string digits = bound.digits.empty() ? "0" : bound.digits;
    const auto n = static_cast<std::uint32_t>(digits.size());
    std::vector<ExprId> parts;
    if (n > 1) {
      parts.push_back(x_.cat(x_.literal("0"), fraction_));
      parts.push_back(x_.cat({x_.set(ByteSet('1', '9')), x_.repeat(digit_, 0, n - 2), fraction_}));
    }
    differing(digits, '<', fraction_, parts);
    parts.push_back(x_.cat(x_.literal(digits), fraction_at_most(bound.fraction, exclusive)));
    return x_.alt(std::move(parts));
  }
  /// As many digits, the first that differs being greater or less.
  void differing(const std::string& digits, char order, ExprId after, std::vector<ExprId>& parts) {
    const bool whole = digits == "0";
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const char smallest = i == 0 && !whole && digits.size() > 1 ? '1' : '0';
      const ByteSet others = other_digits(digits[i], order, smallest);
      const auto left = static_cast<std::uint32_t>(digits.size() - i - 1);
      parts.push_back(
          x_.cat({x_.literal(digits.substr(0, i)), x_.set(others), x_.repeat(digit_, left, left), after}));
    }
  }
  [[nodiscard]] static ByteSet other_digits(char digit, char order, char smallest) {
    ByteSet out;
    for (char d = smallest; d <= '9'; ++d) {
      if (order == '>' ? d > digit : d < digit) out.insert(static_cast<std::uint8_t>(d));
    }
    return out;
  }
  /// What may follow equal digits before the point.
  [[nodiscard]] ExprId fraction_at_least(const std::string& fraction, bool exclusive) {
    const ExprId nonzero = x_.cat({digits_, x_.set(ByteSet('1', '9')), digits_});
    if (fraction.empty()) return exclusive ? x_.cat(point_, nonzero) : fraction_;
    std::vector<ExprId> parts;
    for (std::size_t i = 0; i < fraction.size(); ++i) {
      const ByteSet greater = other_digits(fraction[i], '>', '0');
      parts.push_back(x_.cat({x_.literal(fraction.substr(0, i)), x_.set(greater), digits_}));
    }
    parts.push_back(x_.cat(x_.literal(fraction), exclusive ? nonzero : digits_));
    return x_.cat(point_, x_.alt(std::move(parts)));
  }
  [[nodiscard]] ExprId fraction_at_most(const std::string& fraction, bool exclusive) {
    const ExprId zeros = x_.repeat(x_.literal("0"), 0);
    if (fraction.empty())
      return exclusive ? ExprId::none : x_.optional(x_.cat(point_, x_.repeat(x_.literal("0"), 1)));
    std::vector<ExprId> parts;
    for (std::size_t i = 0; i < fraction.size(); ++i) {
      const ByteSet less = other_digits(fraction[i], '<', '0');
      parts.push_back(x_.cat({x_.literal(fraction.substr(0, i)), x_.set(less), digits_}));
      if (i > 0) parts.push_back(x_.literal(fraction.substr(0, i)));  // a beginning is less
    }
    if (!exclusive) parts.push_back(x_.cat(x_.literal(fraction), zeros));
    return x_.optional(x_.cat(point_, x_.alt(std::move(parts))));
  }

  Expressions& x_;
  ExprId digit_, digits_, minus_, point_, size_, fraction_;
};

}  // namespace mica::schema
