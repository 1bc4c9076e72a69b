// SPDX-License-Identifier: Apache-2.0
//
// mica fit: rankings, descriptions of machines, and what is refused.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::fit_test {
namespace {

using Json = nlohmann::json;

Json fit_json(Words words) {
  const Ran ran = mica(Words{"fit", "--json"} + words);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return Json::parse(ran.out);
}

const Json& row_of(const Json& answer, std::string_view name) {
  for (const Json& row : answer["models"]) {
    if (row["name"].get<std::string_view>() == name) return row;
  }
  FAIL("no row of ", name);
  return answer;
}

}  // namespace

TEST_CASE("a small machine is ranked: rows as worked out by hand") {
  const Json answer = fit_json({"--ram", "6G", "--cores", "2"});
  CHECK(answer["machine"]["ram_bytes"] == 6442450944);
  CHECK(answer["machine"]["ram_available_bytes"] == 6442450944 / 10 * 9);
  CHECK(answer["machine"]["cores"] == 2);
  CHECK(answer["machine"]["ram_basis"] == "assumed");
  CHECK(answer["use"] == "general");
  double before = 100;
  std::string last_group = "memory";
  for (const Json& row : answer["models"]) {
    const std::string group = row["mode"] == "CPU streamed" ? "disk" : "memory";
    CHECK((group == last_group || group == "disk"));  // what is streamed comes behind
    if (group == last_group) CHECK(row["score"] <= before);
    CHECK(row["level"] != "Perfect");  // no card
    before = row["score"];
    last_group = group;
  }
  // Qwen2.5 0.5B: quality 30, the others full: 30 * .45 + 30 + 15 + 10. It has 494,032,768 weights; Q8_0
  // takes 34 bytes for 32 of them but for norms and biases; 12,288 bytes a token of keys and values; half the
  // context is filled; the embedding is the head.
  const Json& small = row_of(answer, "qwen2-0.5b");
  CHECK(small["score"] == 68.5);
  CHECK(small["quantisation"] == "Q8_0");
  const double read = 494032768.0 * 34 / 32 + 12288.0 * 4096;
  CHECK(small["tokens_per_second"].get<double>() == doctest::Approx(50e9 * 0.7 / read).epsilon(0.005));
  // Qwen2.5 7B: 7.6 B weights are worth 75, Q3_K_M costs 8.
  const Json& seven = row_of(answer, "qwen2-7b");
  CHECK(seven["quantisation"] == "Q3_K_M");
  CHECK(seven["quality"] == 67);
  const double part = seven["ram_needed_bytes"].get<double>() / seven["ram_available_bytes"].get<double>();
  CHECK(part < 1 / 1.2);
  const double bell = 100 * std::exp(-std::pow((part - 0.7) / 0.2, 2) / 2);
  const double speed = seven["tokens_per_second"].get<double>() / 40 * 100;
  CHECK(seven["score"].get<double>() ==
        doctest::Approx(67 * 0.45 + speed * 0.3 + bell * 0.15 + 10).epsilon(0.002));
  // 70 B weights do not fit, and are read from the disk.
  CHECK(row_of(answer, "llama-70b")["mode"] == "CPU streamed");
  CHECK(row_of(answer, "llama-70b")["level"] == "Marginal");
}

TEST_CASE("a machine with a card is ranked: rows as worked out by hand") {
  const Json answer = fit_json({"--ram", "64G", "--vram", "24G"});
  // gpt-oss 20B: 3.6 B active weights are worth 60: 60 * .45 + 30 + 15 + 10; half of the card.
  const Json& first = answer["models"][0];
  CHECK(first["name"] == "gpt-oss-20b");
  CHECK(first["score"] == 82.0);
  CHECK(first["mode"] == "GPU");
  CHECK(first["level"] == "Perfect");
  CHECK(first["estimated"] == true);
  CHECK(first["utilisation"].get<double>() == doctest::Approx(0.5).epsilon(0.02));
  CHECK(row_of(answer, "llama-70b")["mode"] == "CPU+GPU");
  CHECK(row_of(answer, "llama-70b")["level"] == "Good");
  CHECK(row_of(answer, "gpt-oss-120b")["mode"] == "MoE offload");
  CHECK(row_of(answer, "qwen2-32b")["quantisation"] == "Q4_K_M");
}

TEST_CASE("models, files and folders are judged where they are named") {
  const TemporaryFolder folder;
  const std::string path = folder.path("stories.gguf");
  REQUIRE(mica({"synth", "stories-15m", "Q8_0", path, "-q"}).code == 0);
  folder.file("broken.gguf", "no model");
  const Json answer = fit_json({path, "qwen2.5-7b", "--ram", "8G"});
  CHECK(answer["models"].size() == 2);
  CHECK(row_of(answer, path)["quantisation"] == "Q8_0");
  CHECK(row_of(answer, path)["n_ctx"] == 256);
  CHECK(row_of(answer, "qwen2-7b")["licence"] == "Apache-2.0");
  const Ran all = mica({"fit", folder.path(""), "--ram", "8G"});
  CHECK(all.code == 0);
  CHECK(has(all.out, "stories.gguf"));
  CHECK(has(all.err, "left out"));
  CHECK(has(all.err, "broken.gguf"));
  // A file's row is what mica plan says of it.
  const Ran plan = mica({"plan", path, "-c", "256", "-t", "2", "--json"});
  CHECK(row_of(fit_json({path, "--ram", "8G", "--cores", "2"}), path)["ram_needed_bytes"] ==
        number(plan, "peak_bytes"));
}

