// SPDX-License-Identifier: Apache-2.0
//
// Texts become rows of numbers: embeddings, or the scores of a reranker. Texts of any lengths share a step,
// without padding, and each gets the bits that it gets alone (runtime/embed_batch.hpp).
//
//   tokens of texts -> steps -> states -> pooling -> dense layers -> first numbers -> length 1
//
// It has ids and no text; text/tokenizer.hpp makes them.
#pragma once

#include "mica/base/matrix_view.hpp"
#include "mica/base/token_id.hpp"
#include "mica/runtime/concept.hpp"
#include "mica/runtime/embed_batch.hpp"

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>

namespace mica {

/// How states become a row.
struct EmbedderOptions {
  std::optional<arch::Pooling> pooling = {};  // empty: as the file says
  std::size_t dims = 0;    // the first numbers of an embedding are kept (Matryoshka); 0: all
  bool normalize = true;   // embeddings are brought to the length 1; scores never are
  std::size_t texts = 64;  // of one step at most, and 1 at least; each has a cache
  const std::atomic<bool>* cancel = nullptr;  // read before each step; set: embed() ends
};

/// Embeds texts with one model, which has no other sequences in the same step. One thread at a time.
template <EncodingModel Model>
class Embedder {
 public:
  /// The model outlives it. Raises as row_width().
  explicit Embedder(Model& model, const EmbedderOptions& options = {})
      : model_(&model),
        rows_{options.pooling, options.dims, options.normalize},
        width_(row_width(model, rows_)),
        batch_(model, options.texts),
        cancel_(options.cancel) {}

  [[nodiscard]] std::size_t width() const noexcept { return width_; }           // numbers of a row
  [[nodiscard]] bool ranks() const noexcept { return model_->config().ranks; }  // rows are scores
  /// Tokens of the longest text that it takes.
  [[nodiscard]] std::size_t max_tokens() const noexcept { return EmbedBatch<Model>::max_tokens(*model_); }

  /// Row i of out becomes that of texts[i]: (texts, width()). Texts have [1, max_tokens()] tokens, ids below
  /// n_vocab. Not ok: some rows are not written, and no text is left in a cache. Where it was cancelled, the
  /// same is true, the status is ok, and complete() is false. Raises what EmbedBatch::step() raises.
  [[nodiscard]] model::StepStatus embed(std::span<const std::span<const TokenId>> texts,
                                        MatrixView<float> out) {
    struct Clears {  // texts and rows belong to the caller, also where a step raises
      EmbedBatch<Model>& batch;
      ~Clears() { batch.clear(); }
    } const clears{batch_};
    complete_ = false;
    for (std::size_t i = 0; i < texts.size(); ++i) batch_.add(0, texts[i], rows_, out[i]);
    model::StepStatus status = model::StepStatus::ok;
    while (status == model::StepStatus::ok && !batch_.empty()) {
      if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) break;
      status = batch_.step();
    }
    complete_ = status == model::StepStatus::ok && batch_.empty();
    return status;
  }
  /// One text; out: (width()).
  [[nodiscard]] model::StepStatus embed(std::span<const TokenId> text, std::span<float> out) {
    return embed(std::span(&text, 1), MatrixView<float>(out.data(), 1, out.size()));
  }
  /// Whether the last embed() wrote all rows.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

 private:
  Model* model_;
  RowOptions rows_;
  std::size_t width_;
  EmbedBatch<Model> batch_;
  const std::atomic<bool>* cancel_;
  bool complete_ = false;
};

}  // namespace mica
