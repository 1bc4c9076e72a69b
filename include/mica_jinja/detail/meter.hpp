// SPDX-License-Identifier: Apache-2.0
//
// Counts the work of one rendering. Since every byte and every item that a template makes is charged before
// it is made, the same number bounds time and memory: a million steps are 64 MB of strings or four million
// list items.
#pragma once

#include "mica_jinja/limits.hpp"
#include "mica_jinja/template_error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mica::jinja::detail {

/// The step counter of one rendering.
/// One step is one statement, one turn of a loop, one call, one mapping entry, four expression nodes, four
/// list items, 64 bytes of text, or 16 bytes where each character is looked at.
class Meter {
 public:
  explicit Meter(const Limits& limits)
      : left_(std::min(limits.steps, max_steps) * quarters),
        steps_(limits.steps),
        text_(limits.output_bytes) {}

  void step() { spend(quarters); }
  void expression() { spend(1); }
  void items(std::size_t count) { spend(count); }
  void entries(std::size_t count) { spend(saturated(count, quarters)); }

  /// Charges for a string of `count` bytes that is about to be made.
  void bytes(std::size_t count) {
    check_length(count);
    spend(count / bytes_per_quarter);
  }

  /// Charges for a text that has grown from `before` bytes to `after`.
  void grown(std::size_t before, std::size_t after) {
    bytes(after - before);
    check_length(after);
  }

  /// Charges for work on every character of `count` bytes.
  void characters(std::size_t count) { spend(count / bytes_per_character_quarter); }

  /// Charges for looking for `part` bytes in `text` bytes, which in the worst case compares at every place.
  void search(std::size_t text, std::size_t part) {
    spend(saturated(text / bytes_per_quarter + 1, 1 + part / 64));
  }

  /// Charges for a string of `count` copies of `size` bytes, whatever the product.
  void repeated_bytes(std::size_t size, std::uint64_t count) {
    if (size > 0 && count > text_ / size)
      exceed("a string of ", count, " times ", size, " bytes; at most ", text_);
    bytes(size * static_cast<std::size_t>(count));
  }

  /// Refuses a string that is longer than any may be.
  void check_length(std::size_t length) const {
    if (length > text_) exceed("a string of ", length, " bytes; at most ", text_, " are allowed");
  }

 private:
  static constexpr std::uint64_t quarters = 4;
  static constexpr std::uint64_t bytes_per_quarter = 16;
  static constexpr std::uint64_t bytes_per_character_quarter = 4;
  static constexpr std::uint64_t max_steps = ~std::uint64_t{0} / quarters;

  static std::uint64_t saturated(std::uint64_t count, std::uint64_t factor) {
    return factor != 0 && count > ~std::uint64_t{0} / factor ? ~std::uint64_t{0} : count * factor;
  }

  void spend(std::uint64_t cost) {
    if (cost > left_) exceed("stopped after ", steps_, " steps");
    left_ -= cost;
  }

  std::uint64_t left_;
  std::uint64_t steps_;
  std::size_t text_;
};

}  // namespace mica::jinja::detail
