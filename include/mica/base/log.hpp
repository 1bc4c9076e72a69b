// SPDX-License-Identifier: Apache-2.0
//
// Messages about decisions of the library (a fall-back, a lower limit than requested). The caller passes a
// sink; without one there are no messages. Inside a step it is used only for the reason of a failure.
#pragma once

#include <string_view>

namespace mica {

/// info: another way, the same result; warning: less than was requested; error: the reason of a failure.
enum class LogLevel : unsigned char { info, warning, error };

/// A function and its argument; copies are free, an empty one drops every message.
struct LogSink {
  void (*write)(void* context, LogLevel level, std::string_view message) = nullptr;  // null: all are dropped
  void* context = nullptr;  // the first argument of write

  /// Calls write at once, on the thread that called the library; the text is valid during the call.
  void operator()(LogLevel level, std::string_view message) const {
    if (write != nullptr) write(context, level, message);
  }
};

}  // namespace mica
