// SPDX-License-Identifier: Apache-2.0
//
// One message of a conversation, as much of it as every chat format has.
#pragma once

#include <string>

namespace mica::text {

struct Message {
  /// system, user or assistant; also developer (a system message) and tool (a user message)
  std::string role;
  std::string content;        // plain text, without the marks of a chat format
  std::string thoughts = {};  // of an assistant, before the answer; a template may leave them out
};

}  // namespace mica::text
