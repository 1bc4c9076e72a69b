// SPDX-License-Identifier: Apache-2.0
//
// A model of several ranks that one of them uses. Rank 0 has a Leader: a model whose calls the others repeat,
// each on its own model, in follow(). So a program that knows nothing of ranks runs on all of them.
//
//   rank 0      Leader leader(model, link);  session, generation, server ... -> leader
//   the others  follow(model, link);         until the Leader is gone
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/log.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/ranks/several.hpp"
#include "mica/runtime/any_model.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica {

namespace detail {

/// What a message of rank 0 asks for. Numbers follow as append_number() writes them.
enum class Call : std::uint8_t {
  end,         ///< nothing more will come
  make_cache,  ///< id
  forget,      ///< id
  rewind,      ///< id, tokens
  adopt,       ///< id, id of the other cache, tokens
  park,        ///< id
  trim,        ///< id
  save,        ///< id
  load,        ///< id, tokens; then the description of the file
  step,        ///< parts: id, tokens before, drafts, checkpoint; then the tokens of each
  logits,      ///< how many of the best, 0: all; rows
  examine,     ///< id, token: first_non_finite_layer()
};

/// Messages of rank 0 to all others: short ones are one exchange, longer ones two.
class Calls {
 public:
  explicit Calls(ranks::AnyLink& link, std::size_t bytes = 0) : link_(&link), ends_(link.size()) {
    message_.reserve(bytes);
  }

  /// The bytes of the next message; empty at first.
  [[nodiscard]] std::vector<std::byte>& begin(Call call) {
    message_.clear();
    gguf::append_number(message_, static_cast<std::uint8_t>(call));
    return message_;
  }
  /// False: a rank is gone.
  [[nodiscard]] bool send() noexcept {
    std::array<std::byte, first> head{};
    const std::uint64_t size = message_.size();
    std::memcpy(head.data(), &size, sizeof size);
    const std::size_t now = std::min(message_.size(), first - sizeof size);
    std::memcpy(head.data() + sizeof size, message_.data(), now);
    return all(head) && (now == message_.size() || all(std::span(message_).subspan(now)));
  }
  /// Waits for the next message. Raises ErrorCode::failed when rank 0 is gone, ErrorCode::file for one that
  /// no Leader sends.
  [[nodiscard]] std::span<const std::byte> receive(std::uint64_t most) {
    std::array<std::byte, first> head{};
    MICA_CHECK(all(head), failed, "rank 0 is gone");
    std::uint64_t size = 0;
    std::memcpy(&size, head.data(), sizeof size);
    MICA_CHECK(size <= most, file, "message of rank 0: it has ", size, " bytes, allowed ", most);
    message_.resize(static_cast<std::size_t>(size));
    const std::size_t now = std::min(message_.size(), first - sizeof size);
    std::memcpy(message_.data(), head.data() + sizeof size, now);
    MICA_CHECK(now == message_.size() || all(std::span(message_).subspan(now)), failed, "rank 0 is gone");
    return message_;
  }
  void leave() noexcept { link_->leave(); }

 private:
  static constexpr std::size_t first = 128;  // bytes of the first exchange: a step of one token

  /// All bytes are of rank 0.
  [[nodiscard]] bool all(std::span<std::byte> bytes) {
    ends_.assign(link_->size(), bytes.size());
    return link_->exchange(bytes, ends_);
  }

  ranks::AnyLink* link_;
  std::vector<std::byte> message_;
  std::vector<std::size_t> ends_;
};

}  // namespace detail

/// A model that the other ranks repeat. Files of sessions are read and written here alone, and are those of
/// one rank: they go on with any number of ranks. Threads: as the model.
class Leader {
 public:
  /// A sequence, on all ranks.
  class Cache {
   public:
    std::size_t tokens = 0;  // of the sequence so far

