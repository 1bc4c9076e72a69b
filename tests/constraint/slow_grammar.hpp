// SPDX-License-Identifier: Apache-2.0
//
// Random grammars, and a slow way to see what they accept: the spans of a text in which each rule holds,
// found by repeating until nothing changes.
#pragma once

#include "reference.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// A body of a rule, and a slow way to see what it accepts.
struct Form {
  enum class Kind : std::uint8_t { text, rule, cat, alt, repeat };
  using Spans = std::vector<std::vector<std::vector<bool>>>;  // [rule][begin][end]

  Kind kind = Kind::cat;
  std::string text = {};
  std::size_t rule = 0;
  std::vector<Form> parts = {};
  std::size_t min = 0, max = 0;

  [[nodiscard]] std::string gbnf() const {
    if (kind == Kind::text) return "\"" + text + "\"";
    if (kind == Kind::rule) return rule == 0 ? "root" : "r" + std::to_string(rule);
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i)
      out += (i == 0 ? "" : kind == Kind::alt ? " | " : " ") + parts[i].gbnf();
    if (kind == Kind::repeat)
      out += "{" + std::to_string(min) + "," + (max < 9 ? std::to_string(max) : "") + "}";
    return "(" + out + ")";
  }
  [[nodiscard]] std::vector<bool> ends(std::string_view in, std::size_t from, const Spans& spans) const {
    std::vector<bool> out(in.size() + 1);
    if (kind == Kind::text && in.substr(from).starts_with(text)) out[from + text.size()] = true;
    if (kind == Kind::rule) return spans[rule][from];
    if (kind == Kind::cat) {
      out[from] = true;
      for (const Form& part : parts) out = part.after(out, in, spans);
    }
    if (kind == Kind::alt) {
      for (const Form& part : parts) join(out, part.ends(in, from, spans));
    }
    if (kind == Kind::repeat) {
      std::vector<bool> times(in.size() + 1);
      times[from] = true;
      for (std::size_t i = 0; i <= std::min(max, min + in.size() + 1); ++i) {
        if (i >= min) join(out, times);
        times = parts[0].after(times, in, spans);
      }
    }
    return out;
  }

 private:
  static void join(std::vector<bool>& out, const std::vector<bool>& other) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || other[i];
  }
  [[nodiscard]] std::vector<bool> after(const std::vector<bool>& begins, std::string_view in,
                                        const Spans& spans) const {
    std::vector<bool> out(begins.size());
    for (std::size_t i = 0; i < begins.size(); ++i) {
      if (begins[i]) join(out, ends(in, i, spans));
    }
    return out;
  }
};

inline Form random_form(CounterRng& rng, std::size_t depth, std::size_t n_rules) {
  using Kind = Form::Kind;
  const std::size_t kind = draw(rng, depth == 0 ? 4 : 9);
  const auto inner = [&] { return random_form(rng, depth - 1, n_rules); };
  constexpr std::string_view texts[] = {"a", "b", "ab", "ba", ""};
  if (kind < 2) return {.kind = Kind::text, .text = std::string(texts[draw(rng, 5)])};
  if (kind < 4) return {.kind = Kind::rule, .rule = draw(rng, n_rules)};
  if (kind == 4) return {.kind = Kind::cat, .parts = {inner(), inner(), inner()}};
  if (kind == 5) {
    const Form bracket = {.kind = Kind::text, .text = std::string(texts[draw(rng, 4)])};
    return {.kind = Kind::cat, .parts = {bracket, inner(), bracket}};
  }
  if (kind < 8) return {.kind = Kind::alt, .parts = {inner(), inner()}};
  const std::size_t min = draw(rng, 3);
  return {.kind = Kind::repeat,
          .parts = {inner()},
          .min = min,
          .max = draw(rng, 2) == 0 ? 9 : min + draw(rng, 3)};
}

/// The smallest spans in which the rules hold.
inline bool slowly_accepts(const std::vector<Form>& rules, std::string_view text) {
  const std::size_t n = text.size() + 1;
  Form::Spans spans(rules.size(), std::vector<std::vector<bool>>(n, std::vector<bool>(n)));
  for (bool changed = true; changed;) {
    const Form::Spans before = spans;
    for (std::size_t rule = 0; rule < rules.size(); ++rule) {
      for (std::size_t from = 0; from < n; ++from) spans[rule][from] = rules[rule].ends(text, from, before);
    }
    changed = spans != before;
  }
  return spans[0][0][n - 1];
}

}  // namespace mica::test
