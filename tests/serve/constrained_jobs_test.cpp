// SPDX-License-Identifier: Apache-2.0
//
// Answers of a server with constraints, beside answers without.

#include "io/temporary_folder.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica_tools/http/router.hpp"
#include "mica_tools/routes/anthropic.hpp"
#include "mica_tools/routes/llama.hpp"
#include "mica_tools/routes/ollama.hpp"
#include "mica_tools/routes/openai_chat.hpp"
#include "mica_tools/routes/openai_text.hpp"
#include "mica_tools/routes/responses.hpp"
#include "serve/fairy_server.hpp"
#include "serve/fake_service.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

namespace mica::test::constrained_jobs_test {
namespace {

using namespace serve;

const std::string fairy = MICA_SOURCE "/examples/models/fairy.gguf";
constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

constexpr const char* person =
    R"(root ::= "{\"name\": \"" [A-Z] [a-z]{1,9} "\", \"age\": " [1-9] [0-9]? "}")";
const std::regex person_text(R"re(\{"name": "[A-Z][a-z]{1,9}", "age": [1-9][0-9]?\})re");

Job job_of(const std::shared_ptr<const ServedModel>& model, std::uint64_t seed,
           const char* grammar = nullptr) {
  Job job;
  job.prompt.tokens = model->encode("Once upon a time", true, false);
  job.model = model;
  job.max_tokens = 60;
  job.sampler.seed = seed;
  job.sampler.temperature = 1;
  if (grammar != nullptr) job.constraint = constraint_of(constraint::parse_gbnf(grammar));
  return job;
}

/// The answer of a job that has a model for itself.
Collected alone(const Job& job, const char* grammar = nullptr) {
  static Model model = mica::open(fairy, {.n_ctx = 256, .threads = 1});
  static const auto tokens = std::make_shared<constraint::TokenTrie>(model.tokenizer());
  auto session = model.session();
  sample::Standard<> sampler(job.sampler, model.config().n_vocab);
  constraint::Any constraint;
  if (grammar != nullptr) constraint = constraint::Grammar(tokens, constraint::parse_gbnf(grammar));
  Collected out;
  const auto result = generate(session, model.tokenizer(), sampler, constraint, job.prompt.tokens,
                               {.max_tokens = job.max_tokens}, [&](std::string_view piece) {
                                 out.text += piece;
                                 return true;
                               });
  out.ended.answer_tokens = result.tokens.size();
  return out;
}

/// Fails after some masks.
struct Fails : constraint::Unforced {
  std::size_t masks = 0;
  std::string reason = {};

