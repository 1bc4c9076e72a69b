// SPDX-License-Identifier: Apache-2.0
//
// Texts become rows of numbers: embeddings, or the scores of a reranker. Texts of any lengths share a step,
// without padding, and each gets the bits that it gets alone.
//
//   tokens of texts -> steps -> states -> pooling -> dense layers -> first numbers -> length 1
//
// It has ids and no text; text/tokenizer.hpp makes them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/base/token_id.hpp"
#include "mica/runtime/concept.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace mica {

/// How states become a row.
struct EmbedderOptions {
  std::optional<arch::Pooling> pooling = {};  // empty: as the file says
  std::size_t dims = 0;    // the first numbers of an embedding are kept (Matryoshka); 0: all
  bool normalize = true;   // embeddings are brought to the length 1; scores never are
  std::size_t texts = 64;  // of one step at most; each has a cache
};

/// Embeds texts with one model, which has no other sequences in the same step. One thread at a time.
template <EncodingModel Model>
class Embedder {
 public:
  /// The model outlives it. Raises ErrorCode::unsupported for a model that says no pooling, if none is given;
  /// ErrorCode::usage for more dims than an embedding has, or a pooling for a reranker.
  explicit Embedder(Model& model, const EmbedderOptions& options = {})
      : model_(&model), options_(options), pooling_(options.pooling.value_or(model.config().pooling)) {
    const arch::Config& config = model.config();
    MICA_CHECK(pooling_ != arch::Pooling::none, unsupported, "a model of ", config.arch,
               " that does not say how it pools: choose mean, first or last");
    MICA_CHECK(!config.ranks || (options.dims == 0 && !options.pooling), usage,
               "a reranker gives scores: it has no choice of pooling or dims");
    MICA_CHECK(options.dims <= model.pooled_width(), usage, "dims: found ", options.dims,
               ", an embedding of this model has ", model.pooled_width());
    options_.texts = std::clamp<std::size_t>(options.texts, 1, model.chunk());
    if (options_.dims == 0) options_.dims = model.pooled_width();
    pooled_.resize(options_.texts * config.width);
    if (!config.dense.empty()) projected_.resize(model.pooled_width());
    parts_.reserve(options_.texts);
    slots_.reserve(options_.texts);
  }

  [[nodiscard]] std::size_t width() const noexcept { return options_.dims; }    // numbers of a row
  [[nodiscard]] bool ranks() const noexcept { return model_->config().ranks; }  // rows are scores
  /// Tokens of the longest text that it takes.
  [[nodiscard]] std::size_t max_tokens() const noexcept {
    return model_->config().encodes ? std::min(model_->n_ctx(), model_->chunk()) : model_->n_ctx();
  }

  /// Row i of out becomes that of texts[i]: (texts, width()). Texts have [1, max_tokens()] tokens, ids below
  /// n_vocab. Not ok: some rows are not written, and no text is left in a cache.
  [[nodiscard]] model::StepStatus embed(std::span<const std::span<const TokenId>> texts,
                                        MatrixView<float> out) {
    std::size_t next = 0;
    while (next < texts.size() || !slots_.empty()) {
      fill(texts, next);
      const model::StepStatus status = run(out);
      if (status != model::StepStatus::ok) {
        for (Slot& slot : slots_) release(slot);
        slots_.clear();
        return status;
      }
    }
    return model::StepStatus::ok;
  }
  /// One text; out: (width()).
  [[nodiscard]] model::StepStatus embed(std::span<const TokenId> text, std::span<float> out) {
    return embed(std::span(&text, 1), MatrixView<float>(out.data(), 1, out.size()));
  }

 private:
  using Cache = typename Model::Cache;

  /// A text on its way.
  struct Slot {
    std::size_t text = 0;             // its number
    std::span<const TokenId> tokens;  // all of them
    std::size_t done = 0;             // that steps have run
    std::size_t now = 0;              // of the step
    std::size_t cache = 0;            // the cache that it has
  };

