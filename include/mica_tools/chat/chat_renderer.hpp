// SPDX-License-Identifier: Apache-2.0
//
// The chat format of a Chat as a function, so that programs compile the template engine in one unit
// (chat_template.hpp) or need none.
#pragma once

#include "mica_tools/chat/message.hpp"

#include <functional>
#include <span>
#include <string>

namespace mica {

/// Writes conversations as the model was trained to read them.
struct ChatRenderer {
  /// The conversation as text, and the beginning of the next answer. What it raises, a Chat raises.
  std::function<std::string(std::span<const text::Message>)> render;
  /// Text that ends an answer; empty if a token ends it.
  std::string stop = {};
};

}  // namespace mica