TEST_CASE("one quantisation alone says how long a context it has room for") {
  const Json answer = fit_json({"llama-8b", "--ram", "8G", "--quant", "q4_k_m"});
  CHECK(answer["models"][0]["quantisation"] == "Q4_K_M");
  const std::uint64_t max = answer["models"][0]["n_ctx_most"];
  CHECK(max > 8192);
  // 7.2 GiB less 4.6 GiB of weights, at 128 KiB a token: 21,000 tokens at most.
  CHECK(max < 22000);
  CHECK(has(mica({"fit", "llama-8b", "--quant", "Q4_K_M", "--ram", "8G"}).out, "most"));
  const Ran none = mica({"fit", "--quant", "Q9"});
  CHECK(none.code == 2);
  CHECK(has(none.err, "Q4_K_M"));
}

TEST_CASE("rows and levels are filtered, and nothing left is exit code 4 with what is nearest") {
  const Ran few = mica({"fit", "--ram", "64G", "--vram", "24G", "--level", "good", "-n", "3"});
  CHECK(few.code == 0);
  CHECK(has(few.out, "Perfect"));
  CHECK_FALSE(few.out.find("Marginal") != std::string::npos);
  const Ran perfect = mica({"fit", "--ram", "6G", "--perfect"});
  CHECK(perfect.code == 4);
  CHECK(perfect.out.empty());
  CHECK(has(perfect.err, "none of 49 models is Perfect or better"));
  CHECK(has(perfect.err, "Nearest: qwen2-0.5b in Q8_0"));
  const Ran tight = mica({"fit", "llama-8b", "--ram", "300M", "--json"});
  CHECK(tight.code == 4);
  const Json answer = Json::parse(tight.out);
  CHECK(answer["models"][0]["level"] == "Too tight");
  CHECK(answer["models"][0]["score"] == 0);
  CHECK(has(tight.err, "needs "));
  CHECK(has(tight.err, "of 270.0 MiB"));
}

TEST_CASE("a machine is described by a file, and flags win") {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& text) {
    folder.file("machine.json", text);
    return folder.path("machine.json");
  };
  const std::string good = file(R"({"ram": "64G", "vram": 25769803776, "cores": 8, "bandwidth": "80G", )"
                                R"("vram_bandwidth": "1008GB/s", "disk": 3000000000})");
  const Json machine = fit_json({"llama-8b", "--machine", good})["machine"];
  CHECK(machine["ram_bytes"] == 68719476736);
  CHECK(machine["vram_bytes"] == 25769803776);
  CHECK(machine["cores"] == 8);
  CHECK(machine["ram_bytes_per_second"] == 80000000000);
  CHECK(machine["ram_basis"] == "described");
  CHECK(machine["vram_bytes_per_second"] == 1008000000000);
  CHECK(fit_json({"llama-8b", "--machine", good, "--cores", "3"})["machine"]["cores"] == 3);
  const auto refused = [&](const std::string& text, int code, std::string_view words) {
    const Ran ran = mica({"fit", "--machine", file(text)});
    CAPTURE(text);
    CHECK(ran.code == code);
    CHECK(has(ran.err, words));
  };
  refused("not json", 3, "machine.json: is not JSON");
  refused(R"({"ram": 1e999})", 3, "machine.json: key 'ram' is 1e999, which is beyond");
  refused("[1]", 3, "this is no JSON object");
  refused(R"({"rma": "6G"})", 3, "key 'rma' is not known");
  refused(R"({"ram": -1})", 3, "key 'ram' is -1");
  refused(R"({"ram": "much"})", 2, "key 'ram'");
  refused(R"({"ram": 0})", 2, "0 bytes of memory");
  refused(R"({"ram": "6G", "unified": 1})", 3, "allowed: true, false");
  refused(R"({"ram": "6G", "cores": "many"})", 2, "key 'cores'");
  CHECK(mica({"fit", "--machine", folder.path("missing.json")}).code == 3);
}

TEST_CASE("the arithmetic is shown beside that of others") {
  const Ran ran = mica({"fit", "llama-8b", "--ram", "64G", "--vram", "24G", "--explain"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, "Llama 3.1 8B (llama-8b): Q8_0, 8192 tokens"));
  CHECK(has(ran.out,
            "weights 7.9 GiB + keys and values 1.0 GiB + margin of the engine 512.0 MiB (an estimate)"));
  CHECK(has(ran.out, "8.03 x 1.05 + keys and values 1.00 + 0.5 = 9.93"));
  CHECK(has(ran.out, "8 of 32 heads in 32 of 32 layers have keys and values: 1073.74 MB"));
  const Ran cpu = mica({"fit", "llama-8b", "--ram", "16G", "--explain"});
  CHECK(has(cpu.out, "its older pages say Marginal for every CPU"));
  CHECK(has(cpu.out, "activations"));
}

TEST_CASE("names that are unknown are refused with those that are known") {
  const Ran model = mica({"fit", "lama-8b"});
  CHECK(model.code == 2);
  CHECK(has(model.err, "did you mean llama-8b?"));
  CHECK(has(mica({"fit", "--use", "poems"}).err,
            "--use needs one of general coding chat reasoning, found 'poems'."));
  CHECK(
      has(mica({"fit", "--level", "best"}).err, "--level needs one of perfect good marginal, found 'best'."));
  CHECK(mica({"fit", "--ram", "6G", "--mlx"}).code == 2);
  CHECK(has(mica({"fit", "qwen2-14b", "--ram", "32G", "--unified", "--mlx"}).out, "mlx-8bit"));
}

}  // namespace mica::test::fit_test

#endif
