// SPDX-License-Identifier: Apache-2.0
//
// Tokens that are known by how they are written, because files give their ids seldom and their types wrongly
// often.
#pragma once

#include <string_view>

namespace mica::text::detail {

// clang-format off

/// Tokens by which models end a turn; the first that a vocabulary has stands in for a missing EOT.
inline constexpr std::string_view turn_ends[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|eot|>", "<|endoftext|>", "<|end_of_text|>",
    "<EOT>", "_<EOT>", "<end_of_utterance>", "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

/// Further tokens after which nothing of the answer follows.
inline constexpr std::string_view other_ends[] = {"<|eom_id|>", "<|return|>", "<|call|>", "<|calls|>",
                                                  "<|flush|>",  "<eos>",      "[EOS]"};

/// The end of texts in many SPM vocabularies. Where a file calls it user-defined it may as well be a tag of
/// HTML, as in Gemma's vocabularies: it is printed and ends no answer, but a text that spells it stays text.
inline constexpr std::string_view text_end = "</s>";

/// Tokens around the gap that a model is to fill, around files and repositories.
inline constexpr std::string_view infill_marks[] = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "\u2581<PRE>", "<|code_prefix|>",
    "<\uFF5Cfim\u2581begin\uFF5C>",
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<SUF>", "\u2581<SUF>", "<|code_suffix|>",
    "<\uFF5Cfim\u2581hole\uFF5C>",
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<MID>", "\u2581<MID>", "<|code_middle|>",
    "<\uFF5Cfim\u2581end\uFF5C>",
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>",
    "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"};

// clang-format on

/// Tokens by which gpt-oss, Mistral and Gemma 4 separate thoughts from the answer; readers of an answer need to
/// see them, so they are no control tokens here, whatever the file says.
inline constexpr std::string_view channel_marks[] = {"<|channel|>",   "<|message|>", "<|start|>",
                                                     "<|constrain|>", "[THINK]",     "[/THINK]",
                                                     "<|channel>",    "<channel|>"};

constexpr bool is_channel_mark(std::string_view text) noexcept {
  for (const std::string_view mark : channel_marks) {
    if (text == mark) return true;
  }
  return false;
}

/// Whether one of the names above is possible, so that ordinary tokens are not compared with all of them.
constexpr bool may_have_a_name(std::string_view text) noexcept {
  return text.size() > 4 && (text.back() == '>' || text.back() == ']');
}

}  // namespace mica::text::detail
