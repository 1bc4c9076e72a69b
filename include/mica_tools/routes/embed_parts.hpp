// SPDX-License-Identifier: Apache-2.0
//
// What the routes of all APIs for embeddings and ranking share: the model, texts in their forms, how states
// become rows, and replies that are made when all rows are there.
#pragma once

#include "mica_tools/http/fields.hpp"
#include "mica_tools/http/router.hpp"
#include "mica_tools/http/stream.hpp"
#include "mica_tools/routes/openai_text.hpp"
#include "mica_tools/routes/route_options.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::serve {

inline constexpr std::size_t max_texts = 2048;                        // of one request
inline constexpr std::size_t max_row_numbers = std::size_t{1} << 22;  // of one reply: 16 MiB, 50 MiB as text

/// A request whose texts are to be embedded.
struct EmbedRequest {
  std::shared_ptr<const ServedModel> model;
  TextUse use = TextUse::any;
  bool truncate = false;  // long texts lose their last tokens; false: they are refused
  EmbedTexts embed = {};
};

/// The model of a request. Raises Refusal.
[[nodiscard]] inline EmbedRequest begin_embedding(Service& service, std::string_view model,
                                                  const HttpRequest& request) {
  EmbedRequest out;
  out.model = service.model(model, request.open);
  return out;
}

/// Raises Refusal (option) for a model that gives scores.
inline void require_embedder(const ModelCard& card) {
  if (!card.ranks) return;
  Refusal refusal(Cause::option, join("model '", card.id,
                                      "' is a reranker: it has scores and no embeddings; use /v1/rerank"));
  refusal.field = "model";
  throw refusal;
}

/// The pooling of a request, else that of the file, else that of the server. each_token: allows "none", a row
/// for each token. Raises Refusal (option) where there is none.
inline void choose_pooling(Fields& fields, const RouteOptions& options, bool each_token, EmbedRequest& out) {
  const std::string name = fields.text("pooling").value_or("");
  RowOptions& rows = out.embed.rows;
  rows.pooling = arch::pooling_named(name);
  rows.each_token = each_token && name == "none";
  if (!name.empty() && !rows.pooling && !rows.each_token)
    refuse_field("pooling", join("found '", escaped(name, 40), "', allowed: mean, cls, last",
                                 each_token ? ", none" : "; none is for /embedding"));
  const ModelCard& card = out.model->card();
  if (rows.pooling || rows.each_token || card.embeds || card.ranks) return;
  rows.pooling = options.pooling;
  if (options.pooling) return;
  Refusal refusal(
      Cause::option,
      join("model '", card.id, "' does not say how the states of a text become an embedding; choose ",
           "it in the field pooling (mean, cls, last), or start the server with --pooling NAME"));
  refusal.field = "model";
  throw refusal;
}

/// dimensions and embd_normalize. Raises Refusal (invalid).
inline void read_rows(Fields& fields, EmbedRequest& out) {
  constexpr std::int64_t no_norm = -1, length_1 = 2;
  RowOptions& rows = out.embed.rows;
  rows.dims = static_cast<std::size_t>(fields.integer("dimensions", 1, 1 << 20).value_or(0));
  const auto norm = fields.integer("embd_normalize", -1, 1 << 20).value_or(length_1);
  if (norm != no_norm && norm != length_1)
    refuse_field("embd_normalize", join("is ", norm, "; supported: -1 (none), 2 (the length 1)"),
                 Cause::option);
  rows.normalize = norm == length_1;
  const RowOptions checked = rows;
  const std::size_t width = out.model->row_width({checked.pooling, 0, checked.normalize, checked.each_token});
  if (rows.dims > width)
    refuse_field("dimensions", join("is ", rows.dims, "; an embedding of this model has ", width));
}

/// input_type, as other servers name it, and truncate.
inline void read_use(Fields& fields, EmbedRequest& out) {
  out.truncate = fields.flag("truncate").value_or(out.truncate);
  const auto use = fields.text("input_type");
  if (!use) return;
  const bool document = *use == "document" || *use == "passage";
  if (!document && *use != "query")
    refuse_field("input_type", join("found '", escaped(*use, 40), "', allowed: query, document, passage"));
  out.use = document ? TextUse::document : TextUse::query;
}

