// SPDX-License-Identifier: Apache-2.0
//
// How byte-level BPE vocabularies cut text into words before they merge: the regular expressions that the
// models' authors published, by the name in `tokenizer.ggml.pre`. Data only; Pretokenizer runs them.
//
// Rules are applied one after the other, each inside the pieces of the one before. What a rule matches is a
// piece, and so is what lies between two matches. `\s` and `\S` are Unicode's white space.
#pragma once

#include "mica/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mica::text {

/// What a pre-tokenizer's name implies beside its expressions.
struct PretokenizerTraits {
  bool whole_words = false;   ///< a word that is a token is taken without merging
  bool adds_bos = false;      ///< when the file does not say
  bool tidies_spaces = true;  ///< the model's own decoder drops spaces before punctuation
};

/// What `tokenizer.ggml.pre` stands for.
struct PretokenizerRules {
  std::string_view names;  ///< one or more, with a space between each
  std::span<const std::string_view> expressions;
  PretokenizerTraits traits;
};

namespace detail {

namespace expressions {

inline constexpr std::string_view digit = R"(\p{N})";
inline constexpr std::string_view digits_by_three = R"(\p{N}{1,3})";
inline constexpr std::string_view newline = R"([\r\n])";
/// DeepSeek's `\s+$`; looking back keeps a run that is not at the end from being tried at each of its
/// characters.
inline constexpr std::string_view trailing_space = R"((?<!\s)\s+$)";
inline constexpr std::string_view ideographs_and_kana =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
inline constexpr std::string_view ideographs_and_hangul =
    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

inline constexpr std::string_view gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

inline constexpr std::string_view llama3 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view qwen2 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view qwen35 =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view gpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Latin, Greek, Cyrillic, Georgian, Cherokee and other letters that have a case, as DeepSeek LLM lists them.
inline constexpr std::string_view deepseek_letters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC})"
    R"(\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";

inline constexpr std::string_view deepseek_punctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";

inline constexpr std::string_view bloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";

}  // namespace expressions

// Which expressions a name means, in the order in which they are applied.
namespace recipes {

inline constexpr std::array gpt2 = {expressions::gpt2};
inline constexpr std::array llama3 = {expressions::llama3};
inline constexpr std::array qwen2 = {expressions::qwen2};
inline constexpr std::array qwen35 = {expressions::qwen35};
inline constexpr std::array gpt4o = {expressions::gpt4o};
inline constexpr std::array tekken = {expressions::tekken};
inline constexpr std::array bloom = {expressions::bloom};
inline constexpr std::array viking = {expressions::bloom, expressions::digit};
inline constexpr std::array starcoder = {expressions::digit, expressions::gpt2};
inline constexpr std::array deepseek3 = {expressions::digits_by_three, expressions::ideographs_and_kana,
                                         expressions::deepseek3};
inline constexpr std::array deepseek_coder = {expressions::newline, std::string_view(R"(\s?\p{L}+)"),
                                              std::string_view(R"(\s?\p{P}+)"),
                                              expressions::ideographs_and_hangul, expressions::digit};
inline constexpr std::array deepseek_llm = {
    expressions::newline,        expressions::deepseek_letters,      expressions::deepseek_punctuation,
    expressions::trailing_space, expressions::ideographs_and_hangul, std::string_view(R"(\p{N}+)")};
inline constexpr std::array falcon = {std::string_view(R"([\p{P}\$\+<=>\^~\|`]+)"), expressions::gpt2,
                                      std::string_view("[0-9][0-9][0-9]")};
inline constexpr std::array unnamed = {std::string_view(R"([\p{P}\$\+<=>\^~\|]+)"), expressions::gpt2,
                                       std::string_view(R"(\p{N}+)"), std::string_view("[0-9][0-9][0-9]")};

}  // namespace recipes

/// Whether a list of names with a space between each has this one.
constexpr bool lists(std::string_view names, std::string_view name) noexcept {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

}  // namespace detail

/// Every pre-tokenizer known here. "default" is what old files without a name were made for.
inline constexpr std::array all_pretokenizer_rules = {
    PretokenizerRules{"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2",
                      detail::recipes::llama3,
                      {.whole_words = true, .adds_bos = true}},
    PretokenizerRules{"dbrx smaug-bpe glm4 chatglm-bpe", detail::recipes::llama3, {}},
    PretokenizerRules{
        "qwen2 deepseek-r1-qwen megrez hunyuan", detail::recipes::qwen2, {.tidies_spaces = false}},
    PretokenizerRules{"stablelm2", detail::recipes::qwen2, {}},
    PretokenizerRules{"qwen35", detail::recipes::qwen35, {.tidies_spaces = false}},
    PretokenizerRules{"gpt-2 phi-2 mpt olmo jais", detail::recipes::gpt2, {}},
    PretokenizerRules{"gpt-4o llama4", detail::recipes::gpt4o, {.tidies_spaces = false}},
    PretokenizerRules{
        "tekken", detail::recipes::tekken, {.whole_words = true, .adds_bos = true, .tidies_spaces = false}},
    PretokenizerRules{"starcoder refact codeshell exaone", detail::recipes::starcoder, {}},
    PretokenizerRules{"smollm command-r minerva-7b", detail::recipes::starcoder, {.tidies_spaces = false}},
    PretokenizerRules{"falcon", detail::recipes::falcon, {}},
    PretokenizerRules{"deepseek-llm", detail::recipes::deepseek_llm, {.tidies_spaces = false}},
    PretokenizerRules{"deepseek-coder", detail::recipes::deepseek_coder, {.tidies_spaces = false}},
    PretokenizerRules{"deepseek-v3 hunyuan-dense", detail::recipes::deepseek3, {.tidies_spaces = false}},
    PretokenizerRules{"bloom gpt3-finnish", detail::recipes::bloom, {}},
    PretokenizerRules{"poro-chat", detail::recipes::bloom, {.tidies_spaces = false}},
    PretokenizerRules{"viking", detail::recipes::viking, {.tidies_spaces = false}},
    PretokenizerRules{"default", detail::recipes::unnamed, {}},
};

/// The rules of a name, null when there are none; no name means "default".
[[nodiscard]] constexpr const PretokenizerRules* find_pretokenizer_rules(std::string_view name) noexcept {
  if (name.empty()) name = "default";
  for (const PretokenizerRules& rules : all_pretokenizer_rules) {
    if (detail::lists(rules.names, name)) return &rules;
  }
  return nullptr;
}

/// The rules of a name. Raises `unsupported`, listing the known names, when there are none: a guess would
/// give a model words that it never saw.
[[nodiscard]] inline const PretokenizerRules& pretokenizer_rules(std::string_view name) {
  if (const PretokenizerRules* rules = find_pretokenizer_rules(name)) return *rules;
  std::string known;
  for (const PretokenizerRules& rules : all_pretokenizer_rules) known.append(" ").append(rules.names);
  raise(ErrorCode::unsupported, "tokenizer.ggml.pre: found '", escaped(name, 40), "', known are", known);
}

}  // namespace mica::text
