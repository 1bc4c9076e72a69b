// SPDX-License-Identifier: Apache-2.0
//
// Texts of a language of calls: whether one is accepted, and random ones. Each mark <...> or [...] of a
// format may be a control token, which is its bytes in the language and its text in an answer.
#pragma once

#include "mica/base/rng.hpp"
#include "mica/constraint/recognizer.hpp"
#include "mica/constraint/token_trie.hpp"
#include "mica_tools/calls/call_language.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::test {

/// The marks of a format as control tokens, or none.
class MarkTokens {
 public:
  MarkTokens(const calls::CallFormat& format, bool are_tokens) {
    if (!are_tokens) return;
    for (const std::string_view text : calls::detail::texts_of(format)) {
      for (const std::string_view unit : calls::detail::units_of(text)) {
        if (unit.size() > 1 && id_of(unit) == texts_.size()) texts_.emplace_back(unit);
      }
    }
    for (const std::string& text : texts_) views_.push_back(text);
  }

  /// Sets the fields of the options. This object must outlive them.
  void set(calls::CallLanguageOptions& options) const {
    options.tokens = views_;
    options.token_bytes = [this](std::string_view text) {
      return constraint::TokenTrie::special_text(static_cast<TokenId>(id_of(text)));
    };
  }
  /// An answer with the bytes of tokens, and back.
  [[nodiscard]] std::string bytes_of(std::string_view answer) const {
    std::string out;
    for (const auto& part : calls::detail::PartWriter(views_).text(answer).take()) {
      const bool is_token = part.kind == calls::CallPart::Kind::token;
      out +=
          is_token ? constraint::TokenTrie::special_text(static_cast<TokenId>(id_of(part.text))) : part.text;
    }
    return out;
  }
  [[nodiscard]] std::string answer_of(std::string_view bytes) const {
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != '\xFF') {
        out += bytes[i];
        continue;
      }
      const std::size_t end = bytes.find(';', i);
      out += texts_.at(std::stoul(std::string(bytes.substr(i + 1, end - i - 1))));
      i = end;
    }
    return out;
  }

 private:
  [[nodiscard]] std::size_t id_of(std::string_view text) const {
    std::size_t id = 0;
    while (id < texts_.size() && texts_[id] != text) ++id;
    return id;
  }

  std::vector<std::string> texts_;
  std::vector<std::string_view> views_;
};

/// A language, byte by byte.
class LanguageTexts {
 public:
  using State = constraint::StateId;

  explicit LanguageTexts(constraint::Language language)
      : language_(std::move(language)), recognizer_(language_, {.max_bytes = std::size_t{256} << 20}) {}

  [[nodiscard]] State after(std::string_view text) {
    State state = recognizer_.start();
    for (const char c : text) {
      if (state != State::dead) state = recognizer_.step(state, static_cast<std::uint8_t>(c));
    }
    return state;
  }
  [[nodiscard]] bool has(std::string_view text) { return recognizer_.accepts(after(text)); }
  /// Whether a text begins like this.
  [[nodiscard]] bool begins(std::string_view text) { return after(text) != State::dead; }
  /// The bytes that follow a text with certainty.
  [[nodiscard]] std::string forced(std::string_view text) {
    std::string out;
    for (State state = after(text); state != State::dead && !recognizer_.accepts(state);) {
      const auto next = recognizer_.only_byte(state);
      if (!next.found) break;
      out += static_cast<char>(next.byte);
      state = recognizer_.step(state, next.byte);
    }
    return out;
  }

  /// A text that begins with `begin`, then has up to `steps` random bytes, and ends soon.
  [[nodiscard]] std::string random(std::string begin, std::size_t steps, CounterRng& rng) {
    const auto draw = [&rng](std::size_t below) { return static_cast<std::size_t>(rng.next() % below); };
    State state = after(begin);
    if (state == State::dead) state = after(begin = "");
    for (std::size_t i = 0; i < steps; ++i) {
      const std::string all = allowed(state), marks = only(all, "\"'{}[](),:=<>/|\n ;"),
                        plain = only(all, ascii());
      const std::string& from = !marks.empty() && draw(3) == 0   ? marks
                                : !plain.empty() && draw(9) != 0 ? plain
                                                                 : all;
      if (from.empty()) break;
      begin += from[draw(from.size())];
      state = recognizer_.step(state, static_cast<std::uint8_t>(begin.back()));
    }
    while (!recognizer_.accepts(state)) {
      begin += static_cast<char>(byte_to_end(state));
      state = recognizer_.step(state, static_cast<std::uint8_t>(begin.back()));
    }
    return begin;
  }

 private:
  [[nodiscard]] std::string allowed(State state) {
    std::string out;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (recognizer_.step(state, static_cast<std::uint8_t>(byte)) != State::dead)
        out += static_cast<char>(byte);
    }
    return out;
  }
  [[nodiscard]] static std::string only(std::string_view bytes, std::string_view of) {
    std::string out;
    for (const char c : bytes) {
      if (of.find(c) != std::string_view::npos) out += c;
    }
    return out;
  }
  [[nodiscard]] static const std::string& ascii() {
    static const std::string bytes = [] {
      std::string out = "\n\t\xFF";
      for (char c = ' '; c < 0x7F; ++c) out += c;
      return out;
    }();
    return bytes;
  }
  /// The next byte of a short way to the end, which opens no brackets without need.
  [[nodiscard]] std::uint8_t byte_to_end(State from) {
    struct Found {
      State state;
      std::size_t before;
      std::uint8_t byte;
    };
    std::vector<Found> found = {{from, 0, 0}};
    std::unordered_map<State, bool> seen = {{from, true}};
    std::priority_queue<std::pair<std::ptrdiff_t, std::size_t>> open;  // minus the cost, the place in `found`
    open.emplace(0, 0);
    while (!next_.contains(from)) {
      REQUIRE_FALSE(open.empty());
      const auto [cost, at] = open.top();
      open.pop();
      for (const char c : allowed(found[at].state)) {
        const State state = recognizer_.step(found[at].state, static_cast<std::uint8_t>(c));
        if (!seen.emplace(state, true).second) continue;
        found.push_back({state, at, static_cast<std::uint8_t>(c)});
        open.emplace(cost - (c == '[' || c == '{' ? 30 : 1), found.size() - 1);
        if (!recognizer_.accepts(state) && !next_.contains(state)) continue;
        for (std::size_t k = found.size() - 1; k > 0; k = found[k].before)
          next_.emplace(found[found[k].before].state, found[k].byte);
        break;
      }
    }
    return next_.at(from);
  }

  constraint::Language language_;
  constraint::Recognizer recognizer_;
  std::unordered_map<State, std::uint8_t> next_;  // towards the end
};

}  // namespace mica::test
