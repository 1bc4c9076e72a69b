// SPDX-License-Identifier: Apache-2.0
//
// value[index], value[first:last:step] and the fields of `loop`. What is not there is undefined, not an
// error. Attributes by name, methods among them, are in attributes.hpp.
#pragma once

#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Place of a Python index, counted from the end when negative.
[[nodiscard]] inline std::optional<std::size_t> place(std::int64_t index, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index);
}

/// The n-th code point of a text; n counts from the end when negative.
[[nodiscard]] inline std::optional<Value> character_at(std::string_view text, std::int64_t index,
                                                       Meter& meter) {
  meter.characters(text.size());
  const auto wanted = place(index, count_code_points(text));
  if (!wanted) return std::nullopt;
  const std::size_t at = offset_of(text, *wanted);
  return Value(text.substr(at, decode(text, at).size));
}

/// value[index] for the values and indices that Python has it for.
[[nodiscard]] inline std::optional<Value> item_at(const Value& value, const Value& index, Meter& meter) {
  if (index.is(Kind::string)) meter.bytes(index.text().size());
  if (value.is(Kind::mapping)) {
    const Value* found = hashable(index) ? value.as<Mapping>().find(index) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!is_whole(index)) return std::nullopt;
  if (value.is(Kind::string)) return character_at(value.text(), whole(index), meter);
  if (!is_row(value)) return std::nullopt;
  const auto at = place(whole(index), value.items().size());
  return at ? std::optional(value.items()[*at]) : std::nullopt;
}

/// Three optional numbers of a slice, and what they select out of `size` items.
struct SliceBounds {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::size_t count = 0;

  [[nodiscard]] std::size_t at(std::size_t i) const {
    return static_cast<std::size_t>(first + static_cast<std::int64_t>(i) * step);
  }
};

/// A bound of a slice; undefined and none mean that it is left out.
[[nodiscard]] inline std::optional<std::int64_t> slice_number(const Value& value) {
  if (value.is(Kind::undefined) || value.is(Kind::none)) return std::nullopt;
  if (!is_whole(value)) fail("a slice is made with integers, not with '", type_name(value), "'");
  return whole(value);
}

[[nodiscard]] inline SliceBounds slice_bounds(const Value& first, const Value& last, const Value& step,
                                              std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  SliceBounds bounds;
  // Longer steps than the row select the same single item, and cannot overflow.
  bounds.step = std::clamp(slice_number(step).value_or(1), -length - 1, length + 1);
  if (bounds.step == 0) fail("the step of a slice is zero");
  const bool forward = bounds.step > 0;
  const std::int64_t min = forward ? 0 : -1;
  const std::int64_t max = forward ? length : length - 1;
  const auto resolve = [&](const Value& bound, std::int64_t fallback) {
    const auto number = slice_number(bound);
    if (!number) return fallback;
    return std::clamp(*number < 0 ? *number + length : *number, min, max);
  };
  bounds.first = resolve(first, forward ? 0 : length - 1);
  const std::int64_t end = resolve(last, forward ? length : -1);
  const std::int64_t distance = forward ? end - bounds.first : bounds.first - end;
  const std::int64_t stride = forward ? bounds.step : -bounds.step;
  bounds.count = distance <= 0 ? 0 : static_cast<std::size_t>((distance + stride - 1) / stride);
  return bounds;
}

/// Limit: the step is 1.
[[nodiscard]] inline std::string text_slice(std::string_view text, const Value& first, const Value& last,
                                            const Value& step, Meter& meter) {
  if (slice_number(step).value_or(1) != 1) fail("a string is sliced with the step 1 alone");
  meter.characters(text.size());
  const SliceBounds bounds = slice_bounds(first, last, step, count_code_points(text));
  if (bounds.count == 0) return {};
  text.remove_prefix(offset_of(text, bounds.at(0)));
  return std::string(text.substr(0, offset_of(text, bounds.count)));
}

/// value[first:last:step]
[[nodiscard]] inline Value slice_of(const Value& value, const Value& first, const Value& last,
                                    const Value& step, Meter& meter) {
  if (value.is(Kind::string)) return text_slice(value.text(), first, last, step, meter);
  if (!is_row(value)) fail("'", type_name(value), "' cannot be sliced");
  const std::vector<Value>& items = value.items();
  const SliceBounds bounds = slice_bounds(first, last, step, items.size());
  meter.items(bounds.count);
  std::vector<Value> out;
  out.reserve(bounds.count);
  for (std::size_t i = 0; i < bounds.count; ++i) out.push_back(items[bounds.at(i)]);
  return make_sequence(value.as<Sequence>().form, std::move(out));
}

/// loop.<name> for everything that is not a method.
[[nodiscard]] inline std::optional<Value> loop_field(const Loop& loop, std::string_view name) {
  const auto number = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
  const std::vector<Value>& items = loop.row.items();
  const std::size_t size = items.size();
  if (name == "index") return number(loop.index0 + 1);
  if (name == "index0") return number(loop.index0);
  if (name == "revindex") return number(size - loop.index0);
  if (name == "revindex0") return number(size - loop.index0 - 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 == size);
  if (name == "length") return number(size);
  if (name == "previtem") {
    return loop.index0 == 0 ? Value::undefined("there is no previous item") : items[loop.index0 - 1];
  }
  if (name == "nextitem") {
    return loop.index0 + 1 == size ? Value::undefined("there is no next item") : items[loop.index0 + 1];
  }
  return std::nullopt;
}

}  // namespace mica::jinja::detail
