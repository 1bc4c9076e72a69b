// SPDX-License-Identifier: Apache-2.0
//
// The parts of an answer, thoughts and text, for APIs that show thoughts in a place of their own.
#pragma once

#include "mica_tools/chat/thought_splitter.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/serve/event.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

/// Splits one answer, and counts the tokens of its thoughts. It does not keep the model in memory, for which other
/// models may wait: if the model was unloaded before a slow client has read the end, the count is an estimate.
/// Limit: where the end of the thoughts and the beginning of the answer are one event, as for a client that reads
/// slowly, scores of both are with the answer.
class Parts {
 public:
  /// job: with its prompt; need not outlive it.
  explicit Parts(const Job& job) : model_(job.model), splitter_(job.prompt.end) {}

  /// Calls give(ChatPart, std::string_view text, std::vector<ScoredPiece>), the last one empty for thoughts.
  /// Returns false as soon as give() does.
  template <class Give>
  [[nodiscard]] bool take(Text more, Give&& give) {
    tokens_.insert(tokens_.end(), std::make_move_iterator(more.tokens.begin()),
                   std::make_move_iterator(more.tokens.end()));
    const bool there = splitter_.take(more.text, giver(give));
    if (last_ == ChatPart::thoughts && begun_) tokens_.clear();  // of thoughts, or of a mark after them
    return there;
  }
  /// Call at the end of the text.
  template <class Give>
  [[nodiscard]] bool finish(Give&& give) {
    return splitter_.finish(giver(give));
  }
  /// As many as the text of the thoughts has, which is at most `all`: marks are not counted.
  [[nodiscard]] std::size_t thought_tokens(std::size_t all) const {
    if (thoughts_.empty()) return 0;
    if (const auto model = model_.lock()) return std::min(all, model->encode(thoughts_, false, false).size());
    return all * thoughts_.size() / (thoughts_.size() + answer_bytes_);
  }

 private:
  template <class Give>
  [[nodiscard]] auto giver(Give& give) {
    return [this, &give](ChatPart part, std::string_view text) {
      begun_ = true;
      last_ = part;
      if (part == ChatPart::thoughts) thoughts_ += text;
      if (part == ChatPart::answer) answer_bytes_ += text.size();
      return give(part, text,
                  part == ChatPart::answer ? std::exchange(tokens_, {}) : std::vector<ScoredPiece>{});
    };
  }

  std::weak_ptr<const ServedModel> model_;
  ThoughtSplitter splitter_;
  std::vector<ScoredPiece> tokens_;  // whose text the splitter may still hold
  std::string thoughts_;
  std::size_t answer_bytes_ = 0;
  ChatPart last_ = ChatPart::answer;
  bool begun_ = false;
};

/// A float as it was written: 0.8, not 0.800000011920929.
[[nodiscard]] inline double shown(float value) noexcept { return std::round(value * 1e6) / 1e6; }

/// How much a model is to think. "none" turns thoughts off; another word turns them on and is the variable
/// `reasoning_effort` of the template. Raises Refusal (invalid) for a word that is not allowed.
inline void set_effort(const std::string& effort, const std::string& place,
                       const std::vector<std::string_view>& allowed, Conversation& out) {
  if (std::find(allowed.begin(), allowed.end(), effort) == allowed.end()) {
    std::string list;
    for (const std::string_view each : allowed) list += join(list.empty() ? "" : ", ", each);
    refuse_field(place, join("found '", escaped(effort, 40), "', allowed: ", list));
  }
  out.thinking = effort != "none";
  if (effort != "none") out.variables = dump(Json{{"reasoning_effort", effort}});
}

}  // namespace mica::serve
