// SPDX-License-Identifier: Apache-2.0
//
// --draft-answers: the model of --draft answers by itself, and /exact asks the model of -m. What each says is
// what it says alone.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace mica::test::exact_test {
namespace {

/// A model, and a quantisation of it.
struct TwoModels {
  TwoModels() {
    REQUIRE(mica({"synth", "stories-15m", "F16", one, "-q"}).code == 0);
    REQUIRE(mica({"synth", "stories-15m", "Q4_0", other, "-q"}).code == 0);
  }
  TemporaryFolder folder;
  std::string one = folder.path("one.gguf"), other = folder.path("other.gguf");
};

const Words to_compare = {"-n",     "12",     "--temp", "0", "-c", "512", "--ignore-eos", "--chat-template",
                          "chatml", "--json", "-t",     "1", "-q"};

/// The answers of a chat to lines.
std::vector<nlohmann::json> answers(const Words& models, const std::string& lines) {
  const Ran ran = mica(Words{"chat"} + models + to_compare, lines);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  std::vector<nlohmann::json> out;
  std::istringstream text(ran.out);
  for (std::string line; std::getline(text, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

}  // namespace

TEST_CASE("the draft answers, /exact asks the model once more, and both continue one conversation") {
  const TwoModels models;
  const auto alone = answers({models.one}, "hello\n"), draft = answers({models.other}, "hello\n");
  REQUIRE(alone.size() == 1);
  REQUIRE(draft.size() == 1);
  CHECK(alone[0]["content"] != draft[0]["content"]);
  CHECK_FALSE(alone[0].contains("model"));

  const auto both =
      answers({models.one, "--draft", models.other, "--draft-answers"}, "hello\n/exact\nand then?\n");
  REQUIRE(both.size() == 3);
  CHECK(both[0]["content"] == draft[0]["content"]);
  CHECK(both[0]["model"] == models.other);
  CHECK(both[1]["content"] == alone[0]["content"]);
  CHECK(both[1]["model"] == models.one);
  CHECK(both[1]["timings"]["draft_n"] > 0);
  CHECK(both[2]["model"] == models.other);

  const auto changed =
      answers({models.other, "--draft", models.one, "--draft-answers"}, "hello\n/exact and then?\n");
  REQUIRE(changed.size() == 2);
  CHECK(changed[0]["content"] == alone[0]["content"]);
  CHECK(changed[1]["content"] == both[2]["content"]);
  CHECK(changed[1]["model"] == models.other);
}

TEST_CASE("a session keeps the conversation, whichever model answered") {
  const TwoModels models;
  const Words both = {models.one, "--draft", models.other, "--draft-answers"};
  const Words session = {"--session", models.folder.path("s")};
  const auto whole = answers(both, "hello\n/exact\nand then?\n/exact\n");
  REQUIRE(whole.size() == 4);
  CHECK(answers(both + session, "hello\n/exact\n").size() == 2);
  const auto rest = answers(both + session, "and then?\n/exact\n");
  REQUIRE(rest.size() == 2);
  CHECK(rest[0]["content"] == whole[2]["content"]);
  CHECK(rest[1]["content"] == whole[3]["content"]);
}

TEST_CASE("--draft-answers without a draft, or without a chat, is a usage error") {
  const TwoModels models;
  CHECK(mica({"chat", models.one, "--draft-answers"}, "hello\n").code == 2);
  const Words both = {models.one, "--draft", models.other, "--draft-answers", "-q"};
  CHECK(mica(Words{"complete"} + both + Words{"-p", "hello"}).code == 2);
  CHECK(mica(Words{"chat"} + both + Words{"-st", "-p", "hello", "--chat-template", "chatml"}).code == 2);
  const Ran ran = mica({"chat", models.one, "--chat-template", "chatml"}, "/exact hello\n");
  CHECK(has(ran.err, "/exact needs --draft FILE --draft-answers"));
  CHECK(ran.out.empty());
}

}  // namespace mica::test::exact_test

#endif
