// SPDX-License-Identifier: Apache-2.0
//
// One message of a conversation, for all chat formats; a format may leave out what it has no place for.
#pragma once

#include <string>
#include <vector>

namespace mica::text {

/// A call of a tool in the answer of an assistant.
struct ToolCall {
  std::string id;         // by which the result names it; may be empty
  std::string name;       // of the tool
  std::string arguments;  // a JSON object
};

struct Message {
  /// system, user or assistant; also developer (a system message) and tool (the result of a call; a user
  /// message in formats without tools)
  std::string role;
  std::string content;               // plain text, without the marks of a chat format
  std::string thoughts = {};         // of an assistant, before the answer; a template may leave them out
  std::vector<ToolCall> calls = {};  // of an assistant, behind the content
  std::string tool = {};             // of a result: the name of its tool
  std::string call_id = {};          // of a result: ToolCall::id
};

}  // namespace mica::text
