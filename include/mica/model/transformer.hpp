// SPDX-License-Identifier: Apache-2.0
//
// A model composed from types. A step runs some tokens through all layers and leaves their hidden states;
// logits are computed afterwards, for the requested rows. Tokens may be of several sequences, each with its
// cache.
//
//   tokens -> embedding -> [ block, block, ... ] x layers -> hidden (n, width)    model/detail/step.hpp
//                                              logits(rows) -> (rows, n_vocab)
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/arch/concept.hpp"
#include "mica/arch/mtp.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/bytes.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"
#include "mica/block/rope.hpp"
#include "mica/gguf/document.hpp"
#include "mica/gguf/fingerprint.hpp"
#include "mica/model/detail/activations.hpp"
#include "mica/model/detail/kv_cache.hpp"
#include "mica/model/detail/kv_layout.hpp"
#include "mica/model/detail/shared_snapshot.hpp"
#include "mica/model/detail/step.hpp"
#include "mica/model/policies.hpp"
#include "mica/model/sequence_step.hpp"
#include "mica/model/weights.hpp"
#include "mica/text/token_id.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace mica {

namespace model {

/// Max tokens of a context: larger positions are not exact as floats.
inline constexpr std::size_t max_context = std::size_t{1} << 24;

}  // namespace model

/// Numbers that a model is made with.
struct ModelOptions {
  std::size_t n_ctx = 0;        // tokens that a cache may hold; 0: what the model was trained for
  std::size_t chunk = 512;      // tokens of one step at most; 0 counts as 1
  std::size_t logits_rows = 1;  // rows of logits that are computed at a time; 0 counts as 1
  std::size_t checkpoints = 1;  // copies of a recurrent state that a cache keeps; other families have none
  bool drafts = false;          // one more copy, before tokens that may be taken back
  bool mtp = false;             // not the model, but its head for multi-token prediction (arch/mtp.hpp)
  bool fast8 = false;  // products of many tokens follow kernel/fast8.hpp: quicker prompts, not bit for bit
  LogSink log = {};    // its context outlives the model
  LoadProgress progress = {};  // called while weights are read, by the constructor alone
};

/// A model over a set of policies. Users write Transformer<Family, With...> (model/policies.hpp). With its
/// caches for one thread at a time; config() and the sizes may be read from any.
template <class Family, class Policies>
class BasicTransformer {
 public:
  /// The policies, and the types that follow from them.
  using Arch = Family;
  using Formats = detail::FormatsInMemory<Policies>;
  using Allocator = typename Policies::Allocator;
  using Elements = typename Policies::KvElement;
  using Storage = typename Policies::KvStorage;
  using Eviction = typename Policies::Eviction;
  using Blocks = typename Policies::Blocks;
  using Pager = typename Policies::Pager;
  using Kernels = typename Policies::Kernels;
  using Executor = typename Policies::Executor;
  using Observer = typename Policies::Observer;
  using Ranks = typename Policies::Ranks;
  using Cache = KvCache<Storage>;
  using KvLayout = model::KvLayout<Elements, Storage, Eviction>;
  using SequenceStep = model::SequenceStep<Cache>;

  /// The same model with some policies changed.
  template <class... More>
  using With = typename detail::TransformerOf<Family, Policies, More...>::type;

  /// Makes the storage of a cache; an empty one makes Storage(allocator, layers, n_ctx).
  using MakeStorage =
      std::function<Storage(Allocator allocator, std::span<const kv::LayerShape> layers, std::size_t n_ctx)>;

  /// The objects that a model is made of: its policies with what they refer to and their numbers.
  struct Parts {
    Allocator allocator = Allocator();  // of weights, caches and scratch, each in its account
    Elements elements = Elements();     // of keys and values
    /// Makes the pager; without one it is Pager(table, allocator, log).
    std::function<Pager(const paging::Table& table, Allocator allocator, LogSink log)> pager = {};
    Eviction eviction = Eviction();  // with its numbers
    MakeStorage storage = {};        // of make_cache()
    /// The same shares on every rank, which all call the same functions of the model in the same order.
    Ranks ranks = Ranks();
  };

  /// Whether this is a plan: everything is booked, nothing is read or computed.
  static constexpr bool dry = Allocator::dry;
  /// Whether the executor leaves out tasks of a step that was halted (exec::Observed).
  static constexpr bool skips = requires(Executor & executor) {
    executor.skip(true);
    { executor.skips() }
    noexcept->std::same_as<bool>;
  };

  /// Opens the weights of a document. Document and executor outlive the model.
  /// Raises mica::Error when the file lacks something, or the budget refuses.
  BasicTransformer(gguf::DocumentRef document, Executor& executor, ModelOptions options = {},
                   Parts parts = {});
  /// Does not compile: the executor is of another type than the policy names.
  template <class Other>
  requires(!std::is_base_of_v<Executor, Other>) BasicTransformer(gguf::DocumentRef document, Other& executor,
                                                                 ModelOptions options = {}, Parts parts = {})
      : BasicTransformer(document, detail::executor_of_the_policy<Executor>(executor), std::move(options),
                         std::move(parts)) {}

