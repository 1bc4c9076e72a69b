// SPDX-License-Identifier: Apache-2.0
//
// The one unit that knows the HTTP library, in a module of its own: the program loads it when a URL or a model
// of a hub is named, so that no other run pays for what comes with TLS, which is 4 MiB of memory.
#include "module.hpp"

#include "mica_tools/http/listen.hpp"
#include "mica_tools/hub/download.hpp"
#include "mica_tools/hub/repository.hpp"
#include "mica_tools/remote/open.hpp"
#include "mica_tools/remote/token.hpp"
#include "mica_tools/remote/url.hpp"

extern "C" void mica_open_remote(const std::string& url, const std::atomic<bool>* stop,
                                 std::optional<mica::gguf::Document>& document) {
  using namespace mica;
  document = remote::open(url, {.token = remote::token_for(remote::Url::parse(url)), .stop = stop});
}

extern "C" void mica_list_repository(const mica::hub::Name& name, const std::atomic<bool>* stop,
                                     mica::hub::Listing& listing) {
  mica::remote::Options options;
  options.stop = stop;
  listing = mica::hub::Repository(name, options).listing();
}

extern "C" void mica_listen(const mica::serve::ListenOptions& options, const mica::serve::HttpHandler& handle,
                            const mica::serve::OnListening& on_listening) {
  mica::serve::listen(options, handle, on_listening);
}

extern "C" void mica_fetch(const mica::hub::Fetch& request, const mica::hub::Watch& watch, bool& done) {
  done = mica::hub::fetch(request, watch);
}