    // Required by SequenceStore
    std::size_t rewind(std::size_t count) noexcept {
      slot_->call(detail::Call::rewind, count);
      return tokens = slot_->inner.rewind(count);
    }
    std::size_t adopt(const Cache& other, std::size_t count) noexcept {
      slot_->call(detail::Call::adopt, other.slot_->id, count);
      return tokens = slot_->inner.adopt(other.slot_->inner, count);
    }
    bool park() noexcept {
      slot_->call(detail::Call::park);
      return slot_->inner.park();
    }
    void trim() noexcept {
      slot_->call(detail::Call::trim);
      slot_->inner.trim();
    }

   private:
    friend class Leader;
    struct Slot {
      const Leader& leader;
      std::uint64_t id;
      AnyModel::Cache inner;
      Slot(const Leader& its, std::uint64_t number, AnyModel::Cache cache)
          : leader(its), id(number), inner(std::move(cache)) {}
      Slot(const Slot&) = delete;
      Slot& operator=(const Slot&) = delete;
      ~Slot() { call(detail::Call::forget); }
      template <class... Numbers>
      void call(detail::Call what, Numbers... numbers) const noexcept {
        leader.call(what, id, std::uint64_t{numbers}...);
      }
    };
    explicit Cache(std::unique_ptr<Slot> slot) noexcept : slot_(std::move(slot)) {}
    std::unique_ptr<Slot> slot_;
  };
  using SequenceStep = model::SequenceStep<Cache>;

  /// Of rank 0. The link outlives this, and so does the context of the log.
  Leader(std::unique_ptr<AnyModel> model, ranks::AnyLink& link, LogSink log = {})
      : model_(std::move(model)), calls_(link, message_bytes(*model_)), log_(log) {
    parts_.reserve(model_->chunk());
  }
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;
  ~Leader() { call(detail::Call::end); }

  /// Bytes of the message of a step at most.
  [[nodiscard]] static std::size_t message_bytes(const AnyModel& model) noexcept {
    return 64 + 40 * std::max(model.max_chunk(), model.logits_rows());
  }
  /// Of any message: the largest describes a saved session.
  [[nodiscard]] static std::size_t max_message_bytes(const AnyModel& model) noexcept {
    return message_bytes(model) + (std::size_t{1} << 20) + model.n_ctx() * sizeof(TokenId);
  }

  // Required by SequenceStore
  [[nodiscard]] Cache make_cache() const {
    const std::uint64_t id = next_++;
    call(detail::Call::make_cache, id);
    return Cache(std::make_unique<Cache::Slot>(*this, id, model_->make_cache()));
  }
  [[nodiscard]] std::size_t kv_capacity() const noexcept { return model_->kv_capacity(); }
  /// Where a rank is gone, and its keys and values with it, tokens alone are saved; they are run again.
  [[nodiscard]] kv::SnapshotInfo describe(const Cache& cache) const {
    kv::SnapshotInfo info = model_->describe(cache.slot_->inner);
    if (lost_) info.cached = 0;
    return info;
  }
  void save(Cache& cache, kv::SnapshotWriter& out) const {
    call(detail::Call::save, cache.slot_->id);
    model_->save(cache.slot_->inner, out);
  }
  void check_saved(const kv::SnapshotReader& in) const { model_->check_saved(in); }
  [[nodiscard]] model::StepStatus load(Cache& cache, const kv::SnapshotReader& in, std::size_t count) const {
    kv::SnapshotInfo info = in.info();
    info.note.clear();
    auto& out = calls_.begin(detail::Call::load);
    gguf::append_number(out, cache.slot_->id);
    gguf::append_number(out, std::uint64_t{count});
    const std::vector<std::byte> description = kv::detail::describe(info);
    out.insert(out.end(), description.begin(), description.end());
    MICA_CHECK(out.size() <= max_message_bytes(*model_), unsupported, in.path(), ": its description has ",
               description.size(), " bytes, too many to be sent to other ranks");
    if (!send()) return rank_lost().status;
    const model::StepStatus status = model_->load(cache.slot_->inner, in, count);
    cache.tokens = cache.slot_->inner.tokens;
    return status;
  }