  /// The numbers of the model, and those of the options: tokens of a context and, until set_chunk(), of a
  /// step.
  [[nodiscard]] const arch::Config& config() const noexcept { return config_; }
  [[nodiscard]] std::size_t n_ctx() const noexcept { return n_ctx_; }
  [[nodiscard]] std::size_t chunk() const noexcept { return activations_->chunk(); }
  /// That of the options, or the context, or what a cache that evicts keeps, if that is less.
  [[nodiscard]] std::size_t max_chunk() const noexcept { return max_chunk_; }
  /// Sets the maximum of tokens in a step, [1, max_chunk()], and frees the scratch of larger ones; between
  /// two steps. Logits after a last step that had more can no longer be had. False, and nothing has changed,
  /// where scratch for larger ones is refused.
  bool set_chunk(std::size_t tokens);
  /// Whether caches take drafts back (SequenceStep::drafts) without running all tokens behind a checkpoint
  /// again: without a recurrent state always, with one if the options say so and its blocks can.
  [[nodiscard]] bool takes_drafts() const noexcept {
    return weights_.state().floats() == 0 || (drafts_ && weights_.state().copies_floats());
  }
  /// Rows of logits() at most, that of the options.
  [[nodiscard]] std::size_t logits_rows() const noexcept { return logits_rows_; }
  /// Bytes of all weights, resident or not.
  [[nodiscard]] std::uint64_t weight_bytes() const noexcept { return weights_.bytes(); }
  /// Bytes of weights that a step with logits reads from files.
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept {
    if constexpr (StreamingPager<Pager>) return pager_.streamed_bytes();
    return 0;
  }
  /// What was read of them so far, and how long it was waited for.
  [[nodiscard]] paging::Reads reads() const noexcept {
    if constexpr (StreamingPager<Pager>) return pager_.reads();
    return {};
  }
  /// The capacity that can be set for them; all 0 where the pager cannot be resized.
  [[nodiscard]] paging::WeightCapacity weight_capacity() const noexcept {
    if constexpr (ResizablePager<Pager>) return pager_.capacity();
    return {};
  }
  /// Sets it, between two steps; no bit changes. False: fewer weights are resident than the capacity allows
  /// (paging/concept.hpp).
  bool resize_weights([[maybe_unused]] std::uint64_t bytes) {
    if constexpr (ResizablePager<Pager>) return pager_.resize(bytes);
    return false;
  }
  /// Frees weights at once that no step uses at that moment; returns how many bytes. From any thread, also
  /// while a step runs, which reads what it misses; no bit changes.
  std::uint64_t yield_weights([[maybe_unused]] std::uint64_t bytes) noexcept {
    if constexpr (ResizablePager<Pager>) return pager_.yield(bytes);
    return 0;
  }
  /// From any thread: the step that runs ends with no_memory, as do further ones; its cache is then as after
  /// read_failed, and memory that streamed weights passed through is freed. Logits are empty. With an
  /// executor that skips it ends after the tasks that run, with others after the layer.
  /// False: steps run again.
  void halt(bool halted) noexcept {
    std::atomic_ref(halted_).store(halted);
    if constexpr (skips) {
      if (halted && std::atomic_ref(running_).load()) executor_->skip(true);
    }
  }
  /// The longest time in this step and the one before it that halt() would have had to wait for a layer:
  /// while its weights are read, and unless the executor skips, while it is computed. Experts are read in
  /// between, so that with them it is the whole layer too. 0: no step was run. From any thread.
  [[nodiscard]] std::chrono::microseconds layer_time() noexcept {
    const auto time = [&](std::int64_t& us) { return std::atomic_ref(us).load(std::memory_order_relaxed); };
    return std::chrono::microseconds(std::max(time(slowest_us_[0]), time(slowest_us_[1])));
  }
  /// Bytes of keys and values that one more tile of 16 tokens takes in the layers that keep all tokens.
  [[nodiscard]] std::size_t kv_bytes_per_tile() const { return kv_.bytes_per_tile(); }
  /// The maximum of resident tokens in these layers, if the eviction policy evicts; 0: all.
  [[nodiscard]] std::size_t kv_capacity() const noexcept { return kv_.max_resident(); }
  /// Bytes of keys and values of the layers with a window, in a storage that keeps no more of them, at the
  /// full context.
  [[nodiscard]] std::size_t kv_window_bytes() const { return kv_.window_bytes(); }

  /// An empty cache.
  [[nodiscard]] Cache make_cache() const { return make_cache(make_storage_); }
  /// The same with another storage than that of Parts.
  [[nodiscard]] Cache make_cache(const MakeStorage& make) const {
    std::vector<kv::LayerShape> shape = kv_.shape();
    const Allocator allocator = allocator_.book_as(budget::Account::kv);
    return {make ? make(allocator, shape, n_ctx_) : Storage(allocator, shape, n_ctx_),
            {allocator, weights_.state().floats(), checkpoints_, drafts_},
            kv_.make_resident(allocator),
            std::move(shape)};
  }

  /// Runs tokens [1, chunk()] at positions cache.tokens, ... and takes them into the cache. Ids are below
  /// n_vocab. After read_failed a recurrent state is that of a checkpoint: tokens from cache.tokens on must
  /// be run again.
  [[nodiscard]] model::StepStatus step(Cache& cache, std::span<const text::TokenId> tokens) noexcept {
    const SequenceStep part{&cache, tokens};
    return step(std::span(&part, 1)).status;
  }

  /// The same for several sequences, [1, chunk()] tokens in all: weights are read once, and each sequence
  /// gets the bits of a step of its own. A cache may occur once. If there is no memory for one sequence,
  /// nothing changes for any.
  [[nodiscard]] model::StepResult step(std::span<const SequenceStep> sequences) noexcept;

  /// Grows whenever the hidden states of the last step are lost, usually by a step. Logits belong to one
  /// value of it.
  [[nodiscard]] std::uint64_t step_count() const noexcept { return step_count_; }

  /// Logits after tokens `rows` of the last step, counted over its parts, at most logits_rows() of them,
  /// (rows, n_vocab). Valid until the next call; empty when the head could not be read.
  [[nodiscard]] MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept {
    return best_logits(rows, config_.n_vocab);
  }
  /// The same for a caller who looks at the `count` best of each row. Each of several ranks sends the `count`
  /// best of its logits; those that are not sent are the lowest float in a row. Where numbers are not finite,
  /// one of them is sent.
  [[nodiscard]] MatrixView<const float> best_logits(std::span<const std::size_t> rows,
                                                    std::size_t count) noexcept;

  // Embeddings of texts (runtime/embedder.hpp).

