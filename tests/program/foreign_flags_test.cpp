// SPDX-License-Identifier: Apache-2.0
//
// Flags and verbs of other engines: each row of the table is ignored with a note or refused by name.

#include "../../examples/run/foreign_flags.hpp"

#include "program/help_page.hpp"

#include <set>

#ifdef MICA_PROGRAM

namespace mica::test::foreign_flags_test {
namespace {

using program::ForeignFlag;

std::set<std::string> flags_of_run() {
  std::set<std::string> names;
  for (const HelpFlag& flag : flags_of_help("run")) names.insert(flag.names.begin(), flag.names.end());
  return names;
}

TEST_CASE("the table of other engines' flags names each once, and says why") {
  std::set<std::string_view> seen;
  for (const ForeignFlag& flag : program::foreign::flags) {
    CAPTURE(std::string(flag.name));
    CHECK(seen.insert(flag.name).second);
    CHECK(flag.name.starts_with('-'));
    CHECK(flag.why.size() > 5);
    CHECK(!flag.why.ends_with('.'));
  }
  for (const program::ForeignVerb& verb : program::foreign::verbs) {
    CAPTURE(std::string(verb.name));
    CHECK(seen.insert(verb.name).second);
  }
  for (const char* name : {"-ngl", "-fa", "--mlock", "--mmap", "--tfs", "--adaptive-target", "--lora",
                           "--json-schema-file", "-mu", "push", "ps"})
    CHECK(seen.contains(name));
}

TEST_CASE("a flag of another engine that changes no answer is ignored with a note, together with its value") {
  const std::set<std::string> own = flags_of_run();
  for (const bool with_sign : {false, true}) {
    Words words = {"run", "model.gguf", "--print-config"};
    std::vector<std::string> names;
    for (const ForeignFlag& flag : program::foreign::flags) {
      const std::string name(flag.name);
      if (flag.kind == ForeignFlag::Kind::refused || own.contains(name)) continue;
      names.push_back(name);
      const bool valued = flag.kind == ForeignFlag::Kind::valued;
      words.push_back(valued && with_sign ? name + "=-1" : name);
      if (valued && !with_sign) words.push_back("-1");
    }
    words.push_back("prompt");
    const Ran ran = mica(words);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    CHECK(configured(ran.out, "words") == "[\"prompt\"]");
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(has(ran.err, "; " + name + " ignored\n"));
    }
    CHECK(mica(words + Words{"-q"}).err.empty());
  }
}

TEST_CASE("a flag of another engine that would change the answer is refused by name") {
  const std::set<std::string> own = flags_of_run();
  for (const ForeignFlag& flag : program::foreign::flags) {
    const std::string name(flag.name);
    if (flag.kind != ForeignFlag::Kind::refused || own.contains(name)) continue;
    CAPTURE(name);
    const Ran ran = mica({"run", "model.gguf", name, "value"});
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err == "mica run: " + name + ": " + std::string(flag.why) + ". See mica run --help.\n");
  }
}

TEST_CASE("flags that a refusal recommends are flags of this program") {
  std::set<std::string> known;
  for (const std::string& verb : verbs_of_help()) {
    for (const HelpFlag& flag : flags_of_help(verb)) known.insert(flag.names.begin(), flag.names.end());
  }
  for (const ForeignFlag& flag : program::foreign::flags) {
    std::istringstream words{std::string(flag.why)};
    for (std::string word; words >> word;) {
      word.erase(word.find_last_not_of(",;") + 1);
      if (!word.starts_with('-') || word.size() < 2) continue;
      CAPTURE(std::string(flag.name));
      CHECK_MESSAGE(known.contains(word), word);
    }
  }
}

TEST_CASE("verbs of other engines are answered with what is there instead") {
  for (const program::ForeignVerb& verb : program::foreign::verbs) {
    CAPTURE(std::string(verb.name));
    const Ran ran = mica({std::string(verb.name), "llama3.2"});
    CHECK(ran.code == 2);
    CHECK(ran.err == "mica: there is no verb " + std::string(verb.name) + ": " + std::string(verb.why) +
                         ". See mica help.\n");
  }
}

TEST_CASE("-hf is a repository, not the letters h and f") {
  const Ran ran = mica({"run", "-hf", "model", "hi"});
  CHECK(ran.code == 2);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "--hf-repo: 'model' is no repository"));
  CHECK(mica({"-hf", "model"}).code == 2);
}

}  // namespace
}  // namespace mica::test::foreign_flags_test

#endif
