// SPDX-License-Identifier: Apache-2.0
//
// Why a server does not do what a client asks. Each API writes a refusal in its own form, with the HTTP status
// of its cause.
#pragma once

#include "mica/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace mica::serve {

/// What is wrong, and with it the HTTP status.
enum class Cause : std::uint8_t {
  invalid,       ///< 400: a field is missing, has the wrong type, or is out of range
  too_long,      ///< 400: the prompt leaves no token of the context for an answer
  too_large,     ///< 400: the request never fits the memory budget
  option,        ///< 400: an option or a part that this server does not have
  unauthorised,  ///< 401: no API key, or a wrong one
  forbidden,     ///< 403: a Host or an Origin that is not allowed
  not_found,     ///< 404: no such route, model or file
  wrong_method,  ///< 405
  body_limit,    ///< 413: the body is longer than the server accepts
  busy,          ///< 429: the queue is full; retry_after says when to come again
  failed,        ///< 500: the server could not do it
  unsupported,   ///< 501: a route that this server does not have
  unavailable,   ///< 503: the server is ending, or has no memory, connection or answer free at this moment
};

/// The HTTP status of a cause.
[[nodiscard]] constexpr int status_of(Cause cause) noexcept {
  constexpr int statuses[] = {400, 400, 400, 400, 401, 403, 404, 405, 413, 429, 500, 501, 503};
  return statuses[static_cast<std::size_t>(cause)];
}

/// A request that is not answered. Its message names the field, the value found and the allowed ones.
class Refusal : public Error {
 public:
  /// message: one sentence for a person.
  Refusal(Cause cause, std::string message) : Error(code_of(cause), std::move(message)), cause_(cause) {}

  /// With the status of HTTP: status_of().
  [[nodiscard]] Cause cause() const noexcept { return cause_; }

  std::string field = {};                         // of the request, such as messages[0].role; empty: none
  std::optional<std::uint64_t> retry_after = {};  // seconds
  std::size_t prompt_tokens = 0;                  // for too_long
  std::size_t n_ctx = 0;                          // for too_long: tokens of the context

 private:
  static ErrorCode code_of(Cause cause) noexcept {
    switch (cause) {
      case Cause::too_long:
      case Cause::body_limit:
      case Cause::busy:
        return ErrorCode::limit;
      case Cause::too_large:
        return ErrorCode::budget;
      case Cause::failed:
      case Cause::unavailable:
        return ErrorCode::failed;
      case Cause::option:
      case Cause::unsupported:
        return ErrorCode::unsupported;
      default:
        return ErrorCode::usage;
    }
  }

  Cause cause_;
};

}  // namespace mica::serve
