// SPDX-License-Identifier: Apache-2.0
//
// What a plan says is what a run needs, to the byte; and with less, weights are streamed and the text is the same.

#include "program/memory_cage.hpp"
#include "program/program.hpp"

#ifdef MICA_PROGRAM

namespace mica::test::memory_test {
namespace {

/// A number of a plan.
std::uint64_t planned(const Words& model, const std::string& key, const std::string& budget = "1G") {
  return number(mica(Words{"plan"} + model + Words{"--json", "--memory", budget}), key);
}

}  // namespace

TEST_CASE("a run fits into its plan and into nothing less, and streams what is left out") {
  const auto folder = shared_dir("models of several families", "conformance/models");
  if (!folder) return;
  for (const std::string name :
       {"llama3-gqa.Q4_K_M", "gemma3.Q8_0", "qwen35.Q8_0", "qwen3next.Q8_0", "mixtral.Q4_K_M"}) {
    CAPTURE(name);
    const Words model = {(*folder / (name + ".gguf")).string(), "-c", "64", "-t", "1", "-ctk", "f16"};
    const Words text = {"-n", "5", "--temp", "0", "-p", "Once", "-q"};
    const std::uint64_t bytes = planned(model + Words{"--weights", "resident"}, "peak_bytes");
    const auto complete = [&](std::uint64_t budget, const std::string& weights) {
      return mica(Words{"complete"} + model + text +
                  Words{"--memory", std::to_string(budget), "--weights", weights});
    };
    const Ran whole = complete(bytes, "resident");
    REQUIRE_MESSAGE(whole.code == 0, whole.err);
    CHECK(complete(bytes - 1, "resident").code == 4);
    const std::uint64_t streamed = planned(model + Words{"--weights", "streamed"}, "streamed_bytes");
    CHECK(streamed == 0);  // there is room for all
    const Ran less = complete(bytes - planned(model, "weight_bytes") / 4, "streamed");
    CHECK_MESSAGE(less.code == 0, less.err);
    CHECK(less.out == whole.out);
  }
}

TEST_CASE("a small quantisation that drafts for streamed weights changes nothing but the number of passes") {
  const auto folder = shared_dir("a model in two formats", "conformance/models");
  if (!folder) return;
  const Words model = {(*folder / "llama3-gqa.F32.gguf").string(), "-c", "128", "-t", "1"};
  const Words text = {"-n", "60", "--temp", "0", "--ignore-eos", "-p", "Once", "--json", "--stats"};
  const std::uint64_t bytes = planned(model, "peak_bytes"), weights = planned(model, "weight_bytes");
  const Words streamed = {"--weights", "streamed", "--memory", std::to_string(2 * bytes)};
  const Words less = {"--weights", "streamed", "--memory", std::to_string(bytes - weights / 4)};
  const Ran alone = mica(Words{"complete"} + model + text + less);
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  const std::string draft = (*folder / "llama3-gqa.Q4_K_M.gguf").string();
  const Ran both = mica(Words{"complete"} + model + text + streamed +
                        Words{"--draft", draft, "--draft-min", "3", "--draft-max", "3"});
  REQUIRE_MESSAGE(both.code == 0, both.err);
  const auto said = [](const Ran& ran) { return ran.out.substr(0, ran.out.find("\"stop_reason\"")); };
  CHECK(said(both) == said(alone));
  CHECK(number(both, "draft_n") >= 3);
  CHECK(number(both, "draft_n_accepted") <= number(both, "draft_n"));
}

TEST_CASE(
    "in a control group of little more than the budget, nothing goes beyond the budget, page cache "
    "included") {
  if (sanitized) return;
  const TemporaryFolder folder;
  const std::string file = folder.path("model.gguf");
  REQUIRE(mica({"synth", "stories-15m", "F16", file, "-q"}).code == 0);
  const Words model = {file, "-c", "128", "-t", "1"};
  const Words text = {"-n", "40", "--temp", "0", "--ignore-eos", "-p", "Once", "-q"};
  const Ran whole = mica(Words{"complete"} + model + text);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  const std::uint64_t bytes = planned(model + Words{"--weights", "resident"}, "peak_bytes"),
                      weights = planned(model, "weight_bytes");
  for (const std::uint64_t budget : {bytes, bytes - weights / 4}) {
    CAPTURE(budget);
    const MemoryCage cage(budget + budget / 20);
    if (!cage) {
      MESSAGE("skipped: no control group of memory can be made here");
      return;
    }
    const Words run =
        Words{MICA_PROGRAM, "complete"} + model + text + Words{"--memory", std::to_string(budget)};
    const Ran caged = ProgramRun("/bin/sh", cage.inside(run)).run();
    REQUIRE_MESSAGE(caged.code == 0, caged.err);
    CHECK(caged.out == whole.out);
    CHECK(cage.kills() == 0);
    if (cage.peak() == 0) MESSAGE("skipped: this system does not say the most that was in a control group");
    CHECK(cage.peak() <= budget);
  }
}

TEST_CASE("stats tell what a step reads: of streamed weights what the plan says, of others nothing") {
  const auto folder = shared_dir("models of several families", "conformance/models");
  if (!folder) return;
  const Words model = {(*folder / "llama3-gqa.Q4_K_M.gguf").string(), "-c", "64", "-t", "1", "-ctk", "f16"};
  const Words text = {"-n", "5", "--temp", "0", "-p", "Once", "-q", "--stats", "--json"};
  const std::uint64_t bytes = planned(model + Words{"--weights", "resident"}, "peak_bytes");
  const std::string less = std::to_string(bytes - planned(model, "weight_bytes") / 4);
  const Words streamed = model + Words{"--weights", "streamed"};
  const Ran ran = mica(Words{"complete"} + streamed + text + Words{"--memory", less});
  const std::uint64_t step = planned(streamed, "streamed_bytes", less);
  CHECK(step > 0);
  const std::uint64_t read = number(ran, "read_bytes");  // of the prompt, which is one step
  CHECK(read <= step);
  CHECK(read + 4096 > step);  // the file's last block is not whole
  const Ran resident = mica(Words{"complete"} + model + text);
  CHECK(number(resident, "read_bytes") == 0);
  CHECK(number(resident, "wait_ms") == 0);
}

}  // namespace mica::test::memory_test

#endif
