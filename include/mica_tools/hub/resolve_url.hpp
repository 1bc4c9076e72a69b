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

/// ENDPOINT/REPO/resolve/REVISION/FILE. Raises as remote::hub_endpoint().
[[nodiscard]] inline remote::Url resolve_url(std::string_view repo, std::string_view revision,
                                             std::string_view file) {
  remote::Url url = remote::hub_endpoint();
  url.path += join("/", repo, "/resolve/", revision, "/", remote::detail::percent_encoded(file, "/-._~"));
  return url;
}

}  // namespace mica::hub
