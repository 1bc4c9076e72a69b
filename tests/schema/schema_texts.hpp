// SPDX-License-Identifier: Apache-2.0
//
// Whether a text is one of a schema's, byte by byte.
#pragma once

#include "mica/constraint/recognizer.hpp"
#include "mica_tools/schema/schema.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::test {

/// The texts of one schema.
class SchemaTexts {
 public:
  explicit SchemaTexts(std::string_view schema, schema::SchemaOptions options = {})
      : language_(schema::parse_schema(schema, options)), recognizer_(language_) {}

  [[nodiscard]] bool has(std::string_view text) { return accepted(text) == text.size() && accepts_; }
  /// The number of bytes from the beginning that a text of the schema can have.
  [[nodiscard]] std::size_t accepted(std::string_view text) {
    constraint::StateId state = recognizer_.start();
    std::size_t n = 0;
    for (; n < text.size(); ++n) {
      const auto next = recognizer_.step(state, static_cast<std::uint8_t>(text[n]));
      if (next == constraint::StateId::dead) break;
      state = next;
    }
    accepts_ = recognizer_.accepts(state);
    return n;
  }
  /// The bytes that can follow a text.
  [[nodiscard]] std::string next(std::string_view text) {
    constraint::StateId state = recognizer_.start();
    for (const char c : text) state = recognizer_.step(state, static_cast<std::uint8_t>(c));
    std::string out;
    for (int byte = 0; byte < 256; ++byte) {
      if (recognizer_.step(state, static_cast<std::uint8_t>(byte)) != constraint::StateId::dead)
        out += static_cast<char>(byte);
    }
    return out;
  }
  [[nodiscard]] constraint::Recognizer& recognizer() noexcept { return recognizer_; }

 private:
  constraint::Language language_;
  constraint::Recognizer recognizer_;
  bool accepts_ = false;
};

}  // namespace mica::test
