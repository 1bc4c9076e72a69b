// SPDX-License-Identifier: Apache-2.0
//
// All routes as one function from requests to replies; compiled in a unit of its own.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica_tools/http/listen_options.hpp"
#include "mica_tools/serve/service.hpp"
#include "request_log.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mica::program {

struct WebOptions {
  std::string host;                  // the address that is listened on
  std::vector<std::string> keys;     // requests must have one of them; empty: none is needed
  std::vector<std::string> hosts;    // more names of this server
  std::vector<std::string> origins;  // of pages that may use it, beside its own
  sample::SamplerOptions sampler;    // where a request has no value
  std::size_t max_tokens = 0;        // of an answer whose request has no maximum; 0: none
  std::size_t parallel = 1;
  std::optional<arch::Pooling> pooling;  // of embeddings whose request and model say none
  std::string version;
  LogForm log = LogForm::none;  // a line for each request
};

/// The service outlives the function. Any thread may call it.
[[nodiscard]] serve::HttpHandler web_handler(serve::Service& service, const WebOptions& options);

/// Whether only this machine reaches an address.
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace mica::program
