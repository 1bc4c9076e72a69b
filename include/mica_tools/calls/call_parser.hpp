// SPDX-License-Identifier: Apache-2.0
//
// Separates the text of an answer into thoughts, text and tool calls while it arrives in pieces of any size.
// How an answer is cut into pieces changes only the number of events: their texts, joined, are the same.
//
//   Let me look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Bonn"}}\n</tool_call>
//   text          call_begin            weather    arguments {"city": "Bonn"}     call_end
//
// - The arguments become a JSON object in every notation, and are valid JSON even if the model's text is not:
//   see detail/json_converter.hpp.
// - A call begins when its arguments begin. Text that looks like a call but has no arguments is text, also at
//   the end of an answer. A call that is cut off later ends with is_complete = false, without the end of its
//   object.
// - Marks behind complete arguments may be missing.
// - Thoughts begin only at the beginning of an answer or behind calls. There are no calls inside of them.
// - White space around thoughts and calls is left out.
#pragma once

#include "mica_tools/calls/call_event.hpp"
#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/detail/argument_reader.hpp"
#include "mica_tools/calls/detail/channel_header.hpp"
#include "mica_tools/calls/detail/marks.hpp"
#include "mica_tools/calls/detail/opening.hpp"
#include "mica_tools/calls/tool_types.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls {

/// Parses one answer. Format and tools must outlive it. Holds at most detail::max_held bytes of text, and the
/// piece. Raises nothing. Not thread-safe.
class CallParser {
 public:
  /// tools: those that may be called; without tools nothing is a call. A call of another tool is one too, but
  /// not in formats without a mark, such as [name(key=1)], where any text could look so.
  /// prompt: the text that the model continues; it may have opened thoughts.
  explicit CallParser(CallFormat&& format, std::span<const ToolTypes> tools = {},
                      std::string_view prompt = {}) = delete;  // it must outlive the parser
  explicit CallParser(const CallFormat& format, std::span<const ToolTypes> tools = {},
                      std::string_view prompt = {})
      : format_(format), tools_(tools), stops_(detail::space) {
    const std::string_view end = detail::trimmed(prompt);
    const auto ends_with = [end](std::string_view mark) { return !mark.empty() && end.ends_with(mark); };
    if (ends_with(detail::trimmed(format.thoughts.open))) kind_ = Kind::thoughts, is_fresh_ = true;
    if (ends_with(format.prompt_end)) held_ = format.prompt_end;
    is_marked_ = detail::has_mark(format);
    std::vector<std::string_view> marks = {format.list_open,      format.call_open,
                                           format.also_opens,     format.thoughts.open,
                                           format.thoughts.close, format.has_channels ? "<" : ""};
    marks.insert(marks.end(), format.around_text.begin(), format.around_text.end());
    for (const std::string_view mark : marks) stops_ += detail::trimmed(mark).substr(0, 1);
  }

  /// Takes a piece of the answer; adds the events that are certain. Pieces should be whole UTF-8 sequences;
  /// then the texts of events are, too.
  void take(std::string_view piece, std::vector<CallEvent>& events) {
    held_ += piece;
    while (advance(events)) {
    }
    held_.erase(0, std::exchange(at_, 0));
  }
  /// Call at the end of the answer: adds the last events. Nothing may follow.
  void finish(std::vector<CallEvent>& events) {
    if (state_ == State::between) at_ = held_.size();  // the next call or mark, which was cut off
    is_over_ = true;
    while (advance(events)) {
    }
    if (kind_ == Kind::text) give(events, held_.size());
    events.push_back({});
  }

 private:
  using Kind = CallEvent::Kind;
  using Match = detail::Match;
  /// scan: thoughts or text. closing: behind the arguments. between: behind a call of a list.
  enum class State : std::uint8_t { scan, arguments, closing, between };
  static constexpr std::size_t max_space = 256;  // a longer run of white space is never left out

  /// One step; false if it needs more text.
  bool advance(std::vector<CallEvent>& events) {
    if (state_ == State::scan) return scan(events);
    if (state_ == State::arguments) return read_arguments(events);
    return state_ == State::closing ? close(events) : continue_list(events);
  }

