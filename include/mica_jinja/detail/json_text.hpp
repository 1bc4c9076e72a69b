// SPDX-License-Identifier: Apache-2.0
//
// The filter `tojson` as Hugging Face configures it: Python's json.dumps with ensure_ascii off, not Jinja's
// own filter with its HTML escapes.
#pragma once

#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// The arguments of json.dumps.
struct JsonStyle {
  bool ascii = false;
  std::optional<std::string> indent;  ///< one level of it; without it everything is on one line
  std::string between_items = ", ";
  std::string after_key = ": ";
};

/// Writes one value. Depth of recursion: that of the value, bounded.
class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Meter& meter) : style_(&style), meter_(&meter) {}

  void write(const Value& value) {
    meter_->expression();
    const std::size_t before = out_.size();
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.boolean() ? "true" : "false";
        break;
      case Kind::integer:
        append_integer(out_, value.integer());
        break;
      case Kind::real:
        out_ += real(value.real());
        break;
      case Kind::string:
        string(value.text());
        break;
      case Kind::mapping:
        return mapping(value.entries());
      case Kind::sequence:
        if (value.as<Sequence>().form <= Form::tuple) return row(value.items());
        [[fallthrough]];
      default:
        fail("'tojson' does not take '", type_name(value), "'");
    }
    meter_->grown(before, out_.size());
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_text(value);
  }

  void string(std::string_view text) {
    out_.push_back('"');
    each_code_point(text, [this](CodePoint point, std::string_view bytes) { character(point, bytes); });
    out_.push_back('"');
  }

  void character(CodePoint point, std::string_view bytes) {
    static constexpr std::string_view escapes = "\"\\\n\r\t\b\f";
    static constexpr std::string_view letters = "\"\\nrtbf";
    const std::size_t at = escapes.find(bytes);
    if (at != std::string_view::npos) {
      out_ += {'\\', letters[at]};
      return;
    }
    const char32_t c = point.value;
    if (c >= 0x20 && (!style_->ascii || c < 0x7F)) {
      out_.append(bytes);
    } else if (c < 0x10000) {
      append_hex(out_.append("\\u"), c, 4);
    } else {
      append_hex(out_.append("\\u"), 0xD7C0 + (c >> 10), 4);
      append_hex(out_.append("\\u"), 0xDC00 + (c & 0x3FF), 4);
    }
  }

  /// Keys are strings; numbers, booleans and none become strings.
  void key(const Value& key) {
    if (key.is(Kind::string)) return string(key.text());
    if (!key.is_number() && !key.is(Kind::none))
      fail("'tojson' does not take a key of type '", type_name(key), "'");
    out_.push_back('"');
    write(key);
    out_.push_back('"');
  }

  void line() {
    if (!style_->indent) return;
    const std::size_t before = out_.size();
    out_.push_back('\n');
    for (std::size_t i = 0; i < level_; ++i) out_ += *style_->indent;
    meter_->grown(before, out_.size());
  }

  /// Brackets around `count` parts, each on its own line when there is an indent.
  template <class Part>
  void enclose(char open, char close, std::size_t count, Part part) {
    out_.push_back(open);
    ++level_;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += style_->between_items;
      line();
      part(i);
    }
    --level_;
    if (count > 0) line();
    out_.push_back(close);
    meter_->bytes(2 + count * style_->between_items.size());
  }

  void row(const std::vector<Value>& items) {
    enclose('[', ']', items.size(), [&](std::size_t i) { write(items[i]); });
  }

  void mapping(const Value::Entries& entries) {
    enclose('{', '}', entries.size(), [&](std::size_t i) {
      key(entries[i].first);
      out_ += style_->after_key;
      write(entries[i].second);
    });
  }

  const JsonStyle* style_;
  Meter* meter_;
  std::size_t level_ = 0;
  std::string out_;
};

}  // namespace mica::jinja::detail