  // Required by StepModel
  [[nodiscard]] const arch::Config& config() const noexcept { return model_->config(); }
  [[nodiscard]] std::size_t n_ctx() const noexcept { return model_->n_ctx(); }
  [[nodiscard]] std::size_t chunk() const noexcept { return model_->chunk(); }
  [[nodiscard]] std::size_t logits_rows() const noexcept { return model_->logits_rows(); }
  [[nodiscard]] model::StepStatus step(Cache& cache, std::span<const TokenId> tokens) noexcept {
    const SequenceStep part{&cache, tokens};
    return step(std::span(&part, 1)).status;
  }
  [[nodiscard]] model::StepResult step(std::span<const SequenceStep> parts) noexcept {
    auto& out = calls_.begin(detail::Call::step);
    gguf::append_number(out, std::uint64_t{parts.size()});
    parts_.clear();
    for (const SequenceStep& part : parts) {
      Cache::Slot& slot = *part.cache->slot_;
      parts_.push_back({&slot.inner, part.tokens, part.drafts, part.checkpoint});
      for (const std::uint64_t number :
           {slot.id, std::uint64_t{slot.inner.tokens}, std::uint64_t{part.drafts}})
        gguf::append_number(out, number);
      gguf::append_number(out, std::uint8_t{part.checkpoint});
      gguf::append_number(out, std::uint64_t{part.tokens.size()});
      for (const TokenId id : part.tokens) gguf::append_number(out, id);
    }
    if (!send()) return rank_lost();
    const model::StepResult result = model_->step(parts_);
    for (const SequenceStep& part : parts) part.cache->tokens = part.cache->slot_->inner.tokens;
    return result;
  }
  [[nodiscard]] std::uint64_t step_count() const noexcept { return model_->step_count(); }
  [[nodiscard]] MatrixView<const float> logits(std::span<const std::size_t> rows) noexcept {
    return best_logits(rows, 0);
  }
  /// What the ranks exchange for them depends on the count, not on the vocabulary. 0: all logits.
  [[nodiscard]] MatrixView<const float> best_logits(std::span<const std::size_t> rows,
                                                    std::size_t count) noexcept {
    auto& out = calls_.begin(detail::Call::logits);
    gguf::append_number(out, std::uint64_t{count});
    gguf::append_number(out, std::uint64_t{rows.size()});
    for (const std::size_t row : rows) gguf::append_number(out, static_cast<std::uint32_t>(row));
    if (send()) return logits_of(*model_, rows, count);
    static_cast<void>(rank_lost());
    return {};
  }
  [[nodiscard]] std::size_t first_non_finite_layer(Cache& cache, TokenId token) noexcept {
    call(detail::Call::examine, cache.slot_->id, std::uint64_t{token});
    const std::size_t layer = model_->first_non_finite_layer(cache.slot_->inner, token);
    cache.tokens = cache.slot_->inner.tokens;
    return layer;
  }

  // Required by ResizableModel: weights of this rank alone; steps are not halted, and keep their size
  [[nodiscard]] paging::WeightCapacity weight_capacity() const noexcept { return model_->weight_capacity(); }
  bool resize_weights(std::uint64_t bytes) { return model_->resize_weights(bytes); }
  std::uint64_t yield_weights(std::uint64_t bytes) noexcept { return model_->yield_weights(bytes); }
  void halt(bool /*halted*/) noexcept {}
  [[nodiscard]] std::chrono::microseconds layer_time() noexcept { return model_->layer_time(); }
  [[nodiscard]] std::size_t kv_bytes_per_tile() const { return model_->kv_bytes_per_tile(); }
  [[nodiscard]] std::size_t max_chunk() const noexcept { return model_->chunk(); }
  bool set_chunk(std::size_t tokens) { return tokens == model_->chunk(); }

  // Specific to AnyModel
  [[nodiscard]] bool takes_drafts() const noexcept { return model_->takes_drafts(); }
  [[nodiscard]] std::uint64_t weight_bytes() const noexcept { return model_->weight_bytes(); }
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept { return model_->streamed_bytes(); }
  [[nodiscard]] paging::Reads reads() const noexcept { return model_->reads(); }

