// SPDX-License-Identifier: Apache-2.0
//
// mica fit: rankings, descriptions of machines, and what is refused.

#include "program/program.hpp"
#include "program/terminal.hpp"

#ifdef MICA_PROGRAM

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
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
  const std::vector<std::string> tiers = {"quick", "limited", "streamed", "too tight"};
  std::size_t tier = 0;
  double before = 1e9;
  for (const Json& row : answer["models"]) {
    CAPTURE(row["name"]);
    const auto now = static_cast<std::size_t>(
        std::find(tiers.begin(), tiers.end(), row["tier"].get<std::string>()) - tiers.begin());
    CHECK(now >= tier);
    const double order = row[now == 0 ? "quality" : "tokens_per_second"];
    if (now == tier && now < 3) CHECK(order <= before + 0.01);
    if (now == 0) CHECK(row["tokens_per_second"] >= 5);
    if (now == 0) CHECK(row["level"] == "Good");  // no card
    CHECK((now == 2) == (row["mode"] == "CPU streamed"));
    before = order;
    tier = now;
  }
  // Qwen2.5 0.5B has 494,032,768 weights, and is four months older than January 2025. llmfit's quality is 30,
  // the other terms are full: 30 * .45 + 30 + 15 + 10. Q8_0 takes 34 bytes for 32 weights but for norms and
  // biases; 12,288 bytes a token of keys and values, which 7 queries share; half the context is filled; the
  // embedding is the head.
  const Json& small = row_of(answer, "qwen2.5-0.5b");
  CHECK(small["quality"].get<double>() == doctest::Approx(0.494032768 * std::exp2(-4.0 / 6)).epsilon(0.02));
  CHECK(small["llmfit"]["score"] == 68.5);
  CHECK(small["quantisation"] == "Q8_0");
  CHECK(small["published"] == "2024-09");
  CHECK(small["made_for"] == "everything");
  CHECK(small["repository"] == "Qwen/Qwen2.5-0.5B-Instruct-GGUF");
  CHECK(small["command"] == "mica run qwen2.5-0.5b:Q8_0");
  const double read = 494032768.0 * 34 / 32 + 12288.0 * 4096;
  CHECK(small["tokens_per_second"].get<double>() == doctest::Approx(50e9 * 0.7 / read).epsilon(0.03));
  // Qwen2.5 7B: 7.6 B weights are worth 75 of llmfit's points, Q3_K_M costs 8; for us it is worth 0.64.
  const Json& seven = row_of(answer, "qwen2.5-7b");
  CHECK(seven["quantisation"] == "Q3_K_M");
  CHECK(seven["quality"].get<double>() ==
        doctest::Approx(7.615616512 * std::exp2(-4.0 / 6) * 0.64).epsilon(0.002));
  CHECK(seven["llmfit"]["quality"] == 67);
  const double part = seven["ram_needed_bytes"].get<double>() / seven["ram_available_bytes"].get<double>();
  CHECK(part < 1 / 1.2);
  const double bell = 100 * std::exp(-std::pow((part - 0.7) / 0.2, 2) / 2);
  const double speed = seven["tokens_per_second"].get<double>() / 40 * 100;
  CHECK(seven["llmfit"]["score"].get<double>() ==
        doctest::Approx(67 * 0.45 + speed * 0.3 + bell * 0.15 + 10).epsilon(0.002));
  // 70 B weights do not fit, and are read from the disk.
  CHECK(row_of(answer, "llama-3.1-70b")["mode"] == "CPU streamed");
  CHECK(row_of(answer, "llama-3.1-70b")["level"] == "Marginal");
  CHECK(has(row_of(answer, "llama-3.1-70b")["command"].get<std::string>(), " --weights streamed"));
}

TEST_CASE("a machine with a card is ranked: rows as worked out by hand") {
  const Json answer = fit_json({"--ram", "64G", "--vram", "24G"});
  // gpt-oss 20B: 20.9 B weights, of which a token uses 3.6; seven months after January 2025; as it is
  // published.
  const Json& gpt = row_of(answer, "gpt-oss-20b");
  CHECK(gpt["quality"].get<double>() ==
        doctest::Approx(std::sqrt(20.91 * gpt["active_parameters"].get<double>() / 1e9) * std::exp2(7.0 / 6))
            .epsilon(0.002));
  CHECK(gpt["llmfit"]["score"] == 82.0);  // 3.6 B active weights are worth 60: 60 * .45 + 30 + 15 + 10
  CHECK(gpt["mode"] == "GPU");
  CHECK(gpt["level"] == "Perfect");
  CHECK(gpt["estimated"] == true);
  CHECK(gpt["utilisation"].get<double>() == doctest::Approx(0.5).epsilon(0.02));
  CHECK(gpt["command"] == "mica pull gpt-oss-20b:MXFP4_MOE");
  CHECK(row_of(answer, "llama-3.3-70b")["mode"] == "CPU+GPU");
  CHECK(row_of(answer, "llama-3.3-70b")["tier"] == "limited");
  CHECK(row_of(answer, "gpt-oss-120b")["mode"] == "MoE offload");
  CHECK(row_of(answer, "qwen2.5-32b")["quantisation"] == "Q4_K_M");
}

