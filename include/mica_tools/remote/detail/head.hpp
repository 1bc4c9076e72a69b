// SPDX-License-Identifier: Apache-2.0
//
// The header fields of an answer that matter for ranges of a file. The server's values are not trusted.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::remote::detail {

/// A number that is digits and nothing else.
[[nodiscard]] inline std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const bool digits = !text.empty() && text.front() >= '0' && text.front() <= '9';
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Head {
  int status = 0;
  std::string type;      // Content-Type
  std::string encoding;  // Content-Encoding
  std::string length;    // Content-Length
  std::string range;     // Content-Range
  std::string etag;
  std::string modified;  // Last-Modified
  std::string location;
  std::string retry_after;
  std::string link;  // of a list, to its next page
};

/// "bytes 0-262143/42000000000": the position of an answer's bytes in the file.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;             // of the answer, itself included
  std::optional<std::uint64_t> size;  // of the file; empty when the server does not send it

  /// Empty for what is no range.
  [[nodiscard]] static std::optional<ContentRange> parse(std::string_view text) noexcept {
    constexpr std::string_view unit = "bytes ";
    if (!text.starts_with(unit)) return std::nullopt;
    text.remove_prefix(unit.size());
    const std::size_t dash = text.find('-'), slash = text.find('/');
    if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
      return std::nullopt;
    const auto first = whole_number(text.substr(0, dash));
    const auto last = whole_number(text.substr(dash + 1, slash - dash - 1));
    const auto size = whole_number(text.substr(slash + 1));
    if (!first || !last || (!size && text.substr(slash + 1) != "*")) return std::nullopt;
    if (*first > *last || (size && *last >= *size)) return std::nullopt;
    return ContentRange{*first, *last, size};
  }
};

/// The identity of a version of a file. Fields that a server does not send are empty.
struct Identity {
  std::uint64_t size = 0;
  std::string etag;
  std::string modified;  // compared only where there is no etag

  [[nodiscard]] bool same_as(const Identity& other) const noexcept {
    return size == other.size && etag == other.etag && (!etag.empty() || modified == other.modified);
  }

  /// For If-Range: a server that still has this file answers with the range, another one with the whole file.
  /// Empty when the server sent no strong tag; weak ones (W/) are not usable.
  [[nodiscard]] std::string condition() const {
    const auto visible = [](char c) { return c >= 0x20 && c < 0x7F; };
    const std::string& tag = etag.empty() ? modified : etag;
    const bool exact = etag.empty() || etag.starts_with('"');
    return exact && std::all_of(tag.begin(), tag.end(), visible) ? tag : std::string();
  }
};

}  // namespace mica::remote::detail
