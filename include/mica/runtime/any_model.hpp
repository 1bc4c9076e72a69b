// SPDX-License-Identifier: Apache-2.0
//
// A Transformer whose type is known to the file alone: one virtual call per step. A library user who knows
// his model keeps the concrete type; sessions work on either.
#pragma once

#include "mica/model/transformer.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mica {

/// What a session needs of a model: BasicTransformer, or AnyModel.
// clang-format off
template <class M>
concept StepModel = requires(M& model, const M& constant, typename M::Cache& cache, TokenId token,
                             std::span<const TokenId> tokens, std::span<const std::size_t> rows) {
  { constant.config() } noexcept -> std::same_as<const arch::Config&>;
  { constant.n_ctx() } noexcept -> std::same_as<std::size_t>;
  { constant.chunk() } noexcept -> std::same_as<std::size_t>;
  { constant.logits_rows() } noexcept -> std::same_as<std::size_t>;
  { constant.make_cache() } -> std::same_as<typename M::Cache>;
  { model.step(cache, tokens) } noexcept -> std::same_as<model::StepStatus>;
  { constant.step_count() } noexcept -> std::same_as<std::uint64_t>;  // grows when the last rows are lost
  { model.logits(rows) } noexcept -> std::same_as<MatrixView<const float>>;
  { model.first_non_finite_layer(cache, token) } noexcept -> std::same_as<std::size_t>;
  { cache.tokens } -> std::convertible_to<std::size_t>;
  { cache.rewind(std::size_t{}) } noexcept -> std::same_as<std::size_t>;  // tokens that it still holds
};

/// What several sessions that step together need of it.
template <class M>
concept BatchModel = StepModel<M> && requires(M& model, std::span<const typename M::Part> parts) {
  requires std::same_as<typename M::Part, model::Part<typename M::Cache>>;
  { model.step(parts) } noexcept -> std::same_as<model::PartsStatus>;
};
/// What sessions that begin alike need of it: caches that take over each other's first tokens (KvCache::adopt).
template <class M>
concept SharingModel = StepModel<M> && requires(typename M::Cache& cache, const typename M::Cache& other) {
  { cache.adopt(other, std::size_t{}) } noexcept -> std::same_as<std::size_t>;
};
/// What drafts need of one that forgets tokens: how many it holds, 0 where it forgets none.
template <class M>
concept ForgettingModel = StepModel<M> && requires(const M& model) {
  { model.kv_keep() } noexcept -> std::same_as<std::size_t>;
};
/// What sessions that are saved and opened need of it.
template <class M>
concept SavingModel = StepModel<M> && requires(const M& model, typename M::Cache& cache, kv::SnapshotWriter& out,
                                               const kv::SnapshotReader& in, std::size_t count) {
  { model.describe(cache) } -> std::same_as<kv::SnapshotInfo>;
  { model.save(cache, out) };
  { model.check_saved(in) };
  { model.load(cache, in, count) } -> std::same_as<model::StepStatus>;
};
/// What a governor needs of it (runtime/governed.hpp): weights, scratch and caches that give memory back between steps.
template <class M>
concept YieldingModel = StepModel<M> && requires(M& model, const M& constant, typename M::Cache& cache,
                                                 std::uint64_t bytes, std::size_t tokens) {
  { constant.weight_room() } noexcept -> std::same_as<paging::WeightRoom>;
  { model.resize_weights(bytes) } -> std::same_as<bool>;
  { constant.most_chunk() } noexcept -> std::same_as<std::size_t>;
  { model.set_chunk(tokens) } -> std::same_as<bool>;
  { cache.trim() } noexcept;
};
/// What sessions that wait need of it: caches that leave memory (KvCache::park).
template <class M>
concept ParkingModel = StepModel<M> && requires(typename M::Cache& cache) {
  { cache.park() } noexcept -> std::same_as<bool>;
};
// clang-format on

class AnyModel {
  struct CacheBase {
    virtual ~CacheBase() = default;
    virtual std::size_t rewind(std::size_t count) noexcept = 0;
    virtual std::size_t adopt(const CacheBase& other, std::size_t count) noexcept = 0;
    virtual bool park() noexcept = 0;
    virtual void trim() noexcept = 0;
    virtual std::size_t tokens() const noexcept = 0;
  };

