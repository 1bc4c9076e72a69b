// SPDX-License-Identifier: Apache-2.0
//
// A model that says what a test wrote down, and a vocabulary of bytes to say it with.

#pragma once

#include "mica/runtime/concept.hpp"
#include "mica/text/spm.hpp"
#include "text/small_vocabulary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

inline constexpr TokenId scripted_bos = 0;
inline constexpr TokenId scripted_eos = 1;
inline constexpr TokenId first_byte = 2;

/// BOS, EOS, and a token for each byte.
inline text::Spm byte_tokenizer() {
  SmallVocabulary vocabulary("llama");
  vocabulary.add("<s>", text::TokenType::control);
  vocabulary.add("</s>", text::TokenType::control);
  vocabulary.add_bytes();
  text::VocabularySource& source = vocabulary.source();
  source.bos = scripted_bos;
  source.eos = scripted_eos;
  source.add_bos = true;
  source.add_space_prefix = false;
  return text::Spm(vocabulary.build());
}

/// After n tokens, token script[n - 1] is the most likely one; after the script, EOS.
class ScriptedModel : public runtime::Unsaved {
 public:
  using Cache = runtime::PlainCache;

  ScriptedModel(std::size_t prompt_tokens, std::string_view answer, std::size_t n_ctx = 100,
                std::size_t logits_rows = 1)
      : script_(prompt_tokens - 1, scripted_bos), n_ctx_(n_ctx), logits_rows_(logits_rows) {
    for (const char c : answer) script_.push_back(first_byte + static_cast<unsigned char>(c));
    config_.n_vocab = first_byte + 256;
    config_.layers.resize(3);
    rows_.resize(logits_rows * config_.n_vocab);
  }

  [[nodiscard]] const arch::Config& config() const noexcept { return config_; }
  [[nodiscard]] std::size_t n_ctx() const noexcept { return n_ctx_; }
  [[nodiscard]] std::size_t chunk() const noexcept { return std::max<std::size_t>(4, logits_rows_); }
  [[nodiscard]] std::size_t logits_rows() const noexcept { return logits_rows_; }
  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] model::StepStatus step(Cache& cache, std::span<const TokenId> tokens) noexcept {
    if (failing_from <= cache.tokens) return failure;
    if (cache.tokens + tokens.size() > n_ctx_) return model::StepStatus::context_full;
    if (cache.tokens >= narrow_from && tokens.size() > max_step_tokens) return model::StepStatus::no_memory;
    first_ = cache.tokens;
    cache.tokens += tokens.size();
    ++steps;
    return model::StepStatus::ok;
  }
  model::StepResult step(std::span<const model::SequenceStep<Cache>> parts) noexcept {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const model::StepStatus status = step(*parts[i].cache, parts[i].tokens);
      if (status != model::StepStatus::ok) return {status, i};
    }
    return {};
  }
  [[nodiscard]] std::uint64_t step_count() const noexcept { return steps; }
  [[nodiscard]] MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept {
    if (first_ >= headless_from) return {};
    std::fill(rows_.begin(), rows_.end(), 0.0f);
    const MatrixView<float> out(rows_.data(), rows.size(), config_.n_vocab);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::size_t last = first_ + rows[r] + 1;
      out[r][last <= script_.size() ? script_[last - 1] : scripted_eos] = 1.0f;
      if (last >= non_finite_from) out[r][5] = std::numeric_limits<float>::quiet_NaN();
    }
    return out;
  }
  [[nodiscard]] std::size_t first_non_finite_layer(Cache&, TokenId) noexcept { return 2; }

  std::uint64_t steps = 0;
  std::size_t failing_from = std::numeric_limits<std::size_t>::max();
  model::StepStatus failure = model::StepStatus::no_memory;
  std::size_t non_finite_from = std::numeric_limits<std::size_t>::max();
  std::size_t headless_from =
      std::numeric_limits<std::size_t>::max();  // after so many tokens the head cannot be read
  std::size_t narrow_from = 0;                  // after so many tokens a step may have
  std::size_t max_step_tokens = std::numeric_limits<std::size_t>::max();  // this many

 private:
  arch::Config config_;
  std::vector<TokenId> script_;
  std::vector<float> rows_;  // (logits_rows, n_vocab)
  std::size_t n_ctx_;
  std::size_t logits_rows_;
  std::size_t first_ = 0;  // position of the last step's first token
};
static_assert(StepModel<ScriptedModel>);

}  // namespace mica::test
