// SPDX-License-Identifier: Apache-2.0
//
// One answer that a server is to write, or texts that it is to embed, in terms that all APIs share. Routes
// make jobs of requests; a request for n answers is n jobs.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/runtime/embed_batch.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica_tools/serve/make_constraint.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mica::serve {

class ServedModel;

/// A prompt as tokens.
struct Prompt {
  std::vector<TokenId> tokens;  // with BOS, where the model has it
  std::string end = {};   // its last characters as text: a ThoughtSplitter sees whether thoughts are open
  std::string stop = {};  // a text that ends an answer in this chat format; empty: a token does
  /// Checkpoint positions, ascending: a later prompt may repeat this one up to there and then differ. They
  /// are the end of the system prompt and the end of the last message. States are stored there, since a
  /// recurrent state can only be taken over at a position where it was stored.
  std::vector<std::size_t> marks = {};
};

/// Texts that become rows of numbers.
struct EmbedTexts {
  std::vector<std::vector<TokenId>>
      texts;             // one at least, each of 1 to ServedModel::max_text_tokens() tokens
  RowOptions rows = {};  // how their states become rows

  [[nodiscard]] std::size_t tokens() const noexcept {
    std::size_t sum = 0;
    for (const std::vector<TokenId>& text : texts) sum += text.size();
    return sum;
  }
  [[nodiscard]] std::size_t row_count() const noexcept { return rows.each_token ? tokens() : texts.size(); }
};

/// What is to be written.
struct Job {
  std::shared_ptr<const ServedModel> model;  // as Service::model() returned it
  Prompt prompt;                             // one token at least
  sample::SamplerOptions sampler = {};       // with its seed
  std::size_t max_tokens = 0;                // 0: to the end of the context
  std::vector<std::string> stop = {};        // texts that end the answer and do not appear in it
  bool stop_at_end = true;                   // at a token that ends a text or a turn
  bool show_special = false;                 // control tokens appear as text
  std::vector<TokenId> shown = {};           // these do in any case; ascending
  bool scores = false;                       // events have the probability of each token
  std::size_t top_tokens = 0;                // most likely tokens at each position, with scores
  std::optional<std::size_t> slot = {};      // which has the sequence afterwards; empty: none
  MakeConstraint constraint = {};            // of the answer; empty: none
  std::optional<EmbedTexts> embed = {};  // in place of all from prompt on: the event is Embedded, not Text
};

/// Tokens that are read for a job.
[[nodiscard]] inline std::size_t tokens_of(const Job& job) noexcept {
  return job.embed ? job.embed->tokens() : job.prompt.tokens.size();
}

/// Tokens of the sequence when its answer is complete, at most. The prompt is shorter than n_ctx.
[[nodiscard]] inline std::size_t end_of(const Job& job, std::size_t n_ctx) noexcept {
  const std::size_t prompt = job.prompt.tokens.size(), left = n_ctx - prompt;
  return job.max_tokens == 0 || job.max_tokens > left ? n_ctx : prompt + job.max_tokens;
}

}  // namespace mica::serve
