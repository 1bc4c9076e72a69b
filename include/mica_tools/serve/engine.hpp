// SPDX-License-Identifier: Apache-2.0
//
// One loaded model that writes answers: a batch, its prefix cache, and the bytes that its answers will still
// need. Texts that it embeds are in a part of its own (embed_engine.hpp). Not here: the queue of jobs
// (scheduler.hpp), and which models are loaded.
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/constraint/any.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/governed.hpp"
#include "mica_tools/serve/answer.hpp"
#include "mica_tools/serve/embed_engine.hpp"
#include "mica_tools/serve/loaded_model.hpp"
#include "mica_tools/serve/options.hpp"
#include "mica_tools/serve/service.hpp"
#include "mica_tools/serve/state_folder.hpp"
#include "mica_tools/serve/step_pace.hpp"
#include "mica_tools/serve/waiting.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::serve {

/// All members: the thread of the scheduler.
class Engine {
 public:
  /// ledger: that of the model. metrics outlives it.
  /// free_other: frees a prefix of any model; false: there is none.
  Engine(std::shared_ptr<LoadedModel> model, budget::Ledger& ledger, const SchedulerOptions& options,
         Metrics& metrics, std::function<bool()> free_other)
      : model_(std::move(model)),
        ledger_(ledger),
        options_(options),
        metrics_(metrics),
        pace_(options.max_stall),
        prefixes_(model_->model().transformer()),
        slots_(options.parallel),
        free_other_(std::move(free_other)),
        batch_(model_->model().transformer(), model_->model().tokenizer(),
               {.reuse_prefixes = true, .free_memory = [this] { return free_memory(); }}, &prefixes_),
        texts_(
            *model_, ledger, options_, metrics, [this] { return free_memory(); },
            [this] { return halted(); }) {
    govern_by(options.watch.get());
    if (options.state.empty() || !model_->card().writes) return;
    try {
      state_.emplace(options.state + "/" + file_name_of(model_->card().id), options.max_state_bytes);
      if (options.watch)
        Session<AnyModel>(model_->model().transformer()).prepare_save();  // later it may be late
    } catch (const Error& error) {                                        // answers do not need it
      options.log(LogLevel::warning, join("prefixes are not saved: ", error.message()));
    }
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Its model, whether answers are written or texts embedded, and the nodes of its prefix cache.
  [[nodiscard]] const std::shared_ptr<LoadedModel>& model() const noexcept { return model_; }
  [[nodiscard]] bool writes() const noexcept { return !running_.empty(); }
  [[nodiscard]] bool embeds() const noexcept { return texts_.busy(); }
  [[nodiscard]] bool busy() const noexcept { return writes() || embeds(); }
  [[nodiscard]] std::size_t prefixes() const noexcept { return prefixes_.size(); }

  /// Bytes of an answer beside its sequence: the candidates of its sampler.
  [[nodiscard]] std::uint64_t sampler_bytes() const noexcept {
    return std::uint64_t{model_->card().n_vocab} * sizeof(sample::Candidate);
  }
  /// Bytes of a constraint: of its states and masks, of the logits that it masks, and of the vocabulary as it
  /// needs it, where no constraint has run yet. 0 for a job without one.
  [[nodiscard]] std::uint64_t constraint_bytes(const Waiting& waiting) const {
    if (!waiting.job.constraint) return 0;
    const std::uint64_t tokens = tokens_.bytes() == 0 ? model_->tokens()->bytes() : 0;
    return (waiting.constrained ? 0 : options_.constraint_bytes) + masked_bytes() + tokens;
  }
  /// Bytes that the running answers will still allocate, if none ends early, and those of weights that have
  /// left memory and will come back.
  [[nodiscard]] std::uint64_t reserved() const noexcept {
    const std::uint64_t resident = model_->model().transformer().weight_capacity().resident;
    std::uint64_t bytes = max_weights_ - std::min(max_weights_, resident) + texts_.reserved();
    for (const Running& running : running_) bytes += growth(running);
    return bytes;
  }
  /// Bytes that all running answers will take for `tokens` more tokens each, and with the next step, and
  /// those that texts may take.
  [[nodiscard]] std::uint64_t growth_within(std::size_t tokens) const noexcept {
    std::uint64_t bytes = texts_.reserved();
    for (const Running& running : running_) {
      const std::size_t now = running.session.cached();
      const std::size_t soon = std::max(tokens, running.session.chunk_size());
      bytes += model_->bytes().growth(now, std::min(running.end, now + soon), running.shared);
    }
    return bytes;
  }
  /// Between two steps, where memory is short or was: steps become shorter, weights leave, and what left
  /// comes back. True: something changed.
  bool yield(MemoryWatch::Clock::time_point now) { return governed_ && (*governed_)(now); }
  /// Frees scratch of long steps; where none runs. Those of a text encoder have a whole text.
  void shrink() {
    if (model_->card().writes) static_cast<void>(model_->model().transformer().set_chunk(1));
  }
  /// Whether nothing is left to release, and the memory that is left is not enough for a further answer.
  [[nodiscard]] bool limited() const noexcept { return limited_; }
  /// Bytes of sequences that running answers and texts have now; a beginning that several share counts once.
  [[nodiscard]] std::uint64_t held() const noexcept {
    std::uint64_t own = 0, common = 0;
    for (const Running& running : running_) {
      const std::uint64_t has = model_->bytes().at(running.session.cached());
      const std::uint64_t shared = std::min(model_->bytes().at(running.shared), has);
      own += has - shared;
      common = std::max(common, shared);
    }
    return own + common + texts_.held();
  }
  /// Frees the least recently used prefix; false: there is none.
  bool drop_prefix() noexcept { return prefixes_.drop_one(); }
  /// The same, saved first if there is a folder that does not have it.
  bool park_prefix(std::string& error) {
    static_cast<void>(save_one(error));
    return prefixes_.drop_one();
  }
  /// Bytes of the prefix that was used least recently; 0: there is none.
  [[nodiscard]] std::uint64_t oldest_prefix_bytes() const {
    std::uint64_t bytes = 0;
    prefixes_.for_each_text([&](std::span<const TokenId> tokens, const AnyModel::Cache&) {
      bytes = model_->bytes().at(tokens.size());
      return false;
    });
    return bytes;
  }

  /// Makes a running answer of a job if the ledger has what the job needs beside `reserved` bytes. Sets
  /// `needed` to the bytes that it will allocate from now on, and adds them to `reserved` if it was admitted;
  /// otherwise the job is as before.
  [[nodiscard]] Admission admit(Waiting& waiting, std::uint64_t& reserved, std::uint64_t& needed);
  /// Saves one prefix that the folder does not have; false: it has all. After an error nothing is saved for a
  /// minute, and `error` has its text.
  [[nodiscard]] bool save_one(std::string& error);
  /// Saves the keys, values and states that the prefix cache has of a slot's tokens. Raises as
  /// Service::slot(), and Error.
  [[nodiscard]] SlotResult save_slot(std::size_t slot, const std::string& path);
  /// Reads a saved slot into the prefix cache. Before anything is allocated it calls make_room(bytes), which
  /// frees as many or raises. Raises Error.
  [[nodiscard]] SlotResult restore_slot(std::size_t slot, const std::string& path,
                                        const std::function<void(std::uint64_t)>& make_room);
  /// The number of tokens that the slot had.
  std::size_t erase_slot(std::size_t slot) noexcept { return std::exchange(slots_[slot], {}).size(); }
  /// One step of all running answers.
  void step();
  /// One step of the texts, as EmbedEngine::step().
  void step_texts(double beside) { texts_.step(beside); }
  /// Ends all answers and texts as failed.
  void fail_all(const Failed& failure);
  /// Appends the running answers.
  void describe(std::vector<AnswerState>& answers) const;

 private:
  using Sampler = sample::Standard<mica::detail::ProgramAllocator>;
  using RunningBatch = Batch<AnyModel, text::AnyTokenizer, Sampler, NoDrafter, constraint::Any>;

  struct Running {
    Running(Waiting from, AnyModel& model, Sampler its_sampler)
        : id(from.id),
          job(std::move(from.job)),
          answer(std::move(from.answer)),
          since_submit(from.since_submit),
          session(model),
          sampler(std::move(its_sampler)) {}

    std::uint64_t id;
    Job job;
    std::shared_ptr<Answer> answer;
    Stopwatch since_submit;
    Session<AnyModel> session;
    Sampler sampler;
    constraint::Any constraint = {};
    alloc::Booking masked = {};  // of the logits that the constraint masks
    std::size_t member = 0;      // of the batch
    std::size_t end = 0;         // tokens of the sequence at its end, at most
    std::size_t shared = 0;      // first tokens with pages of others
    double queued_seconds = 0;
    std::size_t cached = 0;   // first tokens of the prompt that needed no computation
    bool announced = false;   // its answer has Begun
    std::size_t written = 0;  // tokens so far
    Stopwatch since_token = {};
    std::vector<ScoredPiece> pieces = {};  // of tokens whose text is not given yet
  };

  /// Before the first text of an answer, and before its end where it has none. result: with the time of the
  /// prompt.
  static void announce(Running& running, const GenerateResult& result) {
    if (std::exchange(running.announced, true)) return;
    const std::size_t prompt = running.job.prompt.tokens.size();
    running.cached = prompt - std::min(prompt, result.timings.prompt.tokens);
    running.answer->put(Begun{prompt, running.cached});
  }
  [[nodiscard]] std::uint64_t growth(const Running& running) const noexcept {
    return model_->bytes().growth(running.session.cached(), running.end, running.shared);
  }
  [[nodiscard]] std::uint64_t masked_bytes() const noexcept {
    const std::uint64_t n_vocab = model_->card().n_vocab;
    return n_vocab * sizeof(float) + n_vocab / 8;
  }
  /// Books in the ledger. Raises ErrorCode::budget.
  [[nodiscard]] alloc::Booking booked(budget::Account account, std::uint64_t bytes) const;
  void constrain(Running& running);
  void take_from_disk(Running& running);
  [[nodiscard]] ScoredPiece piece_of(const ScoredToken& token) const {
    std::string bytes;
    model_->model().tokenizer().append_piece(token.id, true, bytes);
    return {token.id, token.log_probability, std::move(bytes), {}};
  }
  void start(Running& running);
  void note_tokens(Running& running);
  void govern_by(MemoryWatch* watch);
  void limit_growth(std::uint64_t bytes);
  [[nodiscard]] bool halted() const noexcept { return governed_ && governed_->halted(); }
  [[nodiscard]] bool free_memory() { return !halted() && (prefixes_.drop_one() || free_other_()); }
  [[nodiscard]] Failed failure_of(std::size_t member, const Failed& other);
  void end(Running& running, Failed failure);

  std::shared_ptr<LoadedModel> model_;
  budget::Ledger& ledger_;
  SchedulerOptions options_;
  Metrics& metrics_;
  StepPace pace_;
  PrefixCache<AnyModel> prefixes_;
  std::vector<std::vector<TokenId>> slots_;  // tokens of the last sequence of each
  alloc::Booking tokens_;                    // the vocabulary as constraints need it; 0: none has run
  std::function<bool()> free_other_;         // frees a prefix of any model
  RunningBatch batch_;
  EmbedEngine texts_;
  std::list<Running> running_;                  // addresses stay
  std::optional<Governed<AnyModel>> governed_;  // empty: memory is not watched
  std::uint64_t max_weights_ = 0;               // bytes in memory, as the model was opened; 0: not watched
  bool limited_ = false;
  std::optional<StateFolder> state_;
  std::chrono::steady_clock::time_point save_after_ = {};  // after an error
  /// Checksums of texts: each is saved once, also where the folder has no room for it.
  std::set<std::uint64_t> saved_;
};

/// Begins with a session file, if that has more of the prompt than the prefix cache.
inline void Engine::take_from_disk(Running& running) {
  constexpr std::size_t worth_reading = 64;  // tokens that are cheaper to read than to compute
  const auto prompt = std::span(running.job.prompt.tokens);
  const auto known = prompt.first(prompt.size() - 1);
  const auto [path, tokens] = state_->find(known, prefixes_.match(known) + worth_reading);
  if (path.empty()) return;
  try {
    auto saved = Session<AnyModel>::open(model_->model().transformer(), path);
    saved.rewind(tokens);
    for (const TokenId id : saved.tokens()) running.sampler.accept(id);
    running.session = std::move(saved);
  } catch (const Error& error) {
    // Others than damaged files are kept: there may be no memory now, or it has other elements or a longer
    // context.
    if (error.code() == ErrorCode::file) state_->forget(path);
  }
}

inline bool Engine::save_one(std::string& error) {
  if (!state_ || std::chrono::steady_clock::now() < save_after_) return false;
  bool saved = false;
  std::set<std::uint64_t> still_there;
  try {
    prefixes_.for_each_text([&](std::span<const TokenId> tokens, const AnyModel::Cache& cache) {
      const std::uint64_t text = io::checksum(std::as_bytes(tokens));
      if (saved_.contains(text)) return still_there.insert(text), true;
      if (state_->has(tokens)) return true;
      Session<AnyModel> session(model_->model().transformer());
      if (session.adopt(cache, tokens) == 0) return true;
      state_->save(session);
      saved_.insert(text);
      saved = true;
      return false;
    });
  } catch (const Error& failure) {
    error = failure.message();
    save_after_ = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  }
  if (!saved) saved_ = std::move(still_there);
  return saved;
}

inline SlotResult Engine::save_slot(std::size_t slot, const std::string& path) {
  const Stopwatch watch;
  const std::vector<TokenId>& tokens = slots_[slot];
  if (tokens.empty())
    throw Refusal(Cause::invalid,
                  join("slot ", slot, " has no tokens; complete a prompt with \"id_slot\": ", slot));
  Session<AnyModel> session(model_->model().transformer());
  const std::size_t saved = prefixes_.take(session, tokens);
  if (saved == 0)
    throw Refusal(Cause::invalid,
                  join("slot ", slot, ": its ", tokens.size(),
                       " tokens were evicted from the prefix cache; complete the prompt again"));
  session.save(path);
  return {saved, std::filesystem::file_size(path), watch.seconds()};
}

inline SlotResult Engine::restore_slot(std::size_t slot, const std::string& path,
                                       const std::function<void(std::uint64_t)>& make_room) {
  const Stopwatch watch;
  AnyModel& model = model_->model().transformer();
  std::uint64_t tokens = 0;
  {
    const kv::SnapshotReader saved(path);
    model.check_saved(saved);
    tokens = std::min<std::uint64_t>(saved.info().tokens.size(), saved.info().cached);
  }
  make_room(model_->bytes().at(tokens));
  Session<AnyModel> session = Session<AnyModel>::open(model, path);
  session.rewind(tokens);
  MICA_CHECK(session.feed({}) == model::StepStatus::ok && prefixes_.keep(session) == tokens, budget, path,
             ": no memory for its ", tokens, " tokens");
  slots_[slot].assign(session.tokens().begin(), session.tokens().end());
  return {tokens, std::filesystem::file_size(path), watch.seconds()};
}

inline alloc::Booking Engine::booked(budget::Account account, std::uint64_t bytes) const {
  auto booking = alloc::Booking::make(&ledger_, account, bytes);
  MICA_CHECK(booking, budget, "a constraint needs ", bytes, " bytes, the memory budget has ", ledger_.left());
  return *std::move(booking);
}

/// Makes the constraint of an answer.
inline void Engine::constrain(Running& running) {
  if (!running.job.constraint) return;
  const auto tokens = model_->tokens();
  if (tokens_.bytes() == 0) tokens_ = booked(budget::Account::tokenizer, tokens->bytes());
  running.masked = booked(budget::Account::logits, masked_bytes());
  running.constraint = running.job.constraint(
      tokens, {.limits = {.max_bytes = options_.constraint_bytes}, .ledger = &ledger_});
}

inline void Engine::start(Running& running) {
  constrain(running);
  if (state_) take_from_disk(running);
  const Job& job = running.job;
  GenerateOptions options;
  options.max_tokens = job.max_tokens;
  options.stop_at_end = job.stop_at_end;
  options.show_special = job.show_special;
  options.shown = job.shown;
  options.stop = job.stop;
  if (!job.prompt.stop.empty()) options.stop.push_back(job.prompt.stop);
  options.cancel = &running.answer->cancelled();
  options.top_tokens = job.top_tokens;
  Running* const its = &running;
  if (job.scores) {
    options.on_token = [this, its](const TokenScores& scores) {
      its->pieces.push_back(piece_of(scores.token));
      for (const ScoredToken& token : scores.top) its->pieces.back().top.push_back(piece_of(token));
    };
  }
  const std::size_t had = running.session.tokens().size();  // from the disk
  running.member =
      batch_.add(running.session, running.sampler, running.constraint,
                 std::span(job.prompt.tokens).subspan(had), options, [this, its](std::string_view text) {
                   announce(*its, batch_.result(its->member));
                   its->answer->put(Text{std::string(text), std::exchange(its->pieces, {})});
                   return true;
                 });
  batch_.mark(running.member, job.prompt.marks);
  running.shared = had == 0 ? running.session.tokens().size() : 0;
}

inline Admission Engine::admit(Waiting& waiting, std::uint64_t& reserved, std::uint64_t& needed) {
  if (waiting.job.embed) return texts_.admit(waiting, reserved, needed);
  // A step has a token of each answer at least.
  const std::size_t rows = model_->model().transformer().chunk();
  if (running_.size() >= std::min(options_.parallel, rows)) return Admission::all_parallel;
  const std::size_t end = end_of(waiting.job, model_->card().n_ctx);
  // Before anything is allocated: what it needs if it shares all that is known.
  const std::span<const TokenId> prompt(waiting.job.prompt.tokens);
  const std::size_t known = prefixes_.match(prompt.first(prompt.size() - 1));
  const std::uint64_t empty = model_->bytes().at(0) + sampler_bytes() + constraint_bytes(waiting);
  const auto has_room = [&](std::uint64_t bytes) { return ledger_.left() >= reserved + bytes; };
  const std::uint64_t before = ledger_.used();
  needed = empty + model_->bytes().growth(0, end, known);
  if (!has_room(needed)) return Admission::no_memory;
  Waiting refused{waiting.id, {}, waiting.answer, waiting.since_submit};
  try {
    running_.emplace_back(std::move(waiting), model_->model().transformer(),
                          Sampler(waiting.job.sampler, model_->card().n_vocab,
                                  mica::detail::ProgramAllocator(ledger_, budget::Account::logits)));
  } catch (const Error& error) {
    end_waiting(refused, model_->card().id, failed_by(error), options_);
    ++metrics_.failed;
    return Admission::admitted;
  }
  Running& running = running_.back();
  running.end = end;
  running.queued_seconds = running.since_submit.seconds();
  try {
    start(running);
  } catch (const Error& error) {
    refused.job.prompt = std::move(running.job.prompt);
    running_.pop_back();
    end_waiting(refused, model_->card().id, failed_by(error), options_);
    ++metrics_.failed;
    return Admission::admitted;
  }
  needed = growth(running);
  if (!has_room(needed)) {  // it shares less than was known
    static_cast<void>(batch_.remove(running.member));
    const bool constrained = running.job.constraint != nullptr;
    waiting = {running.id, std::move(running.job), std::move(running.answer), running.since_submit,
               constrained};
    needed += ledger_.used() - std::min(before, ledger_.used());  // its sampler may have taken more
    running_.pop_back();
    return Admission::no_memory;
  }
  reserved += needed;
  running.job.constraint = {};  // its memory ends with the answer
  metrics_.queued.add(running.queued_seconds);
  return Admission::admitted;
}

inline void Engine::note_tokens(Running& running) {
  const GenerateResult& result = batch_.result(running.member);
  const std::size_t written = result.tokens.size();
  if (written > 0 && running.written == 0) {
    announce(running, result);
    metrics_.first_token.add(running.since_submit.seconds());
    metrics_.prompt_tokens += running.job.prompt.tokens.size();
    metrics_.cached_tokens += running.cached;
    metrics_.prompt_seconds += result.timings.prompt.seconds;
  } else if (written > running.written) {
    metrics_.between_tokens.add(running.since_token.seconds());
  }
  if (written > running.written) running.since_token = {};
  metrics_.answer_tokens += written - running.written;
  running.written = written;
}

inline void Engine::end(Running& running, Failed failure) {
  GenerateResult result = batch_.remove(running.member);
  const std::size_t prompt = running.job.prompt.tokens.size();
  const bool left = running.answer->cancelled().load(std::memory_order_relaxed);
  if (result.reason >= StopReason::no_memory)
    failure = halted() ? short_of_memory(1) : Failed{join("the answer ended early: ", name(result.reason))};
  const bool failed =
      result.reason >= StopReason::no_memory || (result.reason == StopReason::cancelled && !left);
  if (!failed) {
    failure = {};
    if (result.reason == StopReason::context_full && running.session.limited())
      options_.log(LogLevel::warning, join(model_->card().id, ": answer ", running.id, " ends after ",
                                           result.tokens.size(), " tokens, since others took the memory"));
    announce(running, result);
    const std::span<const TokenId> sequence = running.session.tokens().first(running.session.cached());
    if (running.job.slot) slots_[*running.job.slot].assign(sequence.begin(), sequence.end());
  }
  if (!running.pieces.empty()) running.answer->put(Text{{}, std::exchange(running.pieces, {})});
  const auto& stops = running.job.stop;
  const bool by_stop = result.reason == StopReason::stop_text && result.stop < stops.size();
  const Ended ended{result.reason,
                    by_stop ? stops[result.stop] : std::string(),
                    prompt,
                    running.cached,
                    result.tokens.size(),
                    result.timings,
                    running.queued_seconds};
  metrics_.answer_seconds += result.timings.predicted.seconds;
  ++(failed ? metrics_.failed : left ? metrics_.cancelled : metrics_.finished);
  if (options_.on_ended) options_.on_ended({running.id, model_->card().id, ended, failure.message});
  running.answer->put(failed ? Event(std::move(failure)) : Event(ended));
}

/// The error of an answer: logits that are not finite, or a constraint that allows no token.
inline Failed Engine::failure_of(std::size_t member, const Failed& other) {
  try {
    batch_.raise_if_failed(member);
  } catch (const Error& error) {
    return failed_by(error);
  }
  return other;
}

inline void Engine::step() {
  std::size_t writers = 0, tokens_before = 0, tokens_after = 0;
  for (const Running& running : running_) {
    writers += running.written > 0 ? 1 : 0;
    tokens_before += running.session.tokens().size();
  }
  batch_.set_prompt_tokens(pace_.prompt_tokens(model_->model().transformer().chunk()));
  const Stopwatch watch;
  Failed failure{"the answer could not be continued"};
  try {
    static_cast<void>(batch_.step());
  } catch (const Error& error) {  // of one answer at least, which is over
    failure.message = error.message();
  }
  const double seconds = watch.seconds();
  ++metrics_.steps;
  for (auto at = running_.begin(); at != running_.end();) {
    tokens_after += at->session.tokens().size();
    note_tokens(*at);
    if (!batch_.over(at->member)) {
      ++at;
      continue;
    }
    end(*at, failure_of(at->member, failure));
    at = running_.erase(at);
  }
  const std::size_t ran = tokens_after - std::min(tokens_before, tokens_after);
  pace_.count(writers, ran - std::min(writers, ran), seconds);
}

inline void Engine::fail_all(const Failed& failure) {
  for (Running& running : running_) end(running, failure);
  running_.clear();
  texts_.fail_all(failure);
}

inline void Engine::govern_by(MemoryWatch* watch) {
  if (watch == nullptr) return;
  constexpr std::size_t min_chunk = 32;
  AnyModel& model = model_->model().transformer();
  max_weights_ = model.weight_capacity().resident;
  GovernedOptions<AnyModel> options;
  options.growth = [this](std::size_t tokens) { return growth_within(tokens); };
  options.limit_growth = [this](std::uint64_t bytes) { limit_growth(bytes); };
  options.min_chunk = model_->card().writes ? std::max(min_chunk, options_.parallel) : model.max_chunk();
  options.watch = watch;
  options.log = options_.log;
  governed_.emplace(model, std::move(options));
}

/// Each running answer may take an equal part of these bytes.
inline void Engine::limit_growth(std::uint64_t bytes) {
  const std::size_t soon = options_.watch->thresholds().growth_tokens;
  limited_ = bytes < growth_within(soon) + model_->bytes().at(soon);
  for (Running& running : running_) {
    const std::size_t now = running.session.tokens().size();
    running.session.limit(now + model_->bytes().tokens_in(now, bytes / running_.size()));
  }
}

inline void Engine::describe(std::vector<AnswerState>& answers) const {
  for (const Running& running : running_) {
    const std::size_t tokens = running.session.tokens().size(), prompt = running.job.prompt.tokens.size();
    answers.push_back({running.id, model_->card().id, prompt, std::min(tokens, prompt), running.shared,
                       running.written, running.end - prompt, model_->bytes().at(running.end), true,
                       running.job.slot});
  }
  texts_.describe(answers);
}

}  // namespace mica::serve
