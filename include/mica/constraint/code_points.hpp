// SPDX-License-Identifier: Apache-2.0
//
// A set of Unicode scalar values, and its expression in UTF-8. Surrogates (U+D800 to U+DFFF) are never in it.
//
//   [a-zé]   ranges 61-7A, E9   expression [61-7A] | C3 A9
#pragma once

#include "mica/constraint/byte_set.hpp"
#include "mica/constraint/expressions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace mica::constraint {

/// A set of Unicode scalar values, as a value.
class CodePoints {
 public:
  static constexpr std::uint32_t max = 0x10FFFF;
  static constexpr std::uint32_t first_surrogate = 0xD800, last_surrogate = 0xDFFF;
  struct Range {
    std::uint32_t first, last;  // both are in it
    friend bool operator==(const Range&, const Range&) = default;
  };

  CodePoints() = default;
  CodePoints(std::initializer_list<Range> ranges) {
    for (const Range& range : ranges) insert(range.first, range.last);
  }
  [[nodiscard]] static CodePoints all() { return {{0, max}}; }

  /// Adds [first, last] without its surrogates; nothing if last < first.
  void insert(std::uint32_t first, std::uint32_t last) {
    last = std::min(last, max);
    if (first < first_surrogate && last >= first_surrogate) add({first, first_surrogate - 1});
    if (first <= last_surrogate && last >= first_surrogate) first = last_surrogate + 1;
    if (first <= last) add({first, last});
  }
  void insert(std::uint32_t code_point) { insert(code_point, code_point); }
  CodePoints& operator|=(const CodePoints& other) {
    for (const Range& range : other.ranges_) add(range);
    return *this;
  }
  /// Removes all that are not in the other set.
  CodePoints& operator&=(const CodePoints& other) {
    const CodePoints outside = complement() |= other.complement();
    return *this = outside.complement();
  }
  /// The scalar values that are not in it.
  [[nodiscard]] CodePoints complement() const {
    CodePoints out;
    std::uint32_t next = 0;
    for (const Range& range : ranges_) {
      if (next < range.first) out.insert(next, range.first - 1);
      next = range.last + 1;
    }
    if (next <= max) out.insert(next, max);
    return out;
  }
  [[nodiscard]] bool contains(std::uint32_t code_point) const noexcept {
    const auto after = std::partition_point(ranges_.begin(), ranges_.end(),
                                            [&](const Range& range) { return range.last < code_point; });
    return after != ranges_.end() && after->first <= code_point;
  }
  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  /// Rising; no two of them overlap or are adjacent.
  [[nodiscard]] std::span<const Range> ranges() const noexcept { return ranges_; }
  friend bool operator==(const CodePoints&, const CodePoints&) = default;

 private:
  void add(Range range) {
    const auto begin = std::partition_point(ranges_.begin(), ranges_.end(),
                                            [&](const Range& r) { return r.last + 1 < range.first; });
    auto end = begin;
    for (; end != ranges_.end() && end->first <= range.last + 1; ++end)
      range = {std::min(range.first, end->first), std::max(range.last, end->last)};
    ranges_.insert(ranges_.erase(begin, end), range);
  }

  std::vector<Range> ranges_;
};

namespace detail {

/// The numbers of the ranges that are in [begin, begin + n_leads * 64^more): a lead byte, which is `lead` for
/// the first ones, and `more` continuation bytes.
[[nodiscard]] inline ExprId encode_leads(Expressions& x, std::span<const CodePoints::Range> ranges,
                                         std::uint32_t begin, std::uint32_t n_leads, std::uint8_t lead,
                                         int more) {
  const std::uint32_t size = std::uint32_t{1} << (6 * more);  // numbers of one lead
  ExprId all = ExprId::empty;  // tail of a lead whose numbers are all in the set
  for (int i = 0; i < more; ++i) all = x.cat(x.set(ByteSet(0x80, 0xBF)), all);
  std::vector<std::pair<ExprId, ByteSet>> tails;  // what follows, and the leads that it follows
  for (std::uint32_t i = 0; i < n_leads; ++i) {
    const std::uint32_t first = begin + i * size, last = first + (size - 1);
    while (!ranges.empty() && ranges.front().last < first) ranges = ranges.subspan(1);
    if (ranges.empty()) break;
    if (ranges.front().first > last) continue;
    const bool full = ranges.front().first <= first && ranges.front().last >= last;
    const ExprId tail = full ? all : encode_leads(x, ranges, first, 64, 0x80, more - 1);
    auto same =
        std::find_if(tails.begin(), tails.end(), [&](const auto& each) { return each.first == tail; });
    if (same == tails.end()) same = tails.insert(tails.end(), {tail, {}});
    same->second.insert(static_cast<std::uint8_t>(lead + i));
  }
  std::vector<ExprId> parts;
  for (const auto& [tail, leads] : tails) parts.push_back(x.cat(x.set(leads), tail));
  return x.alt(std::move(parts));
}

}  // namespace detail

/// One character of the set as UTF-8. Leads with the same continuations share one expression.
[[nodiscard]] inline ExprId encode_utf8(Expressions& x, const CodePoints& characters) {
  const auto part = [&](std::uint32_t first, std::uint32_t last, std::uint32_t n_leads, std::uint8_t lead,
                        int more) {
    CodePoints within{{first, last}};
    within &= characters;
    return detail::encode_leads(x, within.ranges(), 0, n_leads, lead, more);
  };
  return x.alt({part(0, 0x7F, 128, 0, 0), part(0x80, 0x7FF, 32, 0xC0, 1), part(0x800, 0xFFFF, 16, 0xE0, 2),
                part(0x10000, CodePoints::max, 5, 0xF0, 3)});
}

}  // namespace mica::constraint
