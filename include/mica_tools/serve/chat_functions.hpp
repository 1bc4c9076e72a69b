// SPDX-License-Identifier: Apache-2.0
//
// The chat format of a model as functions, so that the unit of the scheduler compiles no template engine.
#pragma once

#include "mica_tools/calls/template_calls.hpp"
#include "mica_tools/chat/marked_messages.hpp"
#include "mica_tools/chat/message.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <functional>
#include <span>
#include <string>

namespace mica::serve {

/// Immutable: any number of threads.
struct ChatFunctions {
  /// The messages as text; with_answer: with the beginning of the next answer. The conversation has thinking,
  /// variables and tools. marked: for the strings of tools and of the arguments of calls. Raises mica::Error.
  std::function<std::string(std::span<const text::Message>, const Conversation&, bool with_answer,
                            const text::MarkedMessages& marked)>
      render;
  std::string stop = {};  // text that ends an answer; empty: a token does
  /// What the format does with tools; empty: the default of TemplateCalls. May take tens of milliseconds.
  std::function<calls::TemplateCalls()> calls = {};
};

}  // namespace mica::serve
