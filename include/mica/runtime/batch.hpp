// SPDX-License-Identifier: Apache-2.0
//
// Several answers at once through the same steps, so that weights are read once for all of them. Sequences
// join and leave between steps, and prompts are read in the steps of decoding sequences:
//
//   step   | a: 1 | b: 1 | c: prompt, 64 tokens |      | a: 1 | b: 1 | c: its last 20 |      | a: 1 | c: 1 | ...
//
// A decoding sequence with forced tokens has several in a step, as a prompt has.
//
// An answer is the one that generate() gives, with any other sequences; only memory may run short because of
// them.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/constraint/concept.hpp"
#include "mica/runtime/generation.hpp"
#include "mica/runtime/prefix_cache.hpp"
#include "mica/runtime/shared_step.hpp"
#include "mica/sample/standard.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

/// How a batch shares its steps.
struct BatchOptions {
  /// Tokens of all prompts in a step with a decoding sequence, and forced tokens beside other sequences. A
  /// prompt or an answer that is alone has the whole step.
  std::size_t prompt_tokens = 64;
  /// A sequence with the same beginning as another one waits until that was run, and takes it over
  /// (Session::adopt). For caches that share.
  bool reuse_prefixes = false;
  /// Called before a sequence ends for lack of memory; true: some was freed (runtime/idle_sessions.hpp).
  std::function<bool()> free_memory = {};
};

/// Running answers. Model and tokenizer outlive it; open the model with as many logits_rows as there are
/// sequences (with drafts: 1 + drafts for each), else the output matrix is read several times per step. One
/// thread at a time.
template <StepModel Model, text::Tokenizer Tokenizer, Sampler S = sample::Standard<>, Drafter D = NoDrafter,
          Constraint C = NoConstraint>
class Batch {
 public:
  /// The number of a member, and the function that gets its text and returns false to end it.
  using Id = std::size_t;
  using OnText = std::function<bool(std::string_view)>;

  /// prefixes, which outlives it: a sequence takes over the longest known beginning, and stores its own when
  /// its prompt was read and when it is removed. Null: none. Prefixes of running sequences are shared as
  /// well.
  Batch(Model& model, const Tokenizer& tokenizer, BatchOptions options = {},
        PrefixCache<Model>* prefixes = nullptr)
      : model_(model),
        tokenizer_(tokenizer),
        options_(std::move(options)),
        prefixes_(prefixes),
        shared_step_(model) {}

  /// A sequence joins at the next step: its session continues with a prompt of at least one token. The batch
  /// uses session, sampler, drafter and constraint until the sequence is over or removed. on_text gets whole
  /// UTF-8 sequences, false stops it; it does not throw. Raises as generate(); ErrorCode::limit when as many
  /// sequences are there as a step has tokens.
  Id add(Session<Model>& session, S& sampler, D& drafter, C& constraint, std::span<const TokenId> prompt,
         const GenerateOptions& options, OnText on_text) {
    MICA_CHECK(!prompt.empty(), usage, "a sequence of a batch needs a prompt of one token at least");
    MICA_CHECK(members_.size() < model_.chunk(), limit,
               "a batch has a token of a step for each sequence; steps of ", model_.chunk(),
               " tokens take no more");
    members_.push_back(std::unique_ptr<Member>(new Member{
        next_id_, {session, tokenizer_, sampler, drafter, constraint, prompt, options, std::move(on_text)}}));
    if ((options_.reuse_prefixes || prefixes_ != nullptr) && session.tokens().empty())
      find_prefix(*members_.back());
    return next_id_++;
  }
  /// The same without a constraint, without drafts, and without both.
  Id add(Session<Model>& session, S& sampler, D& drafter, std::span<const TokenId> prompt,
         const GenerateOptions& options, OnText on_text) requires std::same_as<C, NoConstraint> {
    return add(session, sampler, drafter, unconstrained_, prompt, options, std::move(on_text));
  }
  Id add(Session<Model>& session, S& sampler, C& constraint, std::span<const TokenId> prompt,
         const GenerateOptions& options, OnText on_text) requires std::same_as<D, NoDrafter> {
    return add(session, sampler, undrafted_, constraint, prompt, options, std::move(on_text));
  }
  Id add(Session<Model>& session, S& sampler, std::span<const TokenId> prompt, const GenerateOptions& options,
         OnText on_text) requires(std::same_as<D, NoDrafter>&& std::same_as<C, NoConstraint>) {
    return add(session, sampler, undrafted_, unconstrained_, prompt, options, std::move(on_text));
  }