  bool scan(std::vector<CallEvent>& events) {
    const std::size_t first = detail::skip_space(held_, at_);
    if (is_fresh_) {
      at_ = first;
    } else if (first - at_ > max_space || (is_long_space_ && first > at_)) {
      give(events, first);
      is_long_space_ = true;
    }
    if (first == held_.size()) return false;
    const Match here = detail::limited(read_mark(first, events), held_, first, is_over_);
    if (here != Match::no) return here == Match::yes;
    give(events, std::min(held_.find_first_of(stops_, first + 1), held_.size()));
    is_fresh_ = is_long_space_ = is_begin_ = false;
    return true;
  }
  /// Reads the mark or call that begins at a place of the text.
  Match read_mark(std::size_t first, std::vector<CallEvent>& events) {
    const bool opens = is_begin_ && kind_ == Kind::text;
    if (opens || kind_ == Kind::thoughts) {
      const Match here = take_mark(first, opens ? format_.thoughts.open : format_.thoughts.close);
      if (here == Match::yes) begin(opens ? Kind::thoughts : Kind::text);
      if (is_decided(here)) return here;
    }
    if (format_.has_channels) return read_channel(first, events);
    if (kind_ == Kind::thoughts) return Match::no;
    for (const std::string& mark : format_.around_text) {
      if (const Match here = take_mark(first, mark); is_decided(here)) return here;
    }
    return read_call(first, false, events);
  }
  /// Whether nothing else can begin here: at the end of the answer, no more text of a mark follows.
  [[nodiscard]] bool is_decided(Match here) const noexcept {
    return here == Match::yes || (here == Match::more && !is_over_);
  }
  Match take_mark(std::size_t first, std::string_view mark) {
    if (mark.empty()) return Match::no;
    std::size_t next = first;
    const Match here = detail::match(detail::window(held_, first), next, mark);
    if (here == Match::yes) at_ = next, is_fresh_ = true;
    return here;
  }
  /// Thoughts or text begin.
  void begin(Kind kind) {
    kind_ = kind;
    is_fresh_ = is_begin_ = true;
    state_ = State::scan;
  }

  Match read_call(std::size_t first, bool in_list, std::vector<CallEvent>& events) {
    const bool is_possible = in_list || is_marked_ || is_begin_;
    if (tools_.empty() || !is_possible) return Match::no;
    detail::Opening opening = detail::read_opening(format_, detail::window(held_, first), first, in_list);
    if (opening.match == Match::more && is_cut_call(first)) return at_ = held_.size(), Match::yes;
    const bool is_known = is_marked_ || tool_named(opening.name) != nullptr;
    if (opening.match != Match::yes || !is_known)
      return opening.match == Match::more ? Match::more : Match::no;
    begin_call(std::move(opening), events);
    return Match::yes;
  }
  /// Whether the end of the answer, where a call may begin, is no text: it has two bytes or more of the first
  /// mark of a call, or follows a call.
  [[nodiscard]] bool is_cut_call(std::size_t first) const {
    if (!is_over_ || !is_marked_ || (is_begin_ && calls_ > 0)) return is_over_;
    const auto begins = [&](std::string_view opening) {
      const std::string mark = detail::first_mark(opening);
      if (mark.empty()) return false;
      std::size_t next = first;
      const Match here = detail::match(held_, next, mark);
      return here == Match::yes || (here == Match::more && held_.size() > first + 1);
    };
    return begins(format_.list_open + format_.call_open) || begins(format_.also_opens);
  }
  void begin_call(detail::Opening opening, std::vector<CallEvent>& events) {
    at_ = opening.arguments;
    arguments_.emplace(format_, tool_named(opening.name));
    is_object_open_ = !format_.keys.name.empty();
    state_ = opening.is_empty ? State::closing : State::arguments;
    events.push_back({Kind::call_begin, calls_, {}, std::move(opening.name), std::move(opening.id)});
    if (opening.is_empty) events.push_back({Kind::arguments, calls_, "{}"});
  }
  [[nodiscard]] const ToolTypes* tool_named(std::string_view name) const {
    const auto found =
        std::find_if(tools_.begin(), tools_.end(), [name](const ToolTypes& t) { return t.name == name; });
    return found == tools_.end() ? nullptr : &*found;
  }