  /// The states of all tokens of the last step behind the norm of the output, (n, width). Valid until the
  /// next call; empty when the norm could not be read.
  [[nodiscard]] MatrixView<const float> states() noexcept;
  /// Numbers of a row behind all dense layers.
  [[nodiscard]] std::size_t pooled_width() const noexcept {
    return config_.dense.empty() ? config_.width : config_.dense.back().width;
  }
  /// Pooled rows x through the dense layers, (m, width) to (m, pooled_width()). False: they could not be
  /// read, or the model was halted.
  [[nodiscard]] bool project_pooled(MatrixView<const float> x, MatrixView<float> y) noexcept;

  // Multi-token prediction: a drafter (runtime/mtp_drafter.hpp) passes rows between a trunk and its head.

  /// Embeddings of tokens, scaled as a step has them, (tokens, width). Of a trunk. False: not read.
  [[nodiscard]] bool embed(std::span<const text::TokenId> tokens, MatrixView<float> rows) noexcept {
    if (is_halted() || !pager_.acquire(0)) return false;
    for (std::size_t t = 0; t < tokens.size(); ++t)
      matrix(weights_.token_embd()).decode_row(tokens[t], rows[t].data());
    pager_.release(0);
    for (std::size_t t = 0; config_.embedding_scale != 1 && t < tokens.size(); ++t)
      Kernels::scale(kernel::ScaleArgs{rows, config_.embedding_scale, t, t + 1});
    return true;
  }
  /// The hidden state of a token of the last step, before the norm of the output, (width). Valid until the
  /// next step.
  [[nodiscard]] std::span<const float> hidden(std::size_t row) noexcept {
    MICA_ASSERT(row < last_step_);
    return activations_->residual(last_step_)[row];
  }
  /// The rows that the next step of a head reads, (n, 2 * width): for each token its embedding, and the
  /// hidden state of the token before it. n <= chunk().
  [[nodiscard]] MatrixView<float> mtp_input(std::size_t n) noexcept { return activations_->mtp_input(n); }
  /// The first `count` logits of a hidden state of the head, by the trunk's output matrix, without scale and
  /// soft cap. count: a multiple of 16 (a panel), or n_vocab. Valid until the next call of the trunk. Empty
  /// if the matrix cannot be read, or is streamed: it would be read once more for each draft.
  [[nodiscard]] std::span<const float> logits_of(BasicTransformer& head, std::size_t row,
                                                 std::size_t count) noexcept;

  /// What a file of this cache says of itself, but for tokens and note. Raises ErrorCode::unsupported without
  /// xxHash.
  [[nodiscard]] kv::SnapshotInfo describe(const Cache& cache) const {
    kv::SnapshotInfo info = identity();
    cache.describe(info);
    // Tokens are run again where heads are gone, or each rank knows a part of a recurrent state.
    if (exchange_.lost() || (exchange_.by_layers() && weights_.state().floats() != 0)) info.cached = 0;
    return info;
  }
  /// Writes what describe() announced. Raises ErrorCode::failed when the system cannot take it, or a rank is
  /// gone. All ranks call it, with the same description; the file of rank 0 has what one rank would write.
  void save(Cache& cache, kv::SnapshotWriter& out) const {
    const auto clear = [this](std::size_t layer, std::span<std::byte> tile, std::size_t slot) {
      kv_.clear(layer, tile, slot);
    };
    if constexpr (!Ranks::one) {
      if (exchange_.division().size() > 1) {
        model::SharedSnapshotWriter shared(exchange_, kv_.divided(), out);
        cache.save(shared, clear);
        return shared.finish();
      }
    }
    cache.save(out, clear);
  }
  /// Raises ErrorCode::usage where a saved cache is of another model or of other elements, saying which.
  void check_saved(const kv::SnapshotReader& in) const { kv::check_saved(in, identity()); }
  /// An empty cache becomes what was saved and checked, up to `count` tokens: KvCache::load().
  /// All ranks call it, with the same description. Where rank 0 raises an error, the others have no tokens.
  [[nodiscard]] model::StepStatus load(Cache& cache, const kv::SnapshotReader& in, std::size_t count) const {
    if constexpr (!Ranks::one) {
      if (exchange_.division().size() > 1) {
        const model::SharedSnapshotReader shared(exchange_, kv_.divided(), in);
        try {
          return cache.load(shared, count);
        } catch (const typename decltype(shared)::Refused&) {
          return model::StepStatus::ok;
        }
      }
    }
    return cache.load(in, count);
  }

  /// Shows every later step to the observer, which outlives them; null: none.
  void observe(Observer* observer) noexcept { observer_ = observer; }

  /// Runs the token again at the end of the cache (which loses it and has it again) and answers the first
  /// layer whose output is not finite; the number of layers when all are finite. Logits need a step before
  /// they can be had again. A recurrent state, which takes the token twice, goes back to a checkpoint as by a
  /// rewind.
  [[nodiscard]] std::size_t first_non_finite_layer(Cache& cache, text::TokenId token) noexcept;

 private:
  /// Rows that are embedded between acquire and release: at most their pages of a mapped embedding stay.
  static constexpr std::size_t embedded_rows = 64;

  using Weights = model::Weights<Formats, Blocks>;
  using Step = model::Step<BasicTransformer>;
  using Exchange = model::Exchange<Ranks, Allocator>;

