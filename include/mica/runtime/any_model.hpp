// SPDX-License-Identifier: Apache-2.0
//
// A model whose type is known to the file alone: one virtual call per step. It hides one type, the
// Transformer that mica::open() makes, so that code that uses open models does not compile that Transformer:
// a unit that feeds a session compiles in 5 s to 15 KB on AnyModel, in 17 s to 530 KB on the Transformer of
// all families.
#pragma once

#include "mica/runtime/concept.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mica {

/// Made by of(); BasicTransformer documents the functions. Threads: as BasicTransformer.
class AnyModel {
  struct CacheBase {
    virtual ~CacheBase() = default;
    virtual std::size_t rewind(std::size_t count) noexcept = 0;
    virtual std::size_t adopt(const CacheBase& other, std::size_t count) noexcept = 0;
    virtual bool park() noexcept = 0;
    virtual void trim() noexcept = 0;
  };

 public:
  /// A cache of the storage that the model has.
  class Cache {
   public:
    std::size_t tokens = 0;  // of the sequence so far

    // Required by SequenceStore
    std::size_t rewind(std::size_t count) noexcept { return tokens = base_->rewind(count); }
    std::size_t adopt(const Cache& other, std::size_t count) noexcept {
      return tokens = base_->adopt(*other.base_, count);
    }
    bool park() noexcept { return base_->park(); }
    void trim() noexcept { base_->trim(); }

   private:
    friend class AnyModel;
    explicit Cache(std::unique_ptr<CacheBase> base) noexcept : base_(std::move(base)) {}
    std::unique_ptr<CacheBase> base_;
  };
  using SequenceStep = model::SequenceStep<Cache>;  // for the step of several sequences

  /// Hides the model T that `make()` returns.
  template <ResizableModel T, class Make>
  [[nodiscard]] static std::unique_ptr<AnyModel> of(Make&& make) {
    return std::make_unique<Of<T>>(std::forward<Make>(make));
  }
  virtual ~AnyModel() = default;

  // Required by SequenceStore
  [[nodiscard]] virtual Cache make_cache() const = 0;
  [[nodiscard]] virtual std::size_t kv_capacity() const noexcept = 0;
  [[nodiscard]] virtual kv::SnapshotInfo describe(const Cache& cache) const = 0;
  virtual void save(Cache& cache, kv::SnapshotWriter& out) const = 0;
  virtual void check_saved(const kv::SnapshotReader& in) const = 0;
  [[nodiscard]] virtual model::StepStatus load(Cache& cache, const kv::SnapshotReader& in,
                                               std::size_t count) const = 0;

  // Required by StepModel
  [[nodiscard]] virtual const arch::Config& config() const noexcept = 0;
  [[nodiscard]] virtual std::size_t n_ctx() const noexcept = 0;
  [[nodiscard]] virtual std::size_t chunk() const noexcept = 0;
  [[nodiscard]] virtual std::size_t logits_rows() const noexcept = 0;
  [[nodiscard]] virtual model::StepStatus step(Cache& cache, std::span<const TokenId> tokens) noexcept = 0;
  virtual model::StepResult step(std::span<const SequenceStep> parts) noexcept = 0;
  [[nodiscard]] virtual std::uint64_t step_count() const noexcept = 0;
  [[nodiscard]] virtual MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept = 0;
  [[nodiscard]] virtual MatrixView<const float> best_logits(std::span<const std::size_t> rows,
                                                            std::size_t count) noexcept = 0;
  [[nodiscard]] virtual std::size_t first_non_finite_layer(Cache& cache, TokenId token) noexcept = 0;

  // Required by ResizableModel
  [[nodiscard]] virtual paging::WeightCapacity weight_capacity() const noexcept = 0;
  virtual bool resize_weights(std::uint64_t bytes) = 0;
  virtual std::uint64_t yield_weights(std::uint64_t bytes) noexcept = 0;
  virtual void halt(bool halted) noexcept = 0;
  [[nodiscard]] virtual std::chrono::microseconds layer_time() noexcept = 0;
  [[nodiscard]] virtual std::size_t kv_bytes_per_tile() const = 0;
  [[nodiscard]] virtual std::size_t max_chunk() const noexcept = 0;
  virtual bool set_chunk(std::size_t tokens) = 0;

  // Required by MtpModel
  [[nodiscard]] virtual bool embed(std::span<const TokenId> tokens, MatrixView<float> rows) noexcept = 0;
  [[nodiscard]] virtual std::span<const float> hidden(std::size_t row) noexcept = 0;
  [[nodiscard]] virtual MatrixView<float> mtp_input(std::size_t n) noexcept = 0;
  /// head: of the same of().
  [[nodiscard]] virtual std::span<const float> logits_of(AnyModel& head, std::size_t row,
                                                         std::size_t count) noexcept = 0;

  // Required by EncodingModel
  [[nodiscard]] virtual MatrixView<const float> states() noexcept = 0;
  [[nodiscard]] virtual std::size_t pooled_width() const noexcept = 0;
  [[nodiscard]] virtual bool project_pooled(MatrixView<const float> x, MatrixView<float> y) noexcept = 0;

  // Specific to AnyModel
  /// As mica::takes_drafts(), of the model inside.
  [[nodiscard]] virtual bool takes_drafts() const noexcept = 0;
  /// Bytes of all weights, the bytes of them that a step reads from files, and all reads so far.
  [[nodiscard]] virtual std::uint64_t weight_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t streamed_bytes() const noexcept = 0;
  [[nodiscard]] virtual paging::Reads reads() const noexcept = 0;

 private:
  template <class T>
  struct CacheOf;
  template <class T>
  class Of;
};

