// SPDX-License-Identifier: Apache-2.0
//
// The exception of the library. Functions that open, parse, construct, read, save or generate throw it; a step is
// noexcept and returns a status. The same functions may throw std::bad_alloc, if an allocation outside the
// budget fails: strings, small tables (docs/errors.md).
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
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

/// An error whose text names the file, tensor or key, the value found, the allowed ones, and a remedy.
class Error : public std::exception {
 public:
  /// The message is shown as it is; raise() joins one, escaped() makes foreign text safe for it.
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  /// what() and message() are the same text, without the code.
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

namespace detail {

/// A text or a number to be joined, as one type: a call of join() compiles no function of its own. It refers to
/// the text that it was made from.
class TextPart {
 public:
  TextPart(std::string_view text) noexcept : text_(text) {}
  TextPart(const std::string& text) noexcept : text_(text) {}
  TextPart(const char* text) noexcept : text_(text) {}
  TextPart(bool value) noexcept : text_(value ? "true" : "false") {}
  TextPart(char value) noexcept : kind_(Kind::character), character_(value) {}
  TextPart(int value) noexcept : TextPart(static_cast<long long>(value)) {}
  TextPart(long value) noexcept : TextPart(static_cast<long long>(value)) {}
  TextPart(long long value) noexcept : kind_(Kind::integer), integer_(value) {}
  TextPart(unsigned value) noexcept : TextPart(static_cast<unsigned long long>(value)) {}
  TextPart(unsigned long value) noexcept : TextPart(static_cast<unsigned long long>(value)) {}
  TextPart(unsigned long long value) noexcept : kind_(Kind::count), count_(value) {}
  TextPart(double value) noexcept : kind_(Kind::real), real_(value) {}

  void append_to(std::string& out) const {
    if (kind_ == Kind::text) out.append(text_);
    if (kind_ == Kind::character) out.push_back(character_);
    if (kind_ == Kind::integer) out.append(std::to_string(integer_));
    if (kind_ == Kind::count) out.append(std::to_string(count_));
    if (kind_ == Kind::real) out.append(std::to_string(real_));
  }

 private:
  enum class Kind : std::uint8_t { text, character, integer, count, real };

  Kind kind_ = Kind::text;
  union {
    std::string_view text_;
    char character_;
    long long integer_;
    unsigned long long count_;
    double real_;
  };
};

}  // namespace detail

/// Joins texts and numbers into one string: join("a ", 1) or join({"a ", 1}).
[[nodiscard]] inline std::string join(std::initializer_list<detail::TextPart> parts) {
  std::string out;
  for (const detail::TextPart& part : parts) part.append_to(out);
  return out;
}
template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  return join(std::initializer_list<detail::TextPart>{parts...});
}

/// Text of unknown origin made safe for a terminal and a log: control bytes, backslashes and bytes above 0x7E
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

/// Throws an Error whose message is the joined texts and numbers.
[[noreturn]] inline void raise(ErrorCode code, std::initializer_list<detail::TextPart> parts) {
  throw Error(code, join(parts));
}
template <class... Parts>
[[noreturn]] void raise(ErrorCode code, const Parts&... parts) {
  raise(code, std::initializer_list<detail::TextPart>{parts...});
}

}  // namespace mica
