// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/embeddings of OpenAI, and /embedding and /embeddings of llama-server, whose reply is an array:
//
//   {"object":"list","data":[{"object":"embedding","index":0,"embedding":[...]}],"model":"...","usage":{...}}
//   [{"index":0,"embedding":[[...]]}]       a row for the text, or with pooling none for each of its tokens
#pragma once

#include "mica_tools/json/row_text.hpp"
#include "mica_tools/routes/embed_parts.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::serve {

namespace detail {

/// The texts: `input`, or `content`, after which the reply is that of llama-server.
[[nodiscard]] inline EmbedRequest read_embedding(Service& service, const RouteOptions& options,
                                                 const HttpRequest& request, Fields& fields,
                                                 bool each_token) {
  EmbedRequest out = begin_embedding(service, fields.text("model").value_or(""), request);
  require_embedder(out.model->card());
  choose_pooling(fields, options, each_token, out);
  read_rows(fields, out);
  read_use(fields, out);
  const Json* const content = fields.find("content");
  const bool has_input = fields.find("input") != nullptr;
  const char* const name = content != nullptr && !has_input ? "content" : "input";
  const Json& value = fields.need(name);
  for (const char* const ignored : {"user", "metadata", "safety_identifier"}) fields.accept(ignored);
  read_texts(value, name, out);
  return out;
}

[[nodiscard]] inline std::string openai_rows(const WholeRows& whole, const std::string& model, bool base64) {
  std::string out = "{\"object\":\"list\",\"data\":[";
  const std::size_t rows = whole.rows.numbers.size() / whole.rows.width;
  for (std::size_t i = 0; i < rows; ++i) {
    out += join(i == 0 ? "" : ",", "{\"object\":\"embedding\",\"index\":", i, ",\"embedding\":");
    base64 ? append_base64_row(out, whole[i]) : append_row(out, whole[i]);
    out += '}';
  }
  return out + join("],\"model\":", dump(Json(model)), ",\"usage\":", embed_usage(whole.ended), "}");
}

/// rows: of each text.
[[nodiscard]] inline std::string llama_rows(const WholeRows& whole, const std::vector<std::size_t>& rows) {
  std::string out = "[";
  std::size_t next = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += join(i == 0 ? "" : ",", "{\"index\":", i, ",\"embedding\":[");
    for (std::size_t k = 0; k < rows[i]; ++k) {
      if (k > 0) out += ',';
      append_row(out, whole[next++]);
    }
    out += "]}";
  }
  return out + "]";
}

[[nodiscard]] inline HttpReply embeddings(Service& service, const RouteOptions& options,
                                          const HttpRequest& request, bool openai) {
  const Json body = parse_body(request);
  Fields fields(body);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    refuse_field("encoding_format", join("found '", escaped(format, 40), "', allowed: float, base64"));
  EmbedRequest asked = read_embedding(service, options, request, fields, !openai);
  fields.refuse_others();
  const bool as_openai = openai && fields.find("input") != nullptr;
  if (!as_openai && format != "float")
    refuse_field("encoding_format", "base64 is for /v1/embeddings with input", Cause::option);
  if (as_openai) {
    std::string model = asked.model->card().id;
    return rows_reply(service, std::move(asked), Api::openai,
                      [model = std::move(model), base64 = format == "base64"](const WholeRows& whole) {
                        return openai_rows(whole, model, base64);
                      });
  }
  std::vector<std::size_t> rows;
  for (const auto& text : asked.embed.texts) rows.push_back(asked.embed.rows.each_token ? text.size() : 1);
  return rows_reply(service, std::move(asked), Api::openai,
                    [rows = std::move(rows)](const WholeRows& whole) { return llama_rows(whole, rows); });
}

}  // namespace detail

/// service outlives the router.
inline void add_embeddings(Router& router, Service& service, const RouteOptions& options) {
  for (const char* path : {"/v1/embeddings", "/embeddings", "/embedding"}) {
    const bool openai = std::string_view(path).starts_with("/v1");
    router.add("POST", path, Api::openai,
               [&service, options, openai](const HttpRequest& request, const std::string&) {
                 return detail::embeddings(service, options, request, openai);
               });
  }
}

}  // namespace mica::serve
