// SPDX-License-Identifier: Apache-2.0
//
// A smaller model drafts for a larger one. It reads the same tokens, so both have one vocabulary, and its
// likeliest tokens are the drafts. With a large model that is streamed from the disk (paging::Streamed) a
// step for one token and a step for nine take the same time, and the small one, in memory, drafts eight.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/drafter.hpp"
#include "mica/runtime/session.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace mica {

/// Has a session on the drafting model, which outlives it. A draft is a step of that model;
/// the text is read once. One thread at a time.
template <StepModel Model>
class ModelDrafter {
 public:
  /// n_vocab: of the larger model; ids are below it. Raises ErrorCode::unsupported for a model that does not
  /// take drafts back (takes_drafts()), and usage for drafts out of range.
  ModelDrafter(Model& model, std::size_t n_vocab, std::size_t drafts = 8)
      : session_(model), n_vocab_(n_vocab), drafts_(drafts) {
    MICA_CHECK(takes_drafts(model), unsupported, "a model that drafts takes tokens back; ",
               detail::keeps_state(model.config().arch));
    MICA_CHECK(drafts >= 1 && drafts <= draft_limit, usage, "a model drafts 1 to ", draft_limit,
               " tokens, found ", drafts);
  }

  /// Its session: with the text of the last draft, or of the last answer that was generated on it. An answer
  /// of the drafting model itself needs no second cache of keys and values then.
  [[nodiscard]] Session<Model>& session() noexcept { return session_; }

  // Required by Drafter
  [[nodiscard]] std::size_t max_drafts() const noexcept { return drafts_; }
  /// No drafts if its context is full or it has no memory, and none after its weights could not be read.
  [[nodiscard]] std::size_t draft(std::span<const TokenId> before, TokenId last,
                                  std::span<TokenId> drafts) noexcept try {
    if (unreadable_ || !read(before)) return 0;
    std::size_t n = 0;
    // Its own drafts begin behind `last`; a rewind does not go to before the first of them.
    for (TokenId token = last; n < drafts.size() && feed({&token, 1}, n == 1); ++n) {
      token = likeliest();
      drafts[n] = token;
    }
    return n;
  } catch (...) {
    return 0;
  }

 private:
  /// Makes the session have the tokens of a text.
  [[nodiscard]] bool read(std::span<const TokenId> text) {
    const auto rest = text.subspan(session_.rewind_to_common(text));
    return rest.empty() || feed(rest, false);
  }
  [[nodiscard]] bool feed(std::span<const TokenId> tokens, bool draft) {
    const model::StepStatus status = draft ? session_.feed_drafts(tokens, 1) : session_.feed(tokens);
    unreadable_ = ends_all(status);
    return status == model::StepStatus::ok;
  }
  [[nodiscard]] TokenId likeliest() {
    const auto logits = session_.logits();
    const auto known = logits.first(std::min(logits.size(), n_vocab_));
    return static_cast<TokenId>(std::max_element(known.begin(), known.end()) - known.begin());
  }

  Session<Model> session_;
  std::size_t n_vocab_;
  std::size_t drafts_;
  bool unreadable_ = false;  // so that later steps do not try again
};
static_assert(Drafter<ModelDrafter<AnyModel>>);

}  // namespace mica