  [[nodiscard]] tensor::AnyMatrix<Formats> matrix(const block::TensorRef& ref) const noexcept {
    return weights_.matrix(ref, pager_.data(ref.index), pager_.packed(ref.index));
  }
  [[nodiscard]] const float* vector(const block::TensorRef& ref) const noexcept {
    return reinterpret_cast<const float*>(pager_.data(ref.index));
  }
  [[nodiscard]] const float* vector_or_null(const block::TensorRef& ref) const noexcept {
    return ref.present() ? vector(ref) : nullptr;
  }
  [[nodiscard]] static Pager make_pager(const Parts& parts, paging::Table table,
                                        const ModelOptions& options) {
    paging::LoadCounter counter{options.progress};
    table.loading = &counter;
    return parts.pager ? parts.pager(table, parts.allocator, options.log)
                       : Pager(table, parts.allocator, options.log);
  }
  [[nodiscard]] static std::vector<block::RopeFrequencies> rope_frequencies(const arch::Config& config,
                                                                            std::size_t n_ctx) {
    std::vector<block::RopeFrequencies> frequencies;
    for (const arch::RopeConfig& rope : config.ropes) frequencies.emplace_back(rope, n_ctx);
    return frequencies;
  }
  /// What several ranks cannot do together.
  void check_ranks(const ModelOptions& options) const {
    if (exchange_.division().size() == 1) return;
    MICA_CHECK(!options.mtp, unsupported, "a head for multi-token prediction runs on one rank alone");
    if constexpr (Eviction::evicts)
      MICA_CHECK(
          !kv_.eviction().needs_scores() || kv_.eviction().capacity() == 0, unsupported,
          "tokens cannot be evicted by their attention scores where each rank has some heads; use another "
          "eviction");
  }
  /// Tokens of a context: the requested number, or the one that the model was trained for.
  [[nodiscard]] static std::size_t context_of(std::size_t asked, const arch::Config& config) {
    MICA_CHECK(asked <= model::max_context, usage, "context: found ", asked, " tokens, allowed 1 to ",
               model::max_context, "; 0: what the model was trained for");
    MICA_CHECK(config.n_ctx_max == 0 || asked <= config.n_ctx_max, usage, "context: found ", asked,
               " tokens, and ", config.arch, " has positions for ", config.n_ctx_max,
               "; 0: what the model was trained for");
    return asked == 0 ? std::min(config.n_ctx_train, model::max_context) : asked;
  }
  void make_activations(std::size_t chunk) {
    const block::StepSizes sizes{chunk, config_.width, executor_->workers(), fast8_from_};
    activations_.emplace(config_, sizes, logits_rows_, weights_.scratch(sizes), allocator_);
  }
  /// The maximum of tokens in a step: `chunk`, but no more than a context or a cache that evicts holds, since
  /// scratch for more would stay unused. A model that embeds has many texts in a step, so that the context is
  /// no limit.
  [[nodiscard]] std::size_t max_pass(std::size_t chunk, const Eviction& eviction) const noexcept {
    const std::size_t capacity = Eviction::evicts ? eviction.capacity() : 0;
    if (capacity == 0 && embeds()) return std::clamp<std::size_t>(chunk, 1, model::max_context);
    return std::clamp<std::size_t>(chunk, 1, capacity == 0 ? n_ctx_ : std::min(n_ctx_, capacity));
  }
  /// Whether texts become rows of numbers.
  [[nodiscard]] bool embeds() const noexcept {
    return config_.encodes || config_.pooling != arch::Pooling::none;
  }
  /// Whether weights are rounded while they are packed: all products round, and the kernels read such rows.
  [[nodiscard]] bool rounds() const noexcept { return kernel::reads_rounded<Kernels> && fast8_from_ == 1; }
  /// What a file of an empty cache says of itself.
  [[nodiscard]] kv::SnapshotInfo identity() const {
    kv::SnapshotInfo info;
    info.arch = config_.arch;
    if (!fingerprint_)
      fingerprint_ = gguf::fingerprint(weights_.document(), tensor::packing_in<typename Policies::Weights>);
    info.model = *fingerprint_;
    io::Checksum positions;
    for (const block::RopeFrequencies& rope : frequencies_) {
      positions.add(bytes_of(rope.frequencies().data(), rope.frequencies().size()));
      const double magnitude = rope.magnitude();
      positions.add(bytes_of(&magnitude, 1));
    }
    info.positions = positions.value();
    info.keys = kv::key_name(kv_.elements());
    info.values = kv::value_name(kv_.elements());
    for (const kv::LayerShape& layer : kv_.shape()) {
      info.layers.push_back({layer.kv_heads, layer.tile_bytes, layer.window, 0});
    }
    const std::vector<ranks::Part> divided = kv_.divided();
    for (std::size_t l = 0; l < divided.size(); ++l) {
      if (divided[l].all != 0) info.layers[l].kv_heads = divided[l].all;
    }
    info.state_floats = weights_.state().floats();
    return info;
  }
  /// Room for all parts, or for none.
  [[nodiscard]] model::StepResult reserve(std::span<const SequenceStep> sequences) noexcept {
    using model::StepStatus;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      Cache& cache = *sequences[i].cache;
      const std::size_t end = cache.tokens + sequences[i].tokens.size();
      if (end <= n_ctx_ && cache.storage.reserve(end)) continue;
      for (const SequenceStep& part : sequences.first(i)) part.cache->storage.shrink(part.cache->tokens);
      return {end > n_ctx_ ? StepStatus::context_full : why_refused(cache), i};
    }
    return {};
  }
  /// The same on all ranks, or on none. Caches grow by tiles, on all ranks at the same tokens.
  [[nodiscard]] model::StepResult reserve_everywhere(std::span<const SequenceStep> sequences) noexcept {
    if constexpr (Ranks::one || dry) return reserve(sequences);
    const auto tiles = [](std::size_t tokens) { return ceil_div(tokens, format::tile_tokens); };
    const bool grows = std::any_of(sequences.begin(), sequences.end(), [&](const SequenceStep& part) {
      return tiles(part.cache->tokens + part.tokens.size()) != tiles(part.cache->tokens);
    });
    const model::StepResult own = reserve(sequences);
    if (!grows || own.status == model::StepStatus::context_full) return own;
    if (exchange_.by_layers()) {  // the others may be steps ahead, or behind
      if (own.status == model::StepStatus::ok) return own;
      log_(LogLevel::error, "this rank has no memory for more tokens, and the answer ends on all");
      exchange_.leave();
      return rank_lost();
    }
    const auto worst =
        static_cast<model::StepStatus>(exchange_.largest(static_cast<std::uint8_t>(own.status)));
    if (exchange_.lost()) return rank_lost();
    if (own.status == model::StepStatus::ok && worst != model::StepStatus::ok) {
      for (const SequenceStep& part : sequences) part.cache->storage.shrink(part.cache->tokens);
      return {worst, 0};
    }
    return own;
  }
  [[nodiscard]] model::StepResult rank_lost() noexcept { return model::rank_lost(log_, lost_is_logged_); }
  /// Why a cache within its context was refused: memory, or the file of older tokens, which the log then
  /// names.
  [[nodiscard]] model::StepStatus why_refused([[maybe_unused]] const Cache& cache) const noexcept try {
    if constexpr (SpillingStorage<Storage>) {
      if (const kv::SpillFailure* const failure = cache.storage.spill_failure()) {
        log_(LogLevel::error, kv::text(*failure));
        return model::StepStatus::write_failed;
      }
    }
    return model::StepStatus::no_memory;
  } catch (...) {  // no memory for a text
    return model::StepStatus::write_failed;
  }
  /// The tokens that run at a time: the rest of the step, or those up to the next token for which tiles must
  /// be evicted first.
  [[nodiscard]] std::span<const SequenceStep> next_sequences(std::span<const SequenceStep> sequences,
                                                             std::size_t done) noexcept {
    if constexpr (!Eviction::evicts) return sequences;
    now_.clear();
    std::size_t end = 0;  // rows of the step
    for (const SequenceStep& part : sequences) {
      const std::size_t begin = std::exchange(end, end + part.tokens.size());
      if (end <= done) continue;
      Cache& cache = *part.cache;
      const std::size_t skipped = std::max(done, begin) - begin;
      const auto rest = part.tokens.subspan(skipped);
      const std::size_t count = cache.make_room(kv_.eviction(), rest.size());
      // Drafts of this run, if it has the first of them: the copy is made before that one.
      const std::size_t before = part.tokens.size() - part.drafts, end_now = skipped + count;
      const std::size_t drafts = skipped > before ? 0 : end_now - std::min(end_now, before);
      now_.push_back({&cache, rest.first(count), drafts, part.checkpoint && part.drafts == 0});
      if (count < rest.size()) break;
    }
    return now_;
  }
  /// A cache has taken the tokens of a run.
  static void note_taken(const SequenceStep& part) noexcept {
    Cache& cache = *part.cache;
    cache.tokens += part.tokens.size();
    if (part.drafts > 0) {
      cache.state.set_draft_copy(cache.tokens - part.drafts);
    } else if (part.checkpoint && part.tokens.size() > 1) {
      cache.state.save(cache.tokens);
    }
  }
  /// All layers; false when something could not be read, or the model was halted.
  [[nodiscard]] bool run(std::span<const SequenceStep> sequences, std::size_t first_row) noexcept {
    if constexpr (dry) {
      return true;
    } else {
      for (const SequenceStep& part : sequences) {
        if (part.drafts > 0) part.cache->state.drop_draft_copy();
      }
      Step step = make_step(sequences, first_row);
      begin_run();
      bool read = !is_halted() && begin(step, sequences);
      const ranks::Part& stage = weights_.stage();
      for (std::size_t i = stage.first; read && i < stage.end(); ++i) read = run_layer(step, i);
      end_run();
      return read && !cut_ && pass_on(step);
    }
  }
  /// Tasks are skipped in a run of this model only: others may use the executor afterwards.
  void begin_run() noexcept {
    std::atomic_ref(running_).store(true);
    if constexpr (skips) executor_->skip(false);
  }
  void end_run() noexcept {
    cut_ = is_halted();
    std::atomic_ref(running_).store(false);
    if constexpr (skips) {
      cut_ = cut_ || executor_->skips();  // halt(true), then halt(false)
      executor_->skip(false);
    }
  }
  /// The first rows of a step are taken back that will not end.
  static void take_back(std::span<const SequenceStep> sequences, std::size_t done) noexcept {
    for (const SequenceStep& part : sequences) {
      const std::size_t taken = std::min(done, part.tokens.size());
      if (taken != 0 || part.cache->state.size() != 0) part.cache->restore(part.cache->tokens - taken);
      done -= taken;
    }
  }
  [[nodiscard]] Step make_step(std::span<const SequenceStep> sequences, std::size_t first_row) noexcept {
    return {config_, weights_,  pager_,    *executor_, *activations_,
            kv_,     exchange_, observer_, sequences,  first_row};
  }
  /// The residual stream before the first layer of this rank, and the angles of its ropes.
  [[nodiscard]] bool begin(Step& step, std::span<const SequenceStep> sequences) noexcept {
    fill_angles(sequences);
    if constexpr (!Ranks::one) {
      if (weights_.stage().first != 0)
        return exchange_.take_on(std::as_writable_bytes(floats_of(step.residual())));
    }
    return embed(step);
  }
  /// It goes to the next rank.
  [[nodiscard]] bool pass_on([[maybe_unused]] Step& step) noexcept {
    if constexpr (!Ranks::one) {
      if (!weights_.last_stage()) return exchange_.pass_on(std::as_bytes(floats_of(step.residual())));
    }
    return true;
  }
  [[nodiscard]] static std::span<float> floats_of(MatrixView<float> x) noexcept {
    MICA_ASSERT(x.stride() == x.cols());
    return {x.data(), x.rows() * x.cols()};
  }
  [[nodiscard]] bool embed(Step& step) noexcept {
    bool read = true;
    for (std::size_t first = 0; read && first < step.rows(); first += embedded_rows) {
      const std::size_t last = std::min(step.rows(), first + embedded_rows);
      if (!pager_.acquire(0)) return false;
      read = step.embed(first, last);
      if (read && last == step.rows()) read = step.begin();
      pager_.release(0);
    }
    return read;
  }
  void fill_angles(std::span<const SequenceStep> sequences) noexcept {
    for (std::size_t rope = 0; rope < frequencies_.size(); ++rope) {
      std::size_t row = 0;
      for (const SequenceStep& part : sequences) {
        const std::size_t n = part.tokens.size();
        frequencies_[rope].fill(part.cache->tokens, activations_->cos(rope, row + n).rows(row, n),
                                activations_->sin(rope, row + n).rows(row, n));
        row += n;
      }
    }
  }
  [[nodiscard]] bool run_layer(Step& step, std::size_t i) noexcept {
    const auto begin = std::chrono::steady_clock::now();
    if (is_halted() || !pager_.acquire(i + 1)) return false;
    const bool ends_soon = skips && weights_.largest_mixture() == 0;
    if (ends_soon) note_layer_time(std::chrono::steady_clock::now() - begin);
    pager_.prefetch(i + 2);
    const bool read = step.run_layer(i);
    pager_.release(i + 1);
    if (!ends_soon) note_layer_time(std::chrono::steady_clock::now() - begin);
    return read;
  }
  void note_layer_time(std::chrono::steady_clock::duration time) noexcept {
    const std::int64_t us = 1 + std::chrono::duration_cast<std::chrono::microseconds>(time).count();
    std::atomic_ref slowest(slowest_us_[step_count_ % 2]);
    if (us > slowest.load(std::memory_order_relaxed)) slowest.store(us, std::memory_order_relaxed);
  }
  /// The rows of the output matrix that this rank has.
  [[nodiscard]] ranks::Part own_outputs() const noexcept {
    if (!weights_.last_stage()) return {0, 0, config_.n_vocab};
    return ranks::outputs(exchange_.row_division(), config_.n_vocab);
  }
  [[nodiscard]] bool is_halted() noexcept { return std::atomic_ref(halted_).load(); }
  template <class Use>
  [[nodiscard]] bool with_output(Use&& use) noexcept;
  template <class Use>
  [[nodiscard]] bool for_each_slice(std::size_t unit, Use&& use) noexcept;
  void project_logits(std::span<const std::size_t> rows, const tensor::AnyMatrix<Formats>& w,
                      MatrixView<float> logits, bool observed) noexcept;
  void run_dense(const model::BoundDense& layer, MatrixView<float> x, MatrixView<float> y) noexcept;
  void finish_logits(MatrixView<float> logits) noexcept {
    if (config_.logit_scale == 1 && config_.logit_softcap == 0) return;
    executor_->run(logits.rows(), [&](std::size_t row, std::size_t) noexcept {
      if (config_.logit_scale != 1)
        Kernels::scale(kernel::ScaleArgs{logits, config_.logit_scale, row, row + 1});
      if (config_.logit_softcap != 0) {
        Kernels::softcap(kernel::SoftcapArgs{logits, config_.logit_softcap, row, row + 1});
      }
    });
  }

  arch::Config config_;
  std::size_t n_ctx_;
  std::size_t logits_rows_;
  std::size_t checkpoints_;
  bool drafts_;
  Executor* executor_;
  Allocator allocator_;
  MakeStorage make_storage_;
  Weights weights_;
  std::size_t fast8_from_;  // fewest tokens of products that may follow kernel/fast8.hpp; 0: none
  Pager pager_;
  std::vector<block::RopeFrequencies> frequencies_;   // by rope
  mutable std::optional<std::uint64_t> fingerprint_;  // of the document, once it was asked for
  Observer* observer_ = nullptr;
  std::size_t max_chunk_;
  KvLayout kv_;
  mutable Exchange exchange_;                                 // also while a cache is saved or loaded
  std::optional<model::Activations<Allocator>> activations_;  // there, but within set_chunk()
  std::vector<SequenceStep> now_;                             // what of a step runs at a time
  std::size_t last_step_ = 0;  // tokens of the last step, whose hidden states are in activations_->residual()
  std::uint64_t step_count_ = 0;
  bool halted_ = false;                  // by halt()
  bool running_ = false;                 // layers are computed
  bool lost_is_logged_ = false;          // a rank is gone
  bool cut_ = false;                     // the last run was halted, perhaps in the middle
  std::int64_t slowest_us_[2] = {0, 0};  // layers of the last two steps, by step_count_
  LogSink log_;
};

