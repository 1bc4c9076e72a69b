// SPDX-License-Identifier: Apache-2.0
//
// One sequence on a model: it feeds tokens in chunks, returns logits, and removes tokens. Works on a concrete
// Transformer and on AnyModel; it has ids and no text (runtime/generate.hpp does). Sessions may share a step
// (runtime/shared_step.hpp), and continue in another process.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/bytes.hpp"
#include "mica/base/finite.hpp"
#include "mica/base/token_id.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/runtime/concept.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica/text/token_id.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

/// What a saved session has beside its tokens, keys and values.
struct SessionNote {
  std::optional<sample::SamplerState> sampler = {};  // to continue with the same tokens
  std::vector<TokenId> next = {};                    // tokens that were sampled and not fed
  std::string text = {};                             // of the program
  std::uint64_t first_prompt = 0;                    // tokens of the first prompt; 0: not known
};

namespace detail {

[[nodiscard]] inline std::string to_bytes(const SessionNote& note) {
  std::vector<std::byte> out;
  gguf::append_number(out, std::uint8_t{note.sampler.has_value()});
  if (note.sampler) {
    gguf::append_number(out, note.sampler->seed);
    gguf::append_number(out, note.sampler->counter);
    gguf::append_list(out, note.sampler->history);
  }
  gguf::append_list(out, note.next);
  gguf::append_text(out, note.text);
  gguf::append_number(out, note.first_prompt);
  if (note.sampler) gguf::append_number(out, note.sampler->mu);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

/// Raises ErrorCode::file, naming the file, for bytes that are no note.
[[nodiscard]] inline SessionNote note_of(const std::string& file, std::string_view bytes) {
  gguf::SpanReader reader(file, bytes_of(bytes.data(), bytes.size()));
  reader.enter("note");
  SessionNote note;
  if (reader.read<std::uint8_t>("whether a sampler is there") != 0) {
    note.sampler.emplace();
    note.sampler->seed = reader.read<std::uint64_t>("the seed");
    note.sampler->counter = reader.read<std::uint64_t>("the counter");
    note.sampler->history = reader.list<TokenId>("tokens");
  }
  note.next = reader.list<TokenId>("tokens");
  note.text = reader.text("the text");
  if (reader.remaining() != 0) note.first_prompt = reader.read<std::uint64_t>("the first prompt");
  if (note.sampler && reader.remaining() != 0) note.sampler->mu = reader.read<float>("mu");
  return note;
}

}  // namespace detail

template <StepModel Model>
class SharedStep;

/// A sequence of tokens and its keys and values. One thread at a time uses the sessions of a model: each may
/// have its thread, if a lock of the program is held from feed() until the logits are used. A session has the
/// model's logits until any session of it steps again.
template <StepModel Model>
class Session {
 public:
  /// The model outlives the session.
  /// Raises ErrorCode::unsupported for a text encoder, which has no answers (runtime/embedder.hpp).
  explicit Session(Model& model) : model_(&model), cache_(made_cache(model)) {}

  /// The session that was saved there. Reads its tokens; keys and values come with the first feed(), for the
  /// tokens that a rewind() has left until then. note: what was saved beside it.
  /// Raises ErrorCode::file for a file that is damaged or no saved session; usage for one of another model or
  /// of other elements; limit when the context has too few tokens.
  [[nodiscard]] static Session open(Model& model, const std::string& path, SessionNote* note = nullptr) {
    auto saved = std::make_unique<kv::SnapshotReader>(path);
    model.check_saved(*saved);
    const kv::SnapshotInfo& info = saved->info();
    MICA_CHECK(info.tokens.size() <= model.n_ctx(), limit, path, ": has ", info.tokens.size(),
               " tokens; the capacity of the context is ", model.n_ctx(), "; use a larger -c");
    SessionNote found = detail::note_of(path, info.note);
    Session session(model);
    session.check_ids(info.tokens);
    session.check_ids(found.next);
    session.tokens_ = info.tokens;
    session.saved_ = std::move(saved);
    if (note != nullptr) *note = std::move(found);
    return session;
  }
  /// Reads the model's file for save() now, so that save() works when the file is truncated or removed
  /// later. Reads samples of each tensor, once.
  /// Raises as gguf::fingerprint().
  void prepare_save() { static_cast<void>(model_->describe(cache_)); }
  /// Writes the session to a file, whole or not at all: the former one stays until the new one is there.
  /// Raises ErrorCode::file where it cannot be written; failed when the disk is full; unsupported without
  /// xxHash. Writes the keys and values of all tokens; the first call also does what prepare_save() does.
  /// Where a rank is gone, and its keys and values with it, tokens alone.
  void save(const std::string& path, const SessionNote& note = {}) {
    const model::StepStatus loaded = load_saved();
    MICA_CHECK(loaded != model::StepStatus::no_memory, budget,
               "no memory to read the saved session that is to be saved again");
    MICA_CHECK(loaded == model::StepStatus::ok, failed,
               "the saved session that is to be saved again: ", model::text(loaded));
    for (;;) {
      kv::SnapshotInfo info = model_->describe(cache_);
      info.tokens = tokens_;
      info.note = detail::to_bytes(note);
      try {
        kv::SnapshotWriter out(path, info);
        model_->save(cache_, out);
        return out.commit();
      } catch (const Error&) {
        if (model_->describe(cache_).cached == info.cached) throw;
      }
    }
  }

