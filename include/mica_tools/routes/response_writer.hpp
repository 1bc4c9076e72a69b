// SPDX-License-Identifier: Apache-2.0
//
// One answer of the Responses API, as events and as the object that they make. Thoughts and text are items
// with one part each. A call is an item without parts.
//
//   response.created .in_progress | .output_item.added  .content_part.added  .output_text.delta ...
//                                 | .output_text.done  .content_part.done  .output_item.done
//                                 | .output_item.added  .function_call_arguments.delta ... .done  .output_item.done
//                                 | response.completed
#pragma once

#include "mica_tools/calls/call_event.hpp"
#include "mica_tools/http/fields.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::serve {

/// The place of thoughts in the item that they have for themselves.
enum class ThoughtsAs : std::uint8_t {
  content,       ///< with OpenAI's names of events, which clients know
  open_content,  ///< with those of Open Responses, which differ here and nowhere else
  summary,       ///< the same text, for clients that ask for a summary
};

/// Makes the events of one response in their order.
class ResponseWriter {
 public:
  using Give = std::function<bool(const Json& event)>;  // false: the client has disconnected

  /// response: the object with all that the request decides. give: takes each event; empty: no stream.
  ResponseWriter(Json response, ThoughtsAs thoughts, Give give = {})
      : response_(std::move(response)), thoughts_(reasoning), give_(std::move(give)) {
    if (thoughts == ThoughtsAs::open_content) thoughts_.text = "response.reasoning";
    if (thoughts == ThoughtsAs::summary) thoughts_ = summary;
  }

  /// Each function returns false as soon as give() does.
  bool begin() { return give_response("response.created") && give_response("response.in_progress"); }
  /// scores: of the tokens of a text, an array.
  bool take(const calls::CallEvent& part, Json scores = Json::array()) {
    using Part = calls::CallEvent::Kind;
    if (part.kind == Part::thoughts) return text(thoughts_, part.text, std::move(scores));
    if (part.kind == Part::text) return text(answer, part.text, std::move(scores));
    if (part.kind == Part::call_begin) {
      close("completed");
      open(call, {{"call_id", part.id}, {"name", part.name}, {"arguments", ""}});
    }
    if (part.kind == Part::arguments) {
      text_ += part.text;
      Json event = part_event(".delta", kind_.text);
      event["delta"] = part.text;
      return give(std::move(event));
    }
    if (part.kind == Part::call_end) close(part.is_complete ? "completed" : "incomplete");
    return there_;
  }
  /// The last event. reason: why the answer is incomplete; empty: it is complete.
  bool end(std::string_view reason, Json usage, std::int64_t now) {
    const std::string_view status = reason.empty() ? "completed" : "incomplete";
    const bool has_call = !response_["output"].empty() && response_["output"].back()["type"] == call.item;
    const bool was_cut = !reason.empty() && (is(thoughts_) || is(call));
    if (!is(answer) && !has_call && !was_cut) {  // clients expect a message, even an empty one
      close(status);
      open(answer);
    }
    close(status);
    response_["status"] = status;
    if (reason.empty()) response_["completed_at"] = now;
    if (!reason.empty()) response_["incomplete_details"] = {{"reason", reason}};
    response_["usage"] = std::move(usage);
    return give_response(join("response.", status));
  }
  /// The last event of an answer that the server could not finish.
  bool fail(const std::string& message) {
    close("incomplete");
    response_["status"] = "failed";
    response_["error"] = {{"code", "server_error"}, {"message", message}};
    return give_response("response.failed");
  }

  /// The response so far; whole after end().
  [[nodiscard]] const Json& response() const noexcept { return response_; }

