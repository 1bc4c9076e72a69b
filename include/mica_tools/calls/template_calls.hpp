// SPDX-License-Identifier: Apache-2.0
//
// What a chat template does with tools; find_template_calls() finds it. write_tools() adds the rest to the
// messages as text.
#pragma once

#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/chat/call_values.hpp"

namespace mica::calls {

struct TemplateCalls {
  CallFormat format = plain();   // of answers
  bool lists_tools = false;      // it writes the tools of a request
  bool writes_calls = false;     // it writes the calls of earlier answers
  bool writes_results = false;   // it writes messages of the role tool
  text::CallValues values = {};  // how it takes calls

  /// The format for a model without a template: that of Hermes, without thoughts.
  static CallFormat plain() {
    CallFormat out;
    out.may_think = false;
    return out;
  }
};

}  // namespace mica::calls
