// SPDX-License-Identifier: Apache-2.0
//
// Embeds many texts in shared steps. Texts are added and removed between steps. Each text has a cache of its
// own, so that its row has the same bits as if the text were alone:
//
//   add() -> waiting -> | text | text | part of a text | -> states -> pooling -> dense layers -> row
//
// With a causal mask a step may have a part of a text; the sum of its states is kept for the next step.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/base/token_id.hpp"
#include "mica/format/concept.hpp"
#include "mica/runtime/concept.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica {

/// How the states of a text become a row.
struct RowOptions {
  std::optional<arch::Pooling> pooling = {};  // empty: as the file says
  std::size_t dims = 0;     // the first numbers of an embedding are kept (Matryoshka); 0: all
  bool normalize = true;    // embeddings are brought to the length 1; scores never are
  bool each_token = false;  // a row for each token, as the model has it: (tokens, width), without pooling
};

/// The numbers of a row. Raises ErrorCode::unsupported if neither the file nor the options name a pooling;
/// ErrorCode::usage for more dims than an embedding has, or a choice for a reranker. Any thread.
template <EncodingModel Model>
[[nodiscard]] std::size_t row_width(const Model& model, const RowOptions& options) {
  const arch::Config& config = model.config();
  const bool pools = options.pooling.value_or(config.pooling) != arch::Pooling::none;
  MICA_CHECK(pools || options.each_token, unsupported, "a model of ", config.arch,
             " that does not say how it pools: choose mean, cls or last");
  MICA_CHECK(!config.ranks || (options.dims == 0 && !options.pooling && !options.each_token), usage,
             "a reranker gives scores: it has no choice of pooling or dims");
  MICA_CHECK(!options.each_token || options.dims == 0, usage, "dims: rows of tokens have all their numbers");
  if (options.each_token) return config.width;
  MICA_CHECK(options.dims <= model.pooled_width(), usage, "dims: found ", options.dims,
             ", an embedding of this model has ", model.pooled_width());
  return options.dims == 0 ? model.pooled_width() : options.dims;
}

/// One thread at a time. The steps of other sequences of the model may stand between those of the batch.
template <EncodingModel Model>
class EmbedBatch {
 public:
  /// The number of a request, which may have several texts.
  using Owner = std::size_t;

  /// The model must outlive the batch. texts: the maximum in a step; each text has a cache.
  EmbedBatch(Model& model, std::size_t texts)
      : model_(&model), max_texts_(std::clamp<std::size_t>(texts, 1, model.chunk())) {
    slots_.reserve(max_texts_);
    parts_.reserve(max_texts_);
    caches_.reserve(max_texts_);
    free_.reserve(max_texts_);  // so that clear() needs no memory
  }

  /// Tokens of the longest text that a model takes.
  [[nodiscard]] static std::size_t max_tokens(const Model& model) noexcept {
    return model.config().encodes ? std::min(model.n_ctx(), model.chunk()) : model.n_ctx();
  }

  /// Adds a text of 1 to max_tokens() tokens, ids below n_vocab, with options that row_width() accepts. `out`
  /// has row_width() numbers, with each_token as many for each token. Tokens and `out` must live until the
  /// text is completed or removed.
  void add(Owner owner, std::span<const TokenId> tokens, const RowOptions& options, std::span<float> out) {
    MICA_ASSERT(!tokens.empty() && tokens.size() <= max_tokens(*model_));
    waiting_.push_back({owner, tokens, options, out});
  }
  /// The texts of a request leave.
  void remove(Owner owner) {
    const auto its = [owner](const Slot& slot) { return slot.text.owner == owner; };
    for (const Slot& slot : slots_)
      if (its(slot)) release(slot);
    std::erase_if(slots_, its);
    std::erase_if(waiting_, [owner](const Text& text) { return text.owner == owner; });
  }
  /// All texts leave.
  void clear() {
    for (const Slot& slot : slots_) release(slot);
    slots_.clear();
    waiting_.clear();
  }
  /// Frees the memory of caches that no text has, where there is none.
  void free_caches() {
    if (!slots_.empty()) return;
    caches_.clear();
    free_.clear();
    pooled_ = {};
  }
  [[nodiscard]] bool empty() const noexcept { return slots_.empty() && waiting_.empty(); }

  /// One step of texts in their order. It has at most max_tokens tokens, and the tiles of keys and values
  /// that they fill. A longer text that cannot be divided is run alone, as a whole. Where the status is not
  /// ok, completed() is empty, rows may be written in part, and the next step starts its texts from their
  /// first token. Raises ErrorCode::budget when no cache can be made. Requires !empty().
  [[nodiscard]] model::StepStatus step(std::size_t max_tokens = std::numeric_limits<std::size_t>::max()) {
    completed_.clear();
    last_tokens_ = 0;
    fill(max_tokens);
    const model::StepStatus status = run();
    if (status == model::StepStatus::ok) return status;
    completed_.clear();
    for (Slot& slot : slots_) restart(slot);
    return status;
  }
  /// The requests of the rows that the last step completed: one for each row.
  [[nodiscard]] std::span<const Owner> completed() const noexcept { return completed_; }
  [[nodiscard]] std::size_t last_tokens() const noexcept { return last_tokens_; }  // of the last step

 private:
  using Cache = typename Model::Cache;