  /// The tokens so far.
  [[nodiscard]] std::span<const text::TokenId> tokens() const noexcept {
    return {tokens_.data(), tokens_.size()};
  }
  /// Remaining tokens of the context, which limit() may shorten.
  [[nodiscard]] std::size_t remaining() const noexcept {
    const std::size_t max = std::min(max_tokens_, model_->n_ctx());
    return max - std::min(max, tokens_.size());
  }
  /// Shortens the context to `tokens`: a feed() beyond them ends with context_full. Tokens that are there
  /// stay. n_ctx() or more: as the model was opened.
  void limit(std::size_t tokens) noexcept { max_tokens_ = tokens; }
  /// Whether limit() has shortened the context.
  [[nodiscard]] bool limited() const noexcept { return max_tokens_ < model_->n_ctx(); }
  /// The model that it was made with.
  [[nodiscard]] Model& model() noexcept { return *model_; }
  [[nodiscard]] const Model& model() const noexcept { return *model_; }

  /// Appends tokens, chunk by chunk. On shortage the chunks before it have been taken: see tokens().
  /// cancel: read between chunks; when it is set, the chunks so far are kept and the result is ok. Raises
  /// ErrorCode::usage for an id outside the vocabulary; file where the file it was opened from is damaged,
  /// naming the part: then another feed() runs its tokens again.
  [[nodiscard]] model::StepStatus feed(std::span<const text::TokenId> tokens,
                                       const std::atomic<bool>* cancel = nullptr) {
    return feed_rows(tokens, cancel, [](std::size_t, std::size_t) {});
  }

  /// The same, and calls on_chunk(first, count) after each chunk: tokens [first, first + count) of the
  /// sequence are those with logits now.
  template <class OnChunk>
  [[nodiscard]] model::StepStatus feed_rows(std::span<const text::TokenId> tokens,
                                            const std::atomic<bool>* cancel, OnChunk&& on_chunk) {
    check_ids(tokens);
    const model::StepStatus replayed = replay(tokens.empty() ? 0 : model_->chunk() - 1);
    if (replayed != model::StepStatus::ok) return replayed;
    while (!tokens.empty()) {
      if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) break;
      const auto chunk = tokens.first(std::min(tokens.size(), model_->chunk() - lost()));
      const model::StepStatus status = take(chunk, 0);
      if (status != model::StepStatus::ok) return status;
      tokens = tokens.subspan(chunk.size());
      on_chunk(chunk_begin_, chunk_size_);
    }
    return model::StepStatus::ok;
  }

  /// Appends [1, model().chunk()] tokens in one step. The last `drafts` of them may be taken back: rewind()
  /// to before any of them costs a model that takes drafts (takes_drafts()) no more than running those that
  /// remain again, in the step of the next feed(). Raises as feed().
  [[nodiscard]] model::StepStatus feed_drafts(std::span<const text::TokenId> tokens, std::size_t drafts) {
    check_ids(tokens);
    const model::StepStatus replayed = replay(model_->chunk() - tokens.size());
    return replayed == model::StepStatus::ok ? take(tokens, drafts) : replayed;
  }

  /// Logits after the last token, (n_vocab). Valid until the next call of any session of the model.
  /// Raises ErrorCode::usage when another session of the model has stepped since; failed when a weight could
  /// not be read, or when they are not finite, naming the layer.
  [[nodiscard]] std::span<const float> logits() {
    MICA_CHECK(chunk_size_ > 0, usage,
               "this session has no logits: no token was fed since it was opened, rewound or shifted; feed a "
               "token first");
    const std::size_t last = tokens_.size() - 1;
    const std::span<const float> row = logits(std::span(&last, 1))[0];
    if (!all_finite(row)) raise_non_finite(last);
    return row;
  }

  /// Logits after the tokens at these positions of the sequence, all of the last chunk, (positions, n_vocab).
  /// positions.size() <= model().logits_rows(). Raises as logits(), but does not check for non-finite
  /// numbers.
  [[nodiscard]] MatrixView<const float> logits(std::span<const std::size_t> positions) {
    rows_.clear();
    for (const std::size_t position : positions) rows_.push_back(row(position));
    const auto rows = model_->logits(rows_);
    MICA_CHECK(rows.rows() == positions.size(), failed, "the output matrix could not be read");
    return rows;
  }

