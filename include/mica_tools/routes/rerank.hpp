// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/rerank, in the forms of Jina and of TEI (Text Embeddings Inference), as llama-server has them:
// documents in the order of their relevance for a query. A reranker scores pairs; of other models the
// embeddings are multiplied.
//
//   {"query","documents","top_n"} -> {"model","object":"list","usage","results":[{"index","relevance_score"}]}
//   {"query","texts","top_n"}     -> [{"index","score"}]
#pragma once

#include "mica_tools/json/row_text.hpp"
#include "mica_tools/routes/embed_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace mica::serve {

namespace detail {

struct RerankForm {
  std::string model;
  bool tei = false;
  bool ranks = false;                   // rows are scores
  std::size_t top_n = 0;                // documents in the reply
  std::vector<std::string> shown = {};  // their texts, where they are wanted; else empty

  /// A score of each document.
  [[nodiscard]] std::vector<float> scores(const WholeRows& whole) const {
    const std::size_t rows = whole.rows.numbers.size() / whole.rows.width;
    std::vector<float> out;
    for (std::size_t i = ranks ? 0 : 1; i < rows; ++i)
      out.push_back(ranks ? whole[i][0] : dot_product(whole[0], whole[i]));
    return out;
  }
  [[nodiscard]] std::string body(const WholeRows& whole) const {
    const std::vector<float> all = scores(whole);
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return all[a] > all[b]; });
    order.resize(std::min(order.size(), top_n));
    std::string list = "[";
    for (const std::size_t i : order) {
      std::string score;
      append_row(score, {&all[i], 1});
      list += join(list.size() > 1 ? "," : "", "{\"index\":", i,
                   tei ? ",\"score\":" : ",\"relevance_score\":", score.substr(1, score.size() - 2));
      if (!shown.empty()) {
        const std::string text = dump(Json(shown[i]));
        list += tei ? join(",\"text\":", text) : join(",\"document\":{\"text\":", text, "}");
      }
      list += '}';
    }
    list += ']';
    if (tei) return list;
    return join("{\"model\":", dump(Json(model)), ",\"object\":\"list\",\"usage\":", embed_usage(whole.ended),
                ",\"results\":", list, "}");
  }
};

/// Texts, or objects with a text, as Jina has them.
[[nodiscard]] inline std::vector<std::string> read_documents(const Json& value, const std::string& place) {
  if (!value.is_array() || value.empty() || value.size() > max_texts)
    refuse_field(place, join("must be an array of 1 to ", max_texts, " texts"));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string name = join(place, "[", i, "]");
    if (value[i].is_object()) {
      Fields document(value[i], name);
      out.push_back(document.need_text("text"));
      document.refuse_others();
    } else {
      if (!value[i].is_string()) refuse_field(name, join("must be a string, not ", type_name(value[i])));
      out.push_back(value[i].get<std::string>());
    }
  }
  return out;
}

[[nodiscard]] inline HttpReply rerank(Service& service, const RouteOptions& options,
                                      const HttpRequest& request) {
  const Json body = parse_body(request);
  Fields fields(body);
  EmbedRequest asked = begin_embedding(service, fields.text("model").value_or(""), request);
  const ServedModel& model = *asked.model;
  choose_pooling(fields, options, false, asked);
  asked.truncate = fields.flag("truncate").value_or(false);
  RerankForm form{model.card().id, fields.find("texts") != nullptr, model.card().ranks};
  const std::string query = fields.need_text("query");
  const char* const place = form.tei ? "texts" : "documents";
  std::vector<std::string> documents = read_documents(fields.need(place), place);
  form.top_n = static_cast<std::size_t>(fields.integer("top_n", 1, std::int64_t{1} << 31)
                                            .value_or(static_cast<std::int64_t>(documents.size())));
  const bool shows = fields.flag(form.tei ? "return_text" : "return_documents").value_or(false);
  if (form.tei) fields.accept("raw_scores");  // scores are as the model gives them
  fields.accept("user");
  fields.refuse_others();

  std::vector<std::vector<TokenId>>& texts = asked.embed.texts;
  if (!form.ranks) texts.push_back(model.text_tokens(query, TextUse::query, asked.truncate, "query"));
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::string name = join(place, "[", i, "]");
    texts.push_back(form.ranks ? model.pair_tokens(query, documents[i], asked.truncate, name)
                               : model.text_tokens(documents[i], TextUse::document, asked.truncate, name));
  }
  if (shows) form.shown = std::move(documents);
  return rows_reply(service, std::move(asked), Api::openai,
                    [form = std::move(form)](const WholeRows& whole) { return form.body(whole); });
}

}  // namespace detail

/// service outlives the router.
inline void add_rerank(Router& router, Service& service, const RouteOptions& options) {
  for (const char* path : {"/v1/rerank", "/rerank", "/v1/reranking", "/reranking"})
    router.add("POST", path, Api::openai,
               [&service, options](const HttpRequest& request, const std::string&) {
                 return detail::rerank(service, options, request);
               });
}

}  // namespace mica::serve
