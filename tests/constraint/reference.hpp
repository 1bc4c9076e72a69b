// SPDX-License-Identifier: Apache-2.0
//
// What the tests of constraints compare with: a slow matcher for regular expressions, random ones, and texts.
#pragma once

#include "mica/base/rng.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/recognizer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

inline std::size_t draw(CounterRng& rng, std::size_t n) { return static_cast<std::size_t>(rng.next() % n); }

/// All texts of the letters with at most n of them, shorter ones first.
inline std::vector<std::string> texts_of(std::string_view letters, std::size_t n) {
  std::vector<std::string> out = {""};
  for (std::size_t at = 0; at < out.size() && out[at].size() < n; ++at) {
    for (const char letter : letters) out.push_back(out[at] + letter);
  }
  return out;
}

/// A regular expression over single bytes. Where it may end is found by trying everything.
struct Tree {
  enum class Kind : std::uint8_t {
    set,  // one of `letters`
    cat,  // of no parts: the empty text
    alt,
    repeat,
    both,
    complement,
    begin,
    end,
    lookahead,
    not_lookahead
  };
  static constexpr std::size_t unlimited = constraint::Expressions::unlimited;

  Kind kind = Kind::cat;
  std::string letters = {};
  std::vector<Tree> parts = {};
  std::size_t min = 0, max = 0;

  /// Of each position of the text, whether a match that begins at `from` can end there.
  [[nodiscard]] std::vector<bool> ends(std::string_view text, std::size_t from) const {
    std::vector<bool> out(text.size() + 1);
    switch (kind) {
      case Kind::set:
        if (from < text.size() && letters.find(text[from]) != std::string::npos) out[from + 1] = true;
        break;
      case Kind::cat:
        out[from] = true;
        for (const Tree& part : parts) out = part.after(out, text);
        break;
      case Kind::alt:
        for (const Tree& part : parts) join(out, part.ends(text, from));
        break;
      case Kind::repeat: {
        std::vector<bool> times(text.size() + 1);  // after i times
        times[from] = true;
        for (std::size_t i = 0; i <= std::min(max, min + text.size() + 1); ++i) {
          if (i >= min) join(out, times);
          times = parts[0].after(times, text);
        }
        break;
      }
      case Kind::both:
        out = parts[0].ends(text, from);
        for (const Tree& part : parts) {
          const auto other = part.ends(text, from);
          for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] && other[i];
        }
        break;
      case Kind::complement: {
        const auto inner = parts[0].ends(text, from);
        for (std::size_t i = from; i < out.size(); ++i) out[i] = !inner[i];
        break;
      }
      case Kind::begin:
        out[from] = from == 0;
        break;
      case Kind::end:
        out[from] = from == text.size();
        break;
      default: {
        const auto inner = parts[0].ends(text, from);
        const bool found = std::find(inner.begin(), inner.end(), true) != inner.end();
        out[from] = found == (kind == Kind::lookahead);
      }
    }
    return out;
  }
  [[nodiscard]] bool matches(std::string_view text) const { return ends(text, 0)[text.size()]; }
  [[nodiscard]] bool is_in(std::string_view text) const {
    for (std::size_t from = 0; from <= text.size(); ++from) {
      const auto found = ends(text, from);
      if (std::find(found.begin(), found.end(), true) != found.end()) return true;
    }
    return false;
  }

  [[nodiscard]] constraint::ExprId expression(constraint::Expressions& x) const {
    std::vector<constraint::ExprId> made;
    for (const Tree& part : parts) made.push_back(part.expression(x));
    constraint::ByteSet set;
    constraint::ExprId out = constraint::ExprId::empty;
    switch (kind) {
      case Kind::set:
        for (const char letter : letters) set.insert(static_cast<std::uint8_t>(letter));
        return x.set(set);
      case Kind::cat:
        for (const auto part : made) out = x.cat(out, part);
        return out;
      case Kind::alt:
        return x.alt(std::move(made));
      case Kind::both:
        return x.both(std::move(made));
      case Kind::complement:
        return x.complement(made[0]);
      default:
        return x.repeat(made[0], static_cast<std::uint32_t>(min), static_cast<std::uint32_t>(max));
    }
  }

  /// As ECMA writes it.
  [[nodiscard]] std::string pattern() const {
    std::string out;
    for (const Tree& part : parts) {
      if (kind == Kind::alt && !out.empty()) out += '|';
      out += kind == Kind::alt || kind == Kind::repeat ? "(?:" + part.pattern() + ")" : part.pattern();
    }
    switch (kind) {
      case Kind::set:
        return letters.size() == 1 ? letters : "[" + letters + "]";
      case Kind::alt:
        return "(" + out + ")";
      case Kind::repeat:
        if (max == unlimited)
          return out + (min == 0 ? "*" : min == 1 ? "+?" : "{" + std::to_string(min) + ",}");
        return out + "{" + std::to_string(min) + "," + std::to_string(max) + "}";
      case Kind::begin:
        return "^";
      case Kind::end:
        return "$";
      case Kind::lookahead:
        return "(?=" + out + ")";
      case Kind::not_lookahead:
        return "(?!" + out + ")";
      default:
        return out;
    }
  }

 private:
  static void join(std::vector<bool>& out, const std::vector<bool>& other) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || other[i];
  }
  [[nodiscard]] std::vector<bool> after(const std::vector<bool>& begins, std::string_view text) const {
    std::vector<bool> out(begins.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      if (begins[i]) join(out, ends(text, i));
    }
    return out;
  }
};