template <class F, class P>
BasicTransformer<F, P>::BasicTransformer(gguf::DocumentRef document, Executor& executor, ModelOptions options,
                                         Parts parts)
    : config_(options.mtp ? arch::mtp_config(document, F::config(document)) : F::config(document)),
      n_ctx_(context_of(options.n_ctx, config_)),
      logits_rows_(std::max<std::size_t>(options.logits_rows, 1)),
      checkpoints_(options.checkpoints),
      drafts_(options.drafts),
      executor_(&executor),
      allocator_(parts.allocator),
      make_storage_(std::move(parts.storage)),
      weights_(document, config_, parts.ranks.division(), parts.ranks.split()),
      fast8_from_(!options.fast8 && !kernel::rounds_weights<Kernels> ? 0
                  : embeds() ? 1  // a text has the bits that it has alone
                             : kernel::fast8_tokens),
      pager_(make_pager(parts,
                        {document, weights_.extents(), weights_.units(), config_.layers.size() + 1,
                         weights_.largest_mixture(), detail::find_packing<P>(rounds())},
                        options)),
      frequencies_(rope_frequencies(config_, n_ctx_)),
      max_chunk_(max_pass(options.chunk, parts.eviction)),
      kv_(weights_.state(), std::move(parts.elements), std::move(parts.eviction), n_ctx_, max_chunk_,
          config_.template max_of<block::Attention>([](const auto& attention) { return attention.heads; }),
          allocator_),
      exchange_(std::move(parts.ranks), {max_chunk_, config_.width},
                std::max(config_.width, weights_.scratch({max_chunk_, config_.width}).exchanged_width),
                allocator_),
      log_(options.log) {
  if (rounds()) weights_.set_rounded();
  if constexpr (!Ranks::one) check_ranks(options);
  make_activations(max_chunk_);
  weights_.check_served([this](std::size_t tensor) { return pager_.packed(tensor); });
  if (Eviction::evicts) now_.reserve(chunk());
}

