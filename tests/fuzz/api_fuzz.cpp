// SPDX-License-Identifier: Apache-2.0
//
// Any text as the body of a request to each route of the server, in front of a model whose answers are fixed:
// the reply is whole JSON or a stream, and no request is a fault of the server. The first byte chooses the
// route.

#include "fuzz/input.hpp"
#include "mica_tools/routes/anthropic.hpp"
#include "mica_tools/routes/embeddings.hpp"
#include "mica_tools/routes/llama.hpp"
#include "mica_tools/routes/models.hpp"
#include "mica_tools/routes/ollama.hpp"
#include "mica_tools/routes/ollama_embed.hpp"
#include "mica_tools/routes/openai_chat.hpp"
#include "mica_tools/routes/openai_text.hpp"
#include "mica_tools/routes/rerank.hpp"
#include "mica_tools/routes/responses.hpp"
#include "serve/fake_service.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace mica::fuzz::api_fuzz {
namespace {

constexpr const char* paths[] = {"/v1/chat/completions",
                                 "/v1/completions",
                                 "/v1/messages",
                                 "/v1/messages/count_tokens",
                                 "/v1/responses",
                                 "/v1/responses/input_tokens",
                                 "/v1/chat/completions/input_tokens",
                                 "/v1/embeddings",
                                 "/embedding",
                                 "/embeddings",
                                 "/v1/rerank",
                                 "/rerank",
                                 "/api/chat",
                                 "/api/generate",
                                 "/api/embed",
                                 "/api/embeddings",
                                 "/api/show",
                                 "/completion",
                                 "/tokenize",
                                 "/detokenize",
                                 "/apply-template",
                                 "/slots/0",
                                 "/models/load",
                                 "/models/unload"};

void run(Input input) {
  const std::size_t path = input.below(std::size(paths));
  const std::uint8_t kind = input.byte();
  test::FakeService service;
  service.tiny().become(kind % 4 != 1, kind % 4 != 2, kind % 4 == 3);
  serve::Router router;
  const serve::RouteOptions options{.ping = std::chrono::milliseconds(0)};
  add_anthropic(router, service, options);
  add_embeddings(router, service, options);
  add_llama(router, service, options);
  add_models(router, service);
  add_ollama(router, service, options);
  add_openai_chat(router, service, options);
  add_openai_text(router, service, options);
  add_rerank(router, service, options);
  add_responses(router, service, options);
  const serve::HttpReply first = router.handle(test::post(paths[path], std::string(input.rest())));
  const serve::HttpReply reply = test::made(first);
  require(reply.status >= 200 && reply.status < 500,
          join(paths[path], ": status ", reply.status, ", which blames the server: ", reply.body));
  const std::string body = test::body_of(reply);
  require(body.size() < 8 * input.rest().size() + (1 << 16),
          "a reply does not repeat the request again and again");
  if (!reply.stream && reply.type.starts_with("application/json"))
    require(body.empty() || serve::Json::accept(body), "a reply is whole JSON: " + body);
}

}  // namespace

MICA_FUZZ_TARGET(api) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::api_fuzz
