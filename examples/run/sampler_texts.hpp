// SPDX-License-Identifier: Apache-2.0
//
// Options of the sampler that are texts: the order of its stages, and what becomes tokens once a vocabulary is
// there, breakers of DRY and biases of logits.
#pragma once

#include "mica/sample/sampler_options.hpp"
#include "mica/text/tokenizer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

/// The names of stages in their standard order, as llama.cpp has them, with ; between them.
inline constexpr std::string_view standard_order =
    "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";

/// "top_k;temp" as stages. Raises ErrorCode::usage for a name that is none, or is there twice.
[[nodiscard]] std::vector<sample::Stage> stages_of(std::string_view names);
/// "kt" as stages: each letter is one.
[[nodiscard]] std::vector<sample::Stage> stages_of_letters(std::string_view letters);

/// TOKEN+N or TOKEN-N: what stands before the last sign with a number behind it, and the number with its sign.
struct BiasText {
  std::string token;  // an id, or a text
  float bias = 0.0f;
};
/// Raises ErrorCode::usage for any other text.
[[nodiscard]] BiasText bias_of(std::string_view text);

/// Options as the flags have them, and the texts that belong to them.
struct SamplerTexts {
  std::vector<std::string> breakers;  // empty: the usual ones; "none" alone: none
  std::vector<std::string> biases;
};

/// The options with tokens for these texts; a dry.last_n below 0 becomes the context. Raises ErrorCode::usage
/// for a token that the vocabulary does not have, and for an empty breaker.
[[nodiscard]] sample::SamplerOptions with_tokens(sample::SamplerOptions options, const SamplerTexts& texts,
                                                 const text::AnyTokenizer& tokenizer, std::size_t n_ctx);

}  // namespace mica::program
