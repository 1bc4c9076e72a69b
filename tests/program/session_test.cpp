// SPDX-License-Identifier: Apache-2.0
//
// A run that ends and another one that goes on say what one run says.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

namespace mica::test {
namespace {

const Words sampling = {"--temp", "0.9", "--repeat-penalty", "1.3"};

std::string said(const Words& words) {
  const Ran ran = mica(words + Words{"-q"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  std::string text = ran.out;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("two runs with a session say what one run says, the sampler's numbers and penalties included") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const Words tell = Words{"run"} + sampling, with_file = tell + Words{"--session", file};
  const std::string whole = said(tell + Words{"-n", "60", "--seed", "5"});
  const std::string first = said(with_file + Words{"-n", "23", "--seed", "5"});
  const std::string second = said(with_file + Words{"-n", "36"});
  const std::string third = said(with_file + Words{"-n", "1", "--seed", "9"});
  CHECK(whole == first + second + third);
}

TEST_CASE("a prompt that changed keeps what is common, and answers as a run of its own") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const Words complete = {"run", "--temp", "0", "-n", "12", "-no-cnv"};
  static_cast<void>(said(complete + Words{"-p", "The king had a daughter", "--session", file}));
  for (const std::string prompt : {"The king had a son", "A fox", "The king had a daughter"}) {
    CAPTURE(prompt);
    CHECK(said(complete + Words{"-p", prompt, "--session", file}) == said(complete + Words{"-p", prompt}));
  }
}

TEST_CASE(
    "a prompt that is only read is gone on with as if it had been answered, without its last token being "
    "read twice") {
  const TemporaryFolder folder;
  std::vector<Words> models = {{"complete"}};
  if (const auto kit = shared_dir("a hybrid whose prompt is only read", "conformance/models"))
    models.push_back({"complete", (*kit / "qwen35.Q8_0.gguf").string()});
  for (const Words& model : models) {
    const std::string file = folder.path(join("story", model.size()));
    const Words tell = model + Words{"-c", "128", "--seed", "5"} + sampling,
                prompt = {"-p", "Once upon a time there was a king"};
    const Words read = tell + prompt + Words{"-n", "0", "--json"};
    const auto tokens_read = [&](const Words& more) {
      return number(mica(read + more + Words{"-q"}), "prompt_n");
    };
    CHECK(tokens_read({}) == tokens_read({"--session", file}) + 1);  // whose logits the next run wants
    const std::string whole = said(tell + prompt + Words{"-n", "9"});
    CHECK(said(tell + Words{"-n", "9", "--session", file}) == whole);
  }
}

TEST_CASE("a conversation goes on in the next run") {
  const TemporaryFolder folder;
  const std::string file = folder.path("chat");
  const auto talk = [&](const Words& more, const std::string& input) {
    const Words chat = {"chat", "--temp", "0", "-n", "8", "--chat-template", "chatml", "-q"};
    const Ran ran = mica(chat + more, input);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    return ran.out;
  };
  const std::string whole = talk({}, "Hello\nWho are you?\n");
  const std::string first = talk({"--session", file}, "Hello\n"),
                    second = talk({"--session", file}, "Who are you?\n");
  CHECK(first + second == whole);
}

TEST_CASE("a session that cannot be taken up or written is refused before anything is said") {
  const TemporaryFolder folder;
  const Ran damaged = mica({"run", "-n", "3", "--session",
                            folder.file("text", "this is no session, it is a text of more than 48 bytes")});
  CHECK(damaged.code == 3);
  CHECK(damaged.out.empty());
  CHECK(damaged.err.find("not a saved session") != std::string::npos);
  const Ran nowhere = mica({"run", "-n", "3", "--session", folder.path("no/such/folder")});
  CHECK(nowhere.code == 3);
  CHECK(nowhere.out.empty());
  const std::string file = folder.path("f16");
  static_cast<void>(said({"run", "-n", "3", "--session", file}));
  const Ran other = mica({"run", "-n", "3", "-ctk", "q8_0", "--session", file});
  CHECK(other.code == 2);
  CHECK(other.err.find("keys in F16; this one has Q8_0") != std::string::npos);
}

}  // namespace mica::test

#endif