 public:
  /// A cache of whatever storage the model has.
  class Cache {
   public:
    std::size_t tokens = 0;

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
  using Part = model::Part<Cache>;

  /// Takes a Transformer that `make()` returns. make_cache(transformer) makes a cache for it.
  template <class T, class Make, class MakeCache>
  [[nodiscard]] static AnyModel of(Make&& make, MakeCache make_cache) {
    return AnyModel(std::make_unique<Holder<T, MakeCache>>(std::forward<Make>(make), std::move(make_cache)));
  }

  [[nodiscard]] const arch::Config& config() const noexcept { return model_->config(); }
  [[nodiscard]] std::size_t n_ctx() const noexcept { return model_->n_ctx(); }
  [[nodiscard]] std::size_t chunk() const noexcept { return model_->chunk(); }
  [[nodiscard]] std::size_t most_chunk() const noexcept { return model_->most_chunk(); }
  bool set_chunk(std::size_t tokens) { return model_->set_chunk(tokens); }
  [[nodiscard]] std::size_t logits_rows() const noexcept { return model_->logits_rows(); }
  [[nodiscard]] std::uint64_t weight_bytes() const noexcept { return model_->weight_bytes(); }
  [[nodiscard]] paging::Reads reads() const noexcept { return model_->reads(); }
  /// Of weights, that each step reads.
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept { return model_->streamed_bytes(); }
  [[nodiscard]] std::size_t kv_keep() const noexcept { return model_->kv_keep(); }
  [[nodiscard]] paging::WeightRoom weight_room() const noexcept { return model_->weight_room(); }
  bool resize_weights(std::uint64_t bytes) { return model_->resize_weights(bytes); }
  [[nodiscard]] Cache make_cache() const { return Cache(model_->make_cache()); }
  [[nodiscard]] model::StepStatus step(Cache& cache, std::span<const text::TokenId> tokens) noexcept {
    const model::StepStatus status = model_->step(*cache.base_, tokens);
    cache.tokens = cache.base_->tokens();
    return status;
  }
  [[nodiscard]] model::PartsStatus step(std::span<const Part> parts) noexcept {
    const model::PartsStatus status = model_->step(parts);
    for (const Part& part : parts) part.cache->tokens = part.cache->base_->tokens();
    return status;
  }
  [[nodiscard]] std::uint64_t step_count() const noexcept { return model_->step_count(); }
  [[nodiscard]] MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept {
    return model_->logits(rows);
  }
  [[nodiscard]] std::size_t first_non_finite_layer(Cache& cache, text::TokenId token) noexcept {
    return model_->first_non_finite_layer(*cache.base_, token);
  }
  [[nodiscard]] kv::SnapshotInfo describe(const Cache& cache) const { return model_->describe(*cache.base_); }
  void save(Cache& cache, kv::SnapshotWriter& out) const { model_->save(*cache.base_, out); }
  void check_saved(const kv::SnapshotReader& in) const { model_->check_saved(in); }
  [[nodiscard]] model::StepStatus load(Cache& cache, const kv::SnapshotReader& in, std::size_t count) const {
    const model::StepStatus status = model_->load(*cache.base_, in, count);
    cache.tokens = cache.base_->tokens();
    return status;
  }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual const arch::Config& config() const noexcept = 0;
    virtual std::size_t n_ctx() const noexcept = 0;
    virtual std::size_t chunk() const noexcept = 0;
    virtual std::size_t most_chunk() const noexcept = 0;
    virtual bool set_chunk(std::size_t tokens) = 0;
    virtual std::size_t logits_rows() const noexcept = 0;
    virtual std::uint64_t weight_bytes() const noexcept = 0;
    virtual paging::Reads reads() const noexcept = 0;
    virtual std::uint64_t streamed_bytes() const noexcept = 0;
    virtual std::size_t kv_keep() const noexcept = 0;
    virtual paging::WeightRoom weight_room() const noexcept = 0;
    virtual bool resize_weights(std::uint64_t bytes) = 0;
    virtual std::unique_ptr<CacheBase> make_cache() const = 0;
    virtual model::StepStatus step(CacheBase& cache, std::span<const text::TokenId> tokens) noexcept = 0;
    virtual model::PartsStatus step(std::span<const Part> parts) noexcept = 0;
    virtual std::uint64_t step_count() const noexcept = 0;
    virtual MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept = 0;
    virtual std::size_t first_non_finite_layer(CacheBase& cache, text::TokenId token) noexcept = 0;
    virtual kv::SnapshotInfo describe(CacheBase& cache) const = 0;
    virtual void save(CacheBase& cache, kv::SnapshotWriter& out) const = 0;
    virtual void check_saved(const kv::SnapshotReader& in) const = 0;
    virtual model::StepStatus load(CacheBase& cache, const kv::SnapshotReader& in,
                                   std::size_t count) const = 0;
  };

