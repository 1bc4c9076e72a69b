// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/routes/llama.hpp"

#include "fake_service.hpp"
#include "mica_tools/routes/models.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::llama_test {
namespace {

using namespace serve;

struct Llama {
  FakeService service;
  Router router;

  Llama() {
    RouteOptions options;
    options.max_running = 2;
    options.version = "1.2.3";
    add_llama(router, service, options);
    add_models(router, service);
  }
  HttpReply get(std::string path, std::string query = "", std::string value = "") const {
    HttpRequest request{"GET", std::move(path)};
    if (!query.empty()) request.query.add(query, value);
    return router.handle(request);
  }
  HttpReply ask(std::string path, const std::string& body) const {
    return router.handle(post(std::move(path), body));
  }
};

TEST_CASE("clients find the server, its context and its ledger") {
  const Llama llama;
  CHECK(llama.get("/health").body == "{\"status\":\"ok\"}");
  CHECK(llama.get("/v1/health").status == 200);
  const Json props = json_of(llama.get("/props"));
  CHECK(props["default_generation_settings"]["n_ctx"] == 512);
  CHECK(props["default_generation_settings"]["params"]["top_k"] == 40);
  CHECK(props["default_generation_settings"]["params"]["samplers"].size() == 9);
  CHECK(props["total_slots"] == 2);
  CHECK(props["model_path"] == "/models/tiny.gguf");
  CHECK(props["chat_template"] == "chatml");
  CHECK(props["bos_token"] == "<s>");
  CHECK(props["eos_token"] == "</s>");
  CHECK(props["build_info"] == "mica 1.2.3");
  CHECK(props["modalities"] == Json{{"vision", false}, {"audio", false}});
  CHECK(props["ledger"]["budget_bytes"] == 10'000);
  CHECK(props["ledger"]["accounts"]["weights"] == 5'000);
  CHECK(json_of(llama.get("/props", "model", "other"))["is_sleeping"] == true);
  CHECK(llama.get("/props", "model", "none").status == 404);
  CHECK(llama.ask("/props", "{}").status == 501);
}

TEST_CASE("slots are running answers, idle entries and answers in the queue") {
  Llama llama;
  llama.service.state.answers = {{7, "tiny", 10, 5, 2, 0, 20, 300, true}};
  Json list = json_of(llama.get("/slots"));
  REQUIRE(list.size() == 2);
  CHECK(list[0] ==
        Json::parse(R"({"id":0,"n_ctx":512,"speculative":false,"is_processing":true,"state":"running",
    "id_task":7,"id_slot":-1,"model":"tiny","n_prompt_tokens":10,"n_prompt_tokens_processed":5,"n_prompt_tokens_cache":2,
    "n_decoded":0,"max_tokens":20,"bytes":300})"));
  CHECK(list[1] ==
        Json::parse(R"({"id":1,"n_ctx":512,"speculative":false,"is_processing":false,"state":"idle"})"));
  CHECK(llama.get("/slots", "fail_on_no_slot", "1").status == 200);
  llama.service.state.answers.push_back({8, "tiny", 1, 0, 0, 0, 1, 1, true, 1});
  llama.service.state.answers.push_back({9, "tiny", 1, 0, 0, 0, 1, 1, false});
  list = json_of(llama.get("/slots"));
  REQUIRE(list.size() == 3);
  CHECK(list[1]["id_slot"] == 1);
  CHECK(list[2]["state"] == "waiting");
  CHECK(list[2]["is_processing"] == false);
  CHECK(llama.get("/slots", "fail_on_no_slot", "1").status == 503);
}

TEST_CASE("slots are saved, restored and erased in llama-server's form") {
  Llama llama;
  const auto act = [&](const char* path, const char* action, const char* body) {
    HttpRequest request = post(path, body);
    request.query.add("action", action);
    return llama.router.handle(request);
  };
  constexpr const char* file = R"({"filename":"a.bin"})";
  CHECK(json_of(act("/slots/1", "save", file)) ==
        Json::parse(R"({"id_slot":1,"filename":"a.bin","n_saved":84,"n_written":1234,
    "timings":{"save_ms":500.0}})"));
  CHECK(json_of(act("/slots/0", "restore", file)) ==
        Json::parse(R"({"id_slot":0,"filename":"a.bin","n_restored":84,"n_read":1234,
    "timings":{"restore_ms":500.0}})"));
  CHECK(json_of(act("/slots/1", "erase", "")) == Json::parse(R"({"id_slot":1,"n_erased":84})"));
  REQUIRE(llama.service.slot_tasks.size() == 3);
  CHECK(llama.service.slot_tasks[0].slot == 1);
  CHECK(llama.service.slot_tasks[0].file == "a.bin");
  CHECK(llama.service.slot_tasks[1].action == SlotAction::restore);
  CHECK(llama.service.slot_tasks[2].action == SlotAction::erase);

  CHECK(act("/slots/0", "eat", file).status == 400);
  CHECK(act("/slots/2", "save", file).status == 400);
  CHECK(act("/slots/-1", "save", file).status == 400);
  CHECK(act("/slots/1x", "save", file).status == 400);
  CHECK(act("/slots/0", "save", "{}").status == 400);
  CHECK(act("/slots/0", "save", R"({"filename":1})").status == 400);
  CHECK(act("/slots/0", "save", R"({"filename":"a","x":1})").status == 400);
  CHECK(act("/slots/0", "save", R"({"filename":"a","model":"none"})").status == 404);
  llama.service.slot_refusal = Refusal(Cause::unsupported, "slots are not saved; --slot-save-path");
  const HttpReply refused = act("/slots/0", "save", file);
  CHECK(refused.status == 501);
  CHECK(refused.body.find("--slot-save-path") != std::string::npos);
  CHECK(llama.service.slot_tasks.size() == 3);
}

TEST_CASE("a completion names its slot") {
  Llama llama;
  CHECK(json_of(llama.ask("/completion", R"({"prompt":"ab","id_slot":1})"))["id_slot"] == 1);
  CHECK(json_of(llama.ask("/completion", R"({"prompt":"ab","id_slot":-1})"))["id_slot"] == -1);
  REQUIRE(llama.service.jobs.size() == 2);
  CHECK(llama.service.jobs[0].slot == std::size_t{1});
  CHECK_FALSE(llama.service.jobs[1].slot.has_value());
  CHECK(llama.ask("/completion", R"({"prompt":"ab","id_slot":2})").status == 400);
  CHECK(llama.ask("/completion", R"({"prompt":"ab","id_slot":-2})").status == 400);
}

TEST_CASE("a completion has llama-server's fields, whole and in a stream without [DONE]") {
  Llama llama;
  const Json whole =
      json_of(llama.ask("/completion", R"({"prompt":"ab","n_predict":4,"seed":5,"stop":["x"]})"));
  CHECK(whole["content"] == "Hello world");
  CHECK(whole["stop"] == true);
  CHECK(whole["stop_type"] == "eos");
  CHECK(whole["stopping_word"] == "");
  CHECK(whole["prompt"] == "<s>ab");
  CHECK(whole["tokens"] == Json::array());
  CHECK(whole["tokens_predicted"] == 2);
  CHECK(whole["tokens_evaluated"] == 7);
  CHECK(whole["tokens_cached"] == 3);
  CHECK(whole["truncated"] == false);
  CHECK(whole["has_new_line"] == false);
  CHECK(whole["generation_settings"]["logit_bias"] == Json::array());
  CHECK(whole["generation_settings"]["seed"] == 5);
  CHECK(whole["generation_settings"]["n_predict"] == 4);
  CHECK(whole["generation_settings"]["n_ctx"] == 512);
  CHECK(whole["timings"]["prompt_n"] == 4);
  CHECK_FALSE(whole.contains("completion_probabilities"));

  Ended stopped = FakeService::ended(StopReason::stop_text);
  stopped.stop = "x";
  CHECK(json_of(llama.ask(
            "/completion",
            R"({"prompt":"a","logit_bias":[[97,-2],[98,false]]})"))["generation_settings"]["logit_bias"] ==
        Json::parse(R"([{"token":97,"bias":-2.0},{"token":98,"bias":null}])"));
  llama.service.script = {Begun{1, 0}, Text{"a\n", {}}, FakeService::ended(StopReason::length)};
  CHECK(json_of(llama.ask("/completion", R"({"prompt":"a"})"))["has_new_line"] == true);
  CHECK(body_of(llama.ask("/completion", R"({"prompt":"a","stream":true})")).find(R"("has_new_line":true)") !=
        std::string::npos);
  llama.service.script = {Begun{1, 0}, Text{"a", {{97, -1, "a", {{97, -1, "a", {}}}}}}, stopped};
  const std::string stream = body_of(llama.ask(
      "/completions", R"({"prompt":"b","stream":true,"n_probs":1,"return_tokens":true,"stop":["x","y"]})"));
  CHECK(stream.starts_with(R"(data: {"index":0,"content":"a","tokens":[97],"id_slot":-1,"stop":false,)"));
  CHECK(stream.find(R"("completion_probabilities":[{"id":97,"token":"a","logprob":-1.0,"bytes":[97],)") !=
        std::string::npos);
  CHECK(stream.find(R"("stop_type":"word","stopping_word":"x")") != std::string::npos);
  CHECK(stream.find("[DONE]") == std::string::npos);

  llama.service.script = {Begun{1, 0}, FakeService::ended(StopReason::context_full)};
  const Json several = json_of(llama.ask("/completion", R"({"prompt":["a","b"],"n_cmpl":2,"seed":5})"));
  REQUIRE(several.size() == 4);
  CHECK(several[3]["index"] == 3);
  CHECK(several[3]["prompt"] == "<s>b");
  CHECK(several[3]["generation_settings"]["seed"] == 6);
  CHECK(several[3]["stop_type"] == "limit");
  CHECK(several[3]["truncated"] == true);
  CHECK(json_of(llama.ask("/completion", R"({"prompt":[[97],{"prompt_string":"b"}]})"))[1]["prompt"] ==
        "<s>b");
  CHECK(llama.ask("/completion", R"({"prompt":"a","n_predict":0})").status == 400);
  CHECK(llama.ask("/completion", R"({"prompt":"a","t_max_predict_ms":5})").status == 400);
  CHECK(llama.ask("/completion", R"({"prompt":"a","messages":[]})").status == 400);
}

TEST_CASE("texts become tokens and tokens become texts") {
  const Llama llama;
  const auto body = [&](const char* path, const char* text) { return llama.ask(path, text).body; };
  CHECK(body("/tokenize", R"({"content":"ab"})") == R"({"tokens":[97,98]})");
  CHECK(body("/tokenize", R"({"content":"","add_special":true})") == R"({"tokens":[0]})");
  CHECK(body("/tokenize", R"({"content":"aé","with_pieces":true})") ==
        R"({"tokens":[{"id":97,"piece":"a"},{"id":195,"piece":[195]},{"id":169,"piece":[169]}]})");
  CHECK(body("/detokenize", R"({"tokens":[97,98]})") == R"({"content":"ab"})");
  CHECK(body("/detokenize", R"({"tokens":[]})") == R"({"content":""})");
  CHECK(body("/detokenize", R"({"tokens":[195]})") == "{\"content\":\"\xEF\xBF\xBD\"}");
  CHECK(body("/apply-template", R"({"messages":[{"role":"user","content":"Hi"}]})") ==
        R"({"prompt":"user: Hi\nassistant:"})");
  for (const auto& [path, text] :
       std::vector<std::pair<const char*, const char*>>{{"/tokenize", "{}"},
                                                        {"/tokenize", R"({"content":7})"},
                                                        {"/tokenize", R"({"content":"a","x":1})"},
                                                        {"/detokenize", "{}"},
                                                        {"/detokenize", R"({"tokens":"a"})"},
                                                        {"/detokenize", R"({"tokens":[256]})"},
                                                        {"/detokenize", R"({"tokens":[{}]})"},
                                                        {"/apply-template", "{}"},
                                                        {"/apply-template", "["}}) {
    const auto& the_path = path;
    CAPTURE(the_path);
    const auto& the_text = text;
    CAPTURE(the_text);
    const HttpReply reply = llama.ask(path, text);
    CHECK((reply.status == 400 || reply.status == 501));
    CHECK(json_of(reply)["error"]["message"].is_string());
  }
}

TEST_CASE("metrics are Prometheus text, with the names of llama-server") {
  Llama llama;
  Metrics& m = llama.service.state.metrics;
  m.prompt_tokens = 10, m.cached_tokens = 4, m.prompt_seconds = 2, m.failed = 1;
  m.first_token.add(0.05);
  m.first_token.add(400);
  llama.service.state.answers = {{7, "tiny", 10, 5, 2, 0, 20, 300, true},
                                 {8, "tiny", 1, 0, 0, 0, 1, 1, false}};
  const HttpReply reply = llama.get("/metrics");
  CHECK(reply.type.starts_with("text/plain; version=0.0.4"));
  CHECK_FALSE(reply.headers.get("Process-Start-Time-Unix").empty());
  for (const char* line :
       {"# TYPE mica_requests_total counter\n", "mica_answers_total{outcome=\"failed\"} 1.0\n",
        "mica_answers{state=\"running\"} 1.0\n", "mica_ledger_bytes{account=\"weights\"} 5000.0\n",
        "# TYPE mica_first_token_seconds histogram\n", "mica_first_token_seconds_bucket{le=\"0.02\"} 0.0\n",
        "mica_first_token_seconds_bucket{le=\"0.05\"} 1.0\n",
        "mica_first_token_seconds_bucket{le=\"300.0\"} 1.0\n",
        "mica_first_token_seconds_bucket{le=\"+Inf\"} 2.0\n", "mica_first_token_seconds_sum 400.05\n",
        "mica_first_token_seconds_count 2.0\n", "mica_model_loaded{model=\"other\"} 0.0\n",
        "llamacpp:prompt_tokens_total 6.0\n", "llamacpp:prompt_tokens_seconds 3.0\n",
        "llamacpp:prompt_tokens_cached_total 4.0\n", "llamacpp:requests_processing 1.0\n",
        "llamacpp:requests_deferred 1.0\n"}) {
    CAPTURE(line);
    CHECK(reply.body.find(line) != std::string::npos);
  }
  CHECK(serve::detail::label("a", "x\"y\\z\n") == "a=\"x\\\"y\\\\z \"");
}

TEST_CASE("models are listed, found by name, loaded and unloaded") {
  const Llama llama;
  for (const char* path : {"/v1/models", "/models"}) {
    const Json list = json_of(llama.get(path));
    CHECK(list["object"] == "list");
    REQUIRE(list["data"].size() == 2);
    CHECK(list["data"][0] ==
          Json::parse(R"({"id":"tiny","object":"model","created":1700000000,"owned_by":"mica",
      "status":{"value":"loaded"},"architecture":{"input_modalities":["text"],"output_modalities":["text"]},
      "meta":{"n_vocab":256,"n_ctx":512,"n_ctx_train":4096,"n_embd":64,"n_params":2000,"size":1000,
      "architecture":"llama","quantization":"Q4_0"}})"));
    CHECK(list["data"][1]["meta"]["n_ctx"].is_null());
  }
  CHECK(json_of(llama.get("/v1/models/other"))["status"]["value"] == "unloaded");
  CHECK(llama.get("/v1/models/none").status == 404);
  CHECK(llama.ask("/models/load", R"({"model":"tiny"})").body == R"({"success":true})");
  CHECK(llama.ask("/models/load", R"({"model":"none"})").status == 404);
  CHECK(llama.ask("/models/load", "{}").status == 400);
  CHECK(llama.ask("/models/unload", R"({"model":"tiny"})").body == R"({"success":true})");
  CHECK(llama.ask("/models/unload", R"({"model":"tiny"})").body == R"({"success":false})");
}

}  // namespace
}  // namespace mica::test::llama_test
