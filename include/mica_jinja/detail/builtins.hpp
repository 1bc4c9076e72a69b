// SPDX-License-Identifier: Apache-2.0
//
// What every template knows without being given it: the functions range, namespace, raise_exception ..., and
// what may stand after `is`: defined, none, string, mapping, equalto(x) ...
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Numbers from `start` up to or down to `stop`, which is left out; no arithmetic in it can overflow.
[[nodiscard]] inline std::uint64_t range_length(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto low = static_cast<std::uint64_t>(step > 0 ? start : stop);
  const auto high = static_cast<std::uint64_t>(step > 0 ? stop : start);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  return (high - low - 1) / stride + 1;
}

/// A list of numbers, made at once.
inline Value range_function(Engine& engine, const Arguments& arguments) {
  if (!arguments.keyword.empty() || arguments.positional.empty() || arguments.positional.size() > 3)
    fail("'range' takes one to three numbers");
  std::int64_t numbers[3] = {0, 0, 1};
  const bool only_stop = arguments.positional.size() == 1;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    numbers[only_stop ? 1 : i] = integer_argument(&arguments.positional[i], 0, "range");
  }
  const auto [start, stop, step] = numbers;
  if (step == 0) fail("the step of 'range' is zero");
  const std::uint64_t length = range_length(start, stop, step);
  const auto max = static_cast<std::uint64_t>(engine.limits().range_items);
  if (length > max) exceed("a range of ", length, " numbers; at most ", max, " are allowed");
  engine.meter().items(static_cast<std::size_t>(length));
  std::vector<Value> out;
  for (std::uint64_t i = 0; i < length; ++i) {  // i * step may not fit: unsigned numbers wrap
    out.emplace_back(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + i * static_cast<std::uint64_t>(step)));
  }
  return Value::list(std::move(out));
}

/// Entries of one mapping, then keyword arguments: what dict() and namespace() start from.
[[nodiscard]] inline Value::Entries entries_from(Engine& engine, const Arguments& arguments) {
  Value::Entries entries;
  if (!arguments.positional.empty()) {
    const Value& first = arguments.positional[0];
    if (arguments.positional.size() > 1 || !first.is(Kind::mapping)) fail("one mapping is taken, and names");
    engine.meter().entries(first.entries().size());
    entries = first.entries();
  }
  engine.meter().entries(arguments.keyword.size());
  entries.insert(entries.end(), arguments.keyword.begin(), arguments.keyword.end());
  return entries;
}

inline Value dict_function(Engine& engine, const Arguments& arguments) {
  return Value::mapping(entries_from(engine, arguments));
}

inline Value namespace_function(Engine& engine, const Arguments& arguments) {
  auto space = std::make_shared<NameSpace>();
  for (const auto& [name, value] : entries_from(engine, arguments)) {
    if (!name.is(Kind::string)) fail("the attributes of a namespace have strings for names");
    space->start_with(name, value);
  }
  return Value(std::shared_ptr<const Object>(std::move(space)));
}

inline Value raise_function(Engine& engine, const Arguments& arguments) {
  const auto [message] = arguments.bind("raise_exception", {"message"});
  constexpr std::size_t longest = 4096;  // characters; a message is for people
  std::string text = message == nullptr ? std::string() : text_of(*message, engine.meter());
  text.resize(offset_of(text, longest));
  throw TemplateError(TemplateError::Cause::raised, std::move(text));
}

inline Value strftime_function(Engine& engine, const Arguments& arguments) {
  const auto [format] = arguments.bind("strftime_now", {"format"});
  const std::string_view pattern = string_argument(format, "strftime_now");
  engine.meter().repeated_bytes(pattern.size(),
                                16);  // no conversion is longer than 16 times its two characters
  return engine.now().format(pattern);
}

struct NamedFunction {
  std::string_view name;
  Function::Body body;
};

inline constexpr NamedFunction functions[] = {
    {"range", range_function},           {"namespace", namespace_function},   {"dict", dict_function},
    {"raise_exception", raise_function}, {"strftime_now", strftime_function},
};

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
