// SPDX-License-Identifier: Apache-2.0
//
// A format as the parts that a grammar is made of: it needs no knowledge of families.
//
//   opening call (separator call)* closing          arguments, but for Notation::json:
//                                                   (parameter (parameter_separator parameter)*)?
//
// Where the prompt ends with CallFormat::prompt_end, the first call begins behind that text.
#pragma once

#include "mica_tools/calls/call_format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

/// One part of what a model writes.
struct CallPart {
  enum class Kind : std::uint8_t {
    text,       // text that is tokenized as usual
    token,      // the text of one token of the vocabulary
    name,       // of the tool
    id,         // letters and digits: CallFormat::id_bytes of them, or any number
    number,     // of the call, in digits
    arguments,  // a JSON object of the tool's schema, or its parameters
    key,        // of a parameter
    type,       // ParameterMarks::string_type for a string, else other_type or the name of the type in JSON
    value,      // of a parameter, see CallParts::notation
  };

  Kind kind = Kind::text;
  std::string text = {};  // of text and token
};

/// The parts of a format.
struct CallParts {
  std::vector<CallPart> opening, call, separator, closing;
  std::vector<CallPart> parameter, parameter_separator;  // empty for Notation::json
  /// How a value is written. tags: a string as it is, without the closing mark, others as JSON. python: with
  /// True, False and None. bare: strings between `quote`, without it inside; keys without quotes.
  Notation notation = Notation::json;
  std::string quote;
};

namespace detail {

/// Adds parts; the texts of tokens become parts of their own.
class PartWriter {
 public:
  explicit PartWriter(std::span<const std::string_view> tokens) : tokens_(tokens) {}

  PartWriter& text(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
      const std::size_t size = token_size(text);
      if (size > 0) {
        add_text(std::exchange(plain, {}));
        parts_.push_back({CallPart::Kind::token, std::string(text.substr(0, size))});
      } else {
        plain += text.front();
      }
      text.remove_prefix(size > 0 ? size : 1);
    }
    add_text(std::move(plain));
    return *this;
  }
  PartWriter& part(CallPart::Kind kind) { return parts_.push_back({kind}), *this; }
  [[nodiscard]] std::vector<CallPart> take() { return std::exchange(parts_, {}); }

 private:
  /// Bytes of the longest token that the text begins with; 0: there is none.
  [[nodiscard]] std::size_t token_size(std::string_view text) const {
    std::size_t size = 0;
    for (const std::string_view token : tokens_) {
      if (token.size() > size && text.starts_with(token)) size = token.size();
    }
    return size;
  }
  void add_text(std::string text) {
    if (text.empty()) return;
    const bool joins = !parts_.empty() && parts_.back().kind == CallPart::Kind::text;
    joins ? void(parts_.back().text += text) : parts_.push_back({CallPart::Kind::text, std::move(text)});
  }

  std::span<const std::string_view> tokens_;
  std::vector<CallPart> parts_;
};

/// A call that is a JSON object.
inline void write_object(const CallFormat& format, PartWriter& out) {
  const JsonKeys& keys = format.keys;
  const bool has_id = !keys.id.empty();
  out.text(format.call_open).text("{");
  if (has_id && keys.id_first) out.text("\"" + keys.id + "\": \"").part(CallPart::Kind::id).text("\", ");
  out.text("\"" + keys.name + "\": \"").part(CallPart::Kind::name);
  out.text("\", \"" + keys.arguments + "\": ").part(CallPart::Kind::arguments);
  if (has_id && !keys.id_first) out.text(", \"" + keys.id + "\": \"").part(CallPart::Kind::id).text("\"");
  out.text("}").text(format.call_close);
}

/// A call that writes the name outside of JSON.
inline void write_named(const CallFormat& format, PartWriter& out) {
  out.text(format.call_open).part(CallPart::Kind::name);
  if (!format.id.open.empty())
    out.text(format.id.open).part(format.id.is_number ? CallPart::Kind::number : CallPart::Kind::id);
  out.text(format.after_name).text(format.notation == Notation::bare ? "{" : "");
  out.part(CallPart::Kind::arguments);
  out.text(format.notation == Notation::bare ? "}" : format.notation == Notation::python ? ")" : "");
  out.text(format.call_close);
}

inline void write_parameter(const CallFormat& format, PartWriter& out) {
  const ParameterMarks& marks = format.parameter;
  const bool is_tag = format.notation == Notation::tags;
  out.text(is_tag ? marks.open : "").part(CallPart::Kind::key);
  if (is_tag && !marks.type_open.empty()) out.text(marks.type_open).part(CallPart::Kind::type);
  out.text(is_tag ? marks.key_close : format.notation == Notation::python ? "=" : ":");
  out.part(CallPart::Kind::value).text(is_tag ? marks.close : "");
}

}  // namespace detail

/// The parts of a format. tokens: the texts of the vocabulary's control and user-defined tokens.
[[nodiscard]] inline CallParts call_parts(const CallFormat& format,
                                          std::span<const std::string_view> tokens = {}) {
  detail::PartWriter out(tokens);
  CallParts parts;
  parts.notation = format.notation;
  parts.quote = format.quote;
  parts.opening = out.text(format.list_open).take();
  format.keys.name.empty() ? detail::write_named(format, out) : detail::write_object(format, out);
  parts.call = out.take();
  parts.separator = out.text(format.separator).take();
  parts.closing = out.text(format.list_close).take();
  if (format.notation == Notation::json) return parts;
  detail::write_parameter(format, out);
  parts.parameter = out.take();
  if (format.notation == Notation::python) parts.parameter_separator = out.text(", ").take();
  if (format.notation == Notation::bare) parts.parameter_separator = out.text(",").take();
  return parts;
}

}  // namespace mica::calls
