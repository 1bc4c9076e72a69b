// SPDX-License-Identifier: Apache-2.0
//
// One answer of Anthropic's Messages API, as events and as the message that they make. Thoughts, text and
// calls are blocks of its content.
//
//   message_start ping | content_block_start  content_block_delta ...  content_block_stop
//                      | message_delta message_stop
#pragma once

#include "mica_tools/calls/call_event.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/serve/event.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::serve {

/// What a client sees of thoughts.
enum class ThoughtsShown : std::uint8_t {
  all,
  empty,  ///< blocks without their text
  none,   ///< no blocks
};

/// Makes the events of one message in their order.
class MessageWriter {
 public:
  using Give =
      std::function<bool(std::string_view type, const Json& event)>;  // false: the client has disconnected

  /// give: takes each event; empty: there is no stream.
  MessageWriter(std::string id, std::string model, ThoughtsShown shown, Give give = {})
      : shown_(shown), give_(std::move(give)) {
    message_ = {{"id", std::move(id)}, {"type", "message"}, {"role", "assistant"}};
    message_["model"] = std::move(model);
    message_["content"] = Json::array();
    for (const char* const name : {"stop_reason", "stop_sequence", "stop_details", "container"})
      message_[name] = nullptr;
  }

  /// Each function returns false as soon as give() does.
  bool begin(const Begun& begun) {
    message_["usage"] = usage(begun.prompt_tokens, begun.cached_tokens, 0, 0);
    return give({{"type", "message_start"}, {"message", message_}}) && give({{"type", "ping"}});
  }
  bool take(const calls::CallEvent& event) {
    switch (event.kind) {
      case Kind::thoughts:
      case Kind::text:
        return text(event.kind, event.text);
      case Kind::call_begin:
        close();
        id_ = event.id, name_ = event.name;
        calls_ = true;
        open(Kind::arguments);
        return there_;
      case Kind::arguments:
        text_ += event.text;
        return delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
      default:
        close();
        return there_;
    }
  }
  /// The last events. thoughts: tokens of them.
  bool end(const Ended& ended, std::size_t thoughts) {
    if (!open_ && message_["content"].empty()) open(Kind::text);  // clients expect a block, even an empty one
    close();
    message_["stop_reason"] = stop_reason(ended);
    if (!ended.stop.empty()) message_["stop_sequence"] = ended.stop;
    message_["usage"] = usage(ended.prompt_tokens, ended.cached_tokens, ended.answer_tokens, thoughts);
    Json event = {{"type", "message_delta"}};
    for (const char* const name : {"stop_reason", "stop_sequence", "stop_details", "container"})
      event["delta"][name] = message_[name];
    event["usage"] = message_["usage"];
    return give(event) && give({{"type", "message_stop"}});
  }

  /// The message so far; whole after end().
  [[nodiscard]] const Json& message() const noexcept { return message_; }

 private:
  using Kind = calls::CallEvent::Kind;

  bool text(Kind kind, const std::string& text) {
    const bool thinks = kind == Kind::thoughts;
    if (thinks && shown_ == ThoughtsShown::none) return true;
    if (!open_ || kind != kind_) {
      close();
      open(kind);
    }
    if (thinks && shown_ == ThoughtsShown::empty) return true;
    text_ += text;
    return thinks ? delta({{"type", "thinking_delta"}, {"thinking", text}})
                  : delta({{"type", "text_delta"}, {"text", text}});
  }
  [[nodiscard]] std::string_view stop_reason(const Ended& ended) const noexcept {
    if (!ended.stop.empty()) return "stop_sequence";  // a text of the request, and not of the chat format
    if (ended.reason == StopReason::length) return "max_tokens";
    if (ended.reason == StopReason::context_full) return "model_context_window_exceeded";
    return calls_ ? "tool_use" : "end_turn";
  }
  /// The API counts tokens of the prompt as read or as cached, and not twice.
  [[nodiscard]] static Json usage(std::size_t prompt, std::size_t cached, std::size_t answer,
                                  std::size_t thoughts) {
    Json out = {{"input_tokens", prompt - cached}, {"cache_creation_input_tokens", 0}};
    out["cache_read_input_tokens"] = cached;
    out["output_tokens"] = answer;
    out["output_tokens_details"] = {{"thinking_tokens", thoughts}};
    for (const char* const name : {"cache_creation", "inference_geo", "server_tool_use", "service_tier"})
      out[name] = nullptr;
    return out;
  }

  [[nodiscard]] Json block() const {
    if (kind_ == Kind::thoughts)
      return {{"type", "thinking"}, {"thinking", text_}, {"signature", open_ ? "" : signature}};
    if (kind_ == Kind::arguments) {
      Json input = Json::parse(text_, nullptr, false);
      if (!input.is_object()) input = Json::object();  // at its beginning, and where it was cut off
      return {{"type", "tool_use"},
              {"id", id_},
              {"name", name_},
              {"input", std::move(input)},
              {"caller", {{"type", "direct"}}}};
    }
    return {{"type", "text"}, {"text", text_}, {"citations", nullptr}};
  }
  void open(Kind kind) {
    kind_ = kind;
    open_ = true;
    text_.clear();
    give(
        {{"type", "content_block_start"}, {"index", message_["content"].size()}, {"content_block", block()}});
  }
  void close() {
    if (!open_) return;
    if (kind_ == Kind::thoughts) delta({{"type", "signature_delta"}, {"signature", signature}});
    give({{"type", "content_block_stop"}, {"index", message_["content"].size()}});
    open_ = false;
    message_["content"].push_back(block());
  }
  bool delta(Json delta) {
    Json event = {{"type", "content_block_delta"}, {"index", message_["content"].size()}};
    event["delta"] = std::move(delta);
    return give(event);
  }
  bool give(const Json& event) {
    if (!give_) return true;
    there_ = there_ && give_(event["type"].get<std::string>(), event);
    return there_;
  }

  /// Of a block of thoughts. It proves nothing, but clients drop blocks without one.
  static constexpr const char* signature = "mica";

  Json message_;
  ThoughtsShown shown_;
  Give give_;
  bool there_ = true;       // the client is connected
  bool open_ = false;       // a block is being written
  Kind kind_ = Kind::text;  // of the block; arguments: of a call
  bool calls_ = false;      // there was a call
  std::string id_, name_;   // of the last one
  std::string text_;
};

}  // namespace mica::serve
