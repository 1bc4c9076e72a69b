// SPDX-License-Identifier: Apache-2.0
//
// The models that can be asked for: OpenAI's list, and llama-server's routes that load one and put it out of
// memory.
#pragma once

#include "mica_tools/http/router.hpp"
#include "mica_tools/serve/service.hpp"

#include <string>
#include <utility>

namespace mica::serve {

namespace detail {

[[nodiscard]] inline Json output_of(const ModelCard& card) {
  Json out = Json::array();
  if (card.writes) out.push_back("text");
  if (card.embeds) out.push_back("embeddings");
  if (card.ranks) out.push_back("scores");
  return out;
}

[[nodiscard]] inline Json model_entry(const ModelCard& card) {
  const auto known = [&](std::size_t value) { return card.loaded ? Json(value) : Json(); };
  return {{"id", card.id},
          {"object", "model"},
          {"created", card.modified},
          {"owned_by", "mica"},
          {"status", {{"value", card.loaded ? "loaded" : "unloaded"}}},
          {"architecture", {{"input_modalities", {"text"}}, {"output_modalities", output_of(card)}}},
          {"meta",
           {{"n_vocab", known(card.n_vocab)},
            {"n_ctx", known(card.n_ctx)},
            {"n_ctx_train", card.trained_ctx},
            {"n_embd", known(card.n_embd)},
            {"n_params", card.parameters},
            {"size", card.file_bytes},
            {"architecture", card.architecture},
            {"quantization", card.quantisation}}}};
}

/// The field `model` of a body that has no other.
[[nodiscard]] inline std::string read_model_name(const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  std::string name = fields.need_text("model");
  fields.refuse_others();
  return name;
}

}  // namespace detail

/// service outlives the router.
inline void add_models(Router& router, Service& service) {
  for (const char* path : {"/v1/models", "/models"})
    router.add("GET", path, Api::openai, [&service](const HttpRequest&, const std::string&) {
      Json list = Json::array();
      for (const ModelCard& card : service.models()) list.push_back(detail::model_entry(card));
      return json_reply({{"object", "list"}, {"data", std::move(list)}});
    });
  router.add("GET", "/v1/models/{model}", Api::openai,
             [&service](const HttpRequest&, const std::string& name) {
               for (const ModelCard& card : service.models()) {
                 if (card.id == name) return json_reply(detail::model_entry(card));
               }
               throw Refusal(Cause::not_found, join("model '", escaped(name), "': there is no such model; ",
                                                    "GET /v1/models has the list"));
             });
  router.add("POST", "/models/load", Api::openai, [&service](const HttpRequest& request, const std::string&) {
    (void)service.model(detail::read_model_name(request), request.open);
    return json_reply({{"success", true}});
  });
  router.add("POST", "/models/unload", Api::openai,
             [&service](const HttpRequest& request, const std::string&) {
               return json_reply({{"success", service.unload(detail::read_model_name(request))}});
             });
}

}  // namespace mica::serve
