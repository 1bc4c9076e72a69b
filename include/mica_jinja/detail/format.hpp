// SPDX-License-Identifier: Apache-2.0
//
// "%s: %d" % (a, b) and "{}: {:>5}".format(a, b), with the conversions that templates use: text, repr,
// integers in base 8, 10 and 16, and floats with a fixed number of decimals.
#pragma once

#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/number_text.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::jinja::detail {

/// How one value is to be written.
struct FormatSpec {
  char align = '\0';  ///< '<' '>' '^', or as the type has it
  std::string fill = " ";
  char sign = '-';
  bool zeros = false;
  bool grouped = false;
  std::size_t width = 0;
  std::optional<int> precision;
  char type = '\0';
};

inline constexpr std::size_t max_format_width = 10'000;
inline constexpr int max_format_precision = 100;

/// Reads digits at `at` and moves past them.
[[nodiscard]] inline std::size_t read_width(std::string_view text, std::size_t& at) {
  std::size_t value = 0;
  for (; at < text.size() && is_digit(static_cast<unsigned char>(text[at])); ++at) {
    value = std::min(value * 10 + static_cast<std::size_t>(text[at] - '0'), max_format_width + 1);
  }
  if (value > max_format_width) exceed("a format wider than ", max_format_width);
  return value;
}

inline void read_precision(std::string_view text, std::size_t& at, FormatSpec& spec) {
  if (at >= text.size() || text[at] != '.') return;
  spec.precision = static_cast<int>(read_width(text, ++at));
  if (*spec.precision > max_format_precision)
    exceed("a format with more than ", max_format_precision, " decimals");
}

/// [[fill]align][sign][0][width][,][.precision][type]
[[nodiscard]] inline FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t at = 0;
  const auto is_align = [&](std::size_t i) {
    return i < text.size() && (text[i] == '<' || text[i] == '>' || text[i] == '^');
  };
  const std::size_t head = text.empty() ? 0 : decode(text, 0).size;
  if (is_align(head)) {
    spec.fill = text.substr(0, head);
    spec.align = text[head];
    at = head + 1;
  } else if (is_align(0)) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  if (at < text.size() && text[at] == '0') spec.zeros = ++at > 0;
  spec.width = read_width(text, at);
  if (at < text.size() && text[at] == ',') spec.grouped = ++at > 0;
  read_precision(text, at, spec);
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) fail("'", escaped(text), "' is not a format");
  return spec;
}

[[nodiscard]] inline std::string in_base(std::uint64_t value, std::uint64_t base, bool capitals) {
  const std::string_view digits = capitals ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[value % base]);
    value /= base;
  } while (value != 0);
  return out;
}

inline void group_thousands(std::string& digits) {
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t at = point; at > 3; at -= 3) digits.insert(at - 3, ",");
}

/// The digits of a number without its sign.
[[nodiscard]] inline std::string digits_of(const Value& value, const FormatSpec& spec) {
  const char type = spec.type;
  if (type == 'f' || type == 'F') return fixed_text(std::fabs(number_of(value)), spec.precision.value_or(6));
  if (type == '%') return fixed_text(std::fabs(number_of(value) * 100), spec.precision.value_or(6)) + "%";
  if (value.is(Kind::real) && (type == '\0' || type == 's')) {
    const double size = std::fabs(value.real());
    return spec.precision ? fixed_text(size, *spec.precision) : real_text(size);
  }
  if (value.is(Kind::real)) fail("format '", type, "' wants an integer");
  const std::uint64_t size = magnitude(whole(value));
  switch (type) {
    case '\0':
    case 's':
    case 'i':
    case 'u':
    case 'd':
      return in_base(size, 10, false);
    case 'x':
      return in_base(size, 16, false);
    case 'X':
      return in_base(size, 16, true);
    case 'o':
      return in_base(size, 8, false);
    case 'b':
      return in_base(size, 2, false);
    default:
      fail("format '", type, "' is not known for numbers");
  }
}

[[nodiscard]] inline std::string aligned(std::string text, const FormatSpec& spec, char usual) {
  const std::size_t length = count_code_points(text);
  if (length >= spec.width) return text;
  const char align = spec.align == '\0' ? usual : spec.align;
  const std::size_t room = spec.width - length;
  const std::size_t left = align == '<' ? 0 : align == '>' ? room : room / 2;
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += spec.fill;
  out += text;
  for (std::size_t i = left; i < room; ++i) out += spec.fill;
  return out;
}

[[nodiscard]] inline std::string formatted_number(const Value& value, const FormatSpec& spec) {
  std::string digits = digits_of(value, spec);
  if (spec.grouped) group_thousands(digits);
  const bool negative = value.is(Kind::real) ? std::signbit(value.real()) : whole(value) < 0;
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  if (spec.zeros && spec.align == '\0' && sign.size() + digits.size() < spec.width) {
    digits.insert(0, spec.width - sign.size() - digits.size(), '0');
  }
  return aligned(sign + digits, spec, '>');
}

[[nodiscard]] inline std::string formatted_text(std::string_view text, const FormatSpec& spec) {
  if (spec.precision) text = text.substr(0, offset_of(text, static_cast<std::size_t>(*spec.precision)));
  return aligned(std::string(text), spec, '<');
}

/// The arguments of one percent format, taken in order or by name.
class PercentArguments {
 public:
  explicit PercentArguments(const Value& value)
      : value_(&value), row_(value.is(Kind::sequence) && is_tuple(value)) {}

