// SPDX-License-Identifier: Apache-2.0
//
// What an answer with tools may be, for call_language().
#pragma once

#include "mica_tools/schema/schema_options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mica::calls {

/// Whether an answer has calls.
enum class ToolChoice : std::uint8_t {
  automatic,  ///< the model chooses between text and calls
  required,   ///< at least one call
  named,      ///< of CallLanguageOptions::name
  none        ///< no call
};

/// The choices of a request, and the vocabulary of the model.
struct CallLanguageOptions {
  ToolChoice choice = ToolChoice::automatic;
  std::string name = {};         // of the only tool that may be called, for ToolChoice::named
  bool parallel = true;          // several calls, where the format has them
  std::uint32_t max_calls = 16;  // then: weak models repeat a call for ever
  bool thoughts = true;  // are allowed first, where the format has them; required if the prompt opened them
  /// A JSON Schema that the text of an answer meets, if it is text and no call; empty: any text. With
  /// Notation::python or Notation::bare, a schema and tools together are unsupported.
  std::string text_schema = {};
  /// Text may come before calls. Unset: only with ToolChoice::automatic and without text_schema.
  std::optional<bool> text_first = {};
  std::string_view prompt = {};  // the text that the answer continues, as for CallParser
  /// A text at which generation stops. Strings in JSON do not contain it.
  std::string stop = {};
  /// Texts of the vocabulary's control and user-defined tokens, as for call_parts(): at least those for which
  /// is_mark() is true.
  std::span<const std::string_view> tokens = {};
  /// The bytes of the token with this text: TokenTrie::bytes_of(). No bytes for a token that ends an answer,
  /// since constraint::Grammar allows those wherever a text may end. Unset: the text itself.
  std::function<std::string(std::string_view)> token_bytes = {};
  /// White space and order of JSON. Notation::python and Notation::bare have a white space of their own, and
  /// parameters in Notation::tags and Notation::python have the order of the schema. The default is the white
  /// space of most chat templates, and no members that a schema does not mention.
  schema::SchemaOptions schema = {.whitespace = schema::Whitespace::spaced, .unlisted_members = false};
};

}  // namespace mica::calls
