// SPDX-License-Identifier: Apache-2.0
//
// The parts of an answer: thoughts and calls of tools, for which APIs have places of their own, and text.
#pragma once

#include "mica_tools/calls/call_parser.hpp"
#include "mica_tools/chat/thought_splitter.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/routes/random_id.hpp"
#include "mica_tools/serve/event.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

/// How the calls in an answer are to be read.
struct CallReading {
  calls::CallFormat format;
  std::vector<calls::ToolTypes> tools;
  bool has_text = true;  // false: what seems to be text is a part of a call, as at the end of an answer
};

/// Splits the text of one answer. Each call gets an id, and calls are counted.
class PartReader {
 public:
  /// calls: null where the request has neither tools nor a schema. prompt: its end, which may open thoughts.
  /// id_prefix: of ids that the model does not write itself.
  PartReader(std::shared_ptr<const CallReading> calls, std::string_view prompt, std::string_view id_prefix)
      : reading_(std::move(calls)), splitter_(prompt), id_prefix_(id_prefix) {
    if (reading_) parser_.emplace(reading_->format, reading_->tools, prompt);
  }

  /// Passes each event that is certain to give(const calls::CallEvent&); none is of the kind `end`. last: the
  /// text ends after this piece. Returns false as soon as give() does.
  template <class Give>
  [[nodiscard]] bool take(std::string_view piece, bool last, Give&& give) {
    using Kind = calls::CallEvent::Kind;
    if (!parser_) {
      const auto split = [&](ChatPart part, std::string_view text) {
        return give(
            calls::CallEvent{part == ChatPart::thoughts ? Kind::thoughts : Kind::text, 0, std::string(text)});
      };
      return splitter_.take(piece, split) && (!last || splitter_.finish(split));
    }
    std::vector<calls::CallEvent> events;
    parser_->take(piece, events);
    if (last) parser_->finish(events);
    for (calls::CallEvent& event : events) {
      if (event.kind == Kind::call_begin) {
        ++calls_;
        if (event.id.empty()) event.id = new_id();
      }
      if (event.kind == Kind::call_end && event.is_complete) ++complete_;
      if (event.kind == Kind::text && !reading_->has_text) continue;
      if (event.kind != Kind::end && !give(std::as_const(event))) return false;
    }
    return true;
  }
  /// The number of calls so far, and whether all of them are complete.
  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }
  [[nodiscard]] bool calls_are_complete() const noexcept { return complete_ == calls_; }

 private:
  [[nodiscard]] std::string new_id() const {
    const std::size_t bytes = reading_->format.id_bytes;
    return bytes > 0 ? random_id("", bytes) : random_id(id_prefix_);
  }

  std::shared_ptr<const CallReading> reading_;
  std::optional<calls::CallParser> parser_;  // refers to *reading_
  ThoughtSplitter splitter_;
  std::string id_prefix_;
  std::size_t calls_ = 0, complete_ = 0;
};

/// Splits an answer as PartReader does, keeps the scores of the tokens of its text, and counts the tokens of
/// its thoughts. It does not keep the model in memory: if the model is unloaded before a slow client has read
/// the end, the count is an estimate.
/// Limit: where the end of the thoughts and the beginning of the answer are one event, as for a client that
/// reads slowly, scores of both are with the answer.
class Parts {
 public:
  /// job: with its prompt; need not outlive it.
  Parts(const Job& job, std::shared_ptr<const CallReading> calls, std::string_view id_prefix)
      : model_(job.model), reader_(std::move(calls), job.prompt.end, id_prefix) {}

  /// Passes each event to give(const calls::CallEvent&, std::vector<ScoredPiece>), with scores for text
  /// alone. Returns false as soon as give() does.
  template <class Give>
  [[nodiscard]] bool take(Text more, Give&& give) {
    tokens_.insert(tokens_.end(), std::make_move_iterator(more.tokens.begin()),
                   std::make_move_iterator(more.tokens.end()));
    const bool there = reader_.take(more.text, false, giver(give));
    if (last_ != Kind::text) tokens_.clear();  // of thoughts and calls, or of a mark after them
    return there;
  }
  /// Call at the end of the text.
  template <class Give>
  [[nodiscard]] bool finish(Give&& give) {
    return reader_.take({}, true, giver(give));
  }
  /// The number of tokens in the thoughts, without marks; never more than `all`.
  [[nodiscard]] std::size_t thought_tokens(std::size_t all) const {
    if (thoughts_.empty()) return 0;
    if (const auto model = model_.lock()) return std::min(all, model->encode(thoughts_, false, false).size());
    return all * thoughts_.size() / (thoughts_.size() + other_bytes_);
  }
  /// The number of calls so far.
  [[nodiscard]] std::size_t calls() const noexcept { return reader_.calls(); }

 private:
  using Kind = calls::CallEvent::Kind;

  template <class Give>
  [[nodiscard]] auto giver(Give& give) {
    return [this, &give](const calls::CallEvent& event) {
      last_ = event.kind;
      if (event.kind == Kind::thoughts) {
        thoughts_ += event.text;
      } else {
        other_bytes_ += event.text.size();
      }
      return give(event, event.kind == Kind::text ? std::exchange(tokens_, {}) : std::vector<ScoredPiece>{});
    };
  }

  std::weak_ptr<const ServedModel> model_;
  PartReader reader_;
  std::vector<ScoredPiece> tokens_;  // whose text the reader may still hold
  std::string thoughts_;
  std::size_t other_bytes_ = 0;
  Kind last_ = Kind::text;
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
