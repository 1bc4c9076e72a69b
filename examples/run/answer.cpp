// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica/runtime/complete.hpp"
#include "saved_session.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace mica::program {
namespace {

int exit_code(StopReason reason) {
  if (reason == StopReason::cancelled) return 130;
  if (reason == StopReason::no_memory) return 4;
  return reason >= StopReason::write_failed ? 1 : 0;
}

/// Ends the line even if an answer ends with an error.
struct ClearsLine {
  std::optional<ReadingLine>& line;
  ~ClearsLine() { line.reset(); }
};

/// Thoughts are no part of the answer, and need not be seen.
bool shows_thoughts(const AnswerVerb& verb) {
  return verb.think == Think::automatic || verb.think == Think::on;
}

}  // namespace

Answerer::Answerer(const AnswerVerb& verb, Model& model, Draft* draft, std::string stop)
    : verb_(verb),
      model_(model),
      sampler_(make_sampler(verb, model)),
      drafter_(verb.drafts),
      draft_(draft),
      constraint_(verb.constraint.constraint(model)),
      output_(verb),
      thoughts_shown_(shows_thoughts(verb)) {
  set_max_tokens(verb);
  generate_.stop_at_end = !verb.ignore_eos;
  generate_.show_special = verb.show_special;
  generate_.stop = verb.reverse_prompts;
  if (!stop.empty()) generate_.stop.push_back(std::move(stop));
  generate_.cancel = &interrupted();
  if (MemoryWatch* const watch = model.memory_watch()) {
    governor_ = &governed_.emplace(model.transformer(),
                                   GovernedOptions<AnyModel>{.watch = watch, .log = log_to_stderr(verb)});
  }
  generate_.on_full = verb.on_full;
  generate_.min_drafts = verb.draft_min;
}

sample::Standard<> Answerer::make_sampler(const AnswerOptions& options, Model& model) {
  return sample::Standard<>(
      with_tokens(options.sampler, options.sampler_texts, model.tokenizer(), model.transformer().n_ctx()),
      model.config().n_vocab);
}

/// The session will be saved after a halted step: its file is as large as the cache.
void Answerer::announce_ending() {
  MemoryWatch* const watch = model_.memory_watch();
  if (watch == nullptr || verb_.session.empty()) return;
  const budget::Ledger& ledger = model_.ledger();
  const std::uint64_t bytes = ledger.used(budget::Account::kv) + ledger.used(budget::Account::state);
  watch->set_ending(save_time(bytes), bytes);
}

std::size_t Answerer::keep_first() const noexcept {
  if (generate_.on_full != OnFull::shift) return 0;
  const std::size_t bos = model_.tokenizer().vocabulary().add_bos() ? 1 : 0;
  return std::max(verb_.keep < 0 ? first_prompt_ : static_cast<std::size_t>(verb_.keep), bos);
}

/// A prompt must fit, and if the context may shift, it must fit beside the first tokens that stay.
void Answerer::check_room(const Session<AnyModel>& session, std::size_t prompt) {
  const std::size_t n_ctx = session.model().n_ctx();
  std::size_t remaining = session.remaining();
  if (session.tokens().empty()) first_prompt_ = prompt;
  if (generate_.on_full == OnFull::shift) {
    generate_.keep_first = keep_first();
    remaining = n_ctx - std::min(n_ctx, generate_.keep_first);
    if (session.tokens().empty()) remaining = n_ctx;
    MICA_CHECK(generate_.keep_first + 2 <= n_ctx, limit, "--keep: ", generate_.keep_first,
               " tokens leave no capacity in a context of ", n_ctx, "; keep fewer, or use ",
               larger_context(verb_, model_, generate_.keep_first + 2));
  }
  MICA_CHECK(prompt <= remaining, limit, "the prompt has ", prompt, prompt == 1 ? " token" : " tokens",
             ", and the context (-c ", n_ctx, ") has space for ", remaining, "; use ",
             larger_context(verb_, model_, n_ctx - remaining + prompt + 1));
}