namespace detail {

/// {"content": [{"type": "text", "text": ...}]}: the texts as one.
[[nodiscard]] inline std::string read_content(const Json& content, const std::string& place) {
  if (!content.is_array()) refuse_field(place, join("must be an array, not ", type_name(content)));
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    Fields part(content[i], join(place, "[", i, "]"));
    if (const std::string type = part.need_text("type"); type != "text")
      refuse_field(part.place("type"), join("found '", escaped(type, 40), "'; this server reads text only"),
                   Cause::option);
    text += part.need_text("text");
    part.refuse_others();
  }
  return text;
}

/// A text, tokens, or tokens and texts; objects as llama-server has them.
[[nodiscard]] inline std::vector<TokenId> read_text(const Json& value, const std::string& place,
                                                    const EmbedRequest& asked) {
  const auto tokens_of = [&](const std::string& text) {
    return asked.model->text_tokens(text, asked.use, asked.truncate, place);
  };
  if (value.is_string()) return tokens_of(value.get<std::string>());
  if (value.is_object() && value.contains("content")) {
    Fields fields(value, place);
    const std::string text = read_content(fields.need("content"), fields.place("content"));
    fields.refuse_others();
    return tokens_of(text);
  }
  if (value.is_object()) {
    Fields fields(value, place);
    const std::string text = fields.need_text("prompt_string");
    fields.allow_only("multimodal_data", Json::array());
    fields.refuse_others();
    return tokens_of(text);
  }
  std::vector<TokenId> tokens = read_prompt(value, place, *asked.model).tokens;
  const std::size_t max = asked.model->max_text_tokens();
  if (tokens.size() > max && !asked.truncate)
    refuse_field(place,
                 join("is too large: it has ", tokens.size(), " tokens, and ", max, " are read at most"));
  tokens.resize(std::min(tokens.size(), max));
  return tokens;
}

}  // namespace detail

/// All texts of a field: "text", ["text", ...], [1, 2], [[1, 2], ...], and what llama-server allows beside
/// them.
inline void read_texts(const Json& value, const std::string& place, EmbedRequest& out) {
  const auto is_number = [](const Json& each) { return each.is_number(); };
  if (!value.is_array() || std::any_of(value.begin(), value.end(), is_number)) {
    out.embed.texts.push_back(detail::read_text(value, place, out));
    return;
  }
  if (value.empty() || value.size() > max_texts)
    refuse_field(place, join("has ", value.size(), " texts; it must have 1 to ", max_texts));
  for (std::size_t i = 0; i < value.size(); ++i)
    out.embed.texts.push_back(detail::read_text(value[i], join(place, "[", i, "]"), out));
}

/// All rows of a request.
struct WholeRows {
  Embedded rows;
  Ended ended;

  [[nodiscard]] std::span<const float> operator[](std::size_t i) const noexcept {
    return std::span(rows.numbers).subspan(i * rows.width, rows.width);
  }
};

/// A reply that is made when all rows are there: body_of() gives its body. Submits the job; raises as
/// Service::submit(), and Refusal (too_large) for more numbers than a reply may have.
[[nodiscard]] inline HttpReply rows_reply(Service& service, EmbedRequest asked, Api api,
                                          std::function<std::string(const WholeRows&)> body_of) {
  const std::size_t width = asked.model->row_width(asked.embed.rows);
  if (asked.embed.row_count() > max_row_numbers / width)
    throw Refusal(Cause::too_large,
                  join("the reply would have ", asked.embed.row_count(), " rows of ", width,
                       " numbers; it may have ", max_row_numbers, " numbers: send fewer texts"));
  Job job;
  job.model = std::move(asked.model);
  job.embed = std::move(asked.embed);
  const auto answers = std::make_shared<Answers>(service, std::vector<Job>{std::move(job)});
  HttpReply reply;
  reply.later = [answers, api, body_of = std::move(body_of)](
                    const std::function<bool()>& open) -> std::optional<HttpReply> {
    try {
      WholeRows whole;
      const auto take = [&](std::size_t, Event event) {
        if (auto* const rows = std::get_if<Embedded>(&event)) whole.rows = std::move(*rows);
        if (auto* const ended = std::get_if<Ended>(&event)) whole.ended = std::move(*ended);
        return open();
      };
      if (!answers->run(take, open)) return std::nullopt;
      HttpReply made;
      made.body = body_of(whole);
      return made;
    } catch (const std::exception& error) {
      return error_reply(api, refusal_of(error));
    }
  };
  return reply;
}

/// OpenAI's numbers of a reply.
[[nodiscard]] inline std::string embed_usage(const Ended& ended) {
  return join("{\"prompt_tokens\":", ended.prompt_tokens, ",\"total_tokens\":", ended.prompt_tokens, "}");
}

}  // namespace mica::serve
