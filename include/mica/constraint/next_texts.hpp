// SPDX-License-Identifier: Apache-2.0
//
// What may follow a text, for people: why a text is not one of a language.
#pragma once

#include "mica/constraint/recognizer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::constraint {

/// Where a text leaves a language.
struct Departure {
  std::size_t bytes = 0;             // that can be the beginning of a text
  bool is_text = false;              // all of them are there, and they are a text
  std::vector<std::string> allowed;  // what could follow them: next_texts()
};

/// What may follow: single bytes with all that must follow them, runs of bytes as "a-z", "the end". Bytes of
/// characters beyond ASCII are one entry. max: of bytes in one entry.
[[nodiscard]] inline std::vector<std::string> next_texts(Recognizer& recognizer, StateId state,
                                                         std::size_t max = 24) {
  std::vector<std::string> out;
  if (recognizer.accepts(state)) out.emplace_back("the end");
  const auto can = [&](unsigned byte) {
    return byte < 0x80 && recognizer.step(state, static_cast<std::uint8_t>(byte)) != StateId::dead;
  };
  for (unsigned byte = 0; byte < 0x80; ++byte) {
    if (!can(byte)) continue;
    unsigned last = byte;
    while (can(last + 1)) ++last;
    std::string text(1, static_cast<char>(byte));
    if (last > byte + 1) {
      out.push_back(escaped(text) + "-" + escaped(std::string(1, static_cast<char>(last))));
      byte = last;
      continue;
    }
    StateId after = recognizer.step(state, static_cast<std::uint8_t>(byte));
    while (text.size() < max && !recognizer.accepts(after)) {
      const Recognizer::OneByte next = recognizer.only_byte(after);
      if (!next.found) break;
      text.push_back(static_cast<char>(next.byte));
      after = recognizer.step(after, next.byte);
    }
    out.push_back(escaped(text));
  }
  for (unsigned byte = 0x80; byte < 0x100; ++byte) {
    if (recognizer.step(state, static_cast<std::uint8_t>(byte)) == StateId::dead) continue;
    out.emplace_back("characters beyond ASCII");
    break;
  }
  return out;
}

/// Reads a text from the beginning, as far as it can be one of the language.
[[nodiscard]] inline Departure read_text(Recognizer& recognizer, std::string_view text) {
  StateId state = recognizer.start();
  Departure out;
  for (; out.bytes < text.size(); ++out.bytes) {
    const StateId next = recognizer.step(state, static_cast<std::uint8_t>(text[out.bytes]));
    if (next == StateId::dead) break;
    state = next;
  }
  out.is_text = out.bytes == text.size() && recognizer.accepts(state);
  out.allowed = next_texts(recognizer, state);
  return out;
}

}  // namespace mica::constraint