 private:
  [[nodiscard]] model::StepResult rank_lost() const noexcept {
    return model::rank_lost(log_, lost_is_logged_);
  }
  [[nodiscard]] bool send() const noexcept {
    lost_ = !calls_.send() || lost_;
    return !lost_;
  }
  template <class... Numbers>
  void call(detail::Call what, Numbers... numbers) const noexcept {
    auto& out = calls_.begin(what);
    (gguf::append_number(out, std::uint64_t{numbers}), ...);
    static_cast<void>(send());  // a rank that is gone ends the next step
  }

  std::unique_ptr<AnyModel> model_;
  mutable detail::Calls calls_;
  LogSink log_;
  mutable bool lost_ = false, lost_is_logged_ = false;
  mutable std::uint64_t next_ = 0;
  std::vector<AnyModel::SequenceStep> parts_;
};
static_assert(ResizableModel<Leader> && SelectiveModel<Leader>);

namespace detail {

/// The caches and the model of a rank that repeats calls.
class Follower {
 public:
  Follower(AnyModel& model, ranks::AnyLink& link) : model_(model), calls_(link) {}

  /// One call; false after the last one. Raises as Calls::receive(), and ErrorCode::file for numbers that the
  /// model has not.
  [[nodiscard]] bool repeat() {
    gguf::SpanReader in("message of rank 0", calls_.receive(Leader::max_message_bytes(model_)));
    const auto call = static_cast<Call>(in.read<std::uint8_t>("a call"));
    switch (call) {
      case Call::end:
        return false;
      case Call::step:
        step(in);
        return true;
      case Call::logits:
        logits(in);
        return true;
      case Call::save: {
        AnyModel::Cache& of = cache(in);
        kv::SnapshotWriter none(model_.describe(of));
        model_.save(of, none);
        return true;
      }
      case Call::load:
        load(in);
        return true;
      case Call::make_cache:
        caches_.insert_or_assign(in.read<std::uint64_t>("a number"), model_.make_cache());
        return true;
      case Call::forget:
        caches_.erase(in.read<std::uint64_t>("a number"));
        return true;
      case Call::rewind: {
        AnyModel::Cache& of = cache(in);
        static_cast<void>(of.rewind(tokens(in, of)));
        return true;
      }
      case Call::adopt: {
        AnyModel::Cache &of = cache(in), &other = cache(in);
        static_cast<void>(of.adopt(other, tokens(in, other)));
        return true;
      }
      case Call::park:
        static_cast<void>(cache(in).park());
        return true;
      case Call::trim:
        cache(in).trim();
        return true;
      case Call::examine: {
        AnyModel::Cache& of = cache(in);
        static_cast<void>(model_.first_non_finite_layer(of, token(in.read<std::uint64_t>("a token"), in)));
        return true;
      }
    }
    in.refuse(ErrorCode::file, "call ", static_cast<int>(call), " is none");
  }

