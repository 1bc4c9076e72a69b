// SPDX-License-Identifier: Apache-2.0
//
// --help is whole: what it names is accepted, what is accepted is named, and the page about the program names
// nothing else.

#include "../../examples/run/foreign_flags.hpp"
#include "program/help_page.hpp"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#ifdef MICA_PROGRAM

namespace mica::test::help_test {
namespace {

/// A value that the flag takes.
std::string right_value(const HelpFlag& flag) {
  const std::string standard = flag.standard();
  if (!standard.empty()) return standard;
  if (flag.key() == "chat-template") return "chatml";
  if (flag.key() == "speculate") return "ngram";
  if (flag.key() == "pooling") return "mean";
  if (flag.key() == "logit-bias") return "1+1";
  if (flag.key() == "samplers") return "top_k";
  if (flag.key() == "grammar") return "root ::= [a-z]+";
  if (flag.key() == "level") return "good";
  if (flag.key() == "sampler-seq") return "k";
  if (flag.type == "SIZE") return "1GiB";
  if (flag.type == "LIMIT") return "50%";
  if (flag.type == "JSON") return "{\"a\":1}";
  return "1";
}

/// Flags that another one excludes, which comes before them.
const std::set<std::string> excluded = {"draft",       "draft-answers", "grammar-file",
                                        "json-schema", "json-object",   "regex"};

/// A command line with every flag of a verb under every name, each with a value; of flags that exclude each
/// other the first.
Words all_flags(const std::string& verb, const std::vector<HelpFlag>& flags) {
  Words words = {verb, "--print-config"};
  for (const HelpFlag& flag : flags) {
    if (flag.is_parsers() || excluded.contains(flag.key())) continue;
    for (const std::string& name : flag.names) {
      words.push_back(name);
      if (!flag.type.empty()) words.push_back(right_value(flag));
    }
  }
  return words;
}

/// The names of flags that a text mentions.
std::set<std::string> mentioned(const std::string& text) {
  std::set<std::string> names;
  const std::regex flag("(^|[ `(|\\[])(--?[a-z][a-z0-9-]*)");
  for (std::sregex_iterator at(text.begin(), text.end(), flag), end; at != end; ++at) names.insert((*at)[2]);
  return names;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("the help of every verb is text to its end") {
  const std::vector<std::string> verbs = verbs_of_help();
  CHECK(verbs.size() > 15);
  for (const std::string& verb : verbs) {
    CAPTURE(verb);
    const Ran ran = mica({verb, "--help"});
    CHECK(ran.code == 0);
    CHECK(ran.err.empty());
    CHECK(std::all_of(ran.out.begin(), ran.out.end(),
                      [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); }));
    CHECK(ran.out.ends_with("\n"));
    CHECK(mica({"help", verb}).out == ran.out);
    CHECK(mica({verb, "-h"}).out == ran.out);
  }
}

TEST_CASE("the help of every verb names the flags that its parser takes, and no others") {
  for (const std::string& verb : verbs_of_help()) {
    CAPTURE(verb);
    const std::vector<HelpFlag> flags = flags_of_help(verb);
    const Ran plain = mica({verb, "--print-config"});
    REQUIRE_MESSAGE(plain.code == 0, plain.err);
    std::set<std::string> in_help, in_config;
    for (const HelpFlag& flag : flags) {
      if (!flag.is_parsers()) in_help.insert(flag.key());
    }
    std::istringstream lines(plain.out);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t begin = line.starts_with("# ") ? 2 : 0, end = line.find(" = ");
      if (end != std::string::npos) in_config.insert(line.substr(begin, end - begin));
    }
    CHECK(in_help == in_config);
    const Ran all = mica(all_flags(verb, flags));
    CHECK_MESSAGE(all.code == 0, all.err);
    for (const std::string& key : in_help) {
      CAPTURE(key);
      CHECK(source_of(all.out, key) == (excluded.contains(key) ? "default" : "flag"));
    }
  }
}

TEST_CASE("every flag that the page about the program names is a flag of a verb, or of another engine") {
  std::set<std::string> known;
  for (const std::string& verb : verbs_of_help()) {
    for (const HelpFlag& flag : flags_of_help(verb)) known.insert(flag.names.begin(), flag.names.end());
  }
  const std::set<std::string> named = mentioned(file_text(MICA_SOURCE "/docs/cli.md"));
  CHECK(named.size() > 50);
  const std::set<std::string> spellings = {"--flag", "--version", "-n5",
                                           "-qv",    "--man",     "--files"};  // no flags of their own
  for (const std::string& name : named) {
    CAPTURE(name);
    const bool foreign = program::find_foreign(program::foreign::flags, name) != nullptr;
    CHECK((known.contains(name) || foreign || spellings.contains(name)));
  }
}

}  // namespace
}  // namespace mica::test::help_test

#endif
