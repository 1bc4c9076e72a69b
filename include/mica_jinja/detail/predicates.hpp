// SPDX-License-Identifier: Apache-2.0
//
// What may stand after `is`: defined, none, string, mapping, equalto(x) ...
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/value.hpp"

#include <string_view>

namespace mica::jinja::detail {

template <Kind wanted>
Value kind_test(Engine&, const Value& self, const Arguments&) {
  return self.is(wanted);
}

inline Value defined_test(Engine&, const Value& self, const Arguments&) { return !self.is(Kind::undefined); }

template <bool wanted>
Value truth_test(Engine&, const Value& self, const Arguments&) {
  return self.is(Kind::boolean) && self.boolean() == wanted;
}

inline Value number_test(Engine&, const Value& self, const Arguments&) { return self.is_number(); }

inline Value iterable_test(Engine&, const Value& self, const Arguments&) { return is_iterable(self); }

/// Python asks for a length and for places; mappings have both.
inline Value sequence_test(Engine&, const Value& self, const Arguments&) {
  return self.is(Kind::sequence) ? is_row(self) : is_iterable(self);
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

inline Value in_test(Engine& engine, const Value& self, const Arguments& arguments) {
  return contains(operand(arguments, "in"), self, engine.meter());
}

inline constexpr NamedOperation predicates[] = {
    {"defined", defined_test, no_arguments},
    {"undefined", kind_test<Kind::undefined>, no_arguments},
    {"none", kind_test<Kind::none>, no_arguments},
    {"string", kind_test<Kind::string>, no_arguments},
    {"mapping", kind_test<Kind::mapping>, no_arguments},
    {"iterable", iterable_test, no_arguments},
    {"sequence", sequence_test, no_arguments},
    {"boolean", kind_test<Kind::boolean>, no_arguments},
    {"true", truth_test<true>, no_arguments},
    {"false", truth_test<false>, no_arguments},
    {"integer", kind_test<Kind::integer>, no_arguments},
    {"float", kind_test<Kind::real>, no_arguments},
    {"number", number_test, no_arguments},
    {"eq", equal_test<true>},
    {"equalto", equal_test<true>},
    {"==", equal_test<true>},
    {"ne", equal_test<false>},
    {"!=", equal_test<false>},
    {"in", in_test},
};

}  // namespace mica::jinja::detail