/// Which kinds a random tree may have beside sets, sequences, alternatives and repetitions.
enum class Extra : std::uint8_t { none, logic, assertions };

inline Tree random_tree(CounterRng& rng, std::size_t depth, Extra extra) {
  using Kind = Tree::Kind;
  const std::size_t kind = draw(rng, depth == 0 ? 3 : extra == Extra::none ? 9 : 12);
  const auto inner = [&] { return random_tree(rng, depth - 1, extra); };
  if (extra == Extra::assertions && draw(rng, 12) == 0)
    return {.kind = draw(rng, 2) == 0 ? Kind::begin : Kind::end};
  if (kind < 3) {
    constexpr std::string_view sets[] = {"a", "b", "c", "ab", "bc", "abc"};
    return {.kind = Kind::set, .letters = std::string(sets[draw(rng, 6)])};
  }
  if (kind < 6) return {.kind = Kind::cat, .parts = {inner(), inner()}};
  if (kind == 6 && draw(rng, 4) == 0) return {.kind = Kind::alt, .parts = {inner(), {}}};
  if (kind == 6) return {.kind = Kind::alt, .parts = {inner(), inner()}};
  if (kind < 9) {
    const std::size_t min = draw(rng, 4), max = draw(rng, 2) == 0 ? Tree::unlimited : min + draw(rng, 4);
    return {.kind = Kind::repeat, .parts = {inner()}, .min = min, .max = max};
  }
  if (extra == Extra::logic) {
    if (draw(rng, 2) == 0) return {.kind = Kind::complement, .parts = {inner()}};
    return {.kind = Kind::both, .parts = {inner(), inner()}};
  }
  return {.kind = draw(rng, 2) == 0 ? Kind::lookahead : Kind::not_lookahead, .parts = {inner()}};
}

/// A language without rules.
inline constraint::Language regular(std::unique_ptr<constraint::Expressions> expressions,
                                    constraint::ExprId start) {
  return {std::move(expressions), std::make_unique<constraint::FixedRules>(), start};
}

/// The state after a text.
inline constraint::StateId after(constraint::Recognizer& recognizer, std::string_view text) {
  constraint::StateId state = recognizer.start();
  for (const char c : text) state = recognizer.step(state, static_cast<std::uint8_t>(c));
  return state;
}
inline bool accepts(constraint::Recognizer& recognizer, std::string_view text) {
  return recognizer.accepts(after(recognizer, text));
}

}  // namespace mica::test
