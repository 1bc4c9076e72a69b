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

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mica {

/// A model with sequences, each in a cache. A model without files inherits runtime::Unsaved; a cache without
/// shared pages and parking inherits runtime::PlainCache.
/// kv_capacity(): the maximum of resident tokens; 0: all. rewind(): returns the remaining tokens. adopt():
/// returns the tokens that it has of another one; 0: none are shared. park(): whether it was written to a
/// file. trim(): frees memory that no token uses. describe(): the description of a file, without tokens and
/// note. check_saved(): raises where the file is of another model.
// clang-format off
template <class M>
concept SequenceStore = requires(const M& model, typename M::Cache& cache, const typename M::Cache& other,
                                 std::size_t count, kv::SnapshotWriter& out, const kv::SnapshotReader& in) {
  { model.make_cache() } -> std::same_as<typename M::Cache>;
  { model.kv_capacity() } noexcept -> std::same_as<std::size_t>;
  { cache.tokens } -> std::convertible_to<std::size_t>;
  { cache.rewind(count) } noexcept -> std::same_as<std::size_t>;
  { cache.adopt(other, count) } noexcept -> std::same_as<std::size_t>;
  { cache.park() } noexcept -> std::same_as<bool>;
  { cache.trim() } noexcept;
  { model.describe(other) } -> std::same_as<kv::SnapshotInfo>;
  { model.save(cache, out) };
  { model.check_saved(in) };
  { model.load(cache, in, count) } -> std::same_as<model::StepStatus>;
};

/// A model that runs tokens of one sequence, or of several in one step, and computes logits after them.
/// step_count(): grows when the hidden states of the last step are lost. One thread at a time.
template <class M>
concept StepModel = SequenceStore<M> &&
    requires(M& model, const M& constant, typename M::Cache& cache, TokenId token,
             std::span<const TokenId> tokens, std::span<const std::size_t> rows,
             std::span<const model::SequenceStep<typename M::Cache>> parts) {
  { constant.config() } noexcept -> std::same_as<const arch::Config&>;
  { constant.n_ctx() } noexcept -> std::same_as<std::size_t>;
  { constant.chunk() } noexcept -> std::same_as<std::size_t>;
  { constant.logits_rows() } noexcept -> std::same_as<std::size_t>;
  { model.step(cache, tokens) } noexcept -> std::same_as<model::StepStatus>;
  { model.step(parts) } noexcept -> std::same_as<model::StepResult>;
  { constant.step_count() } noexcept -> std::same_as<std::uint64_t>;
  { model.logits(rows) } noexcept -> std::same_as<MatrixView<const float>>;
  { model.first_non_finite_layer(cache, token) } noexcept -> std::same_as<std::size_t>;
};

/// A model that can free weights and scratch between two steps, for a governor (runtime/governed.hpp).
template <class M>
concept ResizableModel = StepModel<M> &&
    requires(M& model, const M& constant, std::uint64_t bytes, std::size_t tokens) {
  { constant.weight_capacity() } noexcept -> std::same_as<paging::WeightCapacity>;
  { model.resize_weights(bytes) } -> std::same_as<bool>;
  { constant.max_chunk() } noexcept -> std::same_as<std::size_t>;
  { model.set_chunk(tokens) } -> std::same_as<bool>;
};
// clang-format on

namespace runtime {

/// The base of a cache that shares nothing, cannot be parked and has no memory to free.
struct PlainCache {
  std::size_t tokens = 0;

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
