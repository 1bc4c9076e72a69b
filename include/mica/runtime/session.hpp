// SPDX-License-Identifier: Apache-2.0
//
// One sequence on a model: tokens go in by chunks, logits come out, tokens can be taken back. Works on a
// concrete Transformer and on AnyModel alike; knows ids and no text (runtime/generate.hpp does). Sessions may share a step
// (runtime/together.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/finite.hpp"
#include "mica/runtime/any_model.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mica {

template <StepModel Model>
class Together;

/// A sequence of tokens and its keys and values. One thread at a time; one session of a model steps at a
/// time.
template <StepModel Model>
class Session {
 public:
  /// The model outlives the session.
  explicit Session(Model& model) : model_(&model), cache_(model.make_cache()) {}

  /// The tokens so far.
  [[nodiscard]] std::span<const text::TokenId> tokens() const noexcept { return tokens_; }
  /// Tokens that still fit.
  [[nodiscard]] std::size_t room() const noexcept { return model_->n_ctx() - tokens_.size(); }
  [[nodiscard]] Model& model() noexcept { return *model_; }
  [[nodiscard]] const Model& model() const noexcept { return *model_; }

  /// Appends tokens, chunk by chunk. On shortage the chunks before it have been taken: see tokens().
  /// cancel: looked at between chunks; when it is set, what is done is kept and the answer is ok.
  /// Raises ErrorCode::usage for an id outside the vocabulary.
  [[nodiscard]] model::StepStatus feed(std::span<const text::TokenId> tokens,
                                       const std::atomic<bool>* cancel = nullptr) {
    return feed_rows(tokens, cancel, [](std::size_t, std::size_t) {});
  }

  /// The same, and calls on_chunk(first, count) after each chunk: tokens [first, first + count) of the
  /// sequence are the ones whose logits can be had now.
  template <class OnChunk>
  [[nodiscard]] model::StepStatus feed_rows(std::span<const text::TokenId> tokens,
                                            const std::atomic<bool>* cancel, OnChunk&& on_chunk);

  /// Logits after the last token, (n_vocab). Valid until the next call.
  /// Raises ErrorCode::failed when a weight could not be read, or when they are not finite, naming the layer.
  [[nodiscard]] std::span<const float> logits();

  /// Logits after the tokens at these positions of the sequence, all of the last chunk, (positions, n_vocab).
  /// positions.size() <= model().logits_rows(). Raises as logits(), but does not look for non-finite numbers.
  [[nodiscard]] MatrixView<const float> logits(std::span<const std::size_t> positions);

  /// Raises ErrorCode::usage for an id outside the vocabulary.
  void check_ids(std::span<const text::TokenId> tokens) const;

  /// The row of the model's last step that is the token at this position, which was in this session's last chunk.
  [[nodiscard]] std::size_t row(std::size_t position) const;

  /// Raises ErrorCode::failed for logits after the last token, at `position`, that are not finite. Looks for the layer, so that
  /// logits need a feed() first.
  [[noreturn]] void raise_non_finite(std::size_t position);

  /// Takes back all tokens from position `count` on; logits() needs a feed() first, unless tokens of the last chunk are left.
  /// Where the model has a recurrent state, that feed() may have to run some tokens before `count` again.
  void rewind(std::size_t count) noexcept {
    if (count >= tokens_.size()) return;
    tokens_.resize(count);
    cache_.rewind(std::min(count, cache_.tokens));
    chunk_size_ = count > chunk_begin_ ? std::min(chunk_size_, count - chunk_begin_) : 0;
  }

  /// This session, empty, begins with the first `count` tokens of another one of the model; answers how many it has, which
  /// need not be fed: 0 where caches do not share (kv::Paged does). Costs no memory but that of a page filled in part. Where
  /// count is a multiple of 16, nothing at all.
  std::size_t adopt([[maybe_unused]] const Session& other, [[maybe_unused]] std::size_t count) {
    MICA_ASSERT(tokens_.empty() && model_ == other.model_);
    if constexpr (SharingModel<Model>) {
      const std::size_t had = cache_.adopt(other.cache_, std::min(count, other.cache_.tokens));
      tokens_.assign(other.tokens_.begin(), other.tokens_.begin() + static_cast<std::ptrdiff_t>(had));
    }
    return tokens_.size();
  }