template <class F, class P>
model::StepResult BasicTransformer<F, P>::step(std::span<const SequenceStep> sequences) noexcept {
  const auto rows = [](std::span<const SequenceStep> all) { return Step::rows_before(all, all.size()); };
  const std::size_t n = rows(sequences);
  MICA_ASSERT(n > 0 && n <= chunk());
  const model::StepResult capacity = reserve_everywhere(sequences);
  if (capacity.status != model::StepStatus::ok) return capacity;
  std::atomic_ref(slowest_us_[++step_count_ % 2]).store(0, std::memory_order_relaxed);
  for (std::size_t done = 0; done < n;) {
    const std::span<const SequenceStep> now = next_sequences(sequences, done);
    if (!run(now, done)) {
      take_back(sequences, done);
      if (exchange_.lost()) return rank_lost();
      exchange_.leave();  // the others wait for what this one did not compute
      if (!cut_) return {model::StepStatus::read_failed, 0};
      if constexpr (ResizablePager<Pager>) pager_.rest();
      return {model::StepStatus::no_memory, 0};
    }
    for (const SequenceStep& part : now) note_taken(part);
    done += rows(now);
  }
  last_step_ = n;
  return {};
}

template <class F, class P>
MatrixView<const float> BasicTransformer<F, P>::best_logits(std::span<const std::size_t> rows,
                                                            [[maybe_unused]] std::size_t count) noexcept {
  MICA_ASSERT(rows.size() <= logits_rows_ && !config_.encodes);
  if constexpr (dry) return {};
  const auto logits = activations_->logits(rows.size(), config_.n_vocab);  // (rows, n_vocab)
  const ranks::Part own = own_outputs();
  const bool read = !weights_.last_stage() || with_output([&](std::size_t unit) {
    return for_each_slice(unit, [&](const auto& w, std::size_t first) {
      project_logits(rows, w, logits.cols(own.first + first, w.rows()), first == 0);
    });
  });
  if (!read) return {};
  finish_logits(logits.cols(own.first, own.count));
  if constexpr (!Ranks::one) {
    const std::size_t unit = ranks::output_unit(config_.n_vocab);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (exchange_.best(logits[row], unit, count)) continue;
      static_cast<void>(rank_lost());
      return {};
    }
  }
  if (is_halted()) return {};
  return logits;
}