/// A machine and the models that a person who knows the field in 2026 would take there.
struct Expected {
  Words machine;
  std::string_view general, coding, reasoning;
};

TEST_CASE("the first row is the one that a person would take, on five machines") {
  const std::vector<Expected> machines = {
      // A laptop: the newest 4 B fit in four bits. Larger ones fit in two bits, which ruins them. Coders of
      // this size are sixteen months older.
      {{"--ram", "4G", "--cores", "4"}, "qwen3.5-4b", "qwen3.5-4b", "qwen3.5-4b"},
      // A small server: the 4 B in eight bits; still no 8 B in four.
      {{"--ram", "6G", "--cores", "2"}, "qwen3.5-4b", "qwen3.5-4b", "qwen3.5-4b"},
      // A PC: 9 B are as fast as one reads; 12 B and more are not. For long thoughts 9 B are too slow too.
      {{"--ram", "16G", "--cores", "8"}, "qwen3.5-9b", "qwen3.5-9b", "gemma4-e4b"},
      // A card of 24 GiB: the newest 31 B in four bits; 70 B would be split, and slow. For programs the coder
      // with 24 B, which fits in six bits. For long thoughts 31 B are too slow, and 27 B are not.
      {{"--ram", "64G", "--vram", "24G", "--cores", "8"}, "gemma4-31b", "devstral-small", "qwen3.5-27b"},
      // Much memory with 250 GB/s: the same 31 B in six bits; 70 B and 235 B are older, and slower. For long
      // thoughts a mixture, of which a token uses 5 B.
      {{"--ram", "128G", "--unified", "--bandwidth", "250G", "--cores", "16"},
       "gemma4-31b",
       "devstral-small",
       "gpt-oss-120b"},
  };
  for (const Expected& each : machines) {
    const auto first = [&](const std::string& use) {
      const Json answer = fit_json(each.machine + Words{"--use", use});
      const Json& row = answer["models"][0];
      CHECK(row["tier"] == "quick");
      // Old models and those that are small for the machine are not among the first ten.
      for (std::size_t i = 0; i < 10; ++i) {
        const std::string name = answer["models"][i]["name"];
        CHECK_FALSE((name.starts_with("llama2") || name == "tinyllama" || name == "qwen2.5-0.5b"));
      }
      return row["name"].get<std::string>();
    };
    CAPTURE(each.machine[1]);
    CHECK(first("general") == each.general);
    if (&each == &machines.front()) CHECK(first("chat") == each.general);
    CHECK(first("coding") == each.coding);
    CHECK(first("reasoning") == each.reasoning);
  }
}

TEST_CASE("of the models of one family and size the coder is first for programs, and nowhere else") {
  const auto order = [](const std::string& use) {
    const Json answer = fit_json({"qwen2.5-coder-7b", "qwen2.5-7b", "qwen3-coder-30b-a3b", "qwen3-30b-a3b",
                                  "--ram", "32G", "--cores", "8", "--use", use});
    std::vector<std::string> names;
    for (const Json& row : answer["models"]) names.push_back(row["name"]);
    return names;
  };
  CHECK(order("coding") ==
        std::vector<std::string>{"qwen3-coder-30b-a3b", "qwen2.5-coder-7b", "qwen3-30b-a3b", "qwen2.5-7b"});
  CHECK(order("chat") ==
        std::vector<std::string>{"qwen3-30b-a3b", "qwen3-coder-30b-a3b", "qwen2.5-7b", "qwen2.5-coder-7b"});
}

