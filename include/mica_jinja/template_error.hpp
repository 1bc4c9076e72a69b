// SPDX-License-Identifier: Apache-2.0
//
// The error of the template engine: what went wrong, of which kind, and in which line of the template. A
// template is text of unknown origin, and so is what its errors quote: the message is made safe for terminals
// and logs here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mica::jinja {

namespace detail {

/// Joins texts, characters and numbers into one string.
template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  std::string out;
  const auto append = [&out](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<Part, char>) {
      out.push_back(part);
    } else if constexpr (std::is_arithmetic_v<Part>) {
      out += std::to_string(part);
    } else {
      out += part;
    }
  };
  (append(parts), ...);
  return out;
}

/// Safe for a terminal and a log: control bytes, backslashes and bytes above 0x7E become \xNN; at most
/// `limit` bytes are shown.
[[nodiscard]] inline std::string escaped(std::string_view text, std::size_t limit = 80) {
  constexpr std::string_view digits = "0123456789abcdef";
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

}  // namespace detail

/// Everything that parsing or rendering a template can throw.
class TemplateError : public std::runtime_error {
 public:
  static constexpr std::size_t shown_bytes = 512;  ///< bytes of the reason that what() has at most

  /// The kind of an error.
  enum class Cause : std::uint8_t {
    syntax,       ///< the text is not a template
    unsupported,  ///< a template, but with something that is not here (include, import, extends ...)
    evaluation,   ///< an operation that makes no sense for its operands
    limit,        ///< one of Limits was reached
    raised,       ///< the template itself called raise_exception(); detail() is its message
  };

  /// line: from 1; 0: none is to blame.
  TemplateError(Cause cause, std::string reason, std::size_t line = 0)
      : std::runtime_error(sentence(cause, reason, line)),
        cause_(cause),
        line_(line),
        detail_(std::move(reason)) {}

  [[nodiscard]] Cause cause() const noexcept { return cause_; }  ///< for programs; what() is a sentence
  /// Line of the template, counted from 1; 0 where no line is to blame.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// The reason alone, whole and with every byte as it is; for `raised`, exactly what the template said.
  /// Not for a terminal: what() has it escaped, and at most `shown_bytes` of it.
  [[nodiscard]] const std::string& detail() const noexcept { return detail_; }

 private:
  static std::string sentence(Cause cause, const std::string& reason, std::size_t line) {
    const std::string safe = shown(reason);
    if (cause == Cause::raised) return detail::join("the chat template refuses: ", safe);
    return line == 0 ? detail::join("chat template: ", safe)
                     : detail::join("chat template, line ", line, ": ", safe);
  }

  /// Text that is safe already stays as it is: parts of it may have been escaped before.
  static std::string shown(const std::string& reason) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~'; };
    const bool safe = reason.size() <= shown_bytes && std::all_of(reason.begin(), reason.end(), plain);
    return safe ? reason : detail::escaped(reason, shown_bytes);
  }

  Cause cause_;
  std::size_t line_;
  std::string detail_;
};

namespace detail {

/// An operation that makes no sense; the caller that knows the line adds it.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw TemplateError(TemplateError::Cause::evaluation, join(parts...));
}

/// A limit that was reached.
template <class... Parts>
[[noreturn]] void exceed(const Parts&... parts) {
  throw TemplateError(TemplateError::Cause::limit, join(parts...));
}

}  // namespace detail
}  // namespace mica::jinja
