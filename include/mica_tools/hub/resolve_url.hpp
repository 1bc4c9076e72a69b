// SPDX-License-Identifier: Apache-2.0
//
// The address of a file of a repository.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/remote/token.hpp"
#include "mica_tools/remote/url.hpp"

#include <string>
#include <string_view>

namespace mica::hub {

namespace detail {

/// A path in a URL: bytes other than letters, digits, '/', '-', '.', '_' and '~' as % and two digits.
[[nodiscard]] inline std::string encoded_path(std::string_view path) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

}  // namespace detail

/// ENDPOINT/REPO/resolve/REVISION/FILE. Raises as remote::hub_endpoint().
[[nodiscard]] inline remote::Url resolve_url(std::string_view repo, std::string_view revision,
                                             std::string_view file) {
  remote::Url url = remote::hub_endpoint();
  url.path += join("/", repo, "/resolve/", revision, "/", detail::encoded_path(file));
  return url;
}

}  // namespace mica::hub
