// SPDX-License-Identifier: Apache-2.0
//
// Truth, equality, order and membership as Python defines them.
#pragma once

#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

[[nodiscard]] inline bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean();
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::string:
      return !value.text().empty();
    case Kind::sequence:
      return value.as<Sequence>().form == Form::generator || !value.items().empty();
    case Kind::mapping:
      return !value.entries().empty();
    default:
      return true;
  }
}

/// A boolean or integer as an integer.
[[nodiscard]] inline std::int64_t whole(const Value& value) {
  return value.is(Kind::boolean) ? static_cast<std::int64_t>(value.boolean()) : value.integer();
}

[[nodiscard]] inline bool is_whole(const Value& value) {
  return value.is(Kind::integer) || value.is(Kind::boolean);
}

inline constexpr std::string_view no_fit = "an integer does not fit into 64 bits";

/// A float cut to an integer; empty for NaN and infinities.
[[nodiscard]] inline std::optional<std::int64_t> truncated(double value) {
  constexpr double edge = 9223372036854775808.0;  // 2 to the 63
  if (!std::isfinite(value)) return std::nullopt;
  if (value < -edge || value >= edge) fail(no_fit);
  return static_cast<std::int64_t>(value);
}

[[nodiscard]] inline bool equal(const Value& a, const Value& b, Meter& meter);

[[nodiscard]] inline bool equal_mappings(const Value& a, const Value& b, Meter& meter) {
  if (a.entries().size() != b.entries().size()) return false;
  return std::all_of(a.entries().begin(), a.entries().end(), [&](const auto& entry) {
    const Value* other = b.as<Mapping>().find(entry.first);
    return other != nullptr && equal(entry.second, *other, meter);
  });
}

[[nodiscard]] inline bool equal(const Value& a, const Value& b, Meter& meter) {
  meter.expression();
  if (a.is_number() && b.is_number())
    return is_whole(a) && is_whole(b) ? whole(a) == whole(b) : number_of(a) == number_of(b);
  if (a.kind() != b.kind()) return false;
  if (a.object() == b.object()) return true;  // shared, and both `none`
  switch (a.kind()) {
    case Kind::undefined:
      return true;
    case Kind::string:
      meter.bytes(std::min(a.text().size(), b.text().size()));
      return a.text() == b.text();
    case Kind::mapping:
      return equal_mappings(a, b, meter);
    case Kind::sequence:
      break;
    default:
      return false;
  }
  if (a.as<Sequence>().form != b.as<Sequence>().form || a.items().size() != b.items().size()) return false;
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(),
                    [&](const Value& x, const Value& y) { return equal(x, y, meter); });
}

/// a < b for numbers and strings; anything else has no order.
[[nodiscard]] inline bool less(const Value& a, const Value& b, Meter& meter) {
  meter.expression();
  if (a.is_number() && b.is_number())
    return is_whole(a) && is_whole(b) ? whole(a) < whole(b) : number_of(a) < number_of(b);
  if (a.is(Kind::string) && b.is(Kind::string)) {
    meter.bytes(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();  // the order of bytes is the order of code points
  }
  if (a.is(Kind::undefined)) refuse_undefined(a);
  if (b.is(Kind::undefined)) refuse_undefined(b);
  fail("'", type_name(a), "' and '", type_name(b), "' have no order");
}

/// item in container
[[nodiscard]] inline bool contains(const Value& container, const Value& item, Meter& meter) {
  if (container.is(Kind::string)) {
    if (!item.is(Kind::string)) fail("'in' a string looks for a string, not for '", type_name(item), "'");
    meter.search(container.text().size(), item.text().size());
    return container.text().find(item.text()) != std::string_view::npos;
  }
  if (container.is(Kind::mapping)) {
    if (item.is(Kind::string)) meter.bytes(item.text().size());
    if (!hashable(item)) fail("'", type_name(item), "' cannot be the key of a mapping");
    return container.as<Mapping>().find(item) != nullptr;
  }
  const Value row = items_of(container, meter);
  return std::any_of(row.items().begin(), row.items().end(),
                     [&](const Value& each) { return equal(each, item, meter); });
}

/// A value and the key that it is sorted by.
struct Keyed {
  Value key;
  Value value;
};

/// The values in the order of their keys; equal ones keep theirs.
[[nodiscard]] inline std::vector<Value> sorted_values(std::vector<Keyed> rows, bool reverse, Meter& meter) {
  meter.items(2 * rows.size());
  std::stable_sort(rows.begin(), rows.end(), [&meter, reverse](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key, meter) : less(a.key, b.key, meter);
  });
  std::vector<Value> out;
  out.reserve(rows.size());
  for (Keyed& row : rows) out.push_back(std::move(row.value));
  return out;
}

}  // namespace mica::jinja::detail
