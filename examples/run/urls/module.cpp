// SPDX-License-Identifier: Apache-2.0
//
// The one unit that knows the HTTP library, in a module of its own: the program loads it when a URL is named,
// so that no other run pays for what comes with TLS, which is 4 MiB of memory.
#include "module.hpp"

#include "mica_tools/remote/open.hpp"
#include "mica_tools/remote/options.hpp"
#include "mica_tools/remote/url.hpp"

extern "C" void mica_open_remote(const std::string& url, std::optional<mica::gguf::Document>& document) {
  using namespace mica;
  document = remote::open(url, {.token = remote::token_for(remote::Url::parse(url))});
}
