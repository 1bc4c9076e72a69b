// SPDX-License-Identifier: Apache-2.0
//
// Errors of the engine as texts.
#pragma once

#include "mica/base/error.hpp"

#include <string>
#include <string_view>

namespace mica::test {

/// The error that f() raises, as its code and its message: "limit: ..."; "accepted" where it raises none.
template <class F>
[[nodiscard]] std::string refusal_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    const std::string_view code = error.code() == ErrorCode::usage         ? "usage: "
                                  : error.code() == ErrorCode::unsupported ? "unsupported: "
                                  : error.code() == ErrorCode::limit       ? "limit: "
                                                                           : "other: ";
    return std::string(code) + error.what();
  }
  return "accepted";
}

/// The words of an error of ErrorCode::limit; empty where f() raises another one, or none.
template <class F>
[[nodiscard]] std::string limit_of(F&& f) {
  constexpr std::string_view limit = "limit: ";
  const std::string message = refusal_of(f);
  return message.starts_with(limit) ? message.substr(limit.size()) : std::string();
}

}  // namespace mica::test
