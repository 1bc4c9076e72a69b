// SPDX-License-Identifier: Apache-2.0
//
// Where the library says what it did on its own account (a fall-back taken, a limit that was lower than hoped). The
// caller passes a sink; without one the library is silent. Never used inside a step, but to say why it failed.
#pragma once

#include <string_view>

namespace mica {

enum class LogLevel : unsigned char { info, warning, error };

/// A function and its argument; copies are free, an empty one drops every message.
struct LogSink {
  void (*write)(void* context, LogLevel level, std::string_view message) = nullptr;
  void* context = nullptr;

  void operator()(LogLevel level, std::string_view message) const {
    if (write != nullptr) write(context, level, message);
  }
};

}  // namespace mica