  /// Tokens whose keys and values are there; the others would be run again.
  [[nodiscard]] std::size_t cached() const noexcept { return cache_.tokens; }
  /// Gives the memory of the cache back, and stays what it is: the next feed() runs all tokens again.
  void drop() noexcept {
    cache_.rewind(0);
    chunk_size_ = 0;
  }

 private:
  friend class Together<Model>;

  /// Runs the tokens again that the cache has lost.
  [[nodiscard]] model::StepStatus replay() noexcept;
  /// The cache took these tokens; the first of them is row `first_row` of the step.
  void took(std::span<const text::TokenId> tokens, std::size_t first_row) {
    chunk_begin_ = tokens_.size();
    chunk_size_ = tokens.size();
    first_row_ = first_row;
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  Model* model_;
  typename Model::Cache cache_;
  std::vector<text::TokenId> tokens_;
  std::vector<std::size_t> rows_;
  std::size_t chunk_begin_ = 0;  // of the last chunk, whose hidden states the model still has
  std::size_t chunk_size_ = 0;
  std::size_t first_row_ = 0;  // of the step, where the chunk lies in it
};

template <StepModel Model>
void Session<Model>::check_ids(std::span<const text::TokenId> tokens) const {
  const std::size_t n_vocab = model_->config().n_vocab;
  for (const text::TokenId id : tokens) {
    MICA_CHECK(id < n_vocab, usage, "token id ", id, " is outside the vocabulary of ", n_vocab, " tokens");
  }
}

template <StepModel Model>
template <class OnChunk>
model::StepStatus Session<Model>::feed_rows(std::span<const text::TokenId> tokens,
                                            const std::atomic<bool>* cancel, OnChunk&& on_chunk) {
  check_ids(tokens);
  const model::StepStatus replayed = replay();
  if (replayed != model::StepStatus::ok) return replayed;
  while (!tokens.empty()) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) break;
    const auto chunk = tokens.first(std::min(tokens.size(), model_->chunk()));
    const model::StepStatus status = model_->step(cache_, chunk);
    if (status != model::StepStatus::ok) return status;
    took(chunk, 0);
    tokens = tokens.subspan(chunk.size());
    on_chunk(chunk_begin_, chunk_size_);
  }
  return model::StepStatus::ok;
}

template <StepModel Model>
model::StepStatus Session<Model>::replay() noexcept {
  while (cache_.tokens < tokens_.size()) {
    const std::size_t n = std::min(tokens_.size() - cache_.tokens, model_->chunk());
    const model::StepStatus status = model_->step(cache_, std::span(tokens_).subspan(cache_.tokens, n));
    if (status != model::StepStatus::ok) return status;
  }
  return model::StepStatus::ok;
}

template <StepModel Model>
std::span<const float> Session<Model>::logits() {
  MICA_CHECK(chunk_size_ > 0, usage, "logits were asked for before any token was fed");
  const std::size_t last = tokens_.size() - 1;
  const std::span<const float> row = logits(std::span(&last, 1))[0];
  if (!all_finite(row)) raise_non_finite(last);
  return row;
}

template <StepModel Model>
std::size_t Session<Model>::row(std::size_t position) const {
  MICA_CHECK(position >= chunk_begin_ && position < chunk_begin_ + chunk_size_, usage, "logits at position ",
             position, ": only those of the last chunk, ", chunk_begin_, " to ", chunk_begin_ + chunk_size_,
             ", can be had");
  return first_row_ + position - chunk_begin_;
}

template <StepModel Model>
MatrixView<const float> Session<Model>::logits(std::span<const std::size_t> positions) {
  rows_.clear();
  for (const std::size_t position : positions) rows_.push_back(row(position));
  const auto rows = model_->logits(rows_);
  MICA_CHECK(rows.rows() == positions.size(), failed, "the head of the model could not be read");
  return rows;
}

template <StepModel Model>
void Session<Model>::raise_non_finite(std::size_t position) {
  const std::size_t layers = model_->config().layers.size();
  const std::size_t layer = model_->first_non_finite_layer(cache_, tokens_[position]);
  chunk_begin_ = chunk_size_ = 0;
  raise(ErrorCode::failed, "non-finite logits after token ", position, ": ",
        layer < layers
            ? join("the first bad output is that of layer ", layer, " (blk.", layer, ".*)")
            : std::string("all layers are finite, the head (output.weight, output_norm.weight) is not"),
        "; the file's weights are damaged or overflow");
}

}  // namespace mica
