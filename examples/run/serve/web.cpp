// SPDX-License-Identifier: Apache-2.0
#include "web.hpp"

#include "mica_tools/http/guard.hpp"
#include "mica_tools/http/router.hpp"
#include "mica_tools/routes/anthropic.hpp"
#include "mica_tools/routes/embeddings.hpp"
#include "mica_tools/routes/llama.hpp"
#include "mica_tools/routes/models.hpp"
#include "mica_tools/routes/ollama.hpp"
#include "mica_tools/routes/openai_chat.hpp"
#include "mica_tools/routes/openai_text.hpp"
#include "mica_tools/routes/rerank.hpp"
#include "mica_tools/routes/responses.hpp"
#include "page.hpp"

#include <memory>
#include <utility>

namespace mica::program {
namespace {

/// What all requests share.
struct Web {
  serve::GuardOptions guard;
  serve::Router router;
};

serve::HttpReply page_reply() {
  serve::HttpReply reply;
  reply.type = "text/html; charset=utf-8";
  reply.body = page();
  reply.headers.add("Content-Security-Policy", std::string(page_policy()));
  reply.headers.add("X-Content-Type-Options", "nosniff");
  reply.headers.add("Referrer-Policy", "no-referrer");
  reply.headers.add("Cache-Control", "no-cache");
  return reply;
}

}  // namespace

serve::HttpHandler web_handler(serve::Service& service, const WebOptions& options) {
  const auto web = std::make_shared<Web>();
  web->guard = {options.keys, options.host, options.hosts, options.origins};
  serve::RouteOptions routes;
  routes.sampler = options.sampler;
  routes.max_tokens = options.max_tokens;
  routes.max_running = options.parallel;
  routes.pooling = options.pooling;
  routes.version = options.version;
  for (const char* const path : {"/", "/index.html"})
    web->router.add("GET", path, serve::Api::openai, [](const auto&, const auto&) { return page_reply(); });
  serve::add_models(web->router, service);
  serve::add_openai_chat(web->router, service, routes);
  serve::add_openai_text(web->router, service, routes);
  serve::add_embeddings(web->router, service, routes);
  serve::add_rerank(web->router, service, routes);
  serve::add_responses(web->router, service, routes);
  serve::add_anthropic(web->router, service, routes);
  serve::add_ollama(web->router, service, routes);
  serve::add_llama(web->router, service, routes);
  return [web, log = options.log](const serve::HttpRequest& request) {
    const Stopwatch watch;
    auto refused = serve::guard(web->guard, request);
    serve::HttpReply reply = refused ? *std::move(refused) : web->router.handle(request);
    serve::add_cors_headers(web->guard, request, reply);
    if (log == LogForm::none) return reply;
    const auto note = [log, watch, line = serve::HttpRequest{request.method, request.path}](int status) {
      log_request(log, line, status, watch.seconds());
    };
    if (reply.later) {
      reply.later = [later = std::move(reply.later), note](const auto& open) {
        constexpr int client_left = 499;  // as nginx writes it
        auto made = later(open);
        note(made ? made->status : client_left);
        return made;
      };
    } else if (reply.stream) {
      reply.stream = [stream = std::move(reply.stream), note,
                      status = reply.status](const serve::Connection& connection) {
        stream(connection);
        note(status);
      };
    } else {
      note(reply.status);
    }
    return reply;
  };
}

bool is_loopback(const std::string& host) { return serve::detail::is_loopback(serve::detail::name_of(host)); }

}  // namespace mica::program
