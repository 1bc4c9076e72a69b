// SPDX-License-Identifier: Apache-2.0
//
// What a for loop, a filter or a membership test goes through: the items of any value that has some.
#pragma once

#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

[[nodiscard]] inline Value characters(std::string_view text, Meter& meter) {
  meter.items(text.size() * 4);  // each character becomes a string of its own
  std::vector<Value> out;
  each_code_point(text, [&out](CodePoint, std::string_view bytes) { out.emplace_back(bytes); });
  return Value::list(std::move(out));
}

[[nodiscard]] inline Value keys(const Value& mapping, Meter& meter) {
  meter.items(mapping.entries().size());
  std::vector<Value> out;
  for (const auto& entry : mapping.entries()) out.push_back(entry.first);
  return Value::list(std::move(out));
}

[[nodiscard]] inline bool is_iterable(const Value& value) {
  return value.is(Kind::undefined) || value.is(Kind::string) || value.is(Kind::sequence) ||
         value.is(Kind::mapping);
}

/// list(value), or the sequence that the value is; a generator gives its items to the first who asks.
[[nodiscard]] inline Value items_of(const Value& value, Meter& meter) {
  switch (value.kind()) {
    case Kind::undefined:
      return Value::list({});
    case Kind::string:
      return characters(value.text(), meter);
    case Kind::mapping:
      return keys(value, meter);
    case Kind::sequence: {
      const auto& sequence = value.as<Sequence>();
      if (sequence.spent) return Value::list({});
      sequence.spent = sequence.form == Form::generator;
      return value;
    }
    default:
      fail("'", type_name(value), "' is not iterable");
  }
}

}  // namespace mica::jinja::detail
