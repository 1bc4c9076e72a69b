// SPDX-License-Identifier: Apache-2.0
//
// The text that a shell puts on stdin beside a prompt: `cat file | mica run MODEL "Summarise"`. Pipes and
// files are read to their ends. Sockets, terminals and devices are not: they may never end.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <poll.h>
#include <sys/stat.h>

namespace mica::program {

/// The time that an open pipe may stay empty: before a note, and before the program continues with the prompt
/// alone.
inline constexpr std::chrono::milliseconds note_after{1000}, give_up_after{30'000};

/// Whether a descriptor is an open pipe or regular file.
[[nodiscard]] inline bool is_piped(int descriptor) noexcept {
  struct ::stat status {};
  return ::fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode));
}

/// Waits for the first byte, or the end, of a pipe or file. False when neither came in time, or a signal did.
[[nodiscard]] inline bool has_input_within(int descriptor, std::chrono::milliseconds time) noexcept {
  ::pollfd wanted{descriptor, POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(time.count())) != 0 && wanted.revents != 0;
}

/// The text, a blank line and the prompt; an empty prompt leaves the text as it is, a blank text the prompt.
[[nodiscard]] inline std::string text_and_prompt(std::string_view text, std::string_view prompt) {
  if (prompt.empty()) return std::string(text);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::string(prompt);
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  return std::string(text).append("\n\n").append(prompt);
}

}  // namespace mica::program