 private:
  /// How an output appears in items and events.
  struct Kind {
    std::string_view item, id;    // the type of the item, and the beginning of its id
    std::string_view list, part;  // the field of the item that has the part, and the type of the part
    std::string_view text;        // events of the text, before ".delta" and ".done"
    std::string_view whole;       // events of the part, before ".added" and ".done"
    std::string_view index;       // the field of events that has the number of the part
  };
  static constexpr Kind answer = {
      "message",      "msg_", "content", "output_text", "response.output_text", "response.content_part",
      "content_index"};
  static constexpr Kind reasoning = {
      "reasoning",    "rs_", "content", "reasoning_text", "response.reasoning_text", "response.content_part",
      "content_index"};
  static constexpr Kind summary = {"reasoning",
                                   "rs_",
                                   "summary",
                                   "summary_text",
                                   "response.reasoning_summary_text",
                                   "response.reasoning_summary_part",
                                   "summary_index"};
  static constexpr Kind call = {"function_call", "fc_", "", "", "response.function_call_arguments", "", ""};

  [[nodiscard]] bool is(const Kind& kind) const noexcept {
    return open_ && kind_.item == kind.item && kind_.part == kind.part;
  }

  bool text(const Kind& kind, std::string_view text, Json scores) {
    if (!is(kind)) {
      close("completed");
      open(kind);
    }
    text_ += text;
    Json event = part_event(".delta", kind_.text);
    event["delta"] = text;
    if (is(answer)) {
      scores_.insert(scores_.end(), scores.begin(), scores.end());
      event["logprobs"] = std::move(scores);
    }
    return give(std::move(event));
  }
  /// fields: of the item, for one without parts.
  void open(const Kind& kind, const Json& fields = Json::object()) {
    kind_ = kind;
    open_ = true;
    text_.clear();
    scores_ = Json::array();
    const std::size_t number = response_["output"].size();
    item_ = {{"type", kind.item}, {"id", join(kind.id, number, "_", response_["id"].get<std::string>())}};
    item_["status"] = "in_progress";
    item_.update(fields);
    if (is(answer)) item_["role"] = "assistant";
    if (is(thoughts_)) item_["summary"] = Json::array();
    if (!is(call)) item_["content"] = Json::array();
    give_item("response.output_item.added");
    if (!is(call)) give_part(".added");
  }
  void close(std::string_view status) {
    if (!open_) return;
    Json event = part_event(".done", kind_.text);
    event[is(call) ? "arguments" : "text"] = text_;
    if (is(call)) event["name"] = item_["name"];
    if (is(answer)) event["logprobs"] = scores_;
    give(std::move(event));
    if (is(call)) {
      item_["arguments"] = text_;
    } else {
      give_part(".done");
      item_[std::string(kind_.list)].push_back(part());
    }
    item_["status"] = status;
    give_item("response.output_item.done");
    response_["output"].push_back(std::move(item_));
    open_ = false;
  }

  [[nodiscard]] Json part() const {
    Json part = {{"type", kind_.part}, {"text", text_}};
    if (is(answer)) part["annotations"] = Json::array();
    if (is(answer)) part["logprobs"] = scores_;
    return part;
  }
  [[nodiscard]] Json part_event(std::string_view what, std::string_view of) const {
    Json event = {{"type", join(of, what)}, {"item_id", item_["id"]}};
    event["output_index"] = response_["output"].size();
    if (!is(call)) event[std::string(kind_.index)] = 0;
    return event;
  }
  void give_part(std::string_view what) {
    Json event = part_event(what, kind_.whole);
    event["part"] = part();
    give(std::move(event));
  }
  void give_item(std::string_view type) {
    give({{"type", type}, {"output_index", response_["output"].size()}, {"item", item_}});
  }
  bool give_response(const std::string& type) { return give({{"type", type}, {"response", response_}}); }
  bool give(Json event) {
    if (!give_) return true;
    event["sequence_number"] = events_++;
    there_ = there_ && give_(event);
    return there_;
  }

  Json response_;
  Kind thoughts_;
  Give give_;
  std::uint64_t events_ = 0;
  bool there_ = true;  // the client
  Kind kind_ = {};     // of the item that is being written
  bool open_ = false;
  Json item_;
  std::string text_;
  Json scores_ = Json::array();
};

}  // namespace mica::serve
