// SPDX-License-Identifier: Apache-2.0
//
// The fields of a request that say which texts an answer may be.
#pragma once

#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/named_token.hpp"
#include "mica_tools/http/fields.hpp"
#include "mica_tools/schema/schema.hpp"
#include "mica_tools/serve/job.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::serve {

inline constexpr std::size_t max_language_bytes = std::size_t{8}
                                                  << 20;  // of a compiled grammar, in the queue

/// Limits of the schemas of one request, whose compilation no budget has.
inline void bound(schema::SchemaOptions& options) noexcept {
  options.max_expression_bytes = max_language_bytes;
  options.max_needs = 20'000;  // of some hundred bytes to 2 kB each
}

/// Gives a job the constraint of a language. Raises Refusal where it has one, naming the field, and for what
/// `make` raises: option for what is not supported, else invalid.
template <class MakeLanguage>
void constrain(Job& job, const std::string& place, MakeLanguage&& make) {
  if (job.constraint) refuse_field(place, "a request has one grammar or schema");
  try {
    job.constraint = constraint_of(make());
  } catch (const Error& error) {
    const bool unsupported = error.code() == ErrorCode::unsupported;
    std::string message = error.message();
    if (message.starts_with(place + ": ")) message.erase(0, place.size() + 2);
    refuse_field(place, message, unsupported ? Cause::option : Cause::invalid);
  }
}

/// Raises Refusal (invalid) for a value that is no schema.
inline void check_schema(const Json& schema, const std::string& place) {
  if (!schema.is_object() && !schema.is_boolean())
    refuse_field(place, "found no schema: {...}, true or false");
}

/// Answers are JSON that meets a schema.
inline void constrain_to_schema(Job& job, const Json& schema, const std::string& place) {
  check_schema(schema, place);
  schema::SchemaOptions options;
  bound(options);
  if (job.model) static_cast<void>(job.model->tokens());  // made on this thread, not on the scheduler's
  constrain(job, place, [&] { return schema::parse_schema(schema.dump(), options); });
}
/// Reads llama-server's `json_schema`; {} counts as missing.
inline void read_json_schema(Fields& fields, Job& job) {
  const Json* const schema = fields.find("json_schema");
  if (schema != nullptr && !schema->empty()) constrain_to_schema(job, *schema, fields.place("json_schema"));
}

/// Reads llama-server's `grammar`, in GBNF, into a job whose model is set. Raises Refusal: invalid, with line
/// and column; option for what is not supported.
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
  constrain(job, fields.place("grammar"), [&] { return constraint::parse_gbnf(text, options); });
}

}  // namespace mica::serve
