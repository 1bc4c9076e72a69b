// SPDX-License-Identifier: Apache-2.0
//
// Thoughts of a model, and the variables of its template. The template here opens thoughts that the bundled model
// never ends, unless a variable says not to.

#include "program/terminal.hpp"

#ifdef MICA_PROGRAM

namespace mica::test::think_test {
namespace {

const std::string fairy = std::string(MICA_SOURCE) + "/examples/models/fairy.gguf";

constexpr const char* thinking_template =
    "{{ messages[0]['content'] }}{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif "
    "%}";

/// Runs of `run` with that template.
struct Fixture {
  Ran run(const Words& more) const { return mica(words() + more); }
  Words words(const std::string& verb = "run") const {
    return {verb, fairy, "--chat-template-file", source, "-n", "8", "--temp", "0", "-c", "256"};
  }

  TemporaryFolder folder;
  std::string source = folder.file("template", thinking_template);
  Words prompt = {"Once upon a time"};
};

TEST_CASE("thoughts go to stderr between marks, and stdout has the answer alone") {
  const Fixture f;
  const Ran thinks = f.run(f.prompt);
  CHECK(thinks.code == 0);
  CHECK(thinks.out.empty());
  const std::size_t begin = thinks.err.find("<think>\n"), end = thinks.err.find("\n</think>\n");
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  CHECK(end > begin + 8);
  const Ran answers = f.run(f.prompt + Words{"--think", "off"});
  CHECK(answers.code == 0);
  CHECK(answers.out.size() > 5);
  CHECK(lacks(answers.err, "<think>"));
  CHECK(has(f.run(f.prompt + Words{"--reasoning", "on"}).err, "<think>"));
}

TEST_CASE("thoughts can be hidden, and quiet hides them too") {
  const Fixture f;
  for (const Words& more : {Words{"--think", "hide"}, Words{"-q"}}) {
    const Ran ran = f.run(f.prompt + more);
    CHECK(ran.code == 0);
    CHECK(ran.out.empty());
    CHECK(lacks(ran.err, "think"));
  }
}

TEST_CASE("JSON has thoughts under the name that other programs have") {
  const Fixture f;
  const Ran object = f.run(f.prompt + Words{"--json"});
  CHECK(has(object.out, "{\"content\":\"\",\"reasoning_content\":\""));
  CHECK(lacks(object.err, "<think>"));
  const Ran lines = f.run(f.prompt + Words{"--jsonl"});
  CHECK(has(lines.out, "{\"reasoning_content\":\""));
  CHECK(lacks(lines.out, "\"content\":\" "));
  CHECK(lacks(f.run(f.prompt + Words{"--think", "off", "--json"}).out, "reasoning_content"));
}

TEST_CASE("variables of the template are a JSON object, and take precedence over --think") {
  const Fixture f;
  const Words off = {"--chat-template-kwargs", "{\"enable_thinking\":false}"};
  const std::string answer = f.run(f.prompt + Words{"--think", "off"}).out;
  CHECK(f.run(f.prompt + off).out == answer);
  CHECK(f.run(f.prompt + off + Words{"--think", "on"}).out == answer);
  const auto refused = [&](const std::string& json, const char* why) {
    CAPTURE(json);
    const Ran ran = f.run(f.prompt + Words{"--chat-template-kwargs", json});
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, "--chat-template-kwargs"));
    CHECK(has(ran.err, why));
  };
  refused("[1]", "needed: a JSON object");
  refused("{\"a\":", "line 1");
  refused("{\"messages\":[]}", "'messages' comes from the conversation");
}

TEST_CASE("a template without a switch says so") {
  const TemporaryFolder folder;
  const std::string source = folder.file("template", "{{ messages[0]['content'] }}");
  const Words words = {"run", fairy, "hello", "--chat-template-file", source, "-n", "2", "--temp", "0"};
  CHECK(has(mica(words + Words{"--think", "off"}).err, "the model's template has no switch for it"));
  CHECK(lacks(mica(words).err, "switch"));
  for (const char* how : {"on", "off"}) {  // a model without a template, which continues the text
    const std::string err = mica({"run", fairy, "hello", "-n", "2", "--temp", "0", "--think", how}).err;
    CHECK(has(err, "there is no switch for it; --chat-template NAME chooses a format"));
    CHECK(err.find("--think") == err.rfind("--think"));
  }
  CHECK(lacks(mica({"run", fairy, "hello", "-n", "2", "--temp", "0", "--think", "hide"}).err, "switch"));
  const Words plain = {"run", fairy, "hello", "--chat-template", "plain", "-n", "2", "--temp", "0"};
  CHECK(has(mica(plain + Words{"--chat-template-kwargs", "{\"a\":1}"}).err, "has no variables"));
}

TEST_CASE("a chat changes its mind about thoughts, and saves them with its session") {
  const Fixture f;
  const std::string session = f.folder.path("session");
  const Words words = f.words("chat") + Words{"--session", session};
  const Ran ran =
      mica(words, "/set nothink\nOnce upon\n/clear\n/set think\nOnce\n/set think maybe\n/set think hide\n");
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "think is off"));
  CHECK(has(ran.err, "think is on"));
  CHECK(has(ran.err, "think is hide"));
  CHECK(has(ran.err, "/set think needs one of auto on off hide, found 'maybe'"));
  CHECK(ran.err.find("<think>") > ran.err.find("think is on"));
  CHECK(has(contents(session), "thoughts"));
  CHECK(has(mica(words, "/show stats\n").err, "messages so far: 2"));
}

TEST_CASE("thoughts are dim on a terminal, and between marks where there are no colours") {
  const Fixture f;
  const auto shown = [&](const char* no_color) {
    TerminalRun run(f.words() + f.prompt);
    CHECK(run.set("NO_COLOR", no_color).start().finish() == 0);
    return run.output();
  };
  const std::string dim = shown("");
  CHECK(has(dim, "\x1b[2m"));
  CHECK(dim.find("\x1b[0m", dim.find("\x1b[2m")) != std::string::npos);
  CHECK(lacks(dim, "<think>"));
  const std::string plain = shown("1");
  CHECK(has(plain, "<think>\r\n"));
  CHECK(has(plain, "\r\n</think>\r\n"));
}

}  // namespace
}  // namespace mica::test::think_test

#endif