void Answerer::generate(Session<AnyModel>& session, std::span<const TokenId> prompt, const OnText& on_text) {
  text_.clear();
  thoughts_.clear();
  output_ = DataOutput(verb_);
  result_ = {};
  prompt_costs_ = answer_costs_ = {};
  reading_ = true;
  if (verb_.stats) meter_.emplace(model_.transformer(), verb_.link.get());
  check_room(session, prompt.size());
  if (governor_ != nullptr) governor_->watch(governed_ ? &session : nullptr);
  unfed_.clear();
  const std::size_t before = session.tokens().size();
  if (reading_shown_) reading_line_.emplace(verb_, prompt.size());
  const ClearsLine clears{reading_line_};
  if (reads_only_) return read_only(session, prompt);
  generate_.between_steps = [&] {
    if (governor_ != nullptr) static_cast<void>((*governor_)());
    announce_ending();
    show_reading(std::max(session.tokens().size(), before) - before);
  };
  constraint::Any constraint = continued_ ? *std::exchange(continued_, std::nullopt) : constraint_;
  const auto write = [&](auto& drafter) {
    return mica::generate(session, model_.tokenizer(), sampler_, drafter, constraint, prompt, generate_,
                          on_text);
  };
  try {
    if (AnyModel* const head = model_.mtp_head()) {
      if (!mtp_) mtp_.emplace(session, *head, MtpOptions{.drafts = verb_.mtp});
      mtp_->set_session(session);
    }
    result_ = mtp_ ? write(*mtp_) : draft_ ? write(draft_->drafter()) : write(drafter_);
  } catch (...) {
    end_thoughts();
    throw;
  }
  if (halted()) {
    if (result_.reason >= StopReason::read_failed || result_.reason == StopReason::cancelled)
      result_.reason = StopReason::no_memory;
    static_cast<void>((*governor_)());  // the file of the session needs memory
  }
  shortened_ = session.limited() ? session.tokens().size() + session.remaining() : 0;
  session.limit(session.model().n_ctx());
  const bool is_cut = result_.reason == StopReason::length || result_.reason == StopReason::context_full;
  if (constraint && is_cut)
    note(verb_,
         "mica: the answer was cut off at its maximum of tokens, so that it is not a whole text of the "
         "constraint; a larger -n, or a maximum of lengths and numbers in the schema, lets it end");
  const auto& tokens = result_.tokens;
  unfed_.assign(tokens.end() - static_cast<std::ptrdiff_t>(result_.unfed), tokens.end());
}

void Answerer::constrain_behind_thoughts(const Session<AnyModel>& session, std::span<const TokenId> prompt) {
  if (!constraint_) return;
  constexpr std::size_t enough = 16;  // tokens, for the longest mark of thoughts
  const std::span<const TokenId> last = prompt.last(std::min(enough, prompt.size())),
                                 known = session.tokens(),
                                 before = known.last(std::min(enough - last.size(), known.size()));
  std::vector<TokenId> tokens(before.begin(), before.end());
  tokens.insert(tokens.end(), last.begin(), last.end());
  const std::string end = model_.tokenizer().decode(tokens, {.show_special = true});
  const std::string_view mark = ThoughtSplitter(end).end_of_thoughts();
  if (mark == thoughts_end_) return;
  thoughts_end_ = mark;
  constraint_ = {};  // its memory first
  constraint_ = verb_.constraint.constraint(model_, mark);
}

void Answerer::continue_answer(std::span<const TokenId> tokens) {
  if (!constraint_) return;
  continued_ = constraint_;
  for (const TokenId id : tokens) {
    MICA_CHECK(continued_->advance(id), usage,
               "the saved answer is no beginning of a text of the grammar; continue it without --grammar, or "
               "begin a new session");
  }
}

void Answerer::rest(Session<AnyModel>& session) {
  if (!governed_) return;
  governed_->watch(&session);
  governed_->rest();
}

/// -n 0: the prompt is read, to measure its time or to save a session. A saved session continues with its
/// last token, whose logits are in no file.
void Answerer::read_only(Session<AnyModel>& session, std::span<const TokenId> prompt) {
  const std::size_t before = session.tokens().size();
  const std::size_t now = prompt.size() - (verb_.session.empty() ? 0 : 1);
  const Stopwatch reading;
  const auto status =
      session.feed_rows(prompt.first(now), generate_.cancel, [&](std::size_t first, std::size_t count) {
        announce_ending();
        show_reading(first + count - before);
      });
  MICA_CHECK(!ends_all(status) && status != model::StepStatus::write_failed, failed, model::text(status));
  result_.timings.prompt = {now, reading.seconds()};
  for (const TokenId id : prompt) sampler_.accept(id);
  const auto rest = prompt.subspan(session.tokens().size() - before);
  unfed_.assign(rest.begin(), rest.end());
  if (status == model::StepStatus::no_memory || halted()) result_.reason = StopReason::no_memory;
  if (interrupted() && !halted()) result_.reason = StopReason::cancelled;
}

const Costs& Answerer::count() {
  lap_ = meter_->lap();
  (std::exchange(reading_, false) ? prompt_costs_ : answer_costs_) += lap_;
  return lap_;
}

