// SPDX-License-Identifier: Apache-2.0
//
// Models on servers: those that are named by a URL are opened by their headers, or refused where weights are
// needed; those of a hub are listed and downloaded. And the server of this program.
#pragma once

#include "mica/gguf/reader.hpp"
#include "mica_tools/http/listen_options.hpp"
#include "mica_tools/hub/fetch.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"
#include "verb.hpp"

#include <string>

namespace mica::program {

/// The model behind a URL. Raises as remote::open(), and ErrorCode::unsupported when the program was built
/// without an HTTP library.
[[nodiscard]] gguf::Document open_remote(const std::string& url);

/// The GGUF files of a repository of the hub. Raises as hub::Repository::listing(), and as open_remote().
[[nodiscard]] hub::Listing list_repository(const hub::Name& name);

/// Downloads files; false when `watch` stopped it. Raises as hub::fetch(), and as open_remote().
[[nodiscard]] bool fetch_files(const hub::Fetch& request, const hub::Watch& watch);

/// Serves HTTP. Raises as serve::listen(), and as open_remote().
void serve_http(const serve::ListenOptions& options, const serve::HttpHandler& handle,
                const serve::OnListening& on_listening);

/// Raises ErrorCode::unsupported where the model is named by a URL and the verb needs more than a
/// header. Sends no request.
void refuse_url(const Verb& verb);

}  // namespace mica::program
