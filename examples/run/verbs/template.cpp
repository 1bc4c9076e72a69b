// SPDX-License-Identifier: Apache-2.0
//
// Renders a chat template and adds nothing, for comparison with other engines.
#include "console.hpp"
#include "input.hpp"
#include "mica/base/assert.hpp"
#include "mica_tools/chat/chat_format.hpp"
#include "mica_tools/chat/json_value.hpp"
#include "mica_tools/json/parse_json.hpp"
#include "verbs.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

class Template final : public Verb {
 public:
  Template()
      : Verb({"template", "render a chat template", "mica template model.gguf --messages messages.json"},
             Needs::header) {}
  int run() override;

  std::string template_file;
  std::string messages_file;
  std::string tools_file;
  bool no_generation_prompt = false;
  std::vector<std::string> set;
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::string now;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    flags.group("Template");
    flags.text("--template-file", template_file, "FILE", "a template instead of a model's");
    flags.text("--messages", messages_file, "FILE", "JSON array of messages");
    flags.text("--tools", tools_file, "FILE", "JSON array of tools");
    flags.toggle("--no-generation-prompt", no_generation_prompt,
                 "without the beginning of the assistant's turn");
    flags.texts("--set", set, "NAME=JSON", "one more variable; may be repeated");
    flags.text("--bos", bos, "TEXT", "text of the BOS token");
    flags.text("--eos", eos, "TEXT", "text of the EOS token");
    flags.text("--now", now, "TIME", "the time: 2025-01-15T12:00:00");
  }
};

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
Source source_of(const Template& verb) {
  Source source;
  if (!verb.template_file.empty()) {
    source.text = read_text(verb.template_file);
  } else {
    const gguf::Document document = open_document(verb);
    const gguf::Metadata& metadata = document.metadata();
    auto found = metadata.get<std::string_view>("tokenizer.chat_template");
    if (!verb.tools_file.empty()) {
      if (const auto other = metadata.get<std::string_view>("tokenizer.chat_template.tool_use"))
        found = other;
    }
    MICA_CHECK(found, unsupported, document.path(),
               ": the file has no tokenizer.chat_template; give one with --template-file");
    source = {std::string(*found), token_text(metadata, "tokenizer.ggml.bos_token_id"),
              token_text(metadata, "tokenizer.ggml.eos_token_id")};
  }
  if (verb.bos) source.bos = *verb.bos;
  if (verb.eos) source.eos = *verb.eos;
  return source;
}

text::ChatVariables variables_of(const Template& verb) {
  text::ChatVariables variables;
  if (!verb.tools_file.empty()) variables.tools = parse_json(read_text(verb.tools_file), verb.tools_file);
  for (const std::string& setting : verb.set) {
    const std::size_t sign = setting.find('=');
    MICA_CHECK(sign != std::string::npos && sign > 0, usage, "--set ", escaped(setting),
               ": needed: NAME=JSON");
    variables.others.emplace_back(setting.substr(0, sign),
                                  parse_json(setting.substr(sign + 1), join("--set ", escaped(setting))));
  }
  if (!verb.now.empty()) {
    variables.now = jinja::CivilTime::parse(verb.now);
    MICA_CHECK(variables.now, usage, "--now ", escaped(verb.now),
               ": needed: a time such as 2025-01-15T12:00:00");
  }
  return variables;
}

int Template::run() {
  MICA_CHECK(!messages_file.empty(), usage, "template: no messages; give --messages FILE, a JSON array");
  const Value messages = parse_json(read_text(messages_file), messages_file);
  MICA_CHECK(messages.is(jinja::Kind::sequence), usage, messages_file, ": needed: an array of messages");
  Source source = source_of(*this);
  const text::ChatVariables variables = variables_of(*this);
  try {
    const auto format =
        text::ChatFormat::from_template(source.text, std::move(source.bos), std::move(source.eos));
    print_data(*this, format.render(messages, !no_generation_prompt, variables));
  } catch (const Error& error) {
    if (template_file.empty()) throw;
    raise(error.code(), template_file, ": ", error.message());
  }
  return 0;
}

}  // namespace

AnyVerb make_template() { return std::make_unique<Template>(); }

}  // namespace mica::program