TEST_CASE("the first line names the best model and its command") {
  const Ran ran = mica({"fit", "--ram", "4G", "--cores", "4", "-n", "1"});
  REQUIRE(ran.code == 0);
  CHECK(
      ran.out.starts_with("Best here: Qwen3.5-4B in Q4_K_M, CPU, 3.0 GiB of 3.6 GiB, about 12 tokens/s: "
                          "mica run qwen3.5-4b:Q4_K_M\n4.0 GiB of memory"));
  CHECK(has(ran.out, "\nmica run MODEL:TYPE downloads a model of the table once, and runs it.\n"));
  CHECK(lacks(ran.out, "qwen3-4b"));  // one row
  const Ran card = mica({"fit", "qwen3-8b", "--ram", "32G", "--vram", "12G"});
  CHECK(card.out.starts_with("Best of these: Qwen3-8B in Q8_0, GPU, "));
  CHECK(has(card.out, ": mica pull qwen3-8b:Q8_0\n"));
  CHECK(has(card.out, "mica run uses the processor alone"));
  const Ran slow = mica({"fit", "qwen2.5-32b", "--ram", "64G", "--cores", "8", "-c", "16384"});
  CHECK(
      slow.out.starts_with("Nothing is quick here (5 tokens/s with 4096 tokens and headroom). Nearest: "
                           "Qwen2.5-32B-Instruct in Q4_K_M, CPU, "));
  CHECK(has(slow.out, ": mica run qwen2.5-32b:Q4_K_M -c 16384\n"));
  const Ran none = mica({"fit", "llama-8b", "--ram", "300M"});
  CHECK(none.out.starts_with("300.0 MiB of memory"));
  CHECK(lacks(none.out, "mica run"));
}

TEST_CASE("every model that is offered can be pulled, by the command that is shown") {
  const TemporaryFolder folder;
  const Json answer = fit_json({"--ram", "512G"});
  CHECK(answer["models"].size() > 60);
  for (const Json& row : answer["models"]) {
    CAPTURE(row["name"]);
    const std::string command = row["command"], quant = row["quantisation"], repo = row["repository"];
    const std::string model = row["name"].get<std::string>() + ":" + quant;
    REQUIRE(command.starts_with("mica run " + model));
    ProgramRun plan(MICA_PROGRAM, {"plan", model, "--offline"});
    const Ran ran = plan.set("HF_HUB_CACHE", folder.path("hub")).run();
    CHECK(ran.code == 3);
    CHECK(has(ran.err, "hf.co/" + repo + ":" + quant));  // known, and not here
  }
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
  CHECK(row_of(answer, path)["command"] == "mica run " + path);
  CHECK_FALSE(row_of(answer, path).contains("repository"));
  CHECK(row_of(answer, "qwen2.5-7b")["licence"] == "Apache-2.0");
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

TEST_CASE("models that embed texts are not ranked, and not chosen from a folder") {
  const TemporaryFolder folder;
  const std::string path = folder.path("encoder.gguf");
  REQUIRE(mica({"synth", "minilm-l6", "Q8_0", path, "-q"}).code == 0);
  const Ran alone = mica({"fit", path});
  CHECK(alone.code == 5);
  CHECK(has(alone.err, "encoder.gguf: bert embeds texts"));
  REQUIRE(mica({"synth", "stories-15m", "Q8_0", folder.path("stories.gguf"), "-q"}).code == 0);
  const Ran run = mica({"run", folder.path(""), "Once", "-n", "1"});
  CHECK(run.code == 0);
  CHECK(has(run.err, "left out"));
  CHECK(has(run.err, "stories.gguf"));
}

TEST_CASE("one quantisation alone says how long a context it has room for") {
  const Json answer = fit_json({"llama-8b", "--ram", "8G", "--quant", "q4_k_m"});
  CHECK(answer["models"][0]["quantisation"] == "Q4_K_M");
  const std::uint64_t max = answer["models"][0]["n_ctx_most"];
  CHECK(max > 8192);
  // 7.2 GiB less 4.6 GiB of weights, at 128 KiB a token: 21,000 tokens at most.
  CHECK(max < 22000);
  CHECK(has(mica({"fit", "llama-8b", "--quant", "Q4_K_M", "--ram", "8G"}).out, "max context"));
  const Ran none = mica({"fit", "--quant", "Q9"});
  CHECK(none.code == 2);
  CHECK(has(none.err, "no model has that quantisation; known: F32 "));
  CHECK(has(none.err, "Q4_K_M"));
  CHECK(has(mica({"fit", "llama-8b", "--quant", "IQ3_M", "--ram", "8G"}).out, "IQ3_M"));
  const Ran other = mica({"fit", "gpt-oss-20b", "--quant", "Q4_K_M"});
  CHECK(other.code == 2);
  CHECK(has(other.err, "gpt-oss-20b is published in MXFP4_MOE alone"));
}

TEST_CASE("rows and levels are filtered, and nothing left is exit code 4 with what is nearest") {
  const Ran few = mica({"fit", "--ram", "64G", "--vram", "24G", "--level", "good", "-n", "8"});
  CHECK(few.code == 0);
  CHECK(has(few.out, "Perfect"));
  CHECK(lacks(few.out, "Marginal"));
  const Ran marginal = mica({"fit", "--ram", "1G", "--level", "marginal"}),
            every = mica({"fit", "--ram", "1G"});
  CHECK(marginal.code == 0);
  CHECK(has(marginal.out, "Marginal"));
  CHECK(lacks(marginal.out, "Too tight"));
  CHECK(has(every.out, "Too tight"));  // without the flag every row
  const Ran none = mica({"fit", "llama-8b", "--ram", "300M", "--level", "marginal"});
  CHECK(none.code == 4);
  CHECK(none.out.empty());
  const Ran perfect = mica({"fit", "--ram", "6G", "--perfect"});
  CHECK(perfect.code == 4);
  CHECK(perfect.out.empty());
  CHECK(has(perfect.err, "none of 66 models is Perfect or better"));
  CHECK(has(perfect.err, "Nearest: "));
  const Ran tight = mica({"fit", "llama-8b", "--ram", "300M", "--json"});
  CHECK(tight.code == 4);
  const Json answer = Json::parse(tight.out);
  CHECK(answer["models"][0]["level"] == "Too tight");
  CHECK(answer["models"][0]["tier"] == "too tight");
  CHECK(answer["models"][0]["llmfit"]["score"] == 0);
  CHECK_FALSE(answer["models"][0].contains("command"));
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
  refused(R"({"ram": "6G", "cores": "many"})", 3, "key 'cores' is \"many\"; allowed: a whole number");
  refused(R"({"ram": "6G", "cores": 0})", 3, "key 'cores' is 0");
  refused(R"({"ram available": "6G"})", 3, "machine.json, line 1: key 'ram available' is not known");
  refused("{\"ram\": \"6G\",\n \"bandwidth\": 0}", 2,
          "line 2: key 'bandwidth': found \"0\", which is 0 bytes");
  refused(R"({"ram": "6G", "disk": -3.5})", 3, "key 'disk' is -3.5; allowed: a whole number");
  refused(R"({"ram": 16})", 2, "key 'ram': found \"16\", which is 16 bytes; did you mean 16G?");
  refused("{\"ram\": \"6G\",\n \"cores\": 2,\n\n \"r\\u0061m\": \"8G\"}", 3,
          "line 4: key 'ram' is in line 1 already");
  refused(R"({"ram": {"ram": 1, "x\"": [":"]}})", 3, "line 1: key 'ram' is {");
  CHECK(mica({"fit", "--machine", folder.path("missing.json")}).code == 3);
}

