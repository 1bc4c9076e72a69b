// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic templates{
    "templates", "chat templates: how messages become one text",
    R"(A chat model was trained on texts of one format: markers around each message
of the user and of the model. The template in its file writes this format.
run and chat use it without a flag; complete never does.

  mica template model.gguf --messages messages.json    the text of the messages
  mica run model.gguf --no-conversation "..."          answers once, then ends

If the file has no template, or one that cannot be used, a built-in format that
fits the vocabulary is used, and a line on stderr names it. To choose another:

  --chat-template chatml         a built-in format, by name
  --chat-template plain          a format for models without chat training
  --chat-template-file FILE      a template of your own

  -sys TEXT                      the system prompt
  -sysf FILE                     the same from a file

Answers that repeat themselves, contain markers such as <|im_end|>, or never
end are signs of a wrong template. Markers that a message contains as text
stay text: a message cannot end its own turn.
)"};

}  // namespace mica::program::topic
