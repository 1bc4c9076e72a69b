// SPDX-License-Identifier: Apache-2.0
//
// References to parts of a document: URIs against a base (RFC 3986, 5.2) and JSON pointers (RFC 6901).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::schema {

/// A URI in two parts.
struct SplitUri {
  std::string_view before;    // the '#'
  std::string_view fragment;  // after it; empty without one
};
[[nodiscard]] inline SplitUri split_uri(std::string_view uri) noexcept {
  const std::size_t mark = uri.find('#');
  if (mark == std::string_view::npos) return {uri, {}};
  return {uri.substr(0, mark), uri.substr(mark + 1)};
}

namespace detail {

/// The length of "scheme:", or 0.
[[nodiscard]] inline std::size_t scheme_size(std::string_view uri) noexcept {
  for (std::size_t i = 0; i < uri.size(); ++i) {
    const char c = uri[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == ':') return i == 0 ? 0 : i + 1;
    if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))) return 0;
  }
  return 0;
}
/// The length of "scheme://authority" or "scheme:".
[[nodiscard]] inline std::size_t root_size(std::string_view uri) noexcept {
  const std::size_t scheme = scheme_size(uri);
  if (uri.substr(scheme, 2) != "//") return scheme;
  const std::size_t path = uri.find_first_of("/?", scheme + 2);
  return path == std::string_view::npos ? uri.size() : path;
}
/// Without "." and "..".
[[nodiscard]] inline std::string without_dots(std::string_view path) {
  std::vector<std::string_view> parts;
  bool directory = false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    directory = part == "." || part == "..";
    if (part == ".." && parts.size() > 1) parts.pop_back();
    if (!directory) parts.push_back(part);
    begin = end + 1;
  }
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out.append(i == 0 ? "" : "/").append(parts[i]);
  if (directory) out += '/';
  return out;
}

}  // namespace detail

/// A reference without fragment, as seen from a base.
[[nodiscard]] inline std::string resolve_uri(std::string_view base, std::string_view reference) {
  if (reference.empty()) return std::string(base);
  if (detail::scheme_size(reference) > 0) return std::string(reference);
  const std::size_t root = detail::root_size(base);
  if (reference.starts_with("//"))
    return std::string(base.substr(0, detail::scheme_size(base))).append(reference);
  const std::string_view before_query = base.substr(0, std::min(base.find('?'), base.size()));
  const std::size_t mark = std::min(reference.find('?'), reference.size());
  const std::string query(reference.substr(mark));
  reference = reference.substr(0, mark);
  if (reference.empty()) return std::string(before_query) + query;
  if (reference[0] == '/') return std::string(base.substr(0, root)) + detail::without_dots(reference) + query;
  const std::string_view path = before_query.substr(root);
  const std::size_t slash = path.rfind('/');
  std::string merged(slash == std::string_view::npos
                         ? (root > 0 && base.substr(0, root).find("//") != std::string_view::npos ? "/" : "")
                         : std::string(path.substr(0, slash + 1)));
  return std::string(base.substr(0, root)) + detail::without_dots(merged.append(reference)) + query;
}

/// A fragment with %XX as bytes; nothing where one is damaged.
[[nodiscard]] inline std::optional<std::string> percent_decoded(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0) return std::nullopt;
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

/// The keys of a JSON pointer, "/a/b~1c" as a and b/c.
[[nodiscard]] inline std::vector<std::string> pointer_keys(std::string_view pointer) {
  std::vector<std::string> keys;
  for (const char c : pointer) {
    if (c == '/') {
      keys.emplace_back();
    } else if (!keys.empty()) {
      keys.back() += c;
    }
  }
  for (std::string& key : keys) {
    std::string plain;
    for (std::size_t i = 0; i < key.size(); ++i) {
      const bool escape = key[i] == '~' && i + 1 < key.size() && (key[i + 1] == '0' || key[i + 1] == '1');
      plain += escape ? (key[++i] == '0' ? '~' : '/') : key[i];
    }
    key = plain;
  }
  return keys;
}

/// A key as part of a JSON pointer.
[[nodiscard]] inline std::string pointer_part(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace mica::schema
