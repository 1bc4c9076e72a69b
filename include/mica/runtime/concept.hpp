// SPDX-License-Identifier: Apache-2.0
//
// What sessions need of a model: BasicTransformer has it, and AnyModel, which hides its type.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/base/error.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/base/token_id.hpp"
#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/model/sequence_step.hpp"
#include "mica/paging/concept.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mica {

/// A model with sequences, each in a cache. A model without files inherits runtime::Unsaved; a cache without
/// shared pages and parking inherits runtime::PlainCache.
// clang-format off
template <class M>
concept SequenceStore = requires(const M& model, typename M::Cache& cache, const typename M::Cache& other,
                                 std::size_t count, kv::SnapshotWriter& out, const kv::SnapshotReader& in) {
  { model.make_cache() } -> std::same_as<typename M::Cache>;             // an empty one; raises `budget`
  { model.kv_capacity() } noexcept -> std::same_as<std::size_t>;         // max resident tokens; 0: all
  { cache.tokens } -> std::convertible_to<std::size_t>;                  // of the sequence so far
  { cache.rewind(count) } noexcept -> std::same_as<std::size_t>;         // tokens that remain: count or fewer
  { cache.adopt(other, count) } noexcept -> std::same_as<std::size_t>;   // tokens that it has now; 0: none
  { cache.park() } noexcept -> std::same_as<bool>;                       // whether a file has it now
  { cache.trim() } noexcept;                                             // frees memory without tokens
  { model.describe(other) } -> std::same_as<kv::SnapshotInfo>;           // a file's, without tokens and note
  { model.save(cache, out) };                                            // as describe() announced
  { model.check_saved(in) };                                             // raises for a file of another model
  { model.load(cache, in, count) } -> std::same_as<model::StepStatus>;   // the first count tokens, or fewer
};

/// A model that runs tokens of one sequence, or of several in one step, and computes logits after them.
/// One thread at a time.
template <class M>
concept StepModel = SequenceStore<M> &&
    requires(M& model, const M& constant, typename M::Cache& cache, TokenId token,
             std::span<const TokenId> tokens, std::span<const std::size_t> rows,
             std::span<const model::SequenceStep<typename M::Cache>> parts) {
  { constant.config() } noexcept -> std::same_as<const arch::Config&>;        // its numbers
  { constant.n_ctx() } noexcept -> std::same_as<std::size_t>;                 // max tokens of a cache
  { constant.chunk() } noexcept -> std::same_as<std::size_t>;                 // max tokens of a step
  { constant.logits_rows() } noexcept -> std::same_as<std::size_t>;           // max rows of logits()
  { model.step(cache, tokens) } noexcept -> std::same_as<model::StepStatus>;  // [1, chunk()] tokens
  { model.step(parts) } noexcept -> std::same_as<model::StepResult>;          // [1, chunk()] tokens in all
  { constant.step_count() } noexcept -> std::same_as<std::uint64_t>;          // another when logits are lost
  { model.logits(rows) } noexcept -> std::same_as<MatrixView<const float>>;   // (rows, n_vocab), or empty
  { model.first_non_finite_layer(cache, token) } noexcept -> std::same_as<std::size_t>;  // layers: all finite
};


/// A model that computes the best logits of each row sooner than all, as one of several ranks. The others are
/// finite and not above these, unless a number of the row is not finite: then one such is among them.
template <class M>
concept SelectiveModel = StepModel<M> &&
    requires(M& model, std::span<const std::size_t> rows, std::size_t count) {
  { model.best_logits(rows, count) } noexcept -> std::same_as<MatrixView<const float>>;  // as logits()
};
// clang-format on

/// The logits of rows of which the best `best` are looked at; 0: all.
template <StepModel M>
[[nodiscard]] MatrixView<const float> logits_of(M& model, std::span<const std::size_t> rows,
                                                [[maybe_unused]] std::size_t best) noexcept {
  if constexpr (SelectiveModel<M>) {
    if (best != 0) return model.best_logits(rows, best);
  }
  return model.logits(rows);
}

/// Whether a model takes drafts back without a step of its own: one with a recurrent state needs
/// takes_drafts() to say so.
template <StepModel M>
[[nodiscard]] bool takes_drafts(const M& model) noexcept {
  if constexpr (requires {
                  { model.takes_drafts() }
                  noexcept->std::same_as<bool>;
                }) {
    return model.takes_drafts();
  } else {
    return !model.config().recurrent();
  }
}

