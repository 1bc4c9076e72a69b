// SPDX-License-Identifier: Apache-2.0
//
// Drafts by the model's own head for multi-token prediction (arch/mtp.hpp). The head is one layer, so a draft
// takes a small part of a step, and it has read what the model thinks: its hidden states.
//
//   session  | the cat sat on |            has run; the hidden states of its last chunk are there
//   sampled                   | the |      has not run
//   head     | cat sat on the |            entry i: token i + 1 and the hidden state of token i
//   drafts                      | mat . |  then each draft with the head's own hidden state
//
// Entries of accepted tokens stay. When an answer begins, only the hidden states of the last chunk of the
// prompt are in memory: the head begins with the first token of that chunk.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/drafter.hpp"
#include "mica/runtime/session.hpp"
#include "mica/tensor/packing.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mica {

struct MtpOptions {
  std::size_t drafts = 3;  // tokens at most
  /// Only tokens below this number are drafted; 0: all may be. The product with all rows of the output matrix
  /// takes longer than the layer. Vocabularies have frequent tokens first: merges of pairs are in the order in
  /// which they were found, unigrams by score.
  std::size_t vocabulary = 32768;
};

/// Session and head must outlive it and be of one file; they may have the same executor. A head has one
/// drafter, whose entries wait in it. One thread at a time uses drafter and session.
template <MtpModel Model>
class MtpDrafter {
 public:
  /// Raises ErrorCode::usage for drafts out of range.
  MtpDrafter(Session<Model>& session, Model& head, const MtpOptions& options = {})
      : session_(&session), head_(head), cache_(head.make_cache()), drafts_(options.drafts) {
    MICA_CHECK(drafts_ >= 1 && drafts_ <= draft_limit, usage, "a head drafts 1 to ", draft_limit,
               " tokens, found ", drafts_);
    const std::size_t n_vocab = session.model().config().n_vocab;
    const std::size_t wanted = round_up<std::size_t>(options.vocabulary, tensor::Rows16::rows);
    count_ = wanted == 0 ? n_vocab : std::min(n_vocab, wanted);
    text_.reserve(head.n_ctx() + 1);
  }
  /// From now on it drafts for another session of the model.
  void set_session(Session<Model>& session) noexcept { session_ = &session; }

  // Required by Drafter
  [[nodiscard]] std::size_t max_drafts() const noexcept { return drafts_; }
  /// No drafts without hidden states of the last token, or where the head cannot run.
  [[nodiscard]] std::size_t draft(std::span<const TokenId> before, TokenId last,
                                  std::span<TokenId> drafts) noexcept try {
    follow(before, last);
    if (entries() == 0 || first_ + entries() != before.size() || waiting_ == 0) return 0;
    std::size_t n = 0;
    for (std::size_t row = waiting_ - 1; n < drafts.size() && run(); row = 0) {
      const auto logits = session_->model().logits_of(head_, row, count_);
      if (logits.empty()) break;
      drafts[n] = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (++n == drafts.size() || !add(drafts[n - 1], head_.hidden(row))) break;
    }
    waiting_ = 0;
    cache_.rewind(std::min(cache_.tokens, before.size() - first_));
    return n;
  } catch (...) {
    return 0;
  }

  // Required by FollowingDrafter
  /// Takes the hidden states that are there; the head runs when a step of it is full.
  void follow(std::span<const TokenId> before, TokenId last) noexcept try {
    keep_common(before, last);
    if (!session_->has_rows()) return;
    const std::size_t there = before.size() - session_->chunk_size();
    std::size_t next = first_ + entries();
    if (entries() == 0 || next < there) begin_at(next = there);
    for (; next < before.size(); ++next) {
      if (waiting_ == head_.chunk() && !run()) return;
      const TokenId token = next + 1 < before.size() ? before[next + 1] : last;
      if (!add(token, session_->model().hidden(session_->row(next)))) return;
    }
  } catch (...) {
  }

 private:
  /// Entries that have run, and those that wait in head_.mtp_input().
  [[nodiscard]] std::size_t entries() const noexcept { return cache_.tokens + waiting_; }
  void begin_at(std::size_t position) noexcept {
    cache_.rewind(0);
    waiting_ = 0;
    first_ = position;
  }
  /// Removes the entries of other tokens than these. Entry i depends on the tokens to i + 1.
  void keep_common(std::span<const TokenId> before, TokenId last) {
    std::size_t common = 0;
    const auto token = [&](std::size_t i) { return i < before.size() ? before[i] : last; };
    while (common < text_.size() && common <= before.size() && text_[common] == token(common)) ++common;
    const std::size_t kept = common < first_ + 2 ? 0 : common - 1 - first_;
    if (kept < cache_.tokens) {
      cache_.rewind(kept);
      waiting_ = 0;
    } else {
      waiting_ = std::min(waiting_, kept - cache_.tokens);
    }
    text_.resize(common);
    for (; common <= before.size(); ++common) text_.push_back(token(common));
  }
  /// One more entry waits.
  [[nodiscard]] bool add(TokenId token, std::span<const float> hidden) noexcept {
    const std::size_t width = hidden.size();
    const auto row = head_.mtp_input(waiting_ + 1).rows(waiting_, 1);  // (1, 2 * width)
    if (!session_->model().embed({&token, 1}, row.cols(0, width))) return false;
    std::copy(hidden.begin(), hidden.end(), row[0].begin() + static_cast<std::ptrdiff_t>(width));
    ++waiting_;
    return true;
  }
  /// The head runs the entries that wait. It does not use their ids.
  [[nodiscard]] bool run() noexcept {
    const auto ids = std::span(std::as_const(text_)).first(waiting_);
    const bool ran = head_.step(cache_, ids) == model::StepStatus::ok;
    waiting_ = 0;
    return ran;
  }

  Session<Model>* session_;
  Model& head_;
  typename Model::Cache cache_;
  std::vector<TokenId> text_;  // of the last call: the session's tokens, and the one that has not run
  std::size_t first_ = 0;      // position of the first entry
  std::size_t waiting_ = 0;    // entries that have not run
  std::size_t drafts_;
  std::size_t count_ = 0;  // logits
};
static_assert(FollowingDrafter<MtpDrafter<AnyModel>>);

}  // namespace mica
