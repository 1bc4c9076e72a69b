// SPDX-License-Identifier: Apache-2.0
//
// How the models of one family write tool calls and thoughts: a plain description for the parser, the grammar
// and the search in chat templates. Not here: the formats of known families (known_formats.hpp).
//
//   <think>...</think>  text  list_open  call_open NAME after_name ARGUMENTS call_close
//                             separator  call_open NAME after_name ARGUMENTS call_close  list_close turn_end
//
// Where `keys` has a name, a call is a JSON object between call_open and call_close:
//
//   call_open {"name": "NAME", "arguments": ARGUMENTS} call_close
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::calls {

/// How the arguments of a call are written.
enum class Notation : std::uint8_t {
  json,    // {"city": "Bonn", "days": 3}
  tags,    // <parameter=city>Bonn</parameter><parameter=days>3</parameter>, see ParameterMarks
  python,  // city="Bonn", days=3), behind the "(" of after_name
  bare,    // {city:<|"|>Bonn<|"|>,days:3}, see CallFormat::quote
};

/// The text around one parameter, for Notation::tags. A string is written as it is, other values as JSON.
struct ParameterMarks {
  std::string open;              // before the key
  std::string key_close;         // between the key and the value
  std::string close;             // after the value
  std::string type_open = {};    // between the key and the type of the value; empty: no type is written
  std::string string_type = {};  // the type of a string
  std::string other_type = {};   // the type of all other values; empty: number, boolean, null, array, object
};

/// The keys of a call that is a JSON object.
struct JsonKeys {
  std::string name = {};       // empty: a call is no JSON object
  std::string arguments = {};  // of the arguments
  std::string id = {};         // of the id; empty: none is written
  bool id_first = false;       // the id is the first member, else the last one
};

/// The id of a call that is no JSON object.
struct IdMarks {
  std::string open = {};   // between the name and the id; empty: no id is written
  bool is_number = false;  // the number of the call is written
  /// Of a number: the id is this text, the name, `open` and the number (Kimi K2). Empty: the number is no id.
  std::string before_name = {};
};

/// The text around thoughts.
struct ThoughtMarks {
  std::string open;   // empty: the family has no thoughts
  std::string close;  // after them
};

/// One way to write calls. The white space in these texts is the one that models are trained on; the parser
/// accepts any.
struct CallFormat {
  std::string family = "hermes";            // a name for notes and tests
  std::string list_open = {};               // before the first call
  std::string call_open = "<tool_call>\n";  // before each call
  std::string also_opens = {};              // a part of call_open that models write in its place
  JsonKeys keys = {"name", "arguments", {}, false};
  IdMarks id = {};
  std::string after_name = {};  // between name, id and arguments, without keys
  Notation notation = Notation::json;
  ParameterMarks parameter = {};
  std::string quote = {};                     // around strings, for Notation::bare
  std::string call_close = "\n</tool_call>";  // after each call
  std::string separator = "\n";               // between two calls
  std::string list_close = {};                // after the last call
  std::string turn_end = {};                  // text or token behind the calls that ends the answer
  ThoughtMarks thoughts = {"<think>", "</think>"};
  std::vector<std::string> around_text = {};  // marks around the answer's text, which are no part of it
  std::string prompt_end = {};                // the part of call_open that the prompt ends with
  bool may_think =
      true;  // false: the template has no marks of thoughts, so that answers do not begin with them
  bool prompt_opens_thoughts = false;  // the prompt ends with thoughts.open, if thinking is not disabled
  std::size_t id_bytes = 0;            // the length of an id that the template takes; 0: any
  bool is_parallel = true;             // an answer may have several calls
  bool has_channels = false;           // gpt-oss: a header of each message has the name
};

namespace detail {

/// The texts of a format that occur in answers, in no order; some are empty.
inline std::vector<std::string_view> texts_of(const CallFormat& format) {
  const ParameterMarks& parameter = format.parameter;
  std::vector<std::string_view> out = {
      format.list_open,    format.call_open,    format.also_opens,    format.after_name,
      format.id.open,      format.quote,        format.call_close,    format.separator,
      format.list_close,   format.turn_end,     parameter.open,       parameter.close,
      parameter.key_close, parameter.type_open, format.thoughts.open, format.thoughts.close};
  out.insert(out.end(), format.around_text.begin(), format.around_text.end());
  if (format.has_channels)
    out.insert(out.end(), {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"});
  return out;
}

}  // namespace detail

/// Whether a token of this text is a mark of the format. The parser needs its text, also where the vocabulary
/// calls it a control token, whose text is not shown otherwise.
[[nodiscard]] inline bool is_mark(const CallFormat& format, std::string_view token) {
  const auto texts = detail::texts_of(format);
  return !token.empty() && std::any_of(texts.begin(), texts.end(), [token](std::string_view text) {
    return text.find(token) != std::string_view::npos;
  });
}

}  // namespace mica::calls
