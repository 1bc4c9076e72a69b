// SPDX-License-Identifier: Apache-2.0
//
// What a CallParser finds in an answer, in order:
//
//   thoughts... | text... | call_begin arguments... call_end | ... | end
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mica::calls {

/// One event. Texts are whole as far as the pieces of the answer were.
struct CallEvent {
  enum class Kind : std::uint8_t {
    thoughts,    // text: more of the thoughts
    text,        // text: more of the answer that a person reads
    call_begin,  // name is known, and id where it is written before the arguments
    arguments,   // text: more of the JSON object of the arguments
    call_end,    // id is known where it is written behind the arguments
    end,         // the answer is over
  };

  Kind kind = Kind::end;
  std::size_t index = 0;     // of the call, from 0; for events of calls
  std::string text = {};     // never empty where the kind has one
  std::string name = {};     // of call_begin
  std::string id = {};       // empty: none is written
  bool is_complete = false;  // of call_end: the arguments are a whole JSON object
};

}  // namespace mica::calls
