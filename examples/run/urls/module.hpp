// SPDX-License-Identifier: Apache-2.0
//
// What the module for URLs has for the program. Both are of one build, so they share types and exceptions.
#pragma once

#include "mica/gguf/reader.hpp"
#include "mica_tools/http/listen_options.hpp"
#include "mica_tools/hub/fetch.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"

#include <atomic>
#include <optional>
#include <string>

/// The model behind a URL. Raises as remote::open().
extern "C" void mica_open_remote(const std::string& url, const std::atomic<bool>* stop,
                                 std::optional<mica::gguf::Document>& document);

/// The GGUF files of a repository. Raises as hub::Repository::listing().
extern "C" void mica_list_repository(const mica::hub::Name& name, const std::atomic<bool>* stop,
                                     mica::hub::Listing& listing);

/// Serves HTTP. Raises as serve::listen().
extern "C" void mica_listen(const mica::serve::ListenOptions& options, const mica::serve::HttpHandler& handle,
                            const mica::serve::OnListening& on_listening);

/// Downloads files; sets `done`, which is false when `watch` stopped it. Raises as hub::fetch().
extern "C" void mica_fetch(const mica::hub::Fetch& request, const mica::hub::Watch& watch, bool& done);
