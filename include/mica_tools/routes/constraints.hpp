// SPDX-License-Identifier: Apache-2.0
//
// The fields of a request that say which texts an answer may be.
#pragma once

#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/named_token.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/serve/job.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::serve {

inline constexpr std::size_t max_language_bytes = std::size_t{8}
                                                  << 20;  // of a compiled grammar, in the queue

/// Reads llama-server's `grammar`, in GBNF, into a job whose model is set. Raises Refusal: invalid, with line and
/// column; option for what is not supported.
inline void read_grammar(Fields& fields, Job& job) {
  const std::string text = fields.text("grammar").value_or("");
  if (text.empty()) return;
  const auto tokens = job.model->tokens();
  constraint::GbnfOptions options;
  options.max_expression_bytes = max_language_bytes;
  options.token_text = [&](std::string_view name) {
    return constraint::named_token(
        *tokens, name, [&](std::string_view each) { return job.model->encode(each, false, true); });
  };
  try {
    job.constraint = constraint_of(constraint::parse_gbnf(text, options));
  } catch (const Error& error) {
    const bool unsupported = error.code() == ErrorCode::unsupported;
    refuse_field(fields.place("grammar"), error.message(), unsupported ? Cause::option : Cause::invalid);
  }
}

}  // namespace mica::serve
