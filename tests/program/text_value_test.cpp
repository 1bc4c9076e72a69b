// SPDX-License-Identifier: Apache-2.0
//
// Texts of a user arrive byte for byte, through every flag that takes one and as words.

#include "program/help_page.hpp"

#include <set>

#ifdef MICA_PROGRAM

namespace mica::test::text_value_test {
namespace {

const std::vector<std::string> texts = {"[a,b]",
                                        "[\"x\", \"y\"]",
                                        "[INST] hi [/INST]",
                                        "[]",
                                        "[",
                                        "]",
                                        "[[a]]",
                                        "a,b",
                                        "-- -x",
                                        "-x",
                                        "",
                                        "\"quoted\"",
                                        "'q'",
                                        "\"",
                                        "B\"(\\x41)\"",
                                        "\\n",
                                        "{\"a\":1}",
                                        "a=b",
                                        "%d",
                                        "{}",
                                        " blanks ",
                                        "tab\t",
                                        "a\nb",
                                        "\xC3\xA4",
                                        "#no",
                                        "--",
                                        "$HOME"};

bool takes(const HelpFlag& flag, const std::string& text) {
  static const std::set<std::string> types = {"FILE", "TIME", "RATE", "NAME=JSON", "REGEX=TYPE"};
  return (flag.type == "TEXT" || (types.contains(flag.type) && !text.empty())) && !flag.is_parsers();
}

/// A command line that gives one text to every flag of a verb that takes it.
Words giving(const std::string& verb, const std::vector<HelpFlag>& flags, const std::string& text,
             bool with_sign) {
  Words words = {verb, "--print-config"};
  for (const HelpFlag& flag : flags) {
    if (!takes(flag, text)) continue;
    for (const std::string& name : flag.names) {
      if (with_sign) {
        words.push_back(name + "=" + text);
      } else {
        words = words + Words{name, text};
      }
    }
  }
  return words;
}

TEST_CASE("every flag that takes a text takes each text as it is") {
  for (const std::string& verb : verbs_of_help()) {
    CAPTURE(verb);
    const std::vector<HelpFlag> flags = flags_of_help(verb);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Ran ran = mica(giving(verb, flags, texts[i], i % 2 == 1));
      CAPTURE(texts[i]);
      REQUIRE_MESSAGE(ran.code == 0, ran.err);
      for (const HelpFlag& flag : flags) {
        if (!takes(flag, texts[i])) continue;
        CAPTURE(flag.key());
        const std::string read = configured(ran.out, flag.key()), wanted = toml(texts[i]);
        const bool once = read == wanted,
                   each = read.starts_with("[" + wanted) && read.ends_with(wanted + "]");
        CHECK((once || each));
      }
    }
  }
}

TEST_CASE("words arrive as they are, before -- those that begin with no dash, behind it all") {
  std::string all, plain;
  Words any, undashed;
  for (const std::string& text : texts) {
    any.push_back(text);
    all += (all.empty() ? "" : ", ") + toml(text);
    if (text.starts_with('-') && text.size() > 1) continue;
    undashed.push_back(text);
    plain += (plain.empty() ? "" : ", ") + toml(text);
  }
  for (const std::string verb :
       {"run", "complete", "chat", "tokenize", "quantize", "convert", "pack", "detokenize"}) {
    CAPTURE(verb);
    const Words model = {verb, "--print-config", "model.gguf"};
    CHECK(configured(mica(model + undashed).out, "words") == "[" + plain + "]");
    CHECK(configured(mica(model + Words{"--"} + any).out, "words") == "[" + all + "]");
  }
}

TEST_CASE("a prompt in brackets has the tokens that its text has") {
  for (const std::string text : {"[INST] hi [/INST]", "[a,b]", "[\"x\", \"y\"]", "[Hello, world]", "a,b"}) {
    CAPTURE(text);
    std::string quoted = toml(text);  // JSON, too
    const Ran lines = mica({"tokenize", bundled_file(), "--jsonl"}, "{\"text\":" + quoted + "}\n");
    REQUIRE_MESSAGE(lines.code == 0, lines.err);
    CHECK(mica({"tokenize", bundled_file(), "--json", text}).out == lines.out);
    CHECK(mica({"tokenize", bundled_file(), "--json", "--", text}).out == lines.out);
  }
}

TEST_CASE("an answer ends at a text in brackets, and not at a word of it, in run and in complete") {
  const auto answer = [](const std::string& verb, const Words& more) {
    const Words words = {verb, bundled_file(), "Once upon a time", "-n", "40", "--temp",
                         "0",  "-q",           "-no-cnv"};
    Words cleaned = words;
    if (verb == "complete") cleaned.pop_back();
    const Ran ran = mica(cleaned + more);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return ran.out;
  };
  for (const std::string verb : {"run", "complete"}) {
    const std::string whole = answer(verb, {});
    const std::string word = whole.substr(whole.find(' ', 12) + 1, 3);
    CHECK(answer(verb, {"-r", "[" + word + "]"}) == whole);
    CHECK(answer(verb, {"-r", word}).size() < whole.size());
  }
}

TEST_CASE(
    "of a flag that is repeated the last value counts; texts that end an answer and settings are collected") {
  const Ran last = mica({"run", "--print-config", "-n", "5", "-n", "6", "--temp=1", "--temp", "0.5"});
  CHECK(configured(last.out, "predict") == "\"6\"");
  CHECK(configured(last.out, "temp") == "\"0.5\"");
  const Ran stops = mica({"run", "--print-config", "-r", "a", "--reverse-prompt", "b,c"});
  CHECK(configured(stops.out, "reverse-prompt") == "[\"a\", \"b,c\"]");
  const Ran types =
      mica({"quantize", "--print-config", "--tensor-type", "a=F16", "--tensor-type", "b,c=F16"});
  CHECK(configured(types.out, "tensor-type") == "[\"a=F16\", \"b,c=F16\"]");
  const Ran set = mica({"template", "--print-config", "--set", "a=[1,2]", "--set", "b=3"});
  CHECK(configured(set.out, "set") == "[\"a=[1,2]\", \"b=3\"]");
  CHECK(configured(mica({"bench", "--print-config", "-p", "8,16", "-p", "32"}).out, "n-prompt") == "\"32\"");
}

}  // namespace
}  // namespace mica::test::text_value_test

#endif