  [[nodiscard]] bool allowed(constraint::TokenMask& mask) noexcept {
    for (TokenId id = 0; id < mask.size(); ++id) mask.insert(id);
    return masks-- > 0;
  }
  [[nodiscard]] bool advance(TokenId) noexcept { return true; }
  void rewind(std::size_t) noexcept {}
  [[nodiscard]] std::string why() const { return reason; }
};

MakeConstraint failing(std::size_t masks, std::string reason) {
  return [=](const auto&, const auto&) {
    Fails fails;
    fails.masks = masks;
    fails.reason = reason;
    return fails;
  };
}

}  // namespace

TEST_CASE("answers with and without constraints run together, and each is the one that it would be alone") {
  Running server({fairy}, plenty, {.parallel = 6});
  const auto model = server.scheduler.model("");
  const char* const list = R"(root ::= ("- " [a-z]{2,8} "\n"){3})";
  std::vector<std::pair<std::shared_ptr<Answer>, Collected>> all;
  for (std::uint64_t i = 0; i < 12; ++i) {
    const char* const grammar = i % 3 == 0 ? nullptr : i % 3 == 1 ? person : list;
    const Job job = job_of(model, i, grammar);
    all.emplace_back(server.scheduler.submit(job), alone(job, grammar));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    const Collected found = collect(*all[i].first);
    CHECK(found.failure.empty());
    CHECK(found.text == all[i].second.text);
    CHECK(found.ended.answer_tokens == all[i].second.ended.answer_tokens);  // forced ones too
    if (i % 3 == 1) {
      CHECK(std::regex_match(found.text, person_text));
      CHECK(found.ended.reason == StopReason::end_of_text);
    }
  }
}

TEST_CASE(
    "a constraint is booked while its answer runs, and the vocabulary for it while the model is loaded") {
  using budget::Account;
  Running server({fairy}, plenty);
  {
    auto model = server.scheduler.model("");
    const std::uint64_t tokenizer = server.ledger->used(Account::tokenizer);
    CHECK(collect(*server.scheduler.submit(job_of(model, 1))).failure.empty());
    CHECK(server.ledger->used(Account::tokenizer) == tokenizer);
    const std::uint64_t logits = server.ledger->used(Account::logits);
    const std::uint64_t peak = server.ledger->peak(Account::logits);
    Job job = job_of(model, 1, person);
    Job second = job;  // of the same request
    second.sampler.seed = 2;
    const auto a = server.scheduler.submit(std::move(job)), b = server.scheduler.submit(std::move(second));
    CHECK(std::regex_match(collect(*a).text, person_text));
    CHECK(std::regex_match(collect(*b).text, person_text));
    const std::uint64_t one = SchedulerOptions().constraint_bytes;
    CHECK(server.ledger->peak(Account::logits) >= peak + one);
    CHECK(server.ledger->peak(Account::logits) < peak + 2 * one);
    CHECK(server.ledger->used(Account::tokenizer) == tokenizer + model->tokens()->bytes());
    server.finish();
    CHECK(server.ledger->used(Account::logits) <= logits);
  }
}

TEST_CASE("an answer whose constraint fails ends with the reason, and the others continue") {
  Running server({fairy}, plenty, {.parallel = 4});
  const auto model = server.scheduler.model("");
  const Job good = job_of(model, 3), constrained = job_of(model, 4, person);
  const std::string expected = alone(good).text;
  Job first = job_of(model, 5), second = job_of(model, 6), third = job_of(model, 7);
  first.constraint = failing(3, "first reason");
  second.constraint = failing(3, "second reason");
  third.constraint = [](const auto&, const auto&) -> constraint::Any {
    raise(ErrorCode::limit, "third reason");
  };
  const auto a = server.scheduler.submit(good), b = server.scheduler.submit(std::move(first)),
             c = server.scheduler.submit(std::move(second)), d = server.scheduler.submit(constrained),
             e = server.scheduler.submit(std::move(third));
  CHECK(collect(*b).failure == "first reason");
  CHECK(collect(*c).failure == "second reason");
  CHECK(collect(*e).failure == "third reason");
  CHECK(collect(*a).text == expected);
  CHECK(std::regex_match(collect(*d).text, person_text));
}

TEST_CASE("a job with a constraint keeps no model in memory, and runs when its model is loaded again") {
  ModelCard card;
  card.path = fairy;
  const std::uint64_t one = FileLoader(256).bytes(card);
  const std::uint64_t budget = plan::any_process_bytes + one + one / 2 + (std::uint64_t{4} << 20);
  Running server({fairy, fairy}, budget, {.parallel = 1, .constraint_bytes = std::uint64_t{1} << 20});
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<std::string> expected;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const auto model = server.scheduler.model(i % 2 == 0 ? "0" : "1");
    Job job = job_of(model, i, person);
    expected.push_back(alone(job, person).text);
    answers.push_back(server.scheduler.submit(std::move(job)));
  }
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Collected found = collect(*answers[i]);
    CHECK(found.failure.empty());
    CHECK(found.text == expected[i]);
  }
}

TEST_CASE("a constraint that never fits the budget is refused") {
  Running server({fairy}, plenty, {.constraint_bytes = plenty});
  const auto model = server.scheduler.model("");
  try {
    static_cast<void>(server.scheduler.submit(job_of(model, 1, person)));
    FAIL("nothing was refused");
  } catch (const Refusal& refusal) {
    CHECK(refusal.cause() == Cause::too_large);
  }
  CHECK(collect(*server.scheduler.submit(job_of(model, 1))).failure.empty());
}

