// SPDX-License-Identifier: Apache-2.0
//
// What machines read: every --json is one object with the promised members.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>

namespace mica::test::json_test {
namespace {

using Json = nlohmann::json;

/// stdout as JSON; null, and a failed check, when it is none.
Json json_of(const Ran& ran) {
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const Json json = Json::parse(ran.out, nullptr, false);
  CHECK_MESSAGE(!json.is_discarded(), ran.out);
  return json.is_discarded() ? Json() : json;
}

std::string story_model() {
  const auto path = shared_dir("JSON of a model", "models/stories260K.gguf");
  return path ? path->string() : std::string();
}

void check_timings(const Json& json, int prompt_n, int predicted_n) {
  REQUIRE(json.contains("timings"));
  const Json& timings = json["timings"];
  CHECK(timings["prompt_n"] == prompt_n);
  CHECK(timings["predicted_n"] == predicted_n);
  for (const char* name : {"prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second"}) {
    CHECK(timings[name].is_number());
  }
  CHECK(json["peak_bytes"].get<std::uint64_t>() > 1'000'000);
}

TEST_CASE("an answer is an object with its text, the reason of its end, and timings") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Json json = json_of(mica({"complete", model, "Once upon", "-n", "4", "--temp", "0", "--json"}));
  CHECK(json["content"] == " a time, there");
  CHECK(json["stop_reason"] == "length");
  CHECK_FALSE(json["timings"].contains("draft_n"));
  check_timings(json, 3, 4);
  const Json guessed = json_of(mica(
      {"complete", model, "Once upon", "-n", "60", "--temp", "0", "--json", "--speculate", "ngram:1,4"}));
  CHECK(guessed["timings"]["draft_n"] > 0);
  CHECK(guessed["timings"]["draft_n_accepted"] <= guessed["timings"]["draft_n"]);
}

TEST_CASE("lines of an answer together are its text") {
  const std::string model = story_model();
  if (model.empty()) return;
  std::istringstream lines(mica({"complete", model, "Once upon", "-n", "4", "--temp", "0", "--jsonl"}).out);
  std::string text;
  Json last;
  for (std::string line; std::getline(lines, line);) {
    last = Json::parse(line);
    text += last["content"];
  }
  CHECK(text == " a time, there");
  check_timings(last, 3, 4);
}

TEST_CASE("a plan has its peak and its accounts, which the run stays near") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Json json = json_of(mica({"plan", model, "--json", "-c", "512"}));
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : json["accounts"].items()) sum += bytes.get<std::uint64_t>();
  CHECK(json["peak_bytes"] == sum);
  CHECK(json["accounts"]["weights"] == 1171200);
  CHECK(json["fits"] == true);
  const Json ran = json_of(
      mica({"complete", model, "", "-n", "450", "-c", "512", "--temp", "0", "-q", "--ignore-eos", "--json"}));
  if (sanitized) return;
  const double planned = json["peak_bytes"].get<double>();
  const double peak =
      ran["peak_bytes"].get<double>();  // of the program: not of this one, which forks
  CHECK(peak < 1.25 * planned);
  CHECK(peak > 0.5 * planned);
}

TEST_CASE("a bench has the fields that comparisons read") {
  const std::string model = story_model();
  if (model.empty()) return;
  const std::vector<std::string> words = {"bench", model,  "-p", "8", "-n", "4",
                                          "-d",    "0,16", "-r", "2", "-q", "-o"};
  auto with = [&](const char* format) {
    auto all = words;
    all.emplace_back(format);
    return mica(all);
  };
  const Json json = json_of(with("json"));
  REQUIRE(json.size() == 4);
  for (const Json& test : json) {
    CHECK(test["n_prompt"].get<int>() + test["n_gen"].get<int>() > 0);
    CHECK(test["samples_ns"].size() == 2);
    CHECK(test["samples_ts"].size() == 2);
    const double tokens = test["n_prompt"].get<double>() + test["n_gen"].get<double>();
    CHECK(std::abs(tokens * 1e9 / test["samples_ns"][0].get<double>() / test["samples_ts"][0].get<double>() -
                   1) < 1e-3);
    for (const char* name :
         {"n_depth", "n_parallel", "n_threads", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "model_size",
          "model_n_params", "peak_bytes", "faults", "token_bytes", "token_macs"}) {
      CHECK_MESSAGE(test[name].is_number(), name);
    }
    for (const char* name : {"model_filename", "model_type", "type_k", "type_v"})
      CHECK_MESSAGE(test[name].is_string(), name);
  }
  CHECK(json[2]["n_depth"] == 16);
  CHECK(json[1]["token_bytes"] > json[1]["model_size"].get<double>() / 2);
  const auto deeper = json[3]["token_bytes"].get<int>() - json[1]["token_bytes"].get<int>();
  CHECK(deeper > 0);
  CHECK(deeper % 16 == 0);  // of the sixteen tokens before
  CHECK(has(with("md").out, " pp8 |"));
  CHECK(has(with("md").out, " \xC2\xB1 "));
  CHECK(has(with("csv").out, "n_prompt,n_gen,n_depth"));
  std::istringstream lines(with("jsonl").out);
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) CHECK(Json::parse(line).is_object());
  CHECK(n == 4);
  const Json together = json_of(
      mica({"bench", model, "-p", "0", "-n", "4", "-d", "0,9", "-r", "1", "-q", "-np", "3", "-o", "json"}));
  REQUIRE(together.size() == 2);
  CHECK(together[1]["n_parallel"] == 3);
  CHECK(together[1]["samples_ns"][0].get<double>() * together[1]["samples_ts"][0].get<double>() ==
        doctest::Approx(12e9).epsilon(1e-3));
  CHECK(mica({"bench", model, "-p", "0", "-n", "4", "-np", "3", "--chunk", "2"}).code == 2);
}

