// SPDX-License-Identifier: Apache-2.0
//
// Refusals and errors in the form of each API:
//
//   OpenAI     {"error":{"code":400,"message":"...","type":"invalid_request_error","param":"top_k"}}
//   Anthropic  {"type":"error","error":{"type":"invalid_request_error","message":"..."}}
//   Ollama     {"error":"..."}
//
// The text of an exception that is not the library's own is not shown.
#pragma once

#include "mica_tools/http/fields.hpp"
#include "mica_tools/http/request_reply.hpp"
#include "mica_tools/serve/refusal.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace mica::serve {

/// The form of a route's errors; routes of llama-server have that of OpenAI.
enum class Api : std::uint8_t { openai, anthropic, ollama };

/// The API of a path, for errors before a route is found.
[[nodiscard]] inline Api api_of(std::string_view path) noexcept {
  if (path == "/api" || path.starts_with("/api/")) return Api::ollama;
  return path == "/v1/messages" || path.starts_with("/v1/messages/") ? Api::anthropic : Api::openai;
}

/// The word for a cause in the field `type`.
[[nodiscard]] constexpr std::string_view type_of(Api api, Cause cause) noexcept {
  constexpr std::string_view openai[] = {
      "invalid_request_error", "exceed_context_size_error", "invalid_request_error", "not_supported_error",
      "authentication_error",  "permission_error",          "not_found_error",       "invalid_request_error",
      "invalid_request_error", "rate_limit_error",          "server_error",          "not_supported_error",
      "unavailable_error"};
  constexpr std::string_view anthropic[] = {"invalid_request_error",
                                            "invalid_request_error",
                                            "invalid_request_error",
                                            "invalid_request_error",
                                            "authentication_error",
                                            "permission_error",
                                            "not_found_error",
                                            "invalid_request_error",
                                            "request_too_large",
                                            "rate_limit_error",
                                            "api_error",
                                            "invalid_request_error",
                                            "overloaded_error"};
  const auto i = static_cast<std::size_t>(cause);
  return api == Api::anthropic ? anthropic[i] : openai[i];
}

/// An exception as a refusal.
[[nodiscard]] inline Refusal refusal_of(const std::exception& error) {
  if (const auto* refusal = dynamic_cast<const Refusal*>(&error)) return *refusal;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {Cause::unavailable,
            "the server has no memory left for this request; send a shorter one, or later"};
  const auto* own = dynamic_cast<const Error*>(&error);
  if (own == nullptr)
    return {Cause::failed, "the server failed at this request by a mistake of its own; please report it"};
  switch (own->code()) {
    case ErrorCode::usage:
    case ErrorCode::limit:
      return {Cause::invalid, own->message()};
    case ErrorCode::budget:
      return {Cause::too_large, own->message()};
    case ErrorCode::unsupported:
      return {Cause::unsupported, own->message()};
    default:
      return {Cause::failed, own->message()};
  }
}

/// The body of an error, also within a stream.
[[nodiscard]] inline Json error_body(Api api, const Refusal& refusal) {
  if (api == Api::ollama) return {{"error", refusal.message()}};
  const std::string_view type = type_of(api, refusal.cause());
  if (api == Api::anthropic)
    return {{"type", "error"}, {"error", {{"type", type}, {"message", refusal.message()}}}};
  Json error = {{"code", status_of(refusal.cause())}, {"message", refusal.message()}, {"type", type}};
  error["param"] = refusal.field.empty() ? Json() : Json(refusal.field);
  if (refusal.cause() == Cause::too_long) {
    error["n_prompt_tokens"] = refusal.prompt_tokens;
    error["n_ctx"] = refusal.n_ctx;
  }
  return {{"error", std::move(error)}};
}

/// A whole reply that refuses.
[[nodiscard]] inline HttpReply error_reply(Api api, const Refusal& refusal) {
  HttpReply reply;
  reply.status = status_of(refusal.cause());
  reply.body = dump(error_body(api, refusal));
  if (refusal.retry_after) reply.headers.add("Retry-After", std::to_string(*refusal.retry_after));
  return reply;
}

}  // namespace mica::serve
