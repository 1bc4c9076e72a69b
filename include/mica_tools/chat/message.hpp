// SPDX-License-Identifier: Apache-2.0
//
// One message of a conversation, as much of it as every chat format has.
#pragma once

#include <string>

namespace mica::text {

struct Message {
  std::string
      role;  ///< system, user or assistant; also developer (a system message) and tool (a user message)
  std::string content;
  std::string thoughts = {};  ///< of an assistant, before the answer; a template may leave them out
};

}  // namespace mica::text
