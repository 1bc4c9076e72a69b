// SPDX-License-Identifier: Apache-2.0
//
// str() and repr(): how values look when a template prints them, or prints a list or mapping that holds them;
// numbers to text and back as Python writes and reads them, without a locale.
#pragma once

#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/value.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace mica::jinja::detail {

/// Shortest digits that read back as the same number, laid out as Python's repr(float) does.
[[nodiscard]] inline std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = scientific.find('e');
  int exponent = 0;
  const char* digits = scientific.data() + mark + (scientific[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);

  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
  std::string out(buffer.data(), fixed);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

/// The number with `digits` decimals, as "%.<digits>f" writes it.
[[nodiscard]] inline std::string fixed_text(double value, int digits) {
  if (!std::isfinite(value)) return real_text(value);
  std::string out(std::size_t{320} + static_cast<std::size_t>(digits), '\0');
  const auto end =
      std::to_chars(out.data(), out.data() + out.size(), value, std::chars_format::fixed, digits).ptr;
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

/// Reads decimal digits with a sign; empty when that is no integer or does not fit into 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

/// Reads a number as float(text) does, but for white space, underscores and what is out of range.
[[nodiscard]] inline std::optional<double> parse_real(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-')) return std::nullopt;
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || error != std::errc{}) return std::nullopt;
  return negative ? -value : value;
}

inline void append_hex(std::string& out, char32_t value, std::size_t digits) {
  constexpr std::string_view hex = "0123456789abcdef";
  for (std::size_t i = digits; i-- > 0;) out.push_back(hex[value >> (4 * i) & 15]);
}

inline void append_escape(std::string& out, char32_t c) {
  if (c < 0x100) {
    append_hex(out.append("\\x"), c, 2);
  } else if (c < 0x10000) {
    append_hex(out.append("\\u"), c, 4);
  } else {
    append_hex(out.append("\\U"), c, 8);
  }
}

/// A string in quotes as repr() chooses and escapes them.
inline void append_quoted(std::string& out, std::string_view text) {
  const bool apostrophe =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char32_t quote = apostrophe ? '"' : '\'';
  out.push_back(static_cast<char>(quote));
  each_code_point(text, [&](CodePoint point, std::string_view bytes) {
    static constexpr std::string_view escapes = "\n\r\t\\";
    static constexpr std::string_view letters = "nrt\\";
    const std::size_t at = escapes.find(bytes);
    if (at != std::string_view::npos) {
      out += {'\\', letters[at]};
      return;
    }
    if (point.value == quote) out.push_back('\\');
    if (!point.valid || !is_printable(point.value)) return append_escape(out, point.value);
    out.append(bytes);
  });
  out.push_back(static_cast<char>(quote));
}

inline void append_integer(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer;
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

/// Writes values into one string and charges for every byte of it. Depth of recursion: that of the value,
/// bounded.
class Printer {
 public:
  explicit Printer(Meter& meter) : meter_(&meter) {}

  void text(const Value& value) {
    if (value.is(Kind::undefined)) return;
    if (!value.is(Kind::string)) return repr(value);
    meter_->bytes(value.text().size());
    out_.append(value.text());
  }

  void repr(const Value& value) {
    meter_->expression();
    const std::size_t before = out_.size();
    switch (value.kind()) {
      case Kind::undefined:
        out_ += "Undefined";
        break;
      case Kind::none:
        out_ += "None";
        break;
      case Kind::boolean:
        out_ += value.boolean() ? "True" : "False";
        break;
      case Kind::integer:
        append_integer(out_, value.integer());
        break;
      case Kind::real:
        out_ += real_text(value.real());
        break;
      case Kind::string:
        append_quoted(out_, value.text());
        break;
      case Kind::sequence:
        return sequence(value.as<Sequence>());
      case Kind::mapping:
        return mapping(value.entries());
      default:
        out_.append("<").append(type_name(value)).append(">");
    }
    meter_->grown(before, out_.size());
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void sequence(const Sequence& sequence) {
    if (sequence.form == Form::generator) {
      out_ += "<generator object>";
      return;
    }
    static constexpr std::array<std::string_view, 6> open = {
        "[", "(", "", "dict_items([", "dict_keys([", "dict_values(["};
    static constexpr std::array<std::string_view, 6> close = {"]", ")", "", "])", "])", "])"};
    const auto form = static_cast<std::size_t>(sequence.form);
    out_ += open[form];
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) out_ += ", ";
      repr(sequence.items[i]);
    }
    if (sequence.form == Form::tuple && sequence.items.size() == 1) out_ += ",";
    out_ += close[form];
  }

  void mapping(const Value::Entries& entries) {
    out_ += "{";
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += ", ";
      repr(entries[i].first);
      out_ += ": ";
      repr(entries[i].second);
    }
    out_ += "}";
  }

  Meter* meter_;
  std::string out_;
};

/// str(value)
[[nodiscard]] inline std::string text_of(const Value& value, Meter& meter) {
  Printer printer(meter);
  printer.text(value);
  return printer.take();
}

}  // namespace mica::jinja::detail
