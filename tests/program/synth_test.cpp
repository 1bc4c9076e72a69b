// SPDX-License-Identifier: Apache-2.0
//
// mica synth: a file with random weights that other verbs can use.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include "mica/gguf/reader.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace mica::test::synth_test {

TEST_CASE("a file of a published shape is written, and can be measured") {
  const TemporaryFolder folder;
  const std::string path = folder.path("stories.gguf");
  const Ran ran = mica({"synth", "stories-15m", "Q4_0", path, "-t", "2"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "TinyStories 15M, random weights: 56 tensors, 15191712 weights"));
  CHECK(gguf::open(path).tensor("blk.5.ffn_down.weight").format.name == "Q4_0");
  CHECK(folder.entries() == 1);
  const Ran measured = mica({"bench", path, "-p", "4", "-n", "2", "-r", "1", "-t", "1"});
  REQUIRE_MESSAGE(measured.code == 0, measured.err);
  CHECK(has(measured.out, "pp4"));
  CHECK(mica({"run", path, "Hello", "-n", "3", "-q", "--seed", "1"}).code == 0);
}

TEST_CASE("a dry run says how large the file would be, and writes nothing") {
  const TemporaryFolder folder;
  const Ran ran = mica({"synth", "llama-70b", "Q4_K_M", "--dry-run"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, "70553706496 weights, 42515"));
  const Ran json = mica({"synth", "mixtral-8x7b", "q8_0", folder.path("never.gguf"), "--dry-run", "--json"});
  const auto facts = nlohmann::json::parse(json.out);
  CHECK(facts["shape"] == "mixtral-8x7b");
  CHECK(facts["weights"] == 46702792704);
  CHECK(facts["bytes"] > 49000000000);
  CHECK(folder.entries() == 0);
}

TEST_CASE("a shape can have fewer layers, experts and entries of its vocabulary") {
  const TemporaryFolder folder;
  const std::string path = folder.path("mixture.gguf");
  const Ran ran = mica({"synth", "qwen3.5-35b-a3b", "Q4_0", path, "--layers", "4", "--experts", "8",
                        "--vocab", "300", "-t", "2"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const gguf::Document document = gguf::open(path);
  CHECK(document.contains("blk.3.attn_q.weight"));
  CHECK_FALSE(document.contains("blk.4.attn_norm.weight"));
  CHECK(document.tensor("blk.0.ffn_down_exps.weight").dims[2] == 8);
  CHECK(document.tensor("token_embd.weight").rows() == 300);
  CHECK(mica({"run", path, "Hello", "-n", "2", "-q", "--seed", "1", "-c", "64"}).code == 0);
  const Ran few = mica({"synth", "qwen3.5-35b-a3b", "Q4_0", "--dry-run", "--experts", "4"});
  CHECK(few.code == 2);
  CHECK(has(few.err, "--experts of qwen3.5-35b-a3b: found 4, allowed 8 to 256"));
  CHECK(has(mica({"synth", "llama-1b", "Q4_0", "--dry-run", "--experts", "4"}).err, "llama-1b has none"));
  CHECK(mica({"synth", "llama-1b", "Q4_0", "--dry-run", "--vocab", "258"}).code == 2);
}

TEST_CASE("what cannot be made is refused with what can") {
  const TemporaryFolder folder;
  const std::string out = folder.path("out.gguf");
  const Ran none = mica({"synth", "llama-8b", "Q4_K_M"});
  CHECK(none.code == 2);
  CHECK(has(none.err, "SHAPE TYPE OUT"));
  CHECK(has(mica({"synth", "lama-8b", "Q8_0", out}).err, "Did you mean llama-8b?"));
  CHECK(has(mica({"synth", "llama-8b", "Q4_KM", out}).err, "Did you mean Q4_K_M?"));
  CHECK(mica({"synth", "stories-15m", "Q8_0", folder.path("missing/out.gguf")}).code == 3);
  CHECK(folder.entries() == 0);
}

TEST_CASE("a head for multi-token prediction drafts, and the text is the same") {
  const TemporaryFolder folder;
  const std::string path = folder.path("mtp.gguf");
  const Ran made =
      mica({"synth", "stories-15m", "Q8_0", path, "--layers", "2", "--vocab", "400", "--mtp", "-q"});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  CHECK(gguf::open(path).contains("blk.2.nextn.eh_proj.weight"));
  const Words words{"complete", path, "Once", "-n", "30", "--seed", "1", "--ignore-eos", "-t", "1", "--json"};
  const auto plain = nlohmann::json::parse(mica(words).out);
  const auto guessed =
      nlohmann::json::parse(mica(words + Words{"--speculate", "mtp:2", "--draft-min", "2"}).out);
  CHECK(guessed["content"] == plain["content"]);
  CHECK(guessed["timings"]["draft_n"] > 10);
  const Words talk{
      "chat",   path, "-n", "8",  "--temp",      "0", "-c", "256", "--ignore-eos", "--chat-template",
      "chatml", "-t", "1",  "-q", "--no-history"};
  const Ran chat = mica(talk, "hello\nyou\n");
  CHECK(chat.code == 0);
  CHECK(mica(talk + Words{"--speculate", "mtp", "--draft-min", "1"}, "hello\nyou\n").out == chat.out);
  const std::string floats = folder.path("f16.gguf"), few = folder.path("few.gguf");
  CHECK(
      mica({"synth", "stories-15m", "F16", floats, "--layers", "1", "--vocab", "400", "--mtp", "-q"}).code ==
      0);
  const Ran measured = mica({"imatrix", floats, "-f", folder.file("text.txt", std::string(900, 'x')), "-o",
                             folder.path("importance.gguf"), "-c", "64", "-q"});
  CHECK_MESSAGE(measured.code == 0, measured.err);
  const Ran quantised =
      mica({"quantize", floats, few, "IQ2_XXS", "--imatrix", folder.path("importance.gguf"), "-q"});
  CHECK_MESSAGE(quantised.code == 0, quantised.err);  // importance is measured without the head
  const Ran other = mica({"synth", "gemma3-1b", "Q8_0", path, "--mtp", "--dry-run"});
  CHECK(other.code == 2);
  CHECK(has(other.err, "gemma3"));
}

}  // namespace mica::test::synth_test

#endif
