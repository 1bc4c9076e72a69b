// SPDX-License-Identifier: Apache-2.0
//
// Where a value comes from: flag before environment before file before default.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

namespace mica::test {
namespace {

/// The line of --print-config about an option, blanks squeezed.
std::string line_of(const std::string& text, const std::string& option) {
  const std::size_t at = text.find("\n" + option + " = ");
  if (at == std::string::npos) return {};
  std::string out;
  for (const char c : text.substr(at + 1, text.find('\n', at + 1) - at - 1)) {
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  }
  return out;
}

struct Configured {
  ProgramRun run;

  Configured(std::vector<std::string> words, std::string_view file) : run(MICA_PROGRAM, std::move(words)) {
    std::filesystem::create_directories(run.folder().path("config/mica"));
    run.folder().file("config/mica/config.toml", file);
    run.set("XDG_CONFIG_HOME", run.folder().path("config"));
  }
  std::string line(const std::string& option) {
    const Ran ran = run.run();
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return line_of("\n" + ran.out, option);
  }
};

TEST_CASE("without anything, values are defaults") {
  Configured configured({"complete", "--print-config"}, "");
  CHECK(configured.line("top-k") == "top-k = \"40\" # default");
}

TEST_CASE("a configuration file sets values, for all verbs or for one") {
  Configured all({"complete", "--print-config"}, "top-k = 12\nunknown-here = 3\n");
  CHECK(all.line("top-k") == "top-k = \"12\" # file");
  Configured one({"complete", "--print-config"}, "[complete]\ntop-k = 13\n[bench]\nrepetitions = 2\n");
  CHECK(one.line("top-k") == "top-k = \"13\" # file");
}

TEST_CASE("the environment wins over the file, and a flag over both") {
  Configured environment({"complete", "--print-config"}, "top-k = 12\n");
  environment.run.set("MICA_ARG_TOP_K", "21");
  CHECK(environment.line("top-k") == "top-k = \"21\" # environment");
  Configured flag({"complete", "--print-config", "--top-k", "33"}, "top-k = 12\n");
  flag.run.set("MICA_ARG_TOP_K", "21");
  CHECK(flag.line("top-k") == "top-k = \"33\" # flag");
}

TEST_CASE("a value that makes no sense is refused wherever it stands") {
  ProgramRun run(MICA_PROGRAM, {"complete", "x.gguf"});
  CHECK(run.set("MICA_ARG_TOP_K", "many").run().code == 2);
}

}  // namespace
}  // namespace mica::test

#endif