  /// Raises ErrorCode::usage for an id outside the vocabulary.
  void check_ids(std::span<const text::TokenId> tokens) const {
    const std::size_t n_vocab = model_->config().n_vocab;
    for (const text::TokenId id : tokens) {
      MICA_CHECK(id < n_vocab, usage, "token id ", id, " is outside the vocabulary of ", n_vocab, " tokens");
    }
  }

  /// The row of the model's last step that is the token at this position, which was in this session's last
  /// chunk. Raises ErrorCode::usage for other positions, and when the model's last step was not this
  /// session's.
  [[nodiscard]] std::size_t row(std::size_t position) const {
    MICA_CHECK(position >= chunk_begin_ && position < chunk_begin_ + chunk_size_, usage,
               "logits at position ", position, ": only those of the last chunk, ", chunk_begin_, " to ",
               chunk_begin_ + chunk_size_, ", can be had");
    MICA_CHECK(
        model_->step_count() == step_, usage, "logits at position ", position,
        ": the model has stepped since, for another session of it or to run this one's tokens again; ask for "
        "logits before another session steps, or let a mica::Batch or mica::SharedStep run the sessions "
        "in one step");
    return first_row_ + position - chunk_begin_;
  }

  /// Raises ErrorCode::failed for logits after the last token, at `position`, that are not finite. It
  /// searches the layer, so that logits need a feed() first.
  [[noreturn]] void raise_non_finite(std::size_t position) {
    const std::size_t layers = model_->config().layers.size();
    const std::size_t layer = model_->first_non_finite_layer(cache_, tokens_[position]);
    chunk_begin_ = chunk_size_ = 0;
    raise(ErrorCode::failed, "non-finite logits after token ", position, ": ",
          layer < layers ? join("the first bad output is that of layer ", layer, " (blk.", layer, ".*)")
                         : std::string("all layers are finite, the output matrix (output.weight, "
                                       "output_norm.weight) is not"),
          "; the file's weights are damaged or overflow");
  }

  /// Removes all tokens from position `count` on; logits() needs a feed() first, unless tokens of the last
  /// chunk remain. Where the model has a recurrent state, that feed() may have to run some tokens before
  /// `count` again. Moves no keys and values; the storage may free memory.
  void rewind(std::size_t count) noexcept {
    if (count >= tokens_.size()) return;
    tokens_.resize(count);
    cache_.rewind(std::min(count, cache_.tokens));
    chunk_size_ = count > chunk_begin_ ? std::min(chunk_size_, count - chunk_begin_) : 0;
  }

  /// A context shift: the first `keep` tokens stay, half of the others are removed (at least one), and the
  /// tokens behind them take their positions: they are run again with the next feed(), since keys depend on
  /// positions and values on the tokens before them. logits() needs that feed(). Returns the number of
  /// removed tokens: 0 where all are kept.
  std::size_t shift(std::size_t keep) noexcept {
    if (keep >= tokens_.size()) return 0;
    const std::size_t count = ceil_div<std::size_t>(tokens_.size() - keep, 2);
    const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(keep);
    tokens_.erase(first, first + static_cast<std::ptrdiff_t>(count));
    cache_.rewind(std::min(keep, cache_.tokens));
    saved_.reset();  // has them at other positions
    chunk_size_ = 0;
    return count;
  }

  /// Removes all tokens behind the common prefix with a text; returns its length.
  std::size_t rewind_to_common(std::span<const text::TokenId> text) noexcept {
    const auto differs = std::mismatch(text.begin(), text.end(), tokens_.begin(), tokens_.end()).first;
    const auto common = static_cast<std::size_t>(differs - text.begin());
    rewind(common);
    return common;
  }