  /// The next step: texts on their way, then new ones while there is room. Only a model with a causal mask
  /// may have a part of a text.
  void fill(std::span<const std::span<const TokenId>> texts, std::size_t& next) {
    std::size_t room = model_->chunk();
    for (Slot& slot : slots_) {
      slot.now = std::min(room, slot.tokens.size() - slot.done);
      room -= slot.now;
    }
    while (room > 0 && next < texts.size() && slots_.size() < options_.texts) {
      const std::span<const TokenId> tokens = texts[next];
      MICA_ASSERT(!tokens.empty() && tokens.size() <= max_tokens());
      if (model_->config().encodes && tokens.size() > room) return;
      Slot& slot = slots_.emplace_back(Slot{.text = next++, .tokens = tokens});
      slot.cache = take_cache();
      slot.now = std::min(room, tokens.size());
      room -= slot.now;
      std::fill_n(pooled(slot), model_->config().width, 0.0f);
    }
  }
  [[nodiscard]] model::StepStatus run(MatrixView<float> out) {
    parts_.clear();
    for (const Slot& slot : slots_)
      if (slot.now != 0) parts_.push_back({&caches_[slot.cache], slot.tokens.subspan(slot.done, slot.now)});
    const model::StepResult result = model_->step(parts_);
    if (result.status != model::StepStatus::ok) return result.status;
    const auto states = model_->states();  // (n, width)
    if (states.rows() == 0) return model::StepStatus::read_failed;
    std::size_t row = 0;
    for (Slot& slot : slots_) {
      pool(slot, states.rows(row, slot.now));
      row += slot.now;
      slot.done += slot.now;
    }
    return finish(out) ? model::StepStatus::ok : model::StepStatus::read_failed;
  }
  /// Takes states of a text into its pooled row: the sum goes over them in order, so that it does not depend
  /// on the steps.
  void pool(const Slot& slot, MatrixView<const float> states) noexcept {
    float* const row = pooled(slot);
    const std::size_t width = states.cols(), n = states.rows();
    if (pooling_ == arch::Pooling::mean) {
      for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t k = 0; k < width; ++k) row[k] += states[t][k];
      }
    } else if (n != 0 && (pooling_ == arch::Pooling::last || slot.done == 0)) {
      std::copy_n(states[pooling_ == arch::Pooling::last ? n - 1 : 0].data(), width, row);
    }
  }
  /// Rows of the texts that are complete.
  [[nodiscard]] bool finish(MatrixView<float> out) {
    for (Slot& slot : slots_) {
      if (slot.done < slot.tokens.size()) continue;
      if (!write(slot, out[slot.text])) return false;
      release(slot);
    }
    std::erase_if(slots_, [](const Slot& slot) { return slot.done == slot.tokens.size(); });
    return true;
  }
  [[nodiscard]] bool write(const Slot& slot, std::span<float> out) {
    const arch::Config& config = model_->config();
    const MatrixView<float> row(pooled(slot), 1, config.width);
    if (pooling_ == arch::Pooling::mean) {
      for (float& x : row[0]) x /= static_cast<float>(slot.tokens.size());
    }
    MatrixView<float> all = row;
    if (!config.dense.empty()) {
      all = {projected_.data(), 1, model_->pooled_width()};
      if (!model_->project_pooled(row, all)) return false;
    }
    std::copy_n(all[0].data(), out.size(), out.data());
    if (config.probabilities) {
      softmax(out);
    } else if (options_.normalize && !config.ranks) {
      scale_to_one(out);
    }
    return true;
  }
  static void scale_to_one(std::span<float> row) noexcept {
    double squares = 0;
    for (const float x : row) squares += static_cast<double>(x) * static_cast<double>(x);
    if (squares == 0) return;
    const double factor = 1 / std::sqrt(squares);
    for (float& x : row) x = static_cast<float>(static_cast<double>(x) * factor);
  }
  static void softmax(std::span<float> row) noexcept {
    const double top = static_cast<double>(*std::max_element(row.begin(), row.end()));
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x) - top);
    for (float& x : row) x = static_cast<float>(std::exp(static_cast<double>(x) - top) / sum);
  }

  [[nodiscard]] float* pooled(const Slot& slot) noexcept {
    return pooled_.data() + slot.cache * model_->config().width;
  }
  [[nodiscard]] std::size_t take_cache() {
    if (free_.empty()) {
      caches_.push_back(model_->make_cache());
      return caches_.size() - 1;
    }
    const std::size_t cache = free_.back();
    free_.pop_back();
    return cache;
  }
  void release(const Slot& slot) {
    caches_[slot.cache].rewind(0);
    free_.push_back(slot.cache);
  }

  Model* model_;
  EmbedderOptions options_;
  arch::Pooling pooling_;
  std::vector<Cache> caches_ = {};
  std::vector<std::size_t> free_ = {};  // caches that no text has
  std::vector<Slot> slots_ = {};
  std::vector<typename Model::SequenceStep> parts_ = {};
  std::vector<float> pooled_;     // (texts, width of the model), by cache
  std::vector<float> projected_;  // (pooled_width)
};

}  // namespace mica
