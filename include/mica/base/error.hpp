// SPDX-License-Identifier: Apache-2.0
//
// The one exception of the library. It is thrown while opening, parsing, constructing and reading from disk,
// and nowhere else: a step is noexcept and returns a status.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace mica {

/// The kind of an error; a program maps it to its exit code.
enum class ErrorCode : std::uint8_t {
  failed,       ///< failed while running (I/O error, non-finite logits)
  usage,        ///< a request that makes no sense
  file,         ///< file missing, unreadable, damaged, or not what it claims to be
  budget,       ///< does not fit the memory budget
  unsupported,  ///< well formed, but an architecture, format or feature that is not supported
  limit,        ///< a limit on steps, output, depth or time was reached
};

/// An error whose text names the file, tensor or key, the value that was found, the allowed ones, and a
/// remedy.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

namespace detail {

inline void append(std::string& out, std::string_view text) { out.append(text); }
inline void append(std::string& out, const char* text) { out.append(text); }
inline void append(std::string& out, const std::string& text) { out.append(text); }
inline void append(std::string& out, char c) { out.push_back(c); }
inline void append(std::string& out, bool b) { out.append(b ? "true" : "false"); }
template <class T>
requires requires(T v) { std::to_string(v); }
void append(std::string& out, T value) { out.append(std::to_string(value)); }

}  // namespace detail

/// Joins texts and numbers into one string.
template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

/// Text of unknown origin made safe for a terminal and a log: control bytes, quotes and bytes above 0x7E
/// become \xNN; at most `limit` bytes are shown.
[[nodiscard]] inline std::string escaped(std::string_view text, std::size_t limit = 80) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\') {
      out.push_back(c);
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  if (text.size() > limit) out += "...";
  return out;
}

/// Throws an Error whose message is the joined parts.
template <class... Parts>
[[noreturn]] void raise(ErrorCode code, const Parts&... parts) {
  throw Error(code, join(parts...));
}

}  // namespace mica