template <class F, class P>
MatrixView<const float> BasicTransformer<F, P>::states() noexcept {
  if constexpr (dry) return {};
  const auto states = activations_->residual(last_step_);  // (n, width)
  const block::TensorRef& weight = weights_.output_norm();
  if (!weight.present()) return states;
  const auto out = activations_->input(last_step_);  // (n, width)
  const std::size_t head = config_.layers.size() + 1;
  if (is_halted() || !pager_.acquire(head)) return {};
  static_cast<void>(block::norm_of_kind<Kernels>(*executor_, config_.norm, states, vector(weight),
                                                 vector_or_null(weights_.output_norm_bias()),
                                                 config_.norm_epsilon, out, {}, false));
  pager_.release(head);
  return out;
}

template <class F, class P>
bool BasicTransformer<F, P>::project_pooled(MatrixView<const float> x, MatrixView<float> y) noexcept {
  if constexpr (dry) return true;
  const std::size_t head = config_.layers.size() + 1;
  if (is_halted() || !pager_.acquire(head)) return false;
  const std::size_t batch = std::min(activations_->chunk(), activations_->dense_rows);
  for (std::size_t done = 0; done < x.rows(); done += batch) {
    const std::size_t n = std::min(batch, x.rows() - done);
    auto rows = activations_->dense(0, n, config_.width);  // (n, width of the last layer)
    for (std::size_t r = 0; r < n; ++r) std::copy_n(x[done + r].data(), config_.width, rows[r].data());
    for (std::size_t i = 0; i < weights_.dense().size(); ++i) {
      const auto out = activations_->dense((i + 1) % 2, n, config_.dense[i].width);
      run_dense(weights_.dense()[i], rows, out);
      rows = out;
    }
    for (std::size_t r = 0; r < n; ++r) std::copy_n(rows[r].data(), rows.cols(), y[done + r].data());
  }
  pager_.release(head);
  return !is_halted();
}

template <class F, class P>
void BasicTransformer<F, P>::run_dense(const model::BoundDense& layer, MatrixView<float> x,
                                       MatrixView<float> y) noexcept {
  const auto w = matrix(layer.weight);
  const auto codes = activations_->codes(x.rows(), x.cols());
  const auto input = block::quantize<Kernels>(*executor_, x, codes, block::wants_codes(codes, w));
  block::project<Kernels>(*executor_, input,
                          std::array{block::Product<Formats>{w, y, false, vector_or_null(layer.bias)}});
  executor_->run(y.rows(), [&](std::size_t row, std::size_t) noexcept {
    if (layer.activation == arch::Activation::tanh) Kernels::softcap(kernel::SoftcapArgs{y, 1, row, row + 1});
    if (layer.activation == arch::Activation::gelu)
      Kernels::gated(kernel::GatedArgs{kernel::Gate::gelu_erf, y, {}, y, row, row + 1});
    if (!layer.norm.present()) return;
    Kernels::layer_norm(kernel::LayerNormArgs{y, vector(layer.norm), vector_or_null(layer.norm_bias),
                                              config_.norm_epsilon, y, row, row + 1});
  });
}

