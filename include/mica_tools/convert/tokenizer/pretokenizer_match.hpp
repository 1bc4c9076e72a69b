// SPDX-License-Identifier: Apache-2.0
//
// Which of the pre-tokenizers known here a tokenizer.json describes: its steps become regular expressions in
// the spelling of text/detail/pretokenizer_rules.hpp, and those are compared.
#pragma once

#include "mica/text/detail/pretokenizer_rules.hpp"
#include "mica_tools/convert/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

namespace detail {

/// A published expression in the spelling of the rules: contractions without the flag for letter case.
[[nodiscard]] inline std::string rule_spelling(std::string expression) {
  constexpr std::string_view published = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  constexpr std::string_view ours = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
  for (std::size_t at = expression.find(published); at != expression.npos;
       at = expression.find(published, at))
    expression.replace(at, published.size(), ours);
  return expression;
}

/// The same with characters written out, which some publish where the rules have \x{...}.
[[nodiscard]] inline std::string written_out(std::string_view expression) {
  std::string out;
  while (!expression.empty()) {
    const std::size_t end = expression.starts_with("\\x{") ? expression.find('}') : expression.npos;
    if (end == expression.npos) {
      out += expression.front();
      expression.remove_prefix(1);
      continue;
    }
    const auto c = static_cast<unsigned>(std::stoul(std::string(expression.substr(3, end - 3)), nullptr, 16));
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      out += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
              static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      out += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
              static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
    expression.remove_prefix(end + 1);
  }
  return out;
}

[[noreturn]] inline void refuse_step(const Json& step, const std::string& file) {
  raise(ErrorCode::unsupported, file, ": pre-tokenizer '", escaped(member_text(step, "type")),
        "' is not known here, or not with these settings: ",
        escaped(step.dump(-1, ' ', false, Json::error_handler_t::replace), 300));
}

/// Adds the expressions of a step; ByteLevel alone has none of its own.
inline void append_expressions(const Json& step, const std::string& file, std::vector<std::string>& out) {
  const std::string type = member_text(step, "type");
  if (type == "Sequence") {
    const Json* const steps = find_member(step, "pretokenizers");
    MICA_CHECK(steps != nullptr && steps->is_array(), file, file, ": a Sequence without pretokenizers");
    for (const Json& each : *steps) append_expressions(each, file, out);
  } else if (type == "Split") {
    const Json* const pattern = find_member(step, "pattern");
    const std::string regex = pattern == nullptr ? "" : member_text(*pattern, "Regex");
    if (regex.empty()) refuse_step(step, file);
    out.push_back(rule_spelling(regex));
  } else if (type == "Digits") {
    out.emplace_back(member_flag(step, "individual_digits").value_or(false) ? R"(\p{N})" : R"(\p{N}+)");
  } else if (type == "ByteLevel") {
    if (member_flag(step, "use_regex").value_or(true)) out.emplace_back(text::detail::expressions::gpt2);
  } else {
    refuse_step(step, file);
  }
}

[[nodiscard]] inline bool same_expressions(const text::PretokenizerRules& rules,
                                           const std::vector<std::string>& found) {
  if (rules.expressions.size() != found.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (written_out(rules.expressions[i]) != written_out(found[i])) return false;
  }
  return true;
}

}  // namespace detail

/// The other properties of a file, which distinguish rules with the same expressions.
struct PretokenizerHints {
  bool whole_words = false;           ///< model.ignore_merges
  std::optional<bool> tidies_spaces;  ///< clean_up_tokenization_spaces; empty: not said
};

/// The name for tokenizer.ggml.pre. Raises ErrorCode::unsupported, showing the expressions, when no rules
/// fit.
[[nodiscard]] inline std::string match_pretokenizer(const Json& step, PretokenizerHints hints,
                                                    const std::string& file) {
  std::vector<std::string> found;
  detail::append_expressions(step, file, found);
  const text::PretokenizerRules* best = nullptr;
  int best_points = -1;
  for (const text::PretokenizerRules& rules : text::all_pretokenizer_rules) {
    if (!detail::same_expressions(rules, found)) continue;
    const int points = (rules.traits.whole_words == hints.whole_words ? 2 : 0) +
                       (!hints.tidies_spaces || rules.traits.tidies_spaces == *hints.tidies_spaces ? 1 : 0);
    if (points > best_points) best = &rules, best_points = points;
  }
  if (best != nullptr) return std::string(best->names.substr(0, best->names.find(' ')));
  std::string shown;
  for (const std::string& each : found) shown += join(shown.empty() ? "" : "  then  ", each);
  raise(ErrorCode::unsupported, file,
        ": no pre-tokenizer known here cuts text by these expressions: ", escaped(shown, 600));
}

}  // namespace mica::convert