TEST_CASE("the arithmetic is shown beside that of others") {
  const Ran ran = mica({"fit", "llama-8b", "--ram", "64G", "--vram", "24G", "--explain"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, "Llama-3.1-8B-Instruct (llama-3.1-8b): Q8_0, 8192 tokens"));
  CHECK(has(ran.out, "quick for general is Good or better, 5 tokens/s, and 4096 tokens"));
  CHECK(has(ran.out, "quality     8.03 x 0.50 (July 2024) x 1.00 (Q8_0) = 4.0"));
  CHECK(has(ran.out, "llmfit's score"));
  CHECK(has(ran.out,
            "weights 7.9 GiB + keys and values 1.0 GiB + margin of the engine 512.0 MiB (an estimate)"));
  CHECK(has(ran.out, "8.03 x 1.05 + keys and values 1.00 + 0.5 = 9.93"));
  CHECK(has(ran.out, "8 of 32 heads in 32 of 32 layers have keys and values: 1073.74 MB"));
  const Ran cpu = mica({"fit", "llama-8b", "--ram", "16G", "--explain"});
  CHECK(has(cpu.out, "its older pages say Marginal for every CPU"));
  CHECK(has(cpu.out, "activations"));
}

TEST_CASE("the command of a file whose name no terminal shows is one that a shell reads as the same bytes") {
  const TemporaryFolder folder;
  const std::string name = "it's\na\x1b[1m\xff\\.gguf", path = folder.path(name);
  REQUIRE(mica({"synth", "stories-15m", "Q8_0", path, "-q"}).code == 0);
  const std::string word = "$'" + folder.path("it\\047s\\012a\\033[1m\\377\\134.gguf") + "'";
  const std::string command = fit_json({path})["models"][0]["command"];
  CHECK_MESSAGE(command.starts_with("mica run " + word), command);
  CHECK(has(mica({"fit", path}).out, ": mica run " + word));
  const Ran bash = ProgramRun("/usr/bin/env", {"bash", "-c", "printf %s " + word}).run();
  if (bash.code != 127) CHECK(bash.out == path);
}

