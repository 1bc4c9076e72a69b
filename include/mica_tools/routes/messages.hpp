// SPDX-License-Identifier: Apache-2.0
//
// The content of a message as plain text: a string, or an array of parts that are text.
#pragma once

#include "mica_tools/http/fields.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace mica::serve {

/// The text of one part. types: of parts that have a field `text`. place: of the part in the request. Raises
/// Refusal: option for other parts (images, audio, files), invalid for other values.
[[nodiscard]] inline std::string part_text(const Json& json, const std::string& place,
                                           std::initializer_list<std::string_view> types = {"text"}) {
  Fields part(json, place);
  const std::string type = part.text("type").value_or("");
  if (std::find(types.begin(), types.end(), type) == types.end())
    refuse_field(part.place("type"), join("found '", escaped(type, 40), "', but this server reads text only"),
                 Cause::option);
  std::string text = part.need_text("text");
  part.accept("cache_control");  // of Anthropic: the prefix cache of this server needs no mark
  part.accept("annotations");    // of answers, which clients send back
  part.accept("citations");
  part.accept("logprobs");
  part.refuse_others();
  return text;
}

/// A string, or all parts, joined without a separator. Raises as part_text().
[[nodiscard]] inline std::string content_text(const Json& content, const std::string& place,
                                              std::initializer_list<std::string_view> types = {"text"}) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    refuse_field(place, join("must be a string or an array of parts, not ", type_name(content)));
  std::string out;
  for (std::size_t i = 0; i < content.size(); ++i)
    out += part_text(content[i], join(place, "[", i, "]"), types);
  return out;
}

}  // namespace mica::serve
