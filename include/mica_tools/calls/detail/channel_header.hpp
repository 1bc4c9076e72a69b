// SPDX-License-Identifier: Apache-2.0
//
// The headers of gpt-oss: what a message is, and for whom. Their fields come in any order.
//
//   <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>
//   <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
#pragma once

#include "mica_tools/calls/detail/marks.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::calls::detail {

inline constexpr std::string_view channel_ends[] = {"<|end|>", "<|call|>", "<|return|>"};

/// A header, from its first mark to <|message|>.
struct ChannelHeader {
  Match match = Match::no;
  std::size_t end = 0;       // behind <|message|>
  bool is_thoughts = false;  // text for the model itself
  std::string name = {};     // of the tool that is called, else empty
};

/// The header that begins at a place of the text. is_open: the prompt has its first mark.
inline ChannelHeader read_header(std::string_view text, std::size_t at, bool is_open) {
  constexpr std::string_view message = "<|message|>", recipient = "to=functions.";
  constexpr std::size_t longest = 512;
  ChannelHeader out;
  for (const std::string_view first : {"<|start|>", "<|channel|>", "to="}) {
    if (first == "to=" && !is_open) continue;
    std::size_t next = at;
    if (const Match here = match(text, next, first); here != Match::no) out.match = here;
    if (out.match == Match::yes) break;
  }
  if (out.match != Match::yes) return out;
  const std::string_view view = text.substr(at, longest);
  const std::size_t end = view.find(message);
  if (end == std::string_view::npos) return out.match = view.size() == longest ? Match::no : Match::more, out;
  const std::string_view header = view.substr(0, end);
  out.end = at + end + message.size();
  out.is_thoughts = header.find("<|channel|>analysis") != std::string_view::npos;
  if (const std::size_t to = header.find(recipient); to != std::string_view::npos) {
    const std::size_t first = to + recipient.size();
    out.name = header.substr(first, skip_name(header, first) - first);
  }
  return out;
}

}  // namespace mica::calls::detail