void Answerer::show_reading(std::size_t tokens) {
  if (reading_line_ && !reading_line_->read(tokens)) reading_line_.reset();
}

template <class Write>
void Answerer::attempt(const Write& write) noexcept {
  if (undelivered_) return;
  try {
    write();
  } catch (...) {
    undelivered_ = std::current_exception();
  }
}

void Answerer::deliver(std::string_view text) noexcept {
  attempt([&] { print(text); });
}

void Answerer::raise_undelivered() const {
  if (undelivered_ && !terminated()) std::rethrow_exception(undelivered_);
}

bool Answerer::show(ChatPart part, std::string_view piece) {
  reading_line_.reset();
  const bool thinks = part == ChatPart::thoughts;
  (thinks ? thoughts_ : text_) += piece;
  if (!thinks) end_thoughts();
  if (verb_.jsonl) {
    const std::string stats = meter_ ? join(",\"stats\":", json_of(count())) : std::string();
    deliver(join("{\"", thinks ? "reasoning_content" : "content", "\":", json_string(piece), stats, "}\n"));
  } else if (thinks) {
    show_thought(piece);
  } else if (!verb_.json) {
    attempt([&] { output_.write(piece); });
  }
  if (meter_ && !verb_.jsonl) count();
  return !undelivered();
}

void Answerer::show_thought(std::string_view piece) {
  if (verb_.json || verb_.quiet) return;
  if (thoughts_shown_) {
    if (!thought_output_) thought_output_.emplace(verb_);
    thought_output_->write(piece);
  } else if (!thinking_line_) {
    thinking_line_.emplace(verb_, "thinking");
  }
}

void Answerer::end_thoughts() {
  thinking_line_.reset();
  if (thought_output_) thought_output_->finish();
  thought_output_.reset();
}

int Answerer::finish() {
  reading_line_.reset();
  end_thoughts();
  if (meter_) count();
  attempt([&] { output_.finish(); });
  if (verb_.json || verb_.jsonl) {
    deliver(json_object() + "\n");
  } else if (!text_.empty() && text_.back() != '\n') {
    deliver("\n");
  }
  if (result_.reason == StopReason::no_memory && halted()) {
    write_error_line(halted_text());
  } else if (result_.reason == StopReason::no_memory) {
    write_error_line(
        "stopped: no memory is left for the KV cache within the budget; use a smaller -c, "
        "-ctk q8_0 -ctv q8_0, or --evict sinks:KEEP");
  }
  if (rank_lost() && !verb_.session.empty())
    note(verb_, join("mica: ", continue_text(), " the text, on fewer ranks too"));
  if (result_.reason == StopReason::context_full && shortened_ > 0) {
    note(verb_, join("mica: stopped: other processes took the memory, which is enough for ", shortened_,
                     " tokens; ", continue_text()));
  } else if (result_.reason == StopReason::context_full) {
    const std::size_t n_ctx = model_.transformer().n_ctx();
    note(verb_,
         join("mica: stopped: the context of ", n_ctx, " tokens is full, ",
              budget::size_text(model_.ledger().used(budget::Account::kv)), " of keys and values; use ",
              larger_context(verb_, model_, 2 * n_ctx), ", or --on-full shift"));
  }
  if (timings_shown_) note(verb_, timings_line());
  if (meter_) {
    note(verb_, join("prompt: ", text_of(prompt_costs_), "\nanswer: ",
                     text_of(answer_costs_, std::max<std::size_t>(result_.tokens.size(), 2) - 1)));
  }
  return exit_code(result_.reason);
}

std::string Answerer::halted_text() const {
  return join("stopped: other processes took the memory, and nothing is left to release; ", continue_text());
}

std::string Answerer::continue_text() const {
  return verb_.session.empty() ? "--session FILE would keep the text"
                               : join("the same command with --session ", verb_.session, " continues");
}

std::string Answerer::timings_line() const {
  const auto phase = [](const Phase& p) {
    return join(p.tokens, p.tokens == 1 ? " token, " : " tokens, ", fixed(p.tokens_per_second(), 2), " t/s");
  };
  const DraftCounts& d = result_.drafts;
  return join("prompt ", phase(result_.timings.prompt), "; answer ", phase(result_.timings.predicted),
              !guesses() ? "" : join("; drafts ", d.accepted, " of ", d.drafted, " accepted"),
              result_.forced == 0 ? "" : join("; ", result_.forced, " tokens forced"),
              result_.shifted == 0 ? "" : join("; ", result_.shifted, " tokens shifted out"), "; peak ",
              budget::size_text(peak_bytes()));
}

