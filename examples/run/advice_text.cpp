// SPDX-License-Identifier: Apache-2.0
#include "advice_text.hpp"

#include "columns.hpp"
#include "json_text.hpp"
#include "safe_text.hpp"

namespace mica::program {

std::string advice_text(std::span<const advice::Advice> lines, std::size_t width) {
  std::string text;
  for (const advice::Advice& line : lines)  // paths may have any bytes
    text += join(at_left(line.topic + " ", width), printable(advice::text(line), ""), "\n");
  return text;
}

std::string advice_json(std::span<const advice::Advice> lines) {
  std::string text;
  for (const advice::Advice& line : lines) {
    text += join(text.empty() ? "" : ",", "{\"topic\":", json_string(line.topic),
                 ",\"found\":", json_string(line.found), ",\"fine\":", line.fine() ? "true" : "false");
    if (!line.fine())
      text += join(",\"meaning\":", json_string(line.meaning), ",\"change\":", json_string(line.change),
                   ",\"command\":", json_string(line.command));
    text += "}";
  }
  return join("[", text, "]");
}

}  // namespace mica::program