  struct Text {
    Owner owner = 0;
    std::span<const TokenId> tokens;  // all of them
    RowOptions options;
    std::span<float> out;
  };
  /// A text on its way.
  struct Slot {
    Text text;
    std::size_t cache = 0;  // the cache that it has
    std::size_t done = 0;   // tokens that steps have run
    std::size_t now = 0;    // tokens of the step
  };

  /// The next step: texts on their way, then new ones while it has room for their tiles.
  void fill(std::size_t max_tokens) {
    const bool whole = model_->config().encodes;
    std::size_t tokens = std::min(std::max<std::size_t>(max_tokens, 1), model_->chunk());
    std::size_t tiles = tiles_of(tokens);  // both: that are left
    const auto take = [&](Slot& slot) {
      const std::size_t rest = slot.text.tokens.size() - slot.done;
      slot.now = whole ? rest : std::min({rest, tokens, tiles * format::tile_tokens});
      tokens -= std::min(tokens, slot.now);
      tiles -= std::min(tiles, tiles_of(slot.now));
    };
    for (Slot& slot : slots_) take(slot);
    while (tokens > 0 && tiles > 0 && !waiting_.empty() && slots_.size() < max_texts_) {
      const std::size_t n = waiting_.front().tokens.size();
      if (whole && (n > tokens || tiles_of(n) > tiles) && !slots_.empty()) return;
      slots_.push_back({waiting_.front(), take_cache(), 0, 0});
      waiting_.pop_front();
      take(slots_.back());
      std::fill_n(pooled(slots_.back()), model_->config().width, 0.0f);
    }
  }
  [[nodiscard]] static std::size_t tiles_of(std::size_t tokens) noexcept {
    return ceil_div(tokens, format::tile_tokens);
  }
  [[nodiscard]] model::StepStatus run() {
    parts_.clear();
    for (const Slot& slot : slots_) {
      if (slot.now != 0)
        parts_.push_back({&caches_[slot.cache], slot.text.tokens.subspan(slot.done, slot.now)});
    }
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
    if (!finish()) return model::StepStatus::read_failed;
    last_tokens_ = row;
    return model::StepStatus::ok;
  }
  [[nodiscard]] arch::Pooling pooling_of(const Text& text) const noexcept {
    return text.options.pooling.value_or(model_->config().pooling);
  }
  /// Takes states of a text into its pooled row: the sum goes over them in order, so that it does not depend
  /// on the steps.
  void pool(const Slot& slot, MatrixView<const float> states) noexcept {
    const std::size_t width = states.cols(), n = states.rows();
    if (slot.text.options.each_token) {
      for (std::size_t t = 0; t < n; ++t)
        std::copy_n(states[t].data(), width, slot.text.out.data() + (slot.done + t) * width);
      return;
    }
    float* const row = pooled(slot);
    const arch::Pooling pooling = pooling_of(slot.text);
    if (pooling == arch::Pooling::mean) {
      for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t k = 0; k < width; ++k) row[k] += states[t][k];
      }
    } else if (n != 0 && (pooling == arch::Pooling::last || slot.done == 0)) {
      std::copy_n(states[pooling == arch::Pooling::last ? n - 1 : 0].data(), width, row);
    }
  }
  /// Rows of the texts that are complete.
  [[nodiscard]] bool finish() {
    for (const Slot& slot : slots_) {
      if (is_complete(slot) && !slot.text.options.each_token && !write(slot)) return false;
    }
    for (const Slot& slot : slots_) {
      if (!is_complete(slot)) continue;
      completed_.push_back(slot.text.owner);
      release(slot);
    }
    std::erase_if(slots_, [](const Slot& slot) { return is_complete(slot); });
    return true;
  }
  [[nodiscard]] static bool is_complete(const Slot& slot) noexcept {
    return slot.done == slot.text.tokens.size();
  }
  [[nodiscard]] bool write(const Slot& slot) {
    const arch::Config& config = model_->config();
    const MatrixView<float> row(pooled(slot), 1, config.width);
    if (pooling_of(slot.text) == arch::Pooling::mean) {
      for (float& x : row[0]) x /= static_cast<float>(slot.text.tokens.size());
    }
    MatrixView<float> all = row;
    if (!config.dense.empty()) {
      projected_.resize(model_->pooled_width());
      all = {projected_.data(), 1, projected_.size()};
      if (!model_->project_pooled(row, all)) return false;
    }
    const std::span<float> out = slot.text.out;
    std::copy_n(all[0].data(), out.size(), out.data());
    if (config.probabilities) {
      softmax(out);
    } else if (slot.text.options.normalize && !config.ranks) {
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
      pooled_.resize(caches_.size() * model_->config().width);
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
  void restart(Slot& slot) {
    caches_[slot.cache].rewind(0);
    slot.done = 0;
    std::fill_n(pooled(slot), model_->config().width, 0.0f);
  }

  Model* model_;
  std::size_t max_texts_;
  std::deque<Text> waiting_ = {};
  std::vector<Slot> slots_ = {};
  std::vector<Cache> caches_ = {};
  std::vector<std::size_t> free_ = {};  // caches that no text has
  std::vector<typename Model::SequenceStep> parts_ = {};
  std::vector<float> pooled_ = {};     // (caches, width of the model)
  std::vector<float> projected_ = {};  // (pooled_width)
  std::vector<Owner> completed_ = {};
  std::size_t last_tokens_ = 0;
};

}  // namespace mica
