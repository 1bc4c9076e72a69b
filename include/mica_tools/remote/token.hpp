// SPDX-License-Identifier: Apache-2.0
//
// The token of Hugging Face's tools, from the environment or from the file that their login writes, and the
// site that it is for. It is sent to no other site.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::remote {

namespace detail {

/// A variable of the environment; empty when it is not set.
[[nodiscard]] inline std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// A path of the environment, in which ~/ is the home folder, as Hugging Face's tools read it.
[[nodiscard]] inline std::string path_variable(const char* name) {
  std::string path = variable(name);
  return path == "~" || path.starts_with("~/") ? variable("HOME") + path.substr(1) : path;
}

/// The first bytes of a small file; empty when it cannot be read.
[[nodiscard]] inline std::string small_file(const std::string& path) {
  const int file =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would wait for its writer
  if (file < 0) return {};
  struct ::stat found {};
  std::array<char, 4096> text;
  const bool regular = ::fstat(file, &found) == 0 && S_ISREG(found.st_mode);
  const ::ssize_t n = regular ? ::read(file, text.data(), text.size()) : 0;
  ::close(file);
  return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

}  // namespace detail

/// The folder of Hugging Face's tools: HF_HOME, else huggingface below XDG_CACHE_HOME or ~/.cache; empty when
/// the environment has none of them.
[[nodiscard]] inline std::string hugging_face_home() {
  if (const std::string home = detail::path_variable("HF_HOME"); !home.empty()) return home;
  if (const std::string cache = detail::path_variable("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/huggingface";
  const std::string home = detail::variable("HOME");
  return home.empty() ? std::string() : home + "/.cache/huggingface";
}

/// The site that the token is for, and that has models by name: HF_ENDPOINT, or https://huggingface.co.
/// Raises ErrorCode::usage for an endpoint that is no URL.
[[nodiscard]] inline Url hub_endpoint() {
  const std::string endpoint = detail::variable("HF_ENDPOINT");
  Url url = Url::parse(endpoint.empty() ? "https://huggingface.co" : endpoint);
  while (url.path.ends_with('/')) url.path.pop_back();
  url.query.clear();
  return url;
}

/// The token, where the URL is of the site that it is for; else empty. HF_TOKEN, else the text of the file
/// HF_TOKEN_PATH, else that of `token` in the folder of Hugging Face's tools; a file counts unless
/// HF_HUB_DISABLE_IMPLICIT_TOKEN is set. Raises ErrorCode::usage for a token that cannot stand in a request.
[[nodiscard]] inline std::string token_for(const Url& url) {
  const std::string implicit = detail::variable("HF_HUB_DISABLE_IMPLICIT_TOKEN");
  const std::string path = detail::path_variable("HF_TOKEN_PATH"), home = hugging_face_home();
  std::string text = detail::variable("HF_TOKEN"), from = "HF_TOKEN";
  if (text.empty() && (implicit.empty() || implicit == "0") && (!path.empty() || !home.empty())) {
    from = path.empty() ? home + "/token" : path;
    text = detail::small_file(from);
    while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos)
      text.pop_back();
  }
  if (text.empty() || url.origin() != hub_endpoint().origin()) return {};
  MICA_CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; }), usage, from,
             " holds a blank or a control byte, which no token has");
  return text;
}

}  // namespace mica::remote
