// SPDX-License-Identifier: Apache-2.0
//
// Sizes in text: 6GiB, 512M, 75%. Exact integers; bytes are never computed in floating point.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::budget {

namespace detail {

/// A decimal number with its point moved six places: exact.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t millionths = 0;
};

/// Takes a decimal number off the front of `text`.
[[nodiscard]] inline std::optional<Decimal> take_decimal(std::string_view& text) noexcept {
  const auto take = [&text](std::uint64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc{}) return std::size_t{0};
    const auto digits = static_cast<std::size_t>(end - text.data());
    text.remove_prefix(digits);
    return digits;
  };
  Decimal number;
  if (take(number.whole) == 0) return std::nullopt;
  if (text.empty() || text.front() != '.') return number;
  text.remove_prefix(1);
  std::size_t digits = take(number.millionths);
  if (digits == 0 || digits > 6) return std::nullopt;
  for (; digits < 6; ++digits) number.millionths *= 10;
  return number;
}

/// Bytes in one of a unit; empty when there is no such unit.
[[nodiscard]] inline std::optional<std::uint64_t> unit_bytes(std::string_view unit) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (unit.empty()) return 1;
  if (unit.size() == 1 && lower(unit[0]) == 'b') return 1;
  const std::size_t power = std::string_view("kmgt").find(lower(unit[0]));
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  const bool decimal = rest.size() == 1 && lower(rest[0]) == 'b';
  const bool binary = rest.size() == 2 && lower(rest[0]) == 'i' && lower(rest[1]) == 'b';
  if (!rest.empty() && !decimal && !binary) return std::nullopt;
  std::uint64_t bytes = 1;
  for (std::size_t i = 0; i <= power; ++i) bytes *= decimal ? 1000 : 1024;
  return bytes;
}

/// number * bytes, rounded down; empty beyond 64 bits. bytes <= 2^40, so the millionths cannot overflow.
[[nodiscard]] inline std::optional<std::uint64_t> times(Decimal number, std::uint64_t bytes) noexcept {
  const auto product = checked_mul(number.whole, bytes);
  return product ? checked_add(*product, number.millionths * bytes / 1'000'000) : std::nullopt;
}

/// The given percentage of `whole`, rounded down; empty above 100.
[[nodiscard]] inline std::optional<std::uint64_t> percent(Decimal number, std::uint64_t whole) noexcept {
  constexpr std::uint64_t hundred = 100'000'000;  // in millionths
  if (number.whole > 100) return std::nullopt;
  const std::uint64_t share = number.whole * 1'000'000 + number.millionths;
  if (share > hundred) return std::nullopt;
  return whole / hundred * share + whole % hundred * share / hundred;
}

}  // namespace detail

/// A size without a unit that is smaller is taken for a mistake.
inline constexpr std::uint64_t min_plain_size = std::uint64_t{1} << 20;

/// The bytes that `text` names: a number with up to six decimals, then nothing, B, K M G T or KiB MiB GiB TiB
/// (times 1,024), KB MB GB TB (times 1,000), or % (of `whole`, at most 100). Case does not matter. Rounds
/// down. Raises a usage error that names `what` for anything else, for sizes beyond 64 bits, and for a number
/// without a unit that is neither 0 nor min_plain_size or more: "6" is 6G that lost its letter.
[[nodiscard]] inline std::uint64_t parse_size(std::string_view text, std::uint64_t whole,
                                              std::string_view what = "size") {
  std::string_view rest = text;
  const auto number = detail::take_decimal(rest);
  std::optional<std::uint64_t> bytes;
  bool plain = false;
  if (number) {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    plain = rest.empty();
    if (rest == "%") {
      bytes = detail::percent(*number, whole);
    } else if (const auto unit = detail::unit_bytes(rest)) {
      bytes = detail::times(*number, *unit);
    }
  }
  MICA_CHECK(bytes.has_value(), usage, what, ": found \"", escaped(text),
             "\", allowed a number with K, M, G or T (also KiB, GB, ...) or up to 100%: 6GiB, 512M, 75%");
  MICA_CHECK(!plain || *bytes == 0 || *bytes >= min_plain_size, usage, what, ": found \"", escaped(text),
             "\", which is ", *bytes, " bytes; did you mean ", escaped(text),
             "G? Allowed without a unit: ", min_plain_size, " bytes or more");
  return *bytes;
}

/// A size that parse_size() reads as `bytes` or up to a tenth of a MiB more: "201.2MiB".
[[nodiscard]] inline std::string size_word(std::uint64_t bytes) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  const std::uint64_t tenths = bytes / mib * 10 + (bytes % mib * 10 + mib - 1) / mib;  // rounded up
  return join(tenths / 10, '.', tenths % 10, "MiB");
}

/// A size as text, in the largest binary unit that leaves a digit before the point: "512 B", "6.0 GiB".
[[nodiscard]] inline std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return join(bytes, " B");
  std::size_t unit = 0;
  std::uint64_t one = 1024;
  while (unit < 5 && bytes / one >= 1024) {
    one *= 1024;
    ++unit;
  }
  // Tenths to nearest; the rest is first converted to 1,024ths of the unit, so that nothing exceeds 64 bits.
  const std::uint64_t tenths = bytes / one * 10 + (bytes % one / (one / 1024) * 10 + 512) / 1024;
  return join(tenths / 10, '.', tenths % 10, ' ', units[unit]);
}

}  // namespace mica::budget
