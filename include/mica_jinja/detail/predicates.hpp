// SPDX-License-Identifier: Apache-2.0
//
// What may stand after `is`: defined, none, string, mapping, divisibleby(3) ...
#pragma once

#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/arithmetic.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::jinja::detail {

template <Kind wanted>
Value kind_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("a test for a type");
  return self.is(wanted);
}

inline Value defined_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("defined");
  return !self.is(Kind::undefined);
}

template <bool wanted>
Value truth_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("true, false");
  return self.is(Kind::boolean) && self.boolean() == wanted;
}

inline Value number_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("number");
  return self.is_number();
}

inline Value iterable_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("iterable");
  return is_iterable(self);
}

/// Python asks for a length and for places; mappings have both.
inline Value sequence_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("sequence");
  if (self.is(Kind::sequence)) return self.as<Sequence>().form <= Form::tuple;
  return is_iterable(self);
}

inline Value callable_test(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("callable");
  return self.is(Kind::callable);
}

[[nodiscard]] inline const Value& operand(const Arguments& arguments, std::string_view callee) {
  const auto [other] = arguments.bind(callee, {"other"});
  if (other == nullptr) fail("'", callee, "' lacks an argument");
  return *other;
}

template <bool wanted>
Value equal_test(Engine& engine, const Value& self, const Arguments& arguments) {
  return equal(self, operand(arguments, "eq, ne"), engine.meter()) == wanted;
}

/// self < other, or the other way round; negated for the two that include equality.
template <bool swapped, bool negated>
Value order_test(Engine& engine, const Value& self, const Arguments& arguments) {
  const Value& other = operand(arguments, "lt, le, gt, ge");
  return (swapped ? less(other, self, engine.meter()) : less(self, other, engine.meter())) != negated;
}

inline Value in_test(Engine& engine, const Value& self, const Arguments& arguments) {
  return contains(operand(arguments, "in"), self, engine.meter());
}

/// `is`, Python's: the same object, or the same small thing.
inline Value sameas_test(Engine& engine, const Value& self, const Arguments& arguments) {
  const Value& other = operand(arguments, "sameas");
  if (self.kind() != other.kind()) return false;
  if (self.object() != nullptr || other.object() != nullptr) return self.object() == other.object();
  return equal(self, other, engine.meter());
}

[[nodiscard]] inline bool divides(const Value& self, const Value& divisor, Engine& engine) {
  return equal(calculate(Operator::modulo, self, divisor, engine.meter()), 0, engine.meter());
}

inline Value divisibleby_test(Engine& engine, const Value& self, const Arguments& arguments) {
  return divides(self, operand(arguments, "divisibleby"), engine);
}

template <bool wanted>
Value even_test(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("even, odd");
  return divides(self, 2, engine) == wanted;
}

template <bool capitals>
Value case_test(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("upper, lower");
  const std::string text = text_of(self, engine.meter());
  engine.meter().characters(text.size());
  return has_case(text, capitals);
}

inline Value escaped_test(Engine&, const Value&, const Arguments& arguments) {
  arguments.expect_none("escaped");
  return false;
}

inline constexpr NamedOperation predicates[] = {
    {"defined", defined_test},
    {"undefined", kind_test<Kind::undefined>},
    {"none", kind_test<Kind::none>},
    {"string", kind_test<Kind::string>},
    {"mapping", kind_test<Kind::mapping>},
    {"iterable", iterable_test},
    {"sequence", sequence_test},
    {"boolean", kind_test<Kind::boolean>},
    {"true", truth_test<true>},
    {"false", truth_test<false>},
    {"integer", kind_test<Kind::integer>},
    {"float", kind_test<Kind::real>},
    {"number", number_test},
    {"callable", callable_test},
    {"eq", equal_test<true>},
    {"equalto", equal_test<true>},
    {"==", equal_test<true>},
    {"ne", equal_test<false>},
    {"!=", equal_test<false>},
    {"lt", order_test<false, false>},
    {"lessthan", order_test<false, false>},
    {"<", order_test<false, false>},
    {"le", order_test<true, true>},
    {"<=", order_test<true, true>},
    {"gt", order_test<true, false>},
    {"greaterthan", order_test<true, false>},
    {">", order_test<true, false>},
    {"ge", order_test<false, true>},
    {">=", order_test<false, true>},
    {"in", in_test},
    {"sameas", sameas_test},
    {"divisibleby", divisibleby_test},
    {"even", even_test<true>},
    {"odd", even_test<false>},
    {"lower", case_test<false>},
    {"upper", case_test<true>},
    {"escaped", escaped_test},
};

}  // namespace mica::jinja::detail
