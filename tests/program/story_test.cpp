// SPDX-License-Identifier: Apache-2.0
//
// The known story, and the same bits, whatever policies the command line chooses.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

namespace mica::test::story_test {
namespace {

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string ids_text() {
  std::string text = "1";
  for (int i = 1; i < 61; ++i) text += "," + std::to_string(i * 37 % 500 + 3);
  return text;
}

/// The file that the verb logits writes.
std::string logits(const std::string& model, const Words& more) {
  ProgramRun run(MICA_PROGRAM, {});
  const std::string path = run.folder().path("rows");
  const Ran ran =
      mica(Words{"logits", model, "--ids", ids_text(), "--positions", "all", "-o", path, "-q"} + more);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return contents(path);
}

TEST_CASE("a greedy story from nothing is the known one to the byte, under every policy") {
  const auto folder = shared_dir("the known story", "models/stories260K.gguf");
  if (!folder) return;
  const std::string known =
      without_last_newline(contents(shared_dir("", "models/stories260K.txt")->string()));
  const std::vector<Words> policies = {{},
                                       {"-t", "1"},
                                       {"--kv", "segmented"},
                                       {"--kv", "contiguous"},
                                       {"--weights", "resident"},
                                       {"--weights", "streamed"},
                                       {"--weights", "streamed", "--memory", "15MiB", "-c", "256"},
                                       {"--chunk", "1"},
                                       {"--chunk", "7"},
                                       {"--speculate", "ngram"},
                                       {"--speculate", "ngram:1,3"}};
  for (const Words& policy : policies) {
    const Ran ran = mica(Words{"complete", folder->string(), "", "-n", "200", "--temp", "0", "-q"} + policy);
    CAPTURE(policy.empty() ? "" : policy.front());
    CHECK(ran.code == 0);
    CHECK(ran.err.empty());
    CHECK(without_last_newline(ran.out) == known);
  }
}

TEST_CASE("logits have the same bits for threads, chunks, storages, pagers, and one token at a time") {
  const std::vector<Words> policies = {{"-t", "1"},
                                       {"-t", "2"},
                                       {"-t", "3"},
                                       {"--chunk", "1"},
                                       {"--chunk", "7"},
                                       {"--chunk", "512"},
                                       {"--kv", "contiguous"},
                                       {"--weights", "resident"},
                                       {"--decode"},
                                       {"--decode", "-t", "3", "--kv", "contiguous", "--weights", "resident"},
                                       {"--chunk", "7", "-t", "3", "--kv", "contiguous"}};
  for (const std::string name : {"llama3-gqa.Q4_K_M", "llama3-gqa.F32"}) {
    const auto model = shared_dir("same bits of " + name, "conformance/models/" + name + ".gguf");
    if (!model) continue;
    const std::string expected = logits(model->string(), {});
    CHECK(expected.size() == std::size_t{61} * 520 * 4);
    for (const Words& policy : policies) {
      CAPTURE(name);
      CAPTURE(policy[0]);
      CHECK(logits(model->string(), policy) == expected);
    }
  }
}

TEST_CASE("a seed decides a sampled text") {
  const auto model = shared_dir("seeds", "models/stories260K.gguf");
  if (!model) return;
  const auto text = [&](const char* seed) {
    return mica({"complete", model->string(), "One day", "-n", "40", "-s", seed, "-q"}).out;
  };
  CHECK(text("7") == text("7"));
  CHECK(text("7") != text("8"));
  const Ran guessed =
      mica({"complete", model->string(), "One day", "-n", "40", "-s", "7", "-q", "--speculate", "ngram:1,5"});
  CHECK(guessed.out == text("7"));
}

}  // namespace
}  // namespace mica::test::story_test

#endif