template <class T>
struct AnyModel::CacheOf final : CacheBase {
  explicit CacheOf(typename T::Cache made) : cache(std::move(made)) {}
  [[nodiscard]] static typename T::Cache& in(const Cache& any) noexcept {
    return static_cast<CacheOf&>(*any.base_).cache;
  }

  std::size_t rewind(std::size_t count) noexcept override { return cache.rewind(count); }
  std::size_t adopt(const CacheBase& other, std::size_t count) noexcept override {
    return cache.adopt(static_cast<const CacheOf&>(other).cache, count);
  }
  bool park() noexcept override { return cache.park(); }
  void trim() noexcept override { cache.trim(); }

  typename T::Cache cache;
};

template <class T>
class AnyModel::Of final : public AnyModel {
  using Inner = CacheOf<T>;

 public:
  template <class Make>
  explicit Of(Make&& make) : model_(make()) {
    parts_.reserve(model_.chunk());
  }

  Cache make_cache() const override { return Cache(std::make_unique<Inner>(model_.make_cache())); }
  std::size_t kv_capacity() const noexcept override { return model_.kv_capacity(); }
  kv::SnapshotInfo describe(const Cache& cache) const override { return model_.describe(Inner::in(cache)); }
  void save(Cache& cache, kv::SnapshotWriter& out) const override { model_.save(Inner::in(cache), out); }
  void check_saved(const kv::SnapshotReader& in) const override { model_.check_saved(in); }
  model::StepStatus load(Cache& cache, const kv::SnapshotReader& in, std::size_t count) const override {
    const model::StepStatus status = model_.load(Inner::in(cache), in, count);
    cache.tokens = Inner::in(cache).tokens;
    return status;
  }
  const arch::Config& config() const noexcept override { return model_.config(); }
  std::size_t n_ctx() const noexcept override { return model_.n_ctx(); }
  std::size_t chunk() const noexcept override { return model_.chunk(); }
  std::size_t logits_rows() const noexcept override { return model_.logits_rows(); }
  model::StepStatus step(Cache& cache, std::span<const TokenId> tokens) noexcept override {
    const SequenceStep part{&cache, tokens};
    return step(std::span(&part, 1)).status;
  }
  model::StepResult step(std::span<const SequenceStep> parts) noexcept override {
    parts_.clear();
    for (const SequenceStep& part : parts)
      parts_.push_back({&Inner::in(*part.cache), part.tokens, part.drafts, part.checkpoint});
    const model::StepResult status = model_.step(parts_);
    for (const SequenceStep& part : parts) part.cache->tokens = Inner::in(*part.cache).tokens;
    return status;
  }
  std::uint64_t step_count() const noexcept override { return model_.step_count(); }
  MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept override {
    return model_.logits(rows);
  }
  MatrixView<const float> best_logits(std::span<const std::size_t> rows,
                                      std::size_t count) noexcept override {
    return mica::logits_of(model_, rows, count);
  }
  std::size_t first_non_finite_layer(Cache& cache, TokenId token) noexcept override {
    return model_.first_non_finite_layer(Inner::in(cache), token);
  }
  bool embed(std::span<const TokenId> tokens, MatrixView<float> rows) noexcept override {
    if constexpr (MtpModel<T>) return model_.embed(tokens, rows);
    return false;
  }
  std::span<const float> hidden(std::size_t row) noexcept override {
    if constexpr (MtpModel<T>) return model_.hidden(row);
    return {};
  }
  MatrixView<float> mtp_input(std::size_t n) noexcept override {
    if constexpr (MtpModel<T>) return model_.mtp_input(n);
    return {};
  }
  std::span<const float> logits_of(AnyModel& head, std::size_t row, std::size_t count) noexcept override {
    if constexpr (MtpModel<T>) return model_.logits_of(static_cast<Of&>(head).model_, row, count);
    return {};
  }
  MatrixView<const float> states() noexcept override {
    if constexpr (EncodingModel<T>) return model_.states();
    return {};
  }
  std::size_t pooled_width() const noexcept override {
    if constexpr (EncodingModel<T>) return model_.pooled_width();
    return 0;
  }
  bool project_pooled(MatrixView<const float> x, MatrixView<float> y) noexcept override {
    if constexpr (EncodingModel<T>) return model_.project_pooled(x, y);
    return false;
  }
  paging::WeightCapacity weight_capacity() const noexcept override { return model_.weight_capacity(); }
  bool resize_weights(std::uint64_t bytes) override { return model_.resize_weights(bytes); }
  std::uint64_t yield_weights(std::uint64_t bytes) noexcept override { return model_.yield_weights(bytes); }
  void halt(bool halted) noexcept override { model_.halt(halted); }
  std::chrono::microseconds layer_time() noexcept override { return model_.layer_time(); }
  std::size_t kv_bytes_per_tile() const override { return model_.kv_bytes_per_tile(); }
  std::size_t max_chunk() const noexcept override { return model_.max_chunk(); }
  bool set_chunk(std::size_t tokens) override { return model_.set_chunk(tokens); }
  bool takes_drafts() const noexcept override { return mica::takes_drafts(model_); }
  std::uint64_t weight_bytes() const noexcept override { return model_.weight_bytes(); }
  std::uint64_t streamed_bytes() const noexcept override { return model_.streamed_bytes(); }
  paging::Reads reads() const noexcept override { return model_.reads(); }

 private:
  T model_;
  std::vector<model::SequenceStep<typename T::Cache>> parts_;  // as many as a step has tokens
};

static_assert(ResizableModel<AnyModel> && MtpModel<AnyModel> && EncodingModel<AnyModel>);

}  // namespace mica
