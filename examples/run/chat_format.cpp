// SPDX-License-Identifier: Apache-2.0
#include "chat_format.hpp"

#include "console.hpp"
#include "mica_tools/calls/find_format.hpp"
#include "mica_tools/calls/write_tools.hpp"
#include "mica_tools/chat/chat_template.hpp"
#include "mica_tools/chat/message_value.hpp"
#include "mica_tools/json/map_strings.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

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

/// What a template does with tools, found when it is first needed.
class FoundCalls {
 public:
  explicit FoundCalls(std::shared_ptr<const ChatTemplate> chat) : chat_(std::move(chat)) {}
  const calls::TemplateCalls& get() {
    std::call_once(once_, [&] {
      if (chat_->has_template()) its_ = calls::find_template_calls(chat_->source());
    });
    return its_;
  }

 private:
  std::shared_ptr<const ChatTemplate> chat_;
  std::once_flag once_;
  calls::TemplateCalls its_;
};

bool has_tools(std::span<const text::Message> messages, const serve::Conversation& conversation) {
  return !conversation.tools.empty() ||
         std::any_of(messages.begin(), messages.end(), [](const text::Message& message) {
           return message.role == "tool" || !message.calls.empty();
         });
}

/// A JSON text whose strings are marked.
Json marked_json(const std::string& text, const std::string& where, const text::MarkedMessages& marked) {
  return io::map_strings(io::parse_json<Json>(text, where, ErrorCode::usage),
                         [&](const std::string& each) { return marked.marked(each); });
}

/// A conversation that has tools.
std::string render_with_tools(const ChatTemplate& chat, std::span<const text::Message> messages,
                              const serve::Conversation& conversation, text::ChatVariables variables,
                              bool with_answer, const text::MarkedMessages& marked,
                              const calls::TemplateCalls& its) {
  std::vector<text::Message> all(messages.begin(), messages.end());
  for (text::Message& message : all) {
    for (text::ToolCall& call : message.calls)
      call.arguments = marked_json(call.arguments, "the arguments of a call", marked).dump();
  }
  std::string tools;
  if (!conversation.tools.empty()) {
    const Json list = marked_json(conversation.tools, "tools", marked);
    tools = list.dump();
    variables.tools = text::value_of_json(list);
  }
  all = calls::write_tools(std::move(all), tools, its);
  return chat.render(text::value_of_messages(all, its.values), conversation.thinking, variables, with_answer);
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
  const auto found = std::make_shared<FoundCalls>(template_);
  return {[its = template_, found](std::span<const text::Message> messages,
                                   const serve::Conversation& conversation, bool with_answer,
                                   const text::MarkedMessages& marked) {
            const auto variables = variables_of(conversation.variables, "chat_template_kwargs");
            if (has_tools(messages, conversation))
              return render_with_tools(*its, messages, conversation, variables, with_answer, marked,
                                       found->get());
            return its->render(messages, conversation.thinking, variables, with_answer);
          },
          template_->stop(), [found] { return found->get(); }};
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