 private:
  [[nodiscard]] AnyModel::Cache& cache(gguf::SpanReader& in) {
    const auto id = in.read<std::uint64_t>("a number");
    const auto found = caches_.find(id);
    if (found == caches_.end()) in.refuse(ErrorCode::file, "sequence ", id, " is none");
    return found->second;
  }
  [[nodiscard]] static std::size_t tokens(gguf::SpanReader& in, const AnyModel::Cache& of) {
    const auto count = in.read<std::uint64_t>("tokens");
    if (count > of.tokens) in.refuse(ErrorCode::file, count, " tokens, the sequence has ", of.tokens);
    return static_cast<std::size_t>(count);
  }
  [[nodiscard]] TokenId token(std::uint64_t id, const gguf::SpanReader& in) const {
    const std::size_t n_vocab = model_.config().n_vocab;
    if (id >= n_vocab) in.refuse(ErrorCode::file, "token ", id, ", allowed below ", n_vocab);
    return static_cast<TokenId>(id);
  }
  void load(gguf::SpanReader& in) {
    AnyModel::Cache& of = cache(in);
    const auto count = in.read<std::uint64_t>("tokens");
    const kv::SnapshotReader saved("message of rank 0", in.take(in.remaining(), "a description"));
    model_.check_saved(saved);
    if (of.tokens != 0 || count > saved.info().cached)
      in.refuse(ErrorCode::file, count, " tokens of a saved session with ", saved.info().cached,
                " are loaded into a sequence with ", of.tokens, ", allowed is an empty one");
    static_cast<void>(model_.load(of, saved, static_cast<std::size_t>(count)));
  }
  void step(gguf::SpanReader& in) {
    parts_.clear();
    ids_.clear();
    ids_.reserve(model_.chunk());
    const auto parts = in.read<std::uint64_t>("parts");
    for (std::uint64_t i = 0; i < parts; ++i) {
      AnyModel::Cache& of = cache(in);
      const auto before = in.read<std::uint64_t>("tokens before"), drafts = in.read<std::uint64_t>("drafts");
      const bool checkpoint = in.read<std::uint8_t>("a checkpoint") != 0;
      const auto count = in.read<std::uint64_t>("tokens");
      const bool again =
          std::any_of(parts_.begin(), parts_.end(), [&](const auto& p) { return p.cache == &of; });
      if (count == 0 || count > model_.chunk() - ids_.size() || drafts > count || again)
        in.refuse(ErrorCode::file, "a step of ", count, " tokens with ", drafts, " drafts, allowed 1 to ",
                  model_.chunk() - ids_.size(), " of a sequence of its own");
      if (before != of.tokens)
        in.refuse(ErrorCode::file, "a step behind ", before, " tokens, the sequence has ", of.tokens);
      for (std::uint64_t t = 0; t < count; ++t) ids_.push_back(token(in.read<TokenId>("a token"), in));
      parts_.push_back({&of, std::span(ids_).last(static_cast<std::size_t>(count)),
                        static_cast<std::size_t>(drafts), checkpoint});
    }
    if (parts_.empty()) in.refuse(ErrorCode::file, "a step without tokens");
    const model::StepStatus status = model_.step(parts_).status;
    rows_ = status == model::StepStatus::ok ? ids_.size() : 0;
    MICA_CHECK(!ends_all(status), failed, model::text(status));
  }
  void logits(gguf::SpanReader& in) {
    const auto best = in.read<std::uint64_t>("a count of logits");
    if (best > model_.config().n_vocab)
      in.refuse(ErrorCode::file, "the best ", best, " logits of ", model_.config().n_vocab);
    const auto count = in.read<std::uint64_t>("rows");
    if (count == 0 || count > model_.logits_rows())
      in.refuse(ErrorCode::file, count, " rows of logits, allowed 1 to ", model_.logits_rows());
    wanted_.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      wanted_.push_back(in.read<std::uint32_t>("a row"));
      if (wanted_.back() >= rows_)
        in.refuse(ErrorCode::file, "logits of row ", wanted_.back(), ", the last step had ", rows_);
    }
    static_cast<void>(logits_of(model_, wanted_, static_cast<std::size_t>(best)));
  }

  AnyModel& model_;
  Calls calls_;
  std::map<std::uint64_t, AnyModel::Cache> caches_;
  std::vector<AnyModel::SequenceStep> parts_;
  std::vector<TokenId> ids_;
  std::vector<std::size_t> wanted_;
  std::size_t rows_ = 0;  // of the last step
};

}  // namespace detail

/// Repeats the calls of rank 0 until its Leader is gone. The same file, options and shares as there. Raises
/// ErrorCode::failed when rank 0 or another rank is gone, or this one could not go on: it then leaves;
/// ErrorCode::file for messages that no Leader sends.
inline void follow(AnyModel& model, ranks::AnyLink& link) {
  detail::Follower follower(model, link);
  try {
    while (follower.repeat()) {
    }
  } catch (...) {
    link.leave();
    throw;
  }
}

}  // namespace mica
