// SPDX-License-Identifier: Apache-2.0
//
// Lesson 14: a model that calls tools, in a program without a server.
//
//   14_tools [MODEL.gguf]
//
// The constraint holds the answer to the call format and to the schemas of the tools, and the parser finds the
// calls in the text while it is written. Here every answer is a call, so that a model that was never trained with
// tools makes one too. A program with a chat template asks find_template_calls() for the format, and gives tools to
// the template (mica_tools/chat/chat_format.hpp) or writes them into the messages with write_tools().

#include "mica/constraint/grammar.hpp"
#include "mica/runtime/complete.hpp"
#include "mica_tools/calls/call_language.hpp"
#include "mica_tools/calls/call_parser.hpp"
#include "mica_tools/calls/tools_of_json.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr const char* tools = R"([
  {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "required": ["city", "days"], "properties": {
      "city": {"enum": ["Bonn", "Ulm"]}, "days": {"type": "integer", "minimum": 1, "maximum": 7}}}}},
  {"type": "function", "function": {"name": "set_alarm", "description": "An alarm",
    "parameters": {"type": "object", "required": ["loud"], "properties": {"loud": {"type": "boolean"}}}}}])";

/// What a program does with the events of an answer.
void take(const std::vector<mica::calls::CallEvent>& events) {
  using Kind = mica::calls::CallEvent::Kind;
  for (const auto& event : events) {
    if (event.kind == Kind::text) std::printf("%s", event.text.c_str());
    if (event.kind == Kind::call_begin) std::printf("%s ", event.name.c_str());
    if (event.kind == Kind::arguments) std::printf("%s", event.text.c_str());
    if (event.kind == Kind::call_end) std::printf("%s\n", event.is_complete ? "" : " (cut off)");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) {
    std::fprintf(stderr, "14_tools: no model at %s\n", path.c_str());
    return 0;
  }
  mica::Model model = mica::open(path, {.n_ctx = 512});
  const auto tokens = std::make_shared<const mica::constraint::TokenTrie>(model.tokenizer());
  const mica::calls::CallFormat format;  // <tool_call>, JSON, </tool_call>, as Hermes and Qwen write calls
  const auto types = mica::calls::tools_of_json(nlohmann::ordered_json::parse(tools));
  const std::string question = "How is the weather?";

  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    mica::constraint::Grammar constraint(
        tokens, mica::calls::call_language(format, tools,
                                           {.choice = mica::calls::ToolChoice::required,
                                            .parallel = false,
                                            .thoughts = false,
                                            .prompt = question}));
    mica::calls::CallParser parser(format, types, question);
    std::vector<mica::calls::CallEvent> events;
    auto session = model.session();
    mica::sample::Standard<> sampler({.temperature = 1, .seed = seed}, model.config().n_vocab);
    const auto result = mica::generate(
        session, model.tokenizer(), sampler, constraint, mica::prompt_ids(model.tokenizer(), question),
        {.max_tokens = 100}, [&](std::string_view text) { return parser.take(text, events), true; });
    parser.finish(events);
    take(events);
    std::printf("  %zu tokens, %zu of them forced\n", result.tokens.size(), result.forced);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "14_tools: %s\n", error.what());
  return 1;
}
