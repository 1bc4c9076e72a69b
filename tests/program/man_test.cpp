// SPDX-License-Identifier: Apache-2.0
//
// Manual pages and topics: they are there, they say what help says, and roff has no complaint.

#include "program/help_page.hpp"

#include <algorithm>
#include <filesystem>

#ifdef MICA_PROGRAM

namespace mica::test::man_test {
namespace {

/// The topics that `mica help` lists, behind its last empty line.
std::vector<std::string> topics_of_help() {
  const std::string help = mica({"help"}).out;
  std::vector<std::string> names;
  std::istringstream lines(help.substr(help.rfind("\n\n")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

/// A page without the escapes of roff.
std::string plain(std::string page) {
  std::string out;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page[i] != '\\') {
      out += page[i] == '\n' ? ' ' : page[i];
    } else if (page[i + 1] == 'f') {
      i += 2;
    } else {
      ++i;
      if (page[i] == 'e') out += '\\';
      if (page[i] == '-') out += '-';
    }
  }
  return out;
}

TEST_CASE("every topic is a short text, and unknown ones give a near name") {
  const std::vector<std::string> topics = topics_of_help();
  CHECK(topics.size() >= 10);
  for (const std::string& topic : topics) {
    CAPTURE(topic);
    const Ran ran = mica({"help", topic});
    CHECK(ran.code == 0);
    const auto lines = std::count(ran.out.begin(), ran.out.end(), '\n');
    CHECK(lines >= 10);
    CHECK(lines <= 30);
    std::istringstream in(ran.out);
    for (std::string line; std::getline(in, line);) CHECK(line.size() <= 80);
    CHECK(std::all_of(ran.out.begin(), ran.out.end(),
                      [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); }));
  }
  const Ran wrong = mica({"help", "memroy"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "no verb and no topic 'memroy'. Did you mean memory? Topics: models memory "));
  CHECK(has(mica({"memory"}).err, "'memory' is a topic, no verb. See mica help memory."));
}

TEST_CASE("a topic names only flags that a verb has") {
  std::vector<std::string> known = {"--help", "--print-config", "--config"};
  for (const std::string& verb : verbs_of_help()) {
    for (const HelpFlag& flag : flags_of_help(verb))
      known.insert(known.end(), flag.names.begin(), flag.names.end());
  }
  for (const std::string& topic : topics_of_help()) {
    std::istringstream words(mica({"help", topic}).out);
    for (std::string word; words >> word;) {
      while (word.ends_with(',') || word.ends_with(':') || word.ends_with('.') || word.ends_with(';'))
        word.pop_back();
      const bool is_flag =
          word.size() > 1 && word[0] == '-' && (word[1] == '-' || std::isalpha(word[1]) != 0);
      CAPTURE(topic);
      CAPTURE(word);
      if (is_flag) CHECK(std::find(known.begin(), known.end(), word) != known.end());
    }
  }
}

TEST_CASE("the page of a verb has every flag with its text, and the example") {
  for (const std::string& verb : verbs_of_help()) {
    CAPTURE(verb);
    const Ran ran = mica({"help", "--man", verb});
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    const std::string page = plain(ran.out);
    for (const HelpFlag& flag : flags_of_help(verb)) {
      CAPTURE(flag.key());
      std::string head;
      for (const std::string& name : flag.names) head += (head.empty() ? "" : ", ") + name;
      if (!flag.type.empty()) head += " " + flag.type;
      head = ".TP " + head + " ";
      const std::size_t at = page.find(head);
      CHECK(at != std::string::npos);
      const std::string text = flag.text.substr(0, flag.text.rfind(" (MICA_ARG_"));
      CHECK(page.find(text, at) == at + head.size());
    }
  }
  const std::string page = plain(mica({"help", "--man"}).out);
  for (const std::string& verb : verbs_of_help()) CHECK(has(page, "mica-" + verb));
  CHECK(mica({"help", "--man", "rnu"}).code == 2);
}

TEST_CASE("the files of a package are written, and no page has a fault") {
  const TemporaryFolder folder;
  const Ran ran = mica({"help", "--files", folder.path("share")});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  for (const char* const name : {"mica.bash", "_mica", "mica.fish"})
    CHECK(std::filesystem::file_size(folder.path("share/completions/") + name) > 1000);
  CHECK(contents(folder.path("share/completions/_mica")) == mica({"completion", "zsh"}).out);
  std::size_t pages = 0;
  const bool has_mandoc = ProgramRun("/usr/bin/env", {"mandoc", "-T", "lint", "/dev/null"}).run().code < 100;
  if (!has_mandoc) skipped("faults of manual pages", "there is no mandoc");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("share/man/man1"))) {
    ++pages;
    if (!has_mandoc) continue;
    const Ran lint =
        ProgramRun("/usr/bin/env", {"mandoc", "-T", "lint", "-W", "warning", entry.path().string()}).run();
    CHECK_MESSAGE(lint.code == 0, (lint.out + lint.err));
  }
  CHECK(pages == verbs_of_help().size() + 1);
  if (ProgramRun("/usr/bin/env", {"man", "--version"}).run().code == 0) {
    const Ran shown = ProgramRun("/usr/bin/env", {"man", "-M", folder.path("share/man"), "mica-run"}).run();
    CHECK_MESSAGE(shown.code == 0, shown.err);
    CHECK(has(shown.out, "complete or answer once"));
  } else {
    skipped("manual pages by man -M", "there is no man");
  }
  CHECK(mica({"help", "--files"}).code == 2);
}

}  // namespace
}  // namespace mica::test::man_test

#endif
