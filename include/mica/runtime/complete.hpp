// SPDX-License-Identifier: Apache-2.0
//
// From text to text in one call, without sessions. runtime/session.hpp and runtime/generate.hpp can do more.
#pragma once

#include "mica/runtime/generate.hpp"
#include "mica/runtime/open.hpp"
#include "mica/sample/standard.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica {

/// The options of complete().
struct CompleteOptions {
  std::size_t max_tokens = 0;           // 0: no maximum
  sample::SamplerOptions sampler = {};  // of sample::Standard
};

/// The ids of a text that a model continues. An empty text begins with BOS, or with EOS where there is no
/// BOS. Raises ErrorCode::usage for an empty text when the vocabulary has neither.
template <text::Tokenizer Tokenizer>
[[nodiscard]] std::vector<TokenId> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt) {
  auto ids = tokenizer.encode(prompt, {.add_special = true, .parse_special = true});
  if (!ids.empty()) return ids;
  const text::SpecialIds& special = tokenizer.vocabulary().special();
  const auto first = special.bos ? special.bos : special.eos;
  MICA_CHECK(first, usage, "an empty prompt needs a BOS token to begin with, and this vocabulary has none");
  return {*first};
}

/// A lower bound of the tokens of a text, without encoding it: as if each token were the longest one. To encode
/// takes up to 36 bytes of memory for each byte of the text, which no budget counts; so what cannot fit is
/// refused before.
template <text::Tokenizer Tokenizer>
[[nodiscard]] std::size_t min_tokens(const Tokenizer& tokenizer, std::string_view text) noexcept {
  return text.size() / std::max<std::size_t>(tokenizer.vocabulary().longest_text_bytes(), 1);
}

/// Continues a text in a session of its own, with any sampler. on_text(std::string_view) gets whole UTF-8
/// sequences; false stops. Raises what generate() raises, and ErrorCode::limit for a text whose
/// min_tokens() exceed the context.
template <class Families, class Formats, Sampler S, class OnText>
GenerateResult complete(BasicModel<Families, Formats>& model, std::string_view prompt, S& sampler,
                        const GenerateOptions& options, OnText&& on_text) {
  const std::size_t n_ctx = model.transformer().n_ctx(), least = min_tokens(model.tokenizer(), prompt);
  MICA_CHECK(least <= n_ctx, limit, "the prompt of ", prompt.size(), " bytes has ", least,
             " tokens or more, and the context has ", n_ctx, "; OpenOptions::n_ctx makes it longer");
  auto session = model.session();
  return generate(session, model.tokenizer(), sampler, prompt_ids(model.tokenizer(), prompt), options,
                  on_text);
}

/// The same with the standard sampler.
template <class Families, class Formats, class OnText>
GenerateResult complete(BasicModel<Families, Formats>& model, std::string_view prompt,
                        const CompleteOptions& options, OnText&& on_text) {
  sample::Standard sampler(options.sampler, model.config().n_vocab);
  return complete(model, prompt, sampler, {.max_tokens = options.max_tokens}, on_text);
}

/// The same; returns the text that follows the prompt, up to the end of the context. Raises ErrorCode::limit for
/// a prompt that is longer than the context, budget where keys and values find no memory, and failed where
/// weights, keys or values cannot be read or written, or a rank is gone; the text so far is lost then.
template <class Families, class Formats>
[[nodiscard]] std::string complete(BasicModel<Families, Formats>& model, std::string_view prompt,
                                   const CompleteOptions& options = {}) {
  std::string text;
  const GenerateResult result = complete(model, prompt, options, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  MICA_CHECK(result.reason != StopReason::context_full || !result.tokens.empty(), limit,
             "the prompt is longer than the context of ", model.transformer().n_ctx(),
             " tokens; OpenOptions::n_ctx makes it longer, up to what the model was trained for");
  MICA_CHECK(result.reason != StopReason::no_memory, budget, "the keys and values of ", result.tokens.size(),
             " tokens after the prompt do not fit the memory budget; use a larger one "
             "(OpenOptions::memory_bytes), or fewer tokens");
  MICA_CHECK(result.reason < StopReason::write_failed, failed, "the answer ended after ",
             result.tokens.size(), " tokens: ", name(result.reason));
  return text;
}

}  // namespace mica