  [[nodiscard]] const Value& next() {
    if (!row_ && taken_ == 0) return ++taken_, *value_;
    if (!row_ || taken_ >= value_->items().size()) fail("too few values for the format");
    return value_->items()[taken_++];
  }

  [[nodiscard]] const Value& named(std::string_view name) {
    const Value* found = value_->find(name);
    if (found == nullptr) fail("the format wants '", escaped(name), "', which is not among the values");
    ++taken_;
    return *found;
  }

  void finish() const {
    if (row_ ? taken_ < value_->items().size() : taken_ == 0 && !value_->is(Kind::mapping)) {
      fail("not all values were used by the format");
    }
  }

 private:
  static bool is_tuple(const Value& value) { return value.as<Sequence>().form == Form::tuple; }

  const Value* value_;
  bool row_;
  std::size_t taken_ = 0;
};

/// Reads [(name)][flags][width][.precision]type at `at`, behind the percent sign, and moves past it.
[[nodiscard]] inline FormatSpec parse_percent_spec(std::string_view text, std::size_t& at,
                                                   std::string_view& name) {
  FormatSpec spec;
  if (at < text.size() && text[at] == '(') {
    const std::size_t close = std::min(text.find(')', at), text.size());
    name = text.substr(at + 1, close - at - 1);
    at = close + 1;
  }
  for (; at < text.size(); ++at) {
    if (text[at] == '-') {
      spec.align = '<';
    } else if (text[at] == '+' || text[at] == ' ') {
      spec.sign = text[at];
    } else if (text[at] == '0') {
      spec.zeros = true;
    } else {
      break;
    }
  }
  spec.width = read_width(text, at);
  read_precision(text, at, spec);
  if (at >= text.size()) fail("the format ends in the middle of a conversion");
  spec.type = text[at++];
  return spec;
}

[[nodiscard]] inline std::string percent_conversion(const Value& value, FormatSpec spec, Meter& meter) {
  if (spec.align == '\0') spec.align = spec.zeros ? '\0' : '>';
  if (spec.type == 's') return formatted_text(text_of(value, meter), spec);
  if (spec.type == 'r') return formatted_text(repr_of(value, meter), spec);
  if (spec.type == 'c' && value.is(Kind::string)) return formatted_text(value.text(), spec);
  if (!value.is_number()) fail("format '%", spec.type, "' wants a number, not '", type_name(value), "'");
  if (value.is(Kind::real) && spec.type == 'd') {
    spec.type = 'f';
    spec.precision = 0;
    return formatted_number(std::trunc(value.real()), spec);
  }
  return formatted_number(value, spec);
}

/// text % value
[[nodiscard]] inline std::string percent_format(std::string_view text, const Value& value, Meter& meter) {
  PercentArguments arguments(value);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '%') {
      out.push_back(c);
    } else if (at < text.size() && text[at] == '%') {
      out.push_back(text[at++]);
    } else {
      std::string_view name;
      const FormatSpec spec = parse_percent_spec(text, at, name);
      const Value& chosen = name.data() == nullptr ? arguments.next() : arguments.named(name);
      out += percent_conversion(chosen, spec, meter);
    }
    meter.check_length(out.size());
  }
  arguments.finish();
  meter.bytes(out.size());
  return out;
}

/// The value that "{0}", "{name}" or "{}" means; `next` counts the empty ones.
[[nodiscard]] inline const Value& chosen_field(std::string_view name, const Arguments& arguments,
                                               std::size_t& next) {
  const auto index = name.empty() ? std::optional(static_cast<std::int64_t>(next++)) : parse_integer(name);
  if (!index) {
    const Value* found = arguments.find(name);
    if (found == nullptr) fail("format() was not given '", escaped(name), "'");
    return *found;
  }
  if (*index < 0 || static_cast<std::size_t>(*index) >= arguments.positional.size()) {
    fail("format() was not given a value number ", *index);
  }
  return arguments.positional[static_cast<std::size_t>(*index)];
}

/// One replacement field, the text between its braces. Limit: attributes and indices inside of it are
/// refused.
[[nodiscard]] inline std::string replacement(std::string_view field, const Arguments& arguments,
                                             std::size_t& next, Meter& meter) {
  const std::size_t colon = std::min(field.find(':'), field.size());
  const FormatSpec spec =
      parse_format_spec(colon < field.size() ? field.substr(colon + 1) : std::string_view());
  std::string_view name = field.substr(0, colon);
  const bool quoted = name.ends_with("!r");
  const bool printed = name.ends_with("!s");
  if (quoted || printed) name.remove_suffix(2);
  const Value& value = chosen_field(name, arguments, next);
  if (quoted) return formatted_text(repr_of(value, meter), spec);
  if (printed || !value.is_number() || (value.is(Kind::boolean) && spec.type == '\0')) {
    return formatted_text(text_of(value, meter), spec);
  }
  return formatted_number(value, spec);
}

/// text.format(...)
[[nodiscard]] inline std::string brace_format(std::string_view text, const Arguments& arguments,
                                              Meter& meter) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    const bool doubled = at < text.size() && text[at] == c;
    if (c != '{' && c != '}') {
      out.push_back(c);
    } else if (doubled) {
      out.push_back(c);
      ++at;
    } else {
      const std::size_t close = text.find('}', at);
      if (c == '}' || close == std::string_view::npos) fail("format() found a single '", c, "'");
      out += replacement(text.substr(at, close - at), arguments, next, meter);
      at = close + 1;
    }
    meter.check_length(out.size());
  }
  meter.bytes(out.size());
  return out;
}

}  // namespace mica::jinja::detail
