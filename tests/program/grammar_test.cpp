// SPDX-License-Identifier: Apache-2.0
//
// Answers of the program that are texts of a grammar.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include <fstream>
#include <regex>
#include <string>

namespace mica::test::grammar_test {
namespace {

const std::string person = R"(root ::= "{\"name\": \"" [A-Z] [a-z]{1,9} "\", \"age\": " [1-9] [0-9]? "}")";
const std::regex person_text(R"re(\{"name": "[A-Z][a-z]{1,9}", "age": [1-9][0-9]?\})re");

std::string said(const Words& words) {
  const Ran ran = mica(words + Words{"-q"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  std::string text = ran.out;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

const Words tell = {"run", "-no-cnv", "-p", "Once upon a time", "-s", "3"};

std::string refusal(const Words& words) {
  const Ran ran = mica(tell + words);
  CHECK(ran.code == 2);
  CHECK(ran.out.empty());
  return ran.err;
}

}  // namespace

TEST_CASE("an answer is a text of the grammar, from a flag or a file, with drafts and without") {
  const TemporaryFolder folder;
  const std::string file = folder.path("person.gbnf");
  std::ofstream(file) << person << '\n';
  for (const char* const temperature : {"0", "1", "3"}) {
    const Words words = tell + Words{"--temp", temperature};
    const std::string text = said(words + Words{"--grammar", person});
    CAPTURE(text);
    CHECK(std::regex_match(text, person_text));
    CHECK(said(words + Words{"--grammar-file", file}) == text);
    CHECK(said(words + Words{"--grammar", person, "--speculate", "ngram:2"}) == text);
    CHECK(said(words + Words{"--grammar", person, "--ignore-eos"}) == text);
  }
  const Ran json = mica(tell + Words{"--grammar", person, "--json"});
  CHECK(json.code == 0);
  CHECK(json.out.find("\"tokens_forced\":") != std::string::npos);
  CHECK(json.out.find("\"stop_reason\":\"end_of_text\"") != std::string::npos);
  const Ran plain = mica(tell + Words{"-n", "3", "--json"});
  CHECK(plain.out.find("tokens_forced") == std::string::npos);
}

TEST_CASE("two runs with a session give the text of the grammar that one run gives") {
  const TemporaryFolder folder;
  const Words words = {"complete", "--temp", "1", "--grammar", person};
  const std::string model = MICA_SOURCE "/examples/models/fairy.gguf";
  const std::string whole = said(words + Words{model, "Once upon a time", "-s", "5"});
  for (const char* const length : {"1", "4", "9", "20"}) {
    CAPTURE(length);
    const std::string file = folder.path(join("person", length));
    const std::string first =
        said(words + Words{model, "Once upon a time", "-s", "5", "-n", length, "--session", file});
    CHECK(first + said(words + Words{model, "--session", file}) == whole);
  }
  const std::string other = folder.path("other");
  said({"complete", model, "Once upon a time", "-n", "5", "--session", other});
  const Ran refused = mica(words + Words{model, "--session", other});
  CHECK(refused.code == 2);
  CHECK(refused.err.find("no beginning of a text of the grammar") != std::string::npos);
}

TEST_CASE("a mistake in a grammar is named with its place, before a model is loaded") {
  CHECK(refusal({"--grammar", "root ::= \"a\"\nroot ::= (", "-m", "none.gguf"}).find("--grammar: line 2") !=
        std::string::npos);
  CHECK(refusal({"--grammar", "root ::= other"}).find("'other'") != std::string::npos);
  CHECK(refusal({"--grammar", "root ::= <no such token>"}).find("--grammar: ") != std::string::npos);
  const TemporaryFolder folder;
  const std::string file = folder.path("wrong.gbnf");
  std::ofstream(file) << "root ::= [";
  CHECK(refusal({"--grammar-file", file}).find(file) != std::string::npos);
  CHECK(refusal({"--grammar-file", file, "--grammar", person}).find("exclude each other") !=
        std::string::npos);
  CHECK(mica(tell + Words{"--grammar-file", folder.path("none")}).code == 3);
}

}  // namespace mica::test::grammar_test

#endif
