// SPDX-License-Identifier: Apache-2.0
//
// The operators + - * / // % and unary minus. Integers have 64 bits and never wrap: a result that does not
// fit is an error that says so, here and in filters. Limits and widths are no results: they reach as far as
// their text does.
#pragma once

#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

enum class Operator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, concatenate };

[[nodiscard]] inline std::string_view spelling(Operator op) {
  static constexpr std::string_view signs[] = {"+", "-", "*", "/", "//", "%", "~"};
  return signs[static_cast<std::size_t>(op)];
}

/// a op b for the three operators that can overflow.
[[nodiscard]] inline std::int64_t checked(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool overflow = op == Operator::add        ? __builtin_add_overflow(a, b, &result)
                        : op == Operator::subtract ? __builtin_sub_overflow(a, b, &result)
                                                   : __builtin_mul_overflow(a, b, &result);
  if (overflow) fail(no_fit);
  return result;
}

[[nodiscard]] inline std::int64_t negated(std::int64_t value) {
  return checked(Operator::subtract, 0, value);
}

[[nodiscard]] inline Value whole_arithmetic(Operator op, std::int64_t a, std::int64_t b) {
  if (op == Operator::add || op == Operator::subtract || op == Operator::multiply) return checked(op, a, b);
  if (b == 0) fail("division by zero");
  if (op == Operator::divide) return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) return op == Operator::modulo ? 0 : negated(a);
  const std::int64_t rest = a % b;
  const bool below = rest != 0 && (rest < 0) != (b < 0);  // Python rounds towards minus infinity
  if (op == Operator::modulo) return below ? rest + b : rest;
  return below ? a / b - 1 : a / b;
}

[[nodiscard]] inline Value real_arithmetic(Operator op, double a, double b) {
  if (op == Operator::add) return a + b;
  if (op == Operator::subtract) return a - b;
  if (op == Operator::multiply) return a * b;
  if (b == 0) fail("division by zero");
  if (op == Operator::divide) return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return op == Operator::modulo ? rest : std::floor((a - rest) / b + 0.5);
}

[[nodiscard]] inline Value joined_rows(const Value& a, const Value& b, Meter& meter) {
  meter.items(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return make_sequence(a.as<Sequence>().form, std::move(items));
}

[[nodiscard]] inline std::string repeated(std::string_view text, std::int64_t times, Meter& meter) {
  const auto count = text.empty() || times < 0 ? 0 : static_cast<std::uint64_t>(times);
  meter.repeated_bytes(text.size(), count);
  std::string out;
  out.reserve(text.size() * count);
  for (std::uint64_t i = 0; i < count; ++i) out.append(text);
  return out;
}

[[nodiscard]] inline Value calculate(Operator op, const Value& a, const Value& b, Meter& meter) {
  if (a.is_number() && b.is_number()) {
    if (is_whole(a) && is_whole(b)) return whole_arithmetic(op, whole(a), whole(b));
    return real_arithmetic(op, number_of(a), number_of(b));
  }
  if (op == Operator::add && a.is(Kind::string) && b.is(Kind::string)) {
    meter.bytes(a.text().size() + b.text().size());
    return std::string(a.text()).append(b.text());
  }
  if (op == Operator::add && is_row(a) && is_row(b) && type_name(a) == type_name(b))
    return joined_rows(a, b, meter);
  if (op == Operator::multiply && a.is(Kind::string) && is_whole(b))
    return repeated(a.text(), whole(b), meter);
  if (op == Operator::multiply && b.is(Kind::string) && is_whole(a))
    return repeated(b.text(), whole(a), meter);
  if (a.is(Kind::undefined)) refuse_undefined(a);
  if (b.is(Kind::undefined)) refuse_undefined(b);
  fail("'", spelling(op), "' does not take '", type_name(a), "' and '", type_name(b), "'");
}

/// -value or +value
[[nodiscard]] inline Value with_sign(const Value& value, bool negative) {
  if (value.is(Kind::undefined)) refuse_undefined(value);
  if (!value.is_number()) fail("a sign does not go before '", type_name(value), "'");
  if (value.is(Kind::real)) return negative ? -value.real() : value.real();
  return negative ? negated(whole(value)) : whole(value);
}

}  // namespace mica::jinja::detail
