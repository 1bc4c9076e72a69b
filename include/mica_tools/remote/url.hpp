// SPDX-License-Identifier: Apache-2.0
//
// The address of a file on a server. A URL is used unchanged: nothing is encoded or decoded, since the query
// of a signed link must arrive bit for bit. Texts show it without its secrets.
//
//   https://user:password@host:8443/folder/model.gguf?download=true
//   scheme  credentials   host port path              query
//   shown:  https://host:8443/folder/model.gguf
#pragma once

#include "mica/base/assert.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::remote {

/// Whether a name is that of a file on a server: letters, then "://".
[[nodiscard]] inline bool is_url(std::string_view name) noexcept {
  const std::size_t at = name.find("://");
  return at != std::string_view::npos && at > 0 && std::all_of(name.begin(), name.begin() + at, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
         });
}

/// A URL that was not parsed yet, without its query and without anything before an @.
[[nodiscard]] inline std::string shown(std::string_view url) {
  const std::string_view scheme = url.substr(0, is_url(url) ? url.find("://") + 3 : 0);
  std::string_view rest = url.substr(scheme.size());
  rest = rest.substr(0, rest.find_first_of("?#"));
  const std::size_t at = url.rfind('@');
  if (at != std::string_view::npos) rest = rest.substr(std::min(rest.size(), at + 1 - scheme.size()));
  return escaped(join(scheme, rest), 400);
}

namespace detail {

/// Takes what stands before one of `ends` off the front of a text.
[[nodiscard]] inline std::string_view take_until(std::string_view& text, std::string_view ends) noexcept {
  const std::string_view taken = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(taken.size());
  return taken;
}

[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// What % and two digits stand for.
[[nodiscard]] inline std::string decoded(std::string_view text) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(1)) {
    unsigned byte = 0;
    const char* const digits = text.data() + 1;
    const bool percent_encoded =
        text.size() > 2 && text[0] == '%' && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    out += percent_encoded ? static_cast<char>(byte) : text[0];
    if (percent_encoded) text.remove_prefix(2);
  }
  return out;
}

/// A path without "." and ".." in it. Requires that it begins with a slash.
[[nodiscard]] inline std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view part = take_until(path, "/");
    const bool last = path.empty();
    if (part == "..") out.erase(std::min(out.rfind('/'), out.size()));
    if (part != ".." && part != ".") out.append("/").append(part);
    if (last && (part == ".." || part == ".")) out += '/';
  }
  return out;
}

/// Bytes other than letters, digits and those of `plain` as % and two digits (RFC 3986, section 2.1).
[[nodiscard]] inline std::string percent_encoded(std::string_view text, std::string_view plain) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       plain.find(c) != std::string_view::npos;
    if (stays) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

}  // namespace detail

/// The parts of a URL.
struct Url {
  std::string scheme;       // "http" or "https"
  std::string credentials;  // name and password before an @; empty
  std::string host;         // in lower case; an address of IPv6 in its brackets
  std::uint16_t port = 80;  // 443 where the scheme is https and none is named
  std::string path;         // begins with a slash
  std::string query;        // with its question mark; empty

  /// Raises ErrorCode::usage for what is no URL, and unsupported for a scheme other than http and https.
  [[nodiscard]] static Url parse(std::string_view text) {
    const std::string name = remote::shown(text);
    MICA_CHECK(is_url(text), usage, name, ": is no URL; https://HOST/PATH is needed");
    MICA_CHECK(
        std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F && c != '\\'; }),
        usage, name, ": a URL has no blanks and no letters beyond ASCII; write them as % and two digits");
    std::string_view rest = text.substr(0, text.find('#'));
    Url url;
    url.scheme = detail::lower(detail::take_until(rest, ":"));
    MICA_CHECK(url.scheme == "http" || url.scheme == "https", unsupported, name,
               ": files are read by https and http, not by ", escaped(url.scheme),
               "; download the file first");
    rest.remove_prefix(3);
    std::string_view authority = detail::take_until(rest, "/?");
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
      url.credentials = authority.substr(0, at);
      authority.remove_prefix(at + 1);
    }
    url.set_host(authority, name);
    const std::string_view path = detail::take_until(rest, "?");
    url.path = path.empty() ? "/" : std::string(path);
    url.query = rest;
    return url;
  }
  /// The target of a redirect: another URL, or a part of one. Raises as parse().
  [[nodiscard]] Url resolved(std::string_view location) const {
    if (is_url(location)) return parse(location);
    if (location.starts_with("//")) return parse(join(scheme, ":", location));
    std::string_view rest = location;
    const std::string_view given = detail::take_until(rest, "?#");
    const std::string folder = given.starts_with('/') ? "" : path.substr(0, path.rfind('/') + 1);
    const std::string there = given.empty() ? path : detail::without_dots(join(folder, given));
    return parse(join(origin(), there, rest));
  }

  [[nodiscard]] bool encrypted() const noexcept { return scheme == "https"; }  // by TLS
  /// The host, without brackets.
  [[nodiscard]] std::string bare_host() const {
    return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  }
  /// The host, with a port that is not the usual one.
  [[nodiscard]] std::string authority() const {
    const bool usual = port == (encrypted() ? 443 : 80);
    return join(host, usual ? "" : ":", usual ? "" : std::to_string(port));
  }
  /// The server, to which secrets belong: "https://host".
  [[nodiscard]] std::string origin() const { return join(scheme, "://", authority()); }
  /// The URL without anything secret; names the file in error texts.
  [[nodiscard]] std::string shown() const { return origin() + path; }
  /// The path and query of a request.
  [[nodiscard]] std::string target() const { return path + query; }

 private:
  /// Sets host and port. `name` stands for the URL in error texts.
  void set_host(std::string_view authority, std::string_view name) {
    const auto is_of_host = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
    };
    const std::size_t bracket = authority.find(']');
    const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
    host = detail::lower(authority.substr(0, colon));
    const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const std::string_view bare = std::string_view(host).substr(in_brackets ? 1 : 0);
    const std::string_view plain = bare.substr(0, bare.size() - (in_brackets ? 1 : 0));
    MICA_CHECK(!plain.empty() && std::all_of(plain.begin(), plain.end(), is_of_host), usage, name,
               ": no host is named in this URL; https://HOST/PATH is needed");
    port = encrypted() ? 443 : 80;
    if (colon == std::string_view::npos) return;
    const std::string_view digits = authority.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    MICA_CHECK(error == std::errc() && end == digits.data() + digits.size() && port != 0, usage, name,
               ": the port of this URL is not a number from 1 to 65535");
  }
};

}  // namespace mica::remote