std::string Answerer::json_object() const {
  const auto phase = [](std::string_view name, const Phase& p) {
    return join("\"", name, "_n\":", p.tokens, ",\"", name, "_ms\":", fixed(p.seconds * 1e3, 3), ",\"", name,
                "_per_second\":", fixed(p.tokens_per_second(), 3));
  };
  const DraftCounts& d = result_.drafts;
  const std::string drafts =
      !guesses() ? "" : join(",\"draft_n\":", d.drafted, ",\"draft_n_accepted\":", d.accepted);
  const std::string shifted =
      generate_.on_full == OnFull::stop ? "" : join(",\"tokens_shifted\":", result_.shifted);
  const std::string forced = constraint_ ? join(",\"tokens_forced\":", result_.forced) : "";
  const std::string model =
      verb_.draft_answers ? join(",\"model\":", json_string(model_.document().path())) : "";
  const std::string sentence = result_.reason >= StopReason::read_failed             ? last_error()
                               : result_.reason == StopReason::no_memory && halted() ? halted_text()
                                                                                     : std::string();
  const std::string error = sentence.empty() ? "" : join("\"error\":", json_string(sentence), ",");
  const std::string stats = !meter_ ? ""
                                    : join("\"stats\":{\"prompt\":", json_of(prompt_costs_),
                                           ",\"answer\":", json_of(answer_costs_), "},");
  const std::string thoughts =
      thoughts_.empty() || verb_.jsonl ? "" : join(",\"reasoning_content\":", json_string(thoughts_));
  return join("{\"content\":", json_string(verb_.jsonl ? std::string_view() : std::string_view(text_)),
              thoughts, model, ",\"stop\":true,\"stop_reason\":\"", name(result_.reason),
              "\",\"tokens_predicted\":", result_.tokens.size(), forced, shifted, ",\"timings\":{",
              phase("prompt", result_.timings.prompt), ",", phase("predicted", result_.timings.predicted),
              drafts, "},", error, stats, "\"peak_bytes\":", peak_bytes(), "}");
}

namespace {

/// A saved text that is continued must leave room for a token, unless the context shifts.
void check_continues(const AnswerVerb& verb, Model& model, std::size_t tokens) {
  const std::size_t n_ctx = model.transformer().n_ctx();
  MICA_CHECK(tokens <= n_ctx || verb.on_full == OnFull::shift, limit, verb.session,
             ": the saved text fills the context of ", n_ctx, " tokens; to continue it use ",
             larger_context(verb, model, 2 * n_ctx), ", or --on-full shift");
}

}  // namespace

int complete_text(const AnswerVerb& verb, Model& model, const std::string& prompt, bool after_text) {
  SavedSession saved(verb, model);
  // Saving the completed text would overwrite the file, and its messages would be lost.
  MICA_CHECK(
      saved.note().text.empty(), usage, verb.session,
      ": this session file holds a conversation; continue it with mica chat, or give another file with "
      "--session");
  MICA_CHECK(!verb.draft_answers, usage, draft_answers_needs_chat);
  const std::unique_ptr<Draft> draft = open_draft(verb, model);
  Answerer answerer(verb, model, draft.get());
  answerer.show_reading_line(!after_text);
  std::vector<TokenId> text;
  if (saved.resumed()) answerer.set_first_prompt(saved.note().first_prompt);
  if (saved.resumed() && prompt.empty()) {
    const auto held = saved.session().tokens();
    const SessionNote& note = saved.note();
    text.assign(held.begin(), held.end());
    text.insert(text.end(), note.next.begin(), note.next.end());
    if (note.sampler) answerer.restore_sampler(*note.sampler);
    check_continues(verb, model, text.size());
    answerer.continue_answer(std::span(text).subspan(std::min(answerer.first_prompt(), text.size())));
  }
  if (text.empty()) {
    const std::size_t n_ctx = model.transformer().n_ctx(), least = min_tokens(model.tokenizer(), prompt);
    MICA_CHECK(least <= n_ctx, limit, "the prompt has ", prompt.size(), " bytes, which are ", least,
               " tokens or more, and the context (-c ", n_ctx, ") has space for ", n_ctx, "; use ",
               larger_context(verb, model, least + 1));
    text = prompt_ids(model.tokenizer(), prompt);
  }
  const auto show = [&](std::string_view piece) { return answerer.show(ChatPart::answer, piece); };
  answerer.generate(saved.session(), saved.bring_in_line(text), show);
  const int code = answerer.finish();
  saved.save(answerer);
  answerer.raise_undelivered();
  return code;
}

}  // namespace mica::program
