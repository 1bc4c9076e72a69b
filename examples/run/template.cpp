// SPDX-License-Identifier: Apache-2.0
//
// Renders a chat template, with nothing added: for comparing it with what its authors get.
#include "console.hpp"
#include "input.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/json.hpp"
#include "mica/text/chat.hpp"
#include "mica/text/json_value.hpp"
#include "verbs.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace mica::program {
namespace {

using Json = nlohmann::ordered_json;  // templates show the order of keys
using jinja::Value;

Value parse_json(const std::string& text, const std::string& what) {
  return text::value_of_json(io::parse_json<Json>(text, what, ErrorCode::usage));
}

/// The text of a special token, as the file spells it; empty when it has none.
std::string token_text(const gguf::Metadata& metadata, std::string_view key) {
  const auto id = metadata.get<std::int64_t>(key);
  const auto tokens = metadata.get<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  if (!id || !tokens || *id < 0) return {};
  std::int64_t i = 0;
  for (const std::string_view token : *tokens) {
    if (i++ == *id) return std::string(token);
  }
  return {};
}

struct Source {
  std::string text;
  std::string bos;
  std::string eos;
};

/// The template of the file; with tools, the one that the file has for them.
Source source_of(const Options& options) {
  Source source;
  if (!options.template_file.empty()) {
    source.text = read_text(options.template_file);
  } else {
    const gguf::Document document = open_document(options);
    const gguf::Metadata& metadata = document.metadata();
    auto found = metadata.get<std::string_view>("tokenizer.chat_template");
    if (!options.tools_file.empty()) {
      if (const auto other = metadata.get<std::string_view>("tokenizer.chat_template.tool_use"))
        found = other;
    }
    MICA_CHECK(found, unsupported, document.path(),
               ": the file has no tokenizer.chat_template; give one with --template-file");
    source = {std::string(*found), token_text(metadata, "tokenizer.ggml.bos_token_id"),
              token_text(metadata, "tokenizer.ggml.eos_token_id")};
  }
  if (options.bos) source.bos = *options.bos;
  if (options.eos) source.eos = *options.eos;
  return source;
}

text::ChatVariables variables_of(const Options& options) {
  text::ChatVariables variables;
  if (!options.tools_file.empty())
    variables.tools = parse_json(read_text(options.tools_file), options.tools_file);
  for (const std::string& setting : options.set) {
    const std::size_t sign = setting.find('=');
    MICA_CHECK(sign != std::string::npos && sign > 0, usage, "--set ", escaped(setting),
               ": needed: NAME=JSON");
    variables.others.emplace_back(setting.substr(0, sign),
                                  parse_json(setting.substr(sign + 1), join("--set ", escaped(setting))));
  }
  if (!options.now.empty()) {
    variables.now = jinja::CivilTime::parse(options.now);
    MICA_CHECK(variables.now, usage, "--now ", escaped(options.now),
               ": needed: a time such as 2025-01-15T12:00:00");
  }
  return variables;
}

}  // namespace

int render_template(const Options& options) {
  MICA_CHECK(!options.messages_file.empty(), usage,
             "template: no messages; give --messages FILE, a JSON array");
  const Value messages = parse_json(read_text(options.messages_file), options.messages_file);
  MICA_CHECK(messages.is(jinja::Kind::sequence), usage, options.messages_file,
             ": needed: an array of messages");
  Source source = source_of(options);
  const text::ChatVariables variables = variables_of(options);
  try {
    const auto format =
        text::ChatFormat::from_template(source.text, std::move(source.bos), std::move(source.eos));
    print_data(options, format.render(messages, !options.no_generation_prompt, variables));
  } catch (const Error& error) {
    if (options.template_file.empty()) throw;
    raise(error.code(), options.template_file, ": ", error.message());
  }
  return 0;
}

}  // namespace mica::program