template <class F, class P>
std::span<const float> BasicTransformer<F, P>::logits_of(BasicTransformer& head, std::size_t row,
                                                         std::size_t count) noexcept {
  MICA_ASSERT(row < head.last_step_ && count <= config_.n_vocab);
  MICA_ASSERT(count % tensor::Rows16::rows == 0 || count == config_.n_vocab);
  if constexpr (dry) return {};
  auto& a = *activations_;
  const auto x = a.input(1), y = a.logits(1, count);  // (1, width), (1, count)
  const bool read = !is_halted() && with_output([&](std::size_t unit) {
    if constexpr (SlicingPager<Pager>) {
      if (pager_.slices(unit) > 1) return false;
    }
    const tensor::AnyMatrix<Formats> w = matrix(weights_.output().slice(0, count));
    const auto codes = a.codes(1, config_.width);
    const MatrixView<const float> state(head.hidden(row).data(), 1, config_.width);
    const auto input = block::norm<Kernels>(*executor_, state, head.vector(head.weights_.output_norm()),
                                            config_.norm_epsilon, x, codes, block::wants_codes(codes, w));
    block::project<Kernels>(*executor_, input, std::array{block::Product<Formats>{w, y}});
    return true;
  });
  return read ? std::span<const float>(y[0]) : std::span<const float>();
}

/// use(the unit of the output matrix), while it is acquired. False: it could not be read.
template <class F, class P>
template <class Use>
bool BasicTransformer<F, P>::with_output(Use&& use) noexcept {
  const std::size_t head = config_.layers.size() + 1;
  const bool tied = weights_.output().index == weights_.token_embd().index;
  if (!pager_.acquire(head)) return false;
  bool read = !tied || pager_.acquire(0);
  if (read) {
    read = use(tied ? 0 : head);
    if (tied) pager_.release(0);
  }
  pager_.release(head);
  return read;
}

/// f(some rows of the output matrix, the first one): all of them, or slice by slice. False if one could not
/// be read.
template <class F, class P>
template <class Use>
bool BasicTransformer<F, P>::for_each_slice([[maybe_unused]] std::size_t unit, Use&& use) noexcept {
  if constexpr (SlicingPager<Pager>) {
    if (const std::size_t slices = pager_.slices(unit); slices > 1) {
      for (std::size_t i = 0; i < slices; ++i) {
        const paging::Slice slice = pager_.acquire_slice(unit, i);
        if (slice.data == nullptr) return false;
        block::TensorRef rows = weights_.output().slice(slice.first_row, slice.rows);
        rows.first_row = 0;
        use(weights_.matrix(rows, slice.data, pager_.packed(rows.index)), slice.first_row);
        pager_.release_slice(unit, i);
      }
      return true;
    }
  }
  use(matrix(weights_.output()), std::size_t{0});
  return true;
}

/// logits: (rows, rows of w)
template <class F, class P>
void BasicTransformer<F, P>::project_logits(std::span<const std::size_t> rows,
                                            const tensor::AnyMatrix<Formats>& w, MatrixView<float> logits,
                                            [[maybe_unused]] bool observed) noexcept {
  auto& a = *activations_;
  const auto hidden = a.residual(last_step_);
  const std::size_t n = rows.size(), batch = a.chunk();  // rows that the scratch of a step holds
  for (std::size_t done = 0; done < n; done += batch) {
    const std::size_t count = std::min(batch, n - done);
    const auto x = a.input(count);  // (count, width)
    for (std::size_t r = 0; r < count; ++r) {
      MICA_ASSERT(rows[done + r] < last_step_);
      std::copy_n(hidden[rows[done + r]].data(), config_.width, x[r].data());
    }
    const auto codes = a.codes(count, config_.width);
    const auto input = block::norm<Kernels>(*executor_, x, vector(weights_.output_norm()),
                                            config_.norm_epsilon, x, codes, block::wants_codes(codes, w));
    if constexpr (Observer::active) {
      if (observer_ != nullptr && observed)
        observer_->product(weights_.name(weights_.output().index), x, model::no_expert);
    }
    block::project<Kernels>(*executor_, input,
                            std::array{block::Product<Formats>{w, logits.rows(done, count)}});
  }
}

/// The former scratch goes first, so that both are never there at once; it has room again where the new one
/// has none.
template <class F, class P>
bool BasicTransformer<F, P>::set_chunk(std::size_t tokens) {
  const std::size_t before = chunk(),
                    rows = last_step_ > tokens ? 0 : alloc::touchable<Allocator>(last_step_);
  MICA_ASSERT(tokens > 0 && tokens <= max_chunk_);
  if (tokens == before) return true;
  if (rows != last_step_) ++step_count_;
  std::vector<float> hidden(rows * config_.width);
  if (rows > 0) std::copy_n(activations_->residual(rows).data(), hidden.size(), hidden.data());
  activations_.reset();
  bool made = true;
  try {
    make_activations(tokens);
  } catch (const Error&) {
    made = false;
    make_activations(before);
  }
  if (rows > 0) std::copy_n(hidden.data(), hidden.size(), activations_->residual(rows).data());
  last_step_ = rows;
  return made;
}

template <class F, class P>
std::size_t BasicTransformer<F, P>::first_non_finite_layer(Cache& cache, text::TokenId token) noexcept {
  static_assert(!dry, "a plan has no outputs");
  const std::size_t layers = config_.layers.size();
  if (cache.tokens == 0) return layers;
  cache.tokens -= 1;  // the tile of the token stays, and gets the same content again
  cache.make_room(kv_.eviction(), 1);
  const auto x = activations_->residual(1);
  const auto finite = [&] {
    return std::all_of(x[0].begin(), x[0].end(), [](float v) { return std::isfinite(v); });
  };
  std::size_t bad = layers;
  const SequenceStep part{&cache, {&token, 1}};
  Step step = make_step({&part, 1}, 0);
  if (begin(step, {&part, 1})) {
    bool read = true;
    const ranks::Part& stage = weights_.stage();
    for (std::size_t i = stage.first; read && i < stage.end(); ++i) {
      read = run_layer(step, i);
      if (read && bad == layers && !finite()) bad = i;
    }
    if (read) static_cast<void>(pass_on(step));
  }
  if (exchange_.by_layers() && layers < 256)  // what one rank has found, the later ones find too
    bad = layers - exchange_.largest(static_cast<std::uint8_t>(layers - bad));
  cache.tokens += 1;
  if (cache.state.size() != 0) cache.restore(cache.tokens);
  last_step_ = 0;  // its hidden states are gone
  ++step_count_;
  return bad;
}

}  // namespace mica