TEST_CASE("the columns have a page, and another machine a hint where none is described") {
  const Ran page = mica({"help", "tiers"});
  CHECK(page.code == 0);
  for (const char* word : {"GPU ", "MoE offload ", "CPU+GPU ", "CPU ", "CPU streamed ", "Perfect ", "Good ",
                           "Marginal ", "Too tight ", "quick ", "limited ", "streamed ", "too tight "}) {
    CAPTURE(word);
    CHECK(has(page.out, std::string("\n  ") + word));
  }
  const std::string hint = "Another machine: mica fit --ram 16G";
  CHECK(has(mica({"fit", "llama-1b"}).out, hint));
  CHECK(lacks(mica({"fit", "llama-1b", "--ram", "8G"}).out, hint));
  CHECK(has(mica({"fit", "llama-1b", "--ram", "8G"}).out, "mica help tiers explains the columns.\n"));
}

TEST_CASE("a terminal of 100 columns has rows of 100 bytes at most, and a pipe all columns") {
  const Words words = {"fit", "--ram", "6G", "--cores", "2", "--color", "never"};
  CHECK(has(mica(words).out, "  weights  type "));
  TerminalRun run(words);
  CHECK(run.start().finish() == 0);
  const std::string out = run.output();
  const std::size_t begin = out.find("\nmodel ");
  REQUIRE(begin != out.npos);
  std::istringstream rows(out.substr(begin + 1));
  std::size_t count = 0;
  for (std::string row; std::getline(rows, row) && !row.starts_with("Too wide"); ++count) {
    CAPTURE(row);
    CHECK(row.size() <= 101);  // "\r" of the terminal
  }
  CHECK(count > 60);
  CHECK(has(out, "Too wide for this terminal: notes, weights, "));
}

TEST_CASE("a link that leads to no file is a file error, and no unknown model") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("self.gguf", folder.path("self.gguf"));
  std::filesystem::create_symlink("gone.gguf", folder.path("dangling.gguf"));
  for (const char* name : {"self.gguf", "dangling.gguf"}) {
    const Ran ran = mica({"fit", folder.path(name)});
    CHECK(ran.code == 3);
    CHECK(has(ran.err, std::string(name) + ": a link that leads to no file: "));
  }
  const Ran under = mica({"fit", folder.path("self.gguf/model.gguf")});
  CHECK(under.code == 3);
  CHECK(has(under.err, "cannot be opened: "));
}

TEST_CASE("names that are unknown are refused with those that are known") {
  const Ran model = mica({"fit", "lama-8b"});
  CHECK(model.code == 3);
  CHECK(has(model.err, "did you mean llama-8b?"));
  const Ran bytes = mica({"fit", "--ram", "6"});
  CHECK(bytes.code == 2);
  CHECK(has(bytes.err, "--ram: found \"6\", which is 6 bytes; did you mean 6G?"));
  CHECK(has(mica({"fit", "--use", "poems"}).err,
            "--use needs one of general coding chat reasoning, found 'poems'."));
  CHECK(
      has(mica({"fit", "--level", "best"}).err, "--level needs one of perfect good marginal, found 'best'."));
  CHECK(mica({"fit", "--ram", "6G", "--mlx"}).code == 2);
  const Ran mlx = mica({"fit", "qwen2-7b", "--ram", "32G", "--unified", "--mlx", "--bandwidth", "100G"});
  CHECK(has(mlx.out, "mlx-8bit"));
  CHECK(has(mlx.out, "mica pull cannot download them"));  // there are no such files in the catalogue
  CHECK(lacks(mlx.out, "MODEL:TYPE"));
}

TEST_CASE("unified memory can be denied as well as claimed") {
  const Words machine = {"--ram", "32G", "--cores", "2"};
  CHECK(fit_json(machine + Words{"--unified"})["machine"]["unified"] == true);
  CHECK(fit_json(machine + Words{"--unified=false"})["machine"]["unified"] == false);
  CHECK(fit_json(machine)["machine"]["unified"] == false);
}

}  // namespace mica::test::fit_test

#endif