TEST_CASE("work that is interrupted leaves whole JSON on stdout") {
  const std::string model = story_model();
  if (model.empty()) return;
  const auto interrupt = [](::pid_t child) { ::kill(child, SIGINT); };
  const Words bench = {"bench", model, "-p", "8", "-n", "0", "-r", "1000", "-q"};
  const Ran list =
      ProgramRun(MICA_PROGRAM, bench + Words{"-d", "0,300", "-o", "json"}).after_output(interrupt).run();
  CHECK(list.code == 130);
  CHECK(Json::parse(list.out, nullptr, false).is_array());
  const TemporaryFolder folder;
  const std::string text = folder.file("text", std::string(300'000, 'a'));
  for (const Words& words : {bench + Words{"--json"}, Words{"perplexity", model, "-f", text, "--json"},
                             Words{"imatrix", model, "-f", text, "-o", folder.path("out"), "--json"}}) {
    CAPTURE(words.front());
    const Ran ran = ProgramRun(MICA_PROGRAM, words).after_start(interrupt).run();
    CHECK(ran.code == 130);
    const Json json = Json::parse(ran.out, nullptr, false);
    REQUIRE_MESSAGE(json.is_object(), ran.out);
    CHECK(json["error"]["code"] == 130);
  }
}

TEST_CASE(
    "a measurement and a verb that waits for lines end with a signal, and their error has the exit code") {
  const Ran doctor = ProgramRun(MICA_PROGRAM, {"doctor", "--measure", "-q"})
                         .after_start([](::pid_t child) { ::kill(child, SIGINT); })
                         .run();
  CHECK(doctor.code == 130);
  for (const auto& [number, code] : {std::pair(SIGINT, 130), std::pair(SIGHUP, 129)}) {
    const int sent = number, expected = code;
    const Ran ran =
        ProgramRun(MICA_PROGRAM, {"tokenize", MICA_SOURCE "/examples/models/fairy.gguf", "--jsonl"})
            .input("{\"text\":\"a\"}\n")
            .keep_input_open()
            .after_output([&](::pid_t child) { ::kill(child, sent); })
            .run();
    CHECK(ran.code == expected);
    const std::size_t last = ran.out.rfind("{");
    CHECK(ran.out.find(join("\"code\":", expected), last) != std::string::npos);
  }
}

TEST_CASE("perplexity of the model's own greedy story is low, and does not depend on the chunk") {
  const std::string model = story_model();
  const auto text = shared_dir("perplexity", "models/stories260K.txt");
  if (model.empty() || !text) return;
  const auto of = [&](const char* chunk) {
    return json_of(mica({"perplexity", model, "-f", text->string(), "-c", "64", "--json", "--chunk", chunk}));
  };
  const Json json = of("512");
  CHECK(json["ppl"].get<double>() > 1);
  CHECK(json["ppl"].get<double>() < 3);
  CHECK(json["windows"] == 3);
  CHECK(json["tokens_counted"] == 3 * 31);
  CHECK(json["se"].get<double>() > 0);
  CHECK(of("7")["ppl"] == json["ppl"]);
  CHECK(has(mica({"perplexity", model, "-f", text->string(), "-c", "64", "--chunks", "1"}).out, "PPL = "));
}

TEST_CASE("inspect and doctor answer in JSON") {
  const Json doctor = json_of(mica({"doctor", "--json"}));
  CHECK(doctor["threads"].get<int>() >= 1);
  CHECK(doctor["chosen"].is_string());
  const std::string model = story_model();
  if (model.empty()) return;
  const Json json = json_of(mica({"inspect", model, "--json"}));
  CHECK(json["metadata"]["llama.block_count"] == 5);
  CHECK(json["metadata"]["tokenizer.ggml.tokens"]["length"] == 512);
  CHECK(json["tensors"].size() == 48);
  CHECK(json["types"]["F32"]["tensors"] == 48);
  CHECK(json["layers"]["blk.4"]["tensors"] == 9);
  CHECK(json["chat_template"] == false);
}

TEST_CASE("inspect reads every file of the kit that can be opened, and prints no control bytes") {
  for (const char* folder : {"conformance/models", "hostile"}) {
    const auto path = shared_dir("inspecting " + std::string(folder), folder);
    if (!path) continue;
    int opened = 0;
    for (const auto& entry : std::filesystem::directory_iterator(*path)) {
      if (entry.path().extension() != ".gguf") continue;
      const Ran ran = mica({"inspect", entry.path().string(), "--tensors"});
      CAPTURE(entry.path().string());
      const int code = ran.code;
      CHECK((code == 0 || code == 3 || code == 5 || code == 6));
      opened += code == 0;
      for (const char c : ran.out + ran.err) {
        const bool clean = c == '\n' || static_cast<unsigned char>(c) >= 0x20;
        if (!clean) FAIL_CHECK("a control byte in the output");
      }
    }
    CHECK(opened > 5);
  }
}

}  // namespace
}  // namespace mica::test::json_test

#endif