  bool read_arguments(std::vector<CallEvent>& events) {
    std::string json;
    const Match here = arguments_->read(held_, at_, is_over_, json);
    if (!json.empty()) append(events, Kind::arguments, json);
    if (here == Match::no) end_call(false, events);
    if (here == Match::no && is_over_) at_ = held_.size();
    if (here == Match::yes) state_ = State::closing;
    return here != Match::more;
  }
  bool close(std::vector<CallEvent>& events) {
    if (is_object_open_) {
      std::size_t next = at_;
      const auto view = detail::window(held_, at_);
      const Match here = detail::MemberReader(format_.keys, view, at_).up_to_end(next, id_);
      if (detail::limited(here, held_, at_, is_over_) == Match::more) return false;
      is_object_open_ = false;
      if (here == Match::yes) at_ = next;
      if (here == Match::more) at_ = held_.size();  // the answer is over
      return true;
    }
    if (take_closing(format_.call_close) == Match::more) return false;
    end_call(true, events);
    return true;
  }
  /// Reads the marks of a closing text that are there; what is left of one at the end of the answer, too.
  Match take_closing(std::string_view marks) {
    std::size_t next = at_;
    const Match here = detail::match_some(detail::window(held_, at_), next, marks);
    const Match known = detail::limited(here, held_, at_, is_over_);
    if (known != Match::more) at_ = here == Match::more && is_over_ ? held_.size() : next;
    return known;
  }
  void end_call(bool is_complete, std::vector<CallEvent>& events) {
    events.push_back({Kind::call_end, calls_++, {}, {}, std::exchange(id_, {}), is_complete});
    begin(Kind::text);
    if (!detail::trimmed(format_.list_open).empty()) state_ = State::between;
  }
  bool continue_list(std::vector<CallEvent>& events) {
    std::size_t next = at_;
    Match here = detail::match(detail::window(held_, at_), next, format_.list_close);
    here = format_.list_close.empty() ? Match::no : detail::limited(here, held_, at_, is_over_);
    if (here == Match::yes) at_ = next;
    if (here == Match::no) here = detail::limited(read_call(at_, true, events), held_, at_, is_over_);
    if (here == Match::no) here = take_closing(format_.list_close);  // some of its marks may be missing
    if (here == Match::more) return false;
    if (state_ == State::between) begin(Kind::text);
    return true;
  }

  /// Of gpt-oss: the end of a message, or the header of the next one.
  Match read_channel(std::size_t first, std::vector<CallEvent>& events) {
    for (const std::string_view mark : detail::channel_ends) {
      if (const Match here = take_mark(first, mark); is_decided(here)) return here;
    }
    const detail::ChannelHeader header = detail::read_header(held_, first, is_begin_);
    if (header.match == Match::more && is_over_ && held_[first] == '<') return at_ = held_.size(), Match::yes;
    if (header.match != Match::yes) return header.match;
    if (!header.name.empty() && !tools_.empty()) {
      detail::Opening opening{Match::yes, detail::skip_space(held_, header.end), false, header.name, {}};
      if (opening.arguments == held_.size() && is_over_) return at_ = held_.size(), Match::yes;
      if (opening.arguments == held_.size()) return Match::more;
      if (held_[opening.arguments] == '{') return begin_call(std::move(opening), events), Match::yes;
    }
    begin(header.is_thoughts ? Kind::thoughts : Kind::text);
    at_ = header.end;
    is_begin_ = false;
    return Match::yes;
  }

  /// Gives the held text up to `end`.
  void give(std::vector<CallEvent>& events, std::size_t end) {
    if (end > at_) append(events, kind_, std::string_view(held_).substr(at_, end - at_));
    at_ = end;
  }
  /// Adds to the last event if it is of the same kind.
  void append(std::vector<CallEvent>& events, Kind kind, std::string_view text) {
    const std::size_t index = kind == Kind::arguments ? calls_ : 0;
    if (events.empty() || events.back().kind != kind) events.push_back({kind, index});
    events.back().text += text;
  }

  const CallFormat& format_;
  std::span<const ToolTypes> tools_;
  std::string stops_;   // bytes that a mark may begin with, and white space
  std::string held_;    // text that is not given yet
  std::size_t at_ = 0;  // the first byte of it
  std::optional<detail::ArgumentReader> arguments_;
  std::string id_;         // of the current call, where it is behind the arguments
  std::size_t calls_ = 0;  // that ended
  State state_ = State::scan;
  Kind kind_ = Kind::text;  // or thoughts
  bool is_marked_ = true;   // calls begin with a mark
  bool is_begin_ = true;   // nothing but white space was given since the answer, or behind thoughts or a call
  bool is_fresh_ = false;  // white space is left out here
  bool is_long_space_ = false;   // of the current white space, some was given
  bool is_object_open_ = false;  // the JSON object around the arguments has not ended
  bool is_over_ = false;
};

}  // namespace mica::calls
