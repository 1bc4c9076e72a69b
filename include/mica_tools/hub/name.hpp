// SPDX-License-Identifier: Apache-2.0
//
// Names of models on a hub, and how they are written. Nothing here reads a file or asks a server.
//
//   hf.co/ORG/REPO[:QUANT]   huggingface.co/ORG/REPO[:QUANT]   hf:ORG/REPO[:QUANT]
//   hf.co/ORG/REPO/FILE.gguf                               a file of it; FILE may be in folders
//   https://huggingface.co/ORG/REPO                        the address of its page
//   https://huggingface.co/ORG/REPO/resolve/REV/FILE       that of a file; /blob/ too
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/path.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

namespace mica::hub {

inline constexpr std::size_t max_path_bytes = 1024;  // of a file in its repository

/// A model on a hub.
struct Name {
  std::string repo;               ///< "ORG/REPO"
  std::string quant = {};         ///< as it was written; empty: not named
  std::string file = {};          ///< its path in the repository; empty: not named
  std::string revision = "main";  ///< a branch, a tag or a commit

  /// "hf.co/ORG/REPO:QUANT".
  [[nodiscard]] std::string text() const {
    return join("hf.co/", repo, quant.empty() ? "" : ":", quant, file.empty() ? "" : "/", file);
  }
};

/// Whether a path of a listing may become the path of a file: relative, at most eight folders deep, of names of
/// at most 200 bytes, without "." and "..", backslashes and controls.
[[nodiscard]] inline bool is_safe_path(std::string_view path) noexcept {
  if (path.empty() || path.size() > max_path_bytes || std::count(path.begin(), path.end(), '/') > 8)
    return false;
  if (path.find('\\') != path.npos || io::detail::has_controls(path)) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > 200) return false;
    at = end + 1;
  }
  return true;
}

/// Whether the text is a branch, a tag or a commit without slashes.
[[nodiscard]] inline bool is_revision(std::string_view text) noexcept {
  return is_safe_path(text) && std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
         });
}

/// Whether the text is a commit: 40 hexadecimal digits.
[[nodiscard]] inline bool is_commit(std::string_view text) noexcept {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

namespace detail {

/// The rule of the hub for each half of "ORG/REPO". "--" would make folders of the cache ambiguous.
[[nodiscard]] inline bool is_half(std::string_view text) noexcept {
  const auto is_edge = [](char c) { return c == '-' || c == '.'; };
  return !text.empty() && text.size() <= 96 && is_revision(text) && !is_edge(text.front()) &&
         !is_edge(text.back()) && text.find("--") == text.npos && text.find("..") == text.npos;
}

/// The position of the slash after ORG/REPO; the size of the text if there is none.
[[nodiscard]] inline std::size_t end_of_repo(std::string_view text) noexcept {
  const std::size_t first = text.find('/');
  return first == text.npos ? text.size() : std::min(text.find('/', first + 1), text.size());
}

/// The text after `prefix`, which is in lower case; empty when the text does not begin with it.
[[nodiscard]] inline std::optional<std::string_view> behind(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size() || remote::detail::lower(text.substr(0, prefix.size())) != prefix)
    return std::nullopt;
  return text.substr(prefix.size());
}

}  // namespace detail

/// "ORG/REPO", "ORG/REPO:QUANT" or "ORG/REPO/FILE.gguf". Raises ErrorCode::usage for any other text; `where` names
/// its place.
[[nodiscard]] inline Name parse_repo(std::string_view text, std::string_view where) {
  const std::size_t repo_end = detail::end_of_repo(text);
  if (repo_end < text.size()) {
    Name name = parse_repo(text.substr(0, repo_end), where);
    name.file = text.substr(repo_end + 1);
    const bool is_model = is_safe_path(name.file) && remote::detail::lower(name.file).ends_with(".gguf");
    MICA_CHECK(is_model && name.quant.empty(), usage, where, ": '", escaped(name.file, 200),
               "' is no file of a repository; needed: ORG/REPO/FILE.gguf, or ORG/REPO:QUANT");
    return name;
  }
  Name name;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view repo = text.substr(0, colon);
  const std::size_t slash = repo.find('/');
  MICA_CHECK(
      slash != repo.npos && detail::is_half(repo.substr(0, slash)) && detail::is_half(repo.substr(slash + 1)),
      usage, where, ": '", escaped(repo, 200),
      "' is no repository; needed: ORG/REPO, of letters, digits, '.', '_' and '-', or ORG/REPO:QUANT, or "
      "ORG/REPO/FILE.gguf");
  name.repo = repo;
  if (colon == text.size()) return name;
  name.quant = text.substr(colon + 1);
  MICA_CHECK(is_revision(name.quant), usage, where, ": '", escaped(name.quant, 60),
             "' behind the colon is no quantisation; needed: a name such as Q4_K_M");
  return name;
}

/// A name of the hub in any of the forms above; empty for other texts. Raises ErrorCode::usage for a text
/// that begins like one of them and is not valid.
[[nodiscard]] inline std::optional<Name> parse_name(std::string_view text) {
  const std::string where = remote::shown(text);
  for (const std::string_view prefix : {"hf.co/", "huggingface.co/", "hf://", "hf:"}) {
    if (const auto rest = detail::behind(text, prefix)) return parse_repo(*rest, where);
  }
  std::optional<std::string_view> rest;
  for (const std::string_view prefix : {"https://hf.co/", "https://huggingface.co/"}) {
    if (!rest) rest = detail::behind(text, prefix);
  }
  if (!rest) return std::nullopt;
  std::string_view path = rest->substr(0, rest->find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t repo_end = detail::end_of_repo(path);
  Name name = parse_repo(path.substr(0, repo_end), where);
  path.remove_prefix(std::min(repo_end + 1, path.size()));
  if (path.empty()) return name;
  const std::string_view kind = remote::detail::take_until(path, "/");
  path.remove_prefix(std::min<std::size_t>(1, path.size()));
  name.revision = remote::detail::take_until(path, "/");
  name.file = remote::detail::decoded(path.substr(std::min<std::size_t>(1, path.size())));
  const bool is_file = (kind == "resolve" || kind == "blob") && is_safe_path(name.file);
  MICA_CHECK(is_revision(name.revision) && (is_file || (kind == "tree" && name.file.empty())), usage, where,
             ": is no address of a repository or a file; needed: https://huggingface.co/ORG/REPO, or "
             "that with /resolve/REVISION/FILE behind it");
  return name;
}

}  // namespace mica::hub