TEST_CASE("llama-server's field `grammar` is GBNF, and an error in it names line and column") {
  Running server({fairy}, plenty);
  Router router;
  add_llama(router, server.scheduler, RouteOptions{});
  add_openai_text(router, server.scheduler, RouteOptions{});
  add_openai_chat(router, server.scheduler, RouteOptions{});
  const auto ask = [&](const char* path, Json body) { return made(router.handle(post(path, body.dump()))); };
  const Json body = {{"prompt", "Once upon a time"}, {"grammar", person}, {"seed", 5}, {"n_predict", 60}};
  const HttpReply reply = ask("/completion", body);
  REQUIRE(reply.status == 200);
  const Json whole = Json::parse(reply.body);
  CHECK(std::regex_match(whole["content"].get<std::string>(), person_text));
  CHECK(whole["generation_settings"]["grammar"] == person);
  CHECK(whole["tokens_predicted"] > 10);
  CHECK(whole["stop_type"] == "eos");

  Json several = body;
  several["n"] = 3;
  several["logprobs"] = 2;
  const Json choices = Json::parse(ask("/v1/completions", several).body)["choices"];
  REQUIRE(choices.size() == 3);
  for (const Json& choice : choices) {
    CHECK(std::regex_match(choice["text"].get<std::string>(), person_text));
    CHECK(choice["logprobs"]["tokens"].size() == choice["logprobs"]["token_logprobs"].size());
  }

  Json chat = {
      {"messages", {{{"role", "user"}, {"content", "Who?"}}}}, {"grammar", person}, {"max_tokens", 60}};
  const Json answer = Json::parse(ask("/v1/chat/completions", chat).body);
  CHECK(std::regex_match(answer["choices"][0]["message"]["content"].get<std::string>(), person_text));
  CHECK(answer["usage"]["completion_tokens"] > 10);

  Json named = body;
  named["grammar"] = "root ::= \"a\" <[300]>";  // a token by its id
  CHECK(Json::parse(ask("/completion", named).body)["content"] ==
        "a" + server.scheduler.model("")->piece(300));
  for (const char* const wrong :
       {"root ::= \"a\nb", "root ::= other", "start ::= \"a\"", "root ::= <none such>"}) {
    CAPTURE(wrong);
    named["grammar"] = wrong;
    const HttpReply refused = ask("/completion", named);
    CHECK(refused.status == 400);
    CHECK(refused.body.find("grammar") != std::string::npos);
  }
  Running small({fairy}, plenty, {.constraint_bytes = 1000});
  Router of_small;
  add_llama(of_small, small.scheduler, RouteOptions{});
  const HttpReply limit = made(of_small.handle(post("/completion", body.dump())));
  CHECK(limit.status == 400);
  CHECK(limit.body.find("allowed are 1000") != std::string::npos);
  named["grammar"] = "root ::= \"a\"\nroot ::= (";
  CHECK(ask("/completion", named).body.find("line 2") != std::string::npos);
}

TEST_CASE("a schema is enforced by each API") {
  Running server({fairy}, plenty);
  Router router;
  add_llama(router, server.scheduler, RouteOptions{});
  add_openai_chat(router, server.scheduler, RouteOptions{});
  add_responses(router, server.scheduler, RouteOptions{});
  add_anthropic(router, server.scheduler, RouteOptions{});
  add_ollama(router, server.scheduler, RouteOptions{});
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"kind":{"enum":["cat","dog"]},"age":{"type":"integer","minimum":1,"maximum":20}},
          "required":["kind","age"],"additionalProperties":false})");
  const Json messages = {{{"role", "user"}, {"content", "A pet?"}}};
  const auto ask = [&](const char* path, const Json& body) {
    const HttpReply reply = made(router.handle(post(path, body.dump())));
    CAPTURE(reply.body);
    REQUIRE(reply.status == 200);
    return Json::parse(reply.body);
  };
  const auto check = [](const Json& text) {
    CAPTURE(text.dump());
    const Json pet = Json::parse(text.get<std::string>());
    CHECK((pet["kind"] == "cat" || pet["kind"] == "dog"));
    CHECK((pet["age"] >= 1 && pet["age"] <= 20));
    CHECK(pet.size() == 2);
  };
  const Json format = {{"type", "json_schema"}, {"name", "pet"}, {"schema", schema}};
  check(
      ask("/v1/chat/completions",
          {{"messages", messages},
           {"response_format",
            {{"type", "json_schema"},
             {"json_schema", {{"name", "pet"}, {"schema", schema}}}}}})["choices"][0]["message"]["content"]);
  check(ask("/completion", {{"prompt", "A pet: "}, {"json_schema", schema}})["content"]);
  check(ask("/v1/responses", {{"input", "A pet?"},
                              {"text", {{"format", format}}},
                              {"model", ""}})["output"][0]["content"][0]["text"]);
  check(ask("/v1/messages",
            {{"messages", messages},
             {"max_tokens", 60},
             {"model", ""},
             {"output_config",
              {{"format", {{"type", "json_schema"}, {"schema", schema}}}}}})["content"][0]["text"]);
  check(ask(
      "/api/chat",
      {{"messages", messages}, {"format", schema}, {"stream", false}, {"model", "0"}})["message"]["content"]);
  const Json any = ask("/v1/chat/completions", {{"messages", messages},
                                                {"max_tokens", 40},
                                                {"temperature", 0},
                                                {"response_format", {{"type", "json_object"}}}});
  CHECK(any["choices"][0]["message"]["content"].get<std::string>().starts_with("{"));
}

