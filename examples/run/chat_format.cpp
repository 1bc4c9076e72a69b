// SPDX-License-Identifier: Apache-2.0
#include "chat_format.hpp"

#include "console.hpp"
#include "mica_tools/chat/chat_template.hpp"
#include "mica_tools/chat/json_value.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <nlohmann/json.hpp>

#include <string_view>
#include <utility>

namespace mica::program {
namespace {

using Json = nlohmann::ordered_json;  // templates show the order of keys

/// The variables of a JSON object; none for an empty text.
text::ChatVariables variables_of(const std::string& json, const std::string& where) {
  text::ChatVariables variables;
  if (json.empty()) return variables;
  const Json all = io::parse_json<Json>(json, where, ErrorCode::usage);
  MICA_CHECK(all.is_object(), usage, where,
             ": needed: a JSON object such as {\"enable_thinking\":false}, found ",
             std::string_view(all.type_name()));
  for (const auto& [name, value] : all.items()) {
    MICA_CHECK(name != "messages" && name != "add_generation_prompt", usage, where, ": '", name,
               "' comes from the conversation and cannot be set");
    variables.others.emplace_back(name, text::value_of_json(value));
  }
  return variables;
}

std::optional<bool> thinking_of(Think think) {
  if (think == Think::on || think == Think::off) return think == Think::on;
  return std::nullopt;
}

}  // namespace

ChatFormat::ChatFormat(const ChatOptions& options, const gguf::Metadata& metadata,
                       const text::Vocabulary& vocabulary) {
  ChatTemplateOptions chosen;
  if (!options.chat_template_file.empty()) {
    chosen.source = read_text(options.chat_template_file);
  } else {
    chosen.built_in = options.chat_template;
  }
  chosen.thinking = thinking_of(options.think);
  chosen.variables = variables_of(options.chat_template_kwargs, "--chat-template-kwargs");
  try {
    template_ = std::make_shared<const ChatTemplate>(metadata, vocabulary, std::move(chosen));
  } catch (const Error& error) {
    if (options.chat_template_file.empty()) throw;
    raise(error.code(), options.chat_template_file, ": ", error.message());
  }
}

ChatRenderer ChatFormat::renderer() const { return template_->renderer(); }

serve::ChatFunctions ChatFormat::functions() const {
  return {[its = template_](std::span<const text::Message> messages, const serve::Conversation& conversation,
                            bool with_answer) {
            const auto variables = variables_of(conversation.variables, "chat_template_kwargs");
            return its->render(messages, conversation.thinking, variables, with_answer);
          },
          template_->stop()};
}

void ChatFormat::set_thinking(std::optional<bool> thinking) {
  template_ = std::make_shared<const ChatTemplate>(template_->with_thinking(thinking));
}

bool ChatFormat::is_sure() const noexcept { return template_->is_sure(); }

const std::string& ChatFormat::note() const noexcept { return template_->note(); }

const std::string& ChatFormat::source() const noexcept { return template_->source(); }

bool ChatFormat::has_template() const noexcept { return template_->has_template(); }

bool ChatFormat::has_thinking_switch() const noexcept { return template_->has_thinking_switch(); }

void check_template_variables(const std::string& json, const std::string& where) {
  static_cast<void>(variables_of(json, where));
}

}  // namespace mica::program
