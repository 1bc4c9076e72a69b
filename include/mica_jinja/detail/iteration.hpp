// SPDX-License-Identifier: Apache-2.0
//
// What a for loop, a filter or a membership test goes through: the items of any value that has some.
#pragma once

#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// A finite row of items. A range computes them, everything else has them.
class Items {
 public:
  Items() = default;
  explicit Items(std::vector<Value> values)
      : owner_(make_sequence(Form::list, std::move(values))), size_(owner_.items().size()) {}

  /// Takes the items of a sequence or range without copying them.
  explicit Items(Value owner) : owner_(std::move(owner)) {
    size_ =
        owner_.is(Kind::range) ? static_cast<std::size_t>(owner_.as<Range>().count) : owner_.items().size();
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] Value operator[](std::size_t index) const {
    if (owner_.is(Kind::range)) return Value(owner_.as<Range>().at(static_cast<std::int64_t>(index)));
    return owner_.items()[index];
  }

  /// All items in a vector of their own; charges for them.
  [[nodiscard]] std::vector<Value> copy(Meter& meter) const {
    meter.items(size_);
    std::vector<Value> out;
    out.reserve(size_);
    for (std::size_t i = 0; i < size_; ++i) out.push_back((*this)[i]);
    return out;
  }

 private:
  Value owner_;
  std::size_t size_ = 0;
};

[[nodiscard]] inline Items characters(std::string_view text, Meter& meter) {
  meter.items(text.size() * 4);  // each character becomes a string of its own
  std::vector<Value> out;
  each_code_point(text, [&out](CodePoint, std::string_view bytes) { out.emplace_back(bytes); });
  return Items(std::move(out));
}

[[nodiscard]] inline Items keys(const Value& mapping, Meter& meter) {
  meter.items(mapping.entries().size());
  std::vector<Value> out;
  out.reserve(mapping.entries().size());
  for (const auto& entry : mapping.entries()) out.push_back(entry.first);
  return Items(std::move(out));
}

[[nodiscard]] inline bool is_iterable(const Value& value) {
  return value.is(Kind::undefined) || value.is(Kind::string) || value.is(Kind::sequence) ||
         value.is(Kind::range) || value.is(Kind::mapping);
}

/// iter(value); a generator gives its items to the first who asks.
[[nodiscard]] inline Items items_of(const Value& value, Meter& meter) {
  switch (value.kind()) {
    case Kind::undefined:
      return Items();
    case Kind::string:
      return characters(value.text(), meter);
    case Kind::mapping:
      return keys(value, meter);
    case Kind::range:
      return Items(value);
    case Kind::sequence: {
      const auto& sequence = value.as<Sequence>();
      if (sequence.spent) return Items();
      sequence.spent = sequence.form == Form::generator;
      return Items(value);
    }
    default:
      fail("'", type_name(value), "' is not iterable");
  }
}

}  // namespace mica::jinja::detail