TEST_CASE("a model that must call a tool calls it as the schema of the tool says, whole and in a stream") {
  Running server({fairy}, plenty, {}, 512);
  Router router;
  add_openai_chat(router, server.scheduler, RouteOptions{});
  const Json pet = Json::parse(
      R"({"type":"object","properties":{"kind":{"enum":["cat","dog"]},"age":{"type":"integer","minimum":1,"maximum":20}},
          "required":["kind","age"],"additionalProperties":false})");
  const Json tools = {{{"type", "function"}, {"function", {{"name", "buy"}, {"parameters", pet}}}},
                      {{"type", "function"}, {"function", {{"name", "feed"}, {"parameters", pet}}}}};
  Json body = {
      {"messages", {{{"role", "user"}, {"content", "A pet?"}}}}, {"tools", tools}, {"max_tokens", 120}};
  const auto check = [](const Json& call, const std::string& names) {
    CAPTURE(call.dump());
    CHECK(names.find(call["function"]["name"].get<std::string>()) != std::string::npos);
    const Json arguments = Json::parse(call["function"]["arguments"].get<std::string>());
    CHECK((arguments["kind"] == "cat" || arguments["kind"] == "dog"));
    CHECK((arguments["age"] >= 1 && arguments["age"] <= 20));
    CHECK(arguments.size() == 2);
  };
  const auto ask = [&] {
    const HttpReply reply = made(router.handle(post("/v1/chat/completions", body.dump())));
    CAPTURE(reply.body);
    REQUIRE(reply.status == 200);
    return Json::parse(reply.body)["choices"][0];
  };
  body["tool_choice"] = "required";
  body["parallel_tool_calls"] = false;
  for (int seed = 0; seed < 4; ++seed) {
    body["seed"] = seed;
    const Json choice = ask();
    CHECK(choice["finish_reason"] == "tool_calls");
    REQUIRE(choice["message"]["tool_calls"].size() == 1);
    check(choice["message"]["tool_calls"][0], "buy feed");
    CHECK(choice["message"]["content"].is_null());
  }
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "feed"}}}};
  const Json named = ask()["message"]["tool_calls"];
  check(named[0], "feed");

  Json streamed = body;
  streamed["stream"] = true;
  const std::string text = body_of(router.handle(post("/v1/chat/completions", streamed.dump())));
  std::string arguments;
  for (std::size_t at = text.find("data: {"); at != std::string::npos; at = text.find("data: {", at + 1)) {
    const Json delta = Json::parse(text.substr(at + 6, text.find('\n', at) - at - 6))["choices"][0]["delta"];
    if (delta.contains("tool_calls"))
      arguments += delta["tool_calls"][0]["function"]["arguments"].get<std::string>();
  }
  CHECK(arguments == named[0]["function"]["arguments"]);

  body["tool_choice"] = "none";
  const Json none = ask();
  CHECK_FALSE(none["message"].contains("tool_calls"));
  CHECK(none["message"]["content"].get<std::string>().find("<tool_call>") == std::string::npos);
  body["tool_choice"] = "auto";
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"name", "pet"}, {"schema", pet}}}};
  const Json either = ask()["message"];
  if (!either.contains("tool_calls")) CHECK(Json::parse(either["content"].get<std::string>()).size() == 2);
}

}  // namespace mica::test::constrained_jobs_test
