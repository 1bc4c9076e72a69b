// SPDX-License-Identifier: Apache-2.0
//
// In what form a chat template takes the calls of earlier answers; templates differ.
#pragma once

namespace mica::text {

struct CallValues {
  bool arguments_are_text = false;  // as JSON text, else as a mapping
  bool content_is_null = false;     // of a message with calls and no text; else its content is an empty text
  bool text_is_apart = false;       // calls and text are not written in one message
};

}  // namespace mica::text