namespace detail {

/// The end of a sentence about drafts on a model that does not take them.
[[nodiscard]] inline std::string keeps_state(std::string_view arch) {
  return join(arch, " keeps a recurrent state: open it with OpenOptions::drafts (ModelOptions::drafts)");
}

}  // namespace detail

// clang-format off
/// A model that can free weights and scratch, for a governor (runtime/governed.hpp): between two steps, and
/// from another thread at any moment with yield_weights() and halt().
template <class M>
concept ResizableModel = StepModel<M> &&
    requires(M& model, const M& constant, std::uint64_t bytes, std::size_t tokens, bool halted) {
  { constant.weight_capacity() } noexcept -> std::same_as<paging::WeightCapacity>;  // all 0: fixed
  { model.resize_weights(bytes) } -> std::same_as<bool>;           // false: less is resident than that allows
  { model.yield_weights(bytes) } noexcept -> std::same_as<std::uint64_t>;  // bytes that were freed
  { model.halt(halted) } noexcept;                                         // true: steps end with no_memory
  { model.layer_time() } noexcept -> std::same_as<std::chrono::microseconds>;  // that halt() may wait
  { constant.kv_bytes_per_tile() } -> std::same_as<std::size_t>;   // that 16 more tokens of a sequence take
  { constant.max_chunk() } noexcept -> std::same_as<std::size_t>;  // chunk(), as the model was opened
  { model.set_chunk(tokens) } -> std::same_as<bool>;               // [1, max_chunk()]; false: nothing changed
};
// clang-format on

// clang-format off
/// A model that may be the trunk of a head for multi-token prediction, or that head
/// (runtime/mtp_drafter.hpp).
template <class M>
concept MtpModel = StepModel<M> &&
    requires(M& model, M& head, std::span<const TokenId> tokens, MatrixView<float> rows, std::size_t n) {
  { model.embed(tokens, rows) } noexcept -> std::same_as<bool>;         // embeddings, (tokens, width)
  { model.hidden(n) } noexcept -> std::same_as<std::span<const float>>;  // of row n of the last step, (width)
  { model.mtp_input(n) } noexcept -> std::same_as<MatrixView<float>>;    // that a head reads, (n, 2 * width)
  { model.logits_of(head, n, n) } noexcept -> std::same_as<std::span<const float>>;  // of a row of the head
};
// clang-format on

// clang-format off
/// A model that embeds texts (runtime/embedder.hpp).
template <class M>
concept EncodingModel = StepModel<M> &&
    requires(M& model, const M& constant, MatrixView<const float> x, MatrixView<float> y) {
  { model.states() } noexcept -> std::same_as<MatrixView<const float>>;    // of the last step, (n, width)
  { constant.pooled_width() } noexcept -> std::same_as<std::size_t>;       // behind the dense layers
  { model.project_pooled(x, y) } noexcept -> std::same_as<bool>;           // the dense layers; false: not read
};
// clang-format on

namespace runtime {

/// The base of a cache that shares nothing, cannot be parked and has no memory to free.
struct PlainCache {
  std::size_t tokens = 0;  // of the sequence so far

  // Required by SequenceStore
  std::size_t rewind(std::size_t count) noexcept { return tokens = count; }
  std::size_t adopt(const PlainCache& /*other*/, std::size_t /*count*/) noexcept { return 0; }
  bool park() noexcept { return false; }
  void trim() noexcept {}
};

/// The base of a model that evicts no tokens and saves none to a file.
class Unsaved {
 public:
  // Required by SequenceStore
  [[nodiscard]] std::size_t kv_capacity() const noexcept { return 0; }
  template <class Cache>
  [[nodiscard]] kv::SnapshotInfo describe(const Cache& /*cache*/) const {
    refuse();
  }
  template <class Cache>
  void save(Cache& /*cache*/, kv::SnapshotWriter& /*out*/) const {
    refuse();
  }
  void check_saved(const kv::SnapshotReader& /*in*/) const { refuse(); }
  template <class Cache>
  [[nodiscard]] model::StepStatus load(Cache& /*cache*/, const kv::SnapshotReader& /*in*/,
                                       std::size_t /*count*/) const {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    raise(ErrorCode::unsupported, "sessions of this model cannot be saved");
  }
};

}  // namespace runtime
}  // namespace mica