  template <class T>
  struct CacheHolder final : CacheBase {
    explicit CacheHolder(typename T::Cache made) : cache(std::move(made)) {}
    std::size_t rewind(std::size_t count) noexcept override { return cache.rewind(count); }
    std::size_t adopt(const CacheBase& other, std::size_t count) noexcept override {
      return cache.adopt(static_cast<const CacheHolder&>(other).cache, count);
    }
    bool park() noexcept override { return cache.park(); }
    void trim() noexcept override { cache.trim(); }
    std::size_t tokens() const noexcept override { return cache.tokens; }
    typename T::Cache cache;
  };

  template <class T, class MakeCache>
  struct Holder final : Interface {
    template <class Make>
    Holder(Make&& make, MakeCache cache_maker) : model(make()), maker(std::move(cache_maker)) {
      typed.reserve(model.chunk());
    }
    const arch::Config& config() const noexcept override { return model.config(); }
    std::size_t n_ctx() const noexcept override { return model.n_ctx(); }
    std::size_t chunk() const noexcept override { return model.chunk(); }
    std::size_t most_chunk() const noexcept override { return model.most_chunk(); }
    bool set_chunk(std::size_t tokens) override { return model.set_chunk(tokens); }
    std::size_t logits_rows() const noexcept override { return model.logits_rows(); }
    std::uint64_t weight_bytes() const noexcept override { return model.weight_bytes(); }
    paging::Reads reads() const noexcept override { return model.reads(); }
    std::uint64_t streamed_bytes() const noexcept override { return model.streamed_bytes(); }
    std::size_t kv_keep() const noexcept override { return model.kv_keep(); }
    paging::WeightRoom weight_room() const noexcept override { return model.weight_room(); }
    bool resize_weights(std::uint64_t bytes) override { return model.resize_weights(bytes); }
    std::unique_ptr<CacheBase> make_cache() const override {
      return std::make_unique<CacheHolder<T>>(maker(model));
    }
    model::StepStatus step(CacheBase& cache, std::span<const text::TokenId> tokens) noexcept override {
      return model.step(cache_of(cache), tokens);
    }
    model::PartsStatus step(std::span<const Part> parts) noexcept override {
      typed.clear();
      for (const Part& part : parts) typed.push_back({&cache_of(*part.cache->base_), part.tokens});
      return model.step(typed);
    }
    std::uint64_t step_count() const noexcept override { return model.step_count(); }
    MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept override {
      return model.logits(rows);
    }
    std::size_t first_non_finite_layer(CacheBase& cache, text::TokenId token) noexcept override {
      return model.first_non_finite_layer(cache_of(cache), token);
    }
    kv::SnapshotInfo describe(CacheBase& cache) const override { return model.describe(cache_of(cache)); }
    void save(CacheBase& cache, kv::SnapshotWriter& out) const override { model.save(cache_of(cache), out); }
    void check_saved(const kv::SnapshotReader& in) const override { model.check_saved(in); }
    model::StepStatus load(CacheBase& cache, const kv::SnapshotReader& in, std::size_t count) const override {
      return model.load(cache_of(cache), in, count);
    }
    static typename T::Cache& cache_of(CacheBase& cache) noexcept {
      return static_cast<CacheHolder<T>&>(cache).cache;
    }
    T model;
    MakeCache maker;
    std::vector<typename T::Part> typed;  // room for as many parts as a step has tokens
  };

  explicit AnyModel(std::unique_ptr<Interface> model) noexcept : model_(std::move(model)) {}

  std::unique_ptr<Interface> model_;
};

static_assert(BatchModel<AnyModel> && SharingModel<AnyModel> && SavingModel<AnyModel> &&
              ParkingModel<AnyModel> && YieldingModel<AnyModel>);

}  // namespace mica