  /// Begins this empty session with the first `count` tokens of another one of the model; returns the number
  /// that it has, which need not be fed: 0 where caches do not share (kv::Paged does). Costs no memory but
  /// that of a page filled in part. Where count is a multiple of 16, nothing at all.
  std::size_t adopt(const Session& other, std::size_t count) {
    MICA_ASSERT(model_ == other.model_);
    return adopt(other.cache_, std::span(other.tokens_).first(std::min(count, other.cache_.tokens)));
  }
  /// The same from a cache of the model that begins with these tokens.
  std::size_t adopt(const typename Model::Cache& cache, std::span<const text::TokenId> tokens) {
    MICA_ASSERT(tokens_.empty());
    const std::size_t had = cache_.adopt(cache, tokens.size());
    tokens_.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(had));
    return had;
  }

  /// The number of tokens of the last chunk, whose logits can be had.
  [[nodiscard]] std::size_t chunk_size() const noexcept { return chunk_size_; }
  /// Whether the model's last step was that of the last chunk: logits and hidden states are there.
  [[nodiscard]] bool has_rows() const noexcept { return chunk_size_ > 0 && model_->step_count() == step_; }
  /// Tokens with keys and values; the others would be run again.
  [[nodiscard]] std::size_t cached() const noexcept { return cache_.tokens; }
  /// Its keys and values, for adopt() of another session.
  [[nodiscard]] const typename Model::Cache& cache() const noexcept { return cache_; }
  /// Parks the cache in a file until the next feed(), where the storage has one (kv::Spilled<kv::Paged<>>);
  /// returns whether it did. logits() needs that feed() first.
  [[nodiscard]] bool park() noexcept { return cache_.park(); }
  /// Frees memory of the cache that no token uses; between two feeds.
  void trim() noexcept { cache_.trim(); }
  /// Frees the memory of the cache and keeps the tokens: the next feed() runs all of them again.
  void drop() noexcept {
    cache_.rewind(0);
    chunk_size_ = 0;
  }

 private:
  [[nodiscard]] static typename Model::Cache made_cache(Model& model) {
    MICA_CHECK(!model.config().encodes, unsupported, model.config().arch,
               " is a text encoder: it embeds texts (mica embed, mica rerank) and writes none");
    return model.make_cache();
  }
  friend class SharedStep<Model>;

  /// Whether limit() leaves room for this number of tokens. The model itself refuses those beyond n_ctx().
  [[nodiscard]] bool allows(std::size_t tokens) const noexcept { return !limited() || tokens <= remaining(); }

  /// Tokens that a rewind took from the cache: they run again, before others.
  [[nodiscard]] std::size_t lost() const noexcept { return tokens_.size() - cache_.tokens; }
  /// Restores the cache, from the file of the session or by running tokens again, but for `left` tokens at
  /// most, which run in one step with others.
  [[nodiscard]] model::StepStatus replay(std::size_t left) {
    const model::StepStatus loaded = load_saved();
    if (loaded != model::StepStatus::ok) return loaded;
    while (lost() > left) {
      const std::size_t n = std::min(lost(), model_->chunk());
      const model::StepStatus status = model_->step(cache_, std::span(tokens_).subspan(cache_.tokens, n));
      if (status != model::StepStatus::ok) return status;
    }
    return model::StepStatus::ok;
  }
  /// The part of this sequence in a step: its lost tokens, then these.
  [[nodiscard]] model::SequenceStep<typename Model::Cache> part_of(std::span<const text::TokenId> tokens,
                                                                   std::size_t drafts) {
    const bool checkpoint = lost() == 0 || tokens.size() > 1;
    if (lost() == 0) return {&cache_, tokens, drafts, checkpoint};
    joined_.assign(tokens_.end() - static_cast<std::ptrdiff_t>(lost()), tokens_.end());
    joined_.insert(joined_.end(), tokens.begin(), tokens.end());
    return {&cache_, joined_, drafts, checkpoint};
  }
  /// One step of these tokens, behind the lost ones.
  [[nodiscard]] model::StepStatus take(std::span<const text::TokenId> tokens, std::size_t drafts) {
    if (!allows(tokens.size())) return model::StepStatus::context_full;
    const std::size_t again = lost();
    const auto part = part_of(tokens, drafts);
    const model::StepStatus status = model_->step(std::span(&part, 1)).status;
    if (status == model::StepStatus::ok) took(tokens, again);
    return status;
  }
  /// Without memory the file stays for another try; after an error it does not.
  [[nodiscard]] model::StepStatus load_saved() {
    if (saved_ == nullptr) return model::StepStatus::ok;
    auto saved = std::move(saved_);
    const auto count = std::min<std::size_t>(tokens_.size(), saved->info().cached);
    const model::StepStatus status = model_->load(cache_, *saved, count);
    if (status != model::StepStatus::ok) saved_ = std::move(saved);
    return status;
  }
  /// The cache took these tokens; the first of them is row `first_row` of the step.
  void took(std::span<const text::TokenId> tokens, std::size_t first_row) {
    chunk_begin_ = tokens_.size();
    chunk_size_ = tokens.size();
    first_row_ = first_row;
    step_ = model_->step_count();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  Model* model_;
  typename Model::Cache cache_;
  std::vector<text::TokenId> tokens_;
  std::size_t max_tokens_ = std::numeric_limits<std::size_t>::max();  // by limit()
  std::vector<std::size_t> rows_;
  std::vector<text::TokenId> joined_;  // tokens of a step
  std::size_t chunk_begin_ = 0;        // of the last chunk, whose hidden states the model still has
  std::size_t chunk_size_ = 0;
  std::size_t first_row_ = 0;                  // of the step, where the chunk lies in it
  std::uint64_t step_ = 0;                     // Model::step_count() after it
  std::unique_ptr<kv::SnapshotReader> saved_;  // until its tiles are read
};

}  // namespace mica