  /// Runs one step; false when every sequence is over. A sequence without memory ends, the others continue.
  /// Raises ErrorCode::failed for logits that are not finite, naming the layer, and ErrorCode::limit where a
  /// constraint allows no token; the sequences with them are over, the others have had their step.
  bool step() {
    choose_tokens();
    feed();
    take();
    for (Member* member : turn_) member->generation.raise_if_failed();
    return std::any_of(members_.begin(), members_.end(),
                       [](const auto& member) { return !member->generation.over(); });
  }

  /// Raises the error of a sequence that has failed: step() raises that of one sequence, and others may have
  /// failed in the same step. Raises ErrorCode::usage for an unknown one.
  void raise_if_failed(Id id) { (*find(id))->generation.raise_if_failed(); }
  /// Whether a sequence has ended. Raises ErrorCode::usage for an unknown one.
  [[nodiscard]] bool over(Id id) const { return (*find(id))->generation.over(); }
  /// A sequence leaves; one that was not over ends as cancelled. Raises ErrorCode::usage for an unknown one.
  GenerateResult remove(Id id) {
    const auto at = find(id);
    leave_prefix(**at);
    keep(**at);
    (*at)->generation.stop(StopReason::cancelled);
    GenerateResult result = std::move((*at)->generation.result());
    members_.erase(at);
    return result;
  }
  /// The answer so far, and its drafts; its times are those of phases that have ended. Raises
  /// ErrorCode::usage for an unknown one.
  [[nodiscard]] const GenerateResult& result(Id id) const { return (*find(id))->generation.result(); }
  /// Stores the sequence in the prefix cache each time it has as many tokens as one of these ascending
  /// numbers: a piece of its prompt ends there. For recurrent states, which are taken over only where they
  /// were stored. Raises ErrorCode::usage for an unknown one.
  void mark(Id id, std::vector<std::size_t> tokens) { (*find(id))->marks = std::move(tokens); }
  /// Sets BatchOptions::prompt_tokens from the next step on.
  void set_prompt_tokens(std::size_t tokens) noexcept { options_.prompt_tokens = tokens; }
  /// All sequences, over or not.
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }

 private:
  struct Member {
    Id id;
    Generation<Model, Tokenizer, S, D, OnText, C> generation;
    Member* like = nullptr;  // the member with the same beginning, which will run it
    std::size_t common = 0;  // tokens of it
    std::vector<std::size_t> marks = {};

    /// Tokens that the session may take before it is stored.
    [[nodiscard]] std::size_t to_next_mark(std::size_t max) const noexcept {
      const std::size_t has = generation.session().tokens().size();
      const auto next = std::upper_bound(marks.begin(), marks.end(), has);
      return next == marks.end() ? max : std::min(max, *next - has);
    }
    [[nodiscard]] bool is_at_mark() const noexcept {
      return std::binary_search(marks.begin(), marks.end(), generation.session().tokens().size());
    }
  };
  using Members = std::vector<std::unique_ptr<Member>>;

  [[nodiscard]] typename Members::const_iterator find(Id id) const {
    const auto at =
        std::find_if(members_.begin(), members_.end(), [id](const auto& member) { return member->id == id; });
    MICA_CHECK(at != members_.end(), usage, "sequence ", id, " is not in the batch");
    return at;
  }
  /// The member whose tokens, run or not, have the longest common prefix with this prompt; stored prefixes
  /// need no wait. One token always remains to run.
  void find_prefix(Member& member) {
    const auto prompt = member.generation.unread();
    for (const auto& other : members_) {
      if (other.get() == &member) break;
      const auto has = other->generation.session().tokens(), will = other->generation.unread();
      const auto same = [&](std::size_t i) {
        return prompt[i] == (i < has.size() ? has[i] : will[i - has.size()]);
      };
      const std::size_t max = std::min(prompt.size() - 1, has.size() + will.size());
      std::size_t n = 0;
      while (n < max && same(n)) ++n;
      if (n < format::tile_tokens || n <= member.common) continue;
      member.like = other.get();
      member.common = n;
    }
    const auto known = prompt.first(prompt.size() - 1);
    if (prefixes_ == nullptr || prefixes_->match(known) < std::max<std::size_t>(member.common, 1)) return;
    const std::size_t n = prefixes_->take(member.generation.session(), known);
    if (n == 0) return;
    member.like = nullptr;
    member.generation.skip(n);
  }

  void take_prefix(Member& member) {
    if (member.like == nullptr || waits(member)) return;
    const Session<Model>& other = std::exchange(member.like, nullptr)->generation.session();
    const auto prompt = member.generation.unread(), has = other.tokens();
    const auto max = std::min({member.common, prompt.size(), has.size()});
    const auto differs =
        std::mismatch(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(max), has.begin());
    const auto n =
        static_cast<std::size_t>(differs.first - prompt.begin());  // fewer where the other one has shifted
    if (member.generation.over() || n == 0) return;
    const std::size_t had = member.generation.session().adopt(other, n);
    const auto known = prompt.first(prompt.size() - 1);
    // A recurrent state of another sequence has moved on; a stored one may be there.
    if (had == 0 && prefixes_ != nullptr)
      return member.generation.skip(prefixes_->take(member.generation.session(), known));
    member.generation.skip(had);
  }

  /// When a member leaves, the first of those that wait for it takes over its tokens, and the others wait for
  /// that one.
  void leave_prefix(const Member& leaver) {
    Member* heir = nullptr;
    std::size_t common = 0;
    for (const auto& member : members_) {
      if (member->like != &leaver) continue;
      if (heir != nullptr) {
        member->like = heir;
        member->common = std::min(member->common, common);
        continue;
      }
      heir = member.get();
      common =
          std::exchange(heir->common, std::min(heir->common, leaver.generation.session().tokens().size()));
      take_prefix(*heir);
    }
  }

  void keep(const Member& member) {
    if (prefixes_ != nullptr) static_cast<void>(prefixes_->keep(member.generation.session()));
  }
  [[nodiscard]] static bool waits(const Member& member) {
    return member.like != nullptr && !member.like->generation.over() &&
           member.like->generation.session().tokens().size() < member.common;
  }
  /// One token for each decoding member, then drafts and forced tokens; of the remaining tokens the prompt
  /// that came first has a quarter at least, and the prompts with the fewest unread tokens have the others.
  /// Each member with forced tokens and all prompts as one have the same part of prompt_tokens, or more where
  /// others need less.
  void choose_tokens() {
    turn_.clear();
    feeds_.clear();
    readers_.clear();
    std::size_t writers = 0, forced = 0, left = model_.chunk();
    for (const auto& member : members_) {
      take_prefix(*member);
      if (member->generation.over() || waits(*member)) continue;
      if (member->generation.reads()) {
        readers_.push_back(member.get());
      } else {
        ++writers;
        forced += member->generation.unfed() > 1 ? 1 : 0;
      }
    }
    const std::size_t prompts = readers_.empty() ? 0 : 1;
    std::size_t shared = left - writers;  // of prompts and forced tokens
    if (writers > 0 && writers + prompts > 1) shared = std::min(shared, options_.prompt_tokens);
    for (const auto& member : members_) {
      if (member->generation.over() || member->generation.reads()) continue;
      const bool several = member->generation.unfed() > 1;
      std::size_t max = left - --writers;  // leaves one for each that follows
      if (several) max = std::min(max, 1 + shared / (prompts + forced--));
      const std::size_t taken = ask(*member, max);
      left -= taken;
      if (several && taken > 1) shared -= taken - 1;
    }
    left = std::min(left, shared);
    // One that waited for a member whose answer ask() ends is not among them: its turn is the next step.
    if (readers_.empty()) return;
    const Member* const oldest = readers_.front();
    std::size_t kept = ceil_div(left, std::size_t{4});  // for the oldest
    std::sort(readers_.begin(), readers_.end(), [](const Member* a, const Member* b) {
      return std::pair(a->generation.unread().size(), a->id) <
             std::pair(b->generation.unread().size(), b->id);
    });
    for (Member* const reader : readers_) {
      if (reader == oldest) kept = 0;
      if (left > kept) left -= ask(*reader, left - kept);
    }
  }

  /// Returns the number of tokens of the member in the step.
  [[nodiscard]] std::size_t ask(Member& member, std::size_t max) {
    if (member.generation.reads()) max = member.to_next_mark(max);
    const auto tokens = member.generation.next(max);
    if (tokens.empty()) return 0;
    turn_.push_back(&member);
    feeds_.push_back({&member.generation.session(), tokens, member.generation.drafts()});
    return tokens.size();
  }
  /// Runs the step; a member without memory drops its drafts, or ends, and the others try again.
  void feed() {
    while (!feeds_.empty()) {
      const model::StepResult result = shared_step_.step(feeds_);
      if (result.status == model::StepStatus::ok) return;
      if (ends_all(result.status)) {
        for (Member* member : turn_) member->generation.refuse(result.status);
        turn_.clear();
        feeds_.clear();
      } else if (result.status != model::StepStatus::no_memory || !options_.free_memory ||
                 !options_.free_memory()) {
        refuse(result.part, result.status);
      }
    }
  }

  void refuse(std::size_t part, model::StepStatus status) {
    auto& generation = turn_[part]->generation;
    generation.refuse(status);
    if (!generation.over()) feeds_[part].tokens = generation.next(1);
    feeds_[part].drafts = generation.drafts();
    if (!generation.over()) return;
    turn_.erase(turn_.begin() + static_cast<std::ptrdiff_t>(part));
    feeds_.erase(feeds_.begin() + static_cast<std::ptrdiff_t>(part));
  }
  /// Gives each member its logits, as many at a time as the model has rows.
  void take() {
    for (std::size_t first = 0, end = 0; first < turn_.size(); first = end) {
      rows_.clear();
      std::size_t best = 0;  // of the logits of a row
      for (bool all = false; end < turn_.size(); ++end) {
        const std::size_t rows = turn_[end]->generation.rows();
        if (rows_.size() + rows > model_.logits_rows()) break;
        const Session<Model>& session = turn_[end]->generation.session();
        for (std::size_t r = rows; r > 0; --r) rows_.push_back(session.row(session.tokens().size() - r));
        if (rows == 0) continue;
        const std::size_t of_one = turn_[end]->generation.best();
        all = all || of_one == 0;
        best = all ? 0 : std::max(best, of_one);
      }
      const auto logits = rows_.empty() ? MatrixView<const float>() : logits_of(model_, rows_, best);
      std::size_t row = 0;
      for (std::size_t i = first; i < end; ++i) {
        auto& generation = turn_[i]->generation;
        const std::size_t rows = generation.rows();
        if (logits.rows() == rows_.size()) {
          const bool read = generation.reads();
          generation.take(logits.rows(row, rows));
          if (read && (!generation.reads() || turn_[i]->is_at_mark())) keep(*turn_[i]);
        } else {
          generation.lose(StopReason::read_failed);
        }
        row += rows;
      }
    }
  }

  Model& model_;
  const Tokenizer& tokenizer_;
  BatchOptions options_;
  PrefixCache<Model>* prefixes_;
  SharedStep<Model> shared_step_;
  NoDrafter undrafted_;
  NoConstraint unconstrained_;
  Members members_;  // in the order in which they came
  Id next_id_ = 0;
  std::vector<Member*> readers_;                         // the members with a prompt to read in the step
  std::vector<Member*> turn_;                            // the members in the step
  std::vector<typename SharedStep<Model>::Feed> feeds_;  // the tokens of each
  std::vector<std::size_t> rows_;
};

}  // namespace mica
