// SPDX-License-Identifier: Apache-2.0
//
// Where a value comes from: flag before environment before file before default.

#include "program/program.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#ifdef MICA_PROGRAM

namespace mica::test::config_test {
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

/// What --print-config of a verb shows with a file test.toml.
Ran configured_by(const std::string& file, const std::string& verb = "complete") {
  const TemporaryFolder folder;
  return mica({verb, "--print-config", "--config", folder.file("test.toml", file)});
}

TEST_CASE("without anything, values are defaults") {
  Configured configured({"complete", "--print-config"}, "");
  CHECK(configured.line("top-k") == "top-k = \"40\" # default");
}

TEST_CASE("a configuration file sets values, for all verbs or for one") {
  Configured all({"complete", "--print-config"}, "top-k = 12\nunknown-here = 3\n");
  CHECK(all.line("top-k") == "top-k = \"12\" # file");
  Configured one({"complete", "--print-config"}, "[complete]\ntop-k = 13\n[bench]\nrepetitions = 2\n");
  CHECK(one.line("top-k") == "top-k = \"13\" # file");
  Configured short_names({"complete", "--print-config"}, "n = 7\nctk = q8_0\n");
  CHECK(short_names.line("predict") == "predict = \"7\" # file");
  CHECK(short_names.line("cache-type-k") == "cache-type-k = \"q8_0\" # file");
}

TEST_CASE("the environment wins over the file, and a flag over both") {
  Configured environment({"complete", "--print-config"}, "top-k = 12\n");
  environment.run.set("MICA_ARG_TOP_K", "21");
  CHECK(environment.line("top-k") == "top-k = \"21\" # environment");
  Configured flag({"complete", "--print-config", "--top-k", "33"}, "top-k = 12\n");
  flag.run.set("MICA_ARG_TOP_K", "21");
  CHECK(flag.line("top-k") == "top-k = \"33\" # flag");
}

TEST_CASE("a variable that no flag reads is noted with the one that is near") {
  ProgramRun run(MICA_PROGRAM, {"complete", "--print-config"});
  const Ran ran =
      run.set("MICA_ARG_TOPK", "3").set("MICA_ARG_REPETITIONS", "2").run();  // the second is of bench
  CHECK(ran.code == 0);
  CHECK(ran.err ==
        "mica: MICA_ARG_TOPK: no flag has this variable; it is ignored. Did you mean MICA_ARG_TOP_K?\n");
}

TEST_CASE("a value that makes no sense is refused wherever it stands, and the place is named") {
  ProgramRun run(MICA_PROGRAM, {"complete", "x.gguf"});
  const Ran variable = run.set("MICA_ARG_TOP_K", "many").run();
  CHECK(variable.code == 2);
  CHECK(has(variable.err, "mica complete: MICA_ARG_TOP_K needs a whole number from 0 on, found 'many'."));
  const Ran file = configured_by("# a comment\n\n[complete]\ntemp = \"hot\"\n");
  CHECK(file.code == 2);
  CHECK(has(file.err, "test.toml:4: temp needs a number from 0 to 10000, found 'hot'."));
  const Ran list = configured_by("top-k = [1, 2]\n");
  CHECK(list.code == 2);
  CHECK(has(list.err, "test.toml:1: top-k needs a whole number from 0 on, found 2 values."));
}

TEST_CASE("a name that no verb has is noted with its line and what is near, and the rest counts") {
  const Ran ran =
      configured_by("predct = 5\n[rnu]\ntop-k = 1\n[complete]\ntmep = 1\nmin-p = 0.25\n[bench]\nptch = 1\n");
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "test.toml:1: predct is no flag of any verb; ignored. Did you mean predict?"));
  CHECK(has(ran.err, "test.toml:2: [rnu] is no verb; ignored. Did you mean run?"));
  CHECK(has(ran.err, "test.toml:5: tmep is no flag of mica complete; ignored. Did you mean temp?"));
  CHECK(has(ran.err, "test.toml:8: ptch is no flag of mica bench; ignored."));
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 4);
  CHECK(line_of("\n" + ran.out, "min-p") == "min-p = \"0.25\" # file");
  const Ran other = configured_by("repetitions = 2\n[bench]\nn-depth = 3\n");  // of another verb
  CHECK(other.code == 0);
  CHECK(other.err.empty());
  for (const char* key : {"h", "help", "config", "print-config"})
    CHECK(has(configured_by(std::string(key) + " = true\n").err, "is no flag of any verb; ignored."));
}

TEST_CASE("a damaged line is refused with its number") {
  for (const std::string line :
       {"this is [not toml", "top-k", "top-k =", "= 3", "[complete", "[]", "[a.b]", "[complete] x",
        "top-k = 3 4", "prompt = \"open", "prompt = 'open", "prompt = \"a\" b", "prompt = \"\\q\"",
        "prompt = \"\\ud800\"", "reverse-prompt = [\"a\"", "reverse-prompt = [\"a\" \"b\"]",
        "reverse-prompt = [,]", "a b = 3", "x = {}"}) {
    CAPTURE(line);
    const Ran ran = configured_by("# first\n" + line + "\n");
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, "test.toml:2: '"));
    CHECK(has(ran.err, "' is neither NAME = VALUE nor [VERB]"));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  }
}

TEST_CASE("texts, words and lists of a file are read as TOML has them") {
  const Ran ran = configured_by(
      "system_prompt = \"a \\\"b\\\" \\n\\t\\\\ \\u00e4\\U0001F600 [c,d]\" # why\r\n"
      "chat-template-file = 'C:\\\\x'\nkv = paged # bare\ntemp=0.5\nconversation = false\n"
      "reverse-prompt = [ \"[a,b]\", 'c',\n  # between\n  d, ]\n",
      "run");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.err.empty());
  const auto line = [&](const char* key) { return line_of("\n" + ran.out, key); };
  CHECK(line("system-prompt") ==
        "system-prompt = \"a \\\"b\\\" \\n\\t\\\\ \xC3\xA4\xF0\x9F\x98\x80 [c,d]\" # file");
  CHECK(line("chat-template-file") == "chat-template-file = \"C:\\\\\\\\x\" # file");
  CHECK(line("kv") == "kv = \"paged\" # file");
  CHECK(line("temp") == "temp = \"0.5\" # file");
  CHECK(line("conversation") == "conversation = \"false\" # file");
  CHECK(line("reverse-prompt") == "reverse-prompt = [\"[a,b]\", \"c\", \"d\"] # file");
  CHECK(line_of("\n" + configured_by("n-prompt = [8, 16]\n", "bench").out, "n-prompt") ==
        "n-prompt = \"8,16\" # file");
}

TEST_CASE("a byte order mark before a file is no part of it") {
  const Ran ran = configured_by("\xEF\xBB\xBFtemp = 0.5\n", "run");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(line_of("\n" + ran.out, "temp") == "temp = \"0.5\" # file");
}

TEST_CASE("what --print-config shows is a configuration file with the same values") {
  const Words given = {
      "run",    "m.gguf", "--print-config",    "-r",     "[a,b]", "-r",  "\"q\"", "-p", "x\ny \\", "-n", "7",
      "--temp", "0.1",    "--no-conversation", "--json", "-ctk",  "q8_0"};
  const std::string first = mica(given).out;
  const TemporaryFolder folder;
  const Ran again = mica({"run", "--print-config", "--config", folder.file("shown.toml", first)});
  CHECK_MESSAGE(again.code == 0, again.err);
  CHECK(again.err.empty());
  const auto values = [](const std::string& text) {
    std::istringstream lines(text);
    std::string out;
    for (std::string line; std::getline(lines, line);) out += line.substr(0, line.rfind("# ")) + "\n";
    return out;
  };
  CHECK(values(again.out) == values(first));
}

TEST_CASE("a configuration file is a regular file of some size; others are refused at once") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string large = folder.file("large.toml", std::string((1 << 20) + 1, '\n'));
  const std::pair<std::string, const char*> cases[] = {{"/dev/zero", "regular file"},
                                                       {pipe, "regular file"},
                                                       {folder.path(""), "folder"},
                                                       {large, "1.0 MiB at most"},
                                                       {folder.path("none.toml"), "no such file"}};
  for (const auto& [path, why] : cases) {
    const auto& the_path = path;
    CAPTURE(the_path);
    const Ran ran = mica({"run", "--print-config", "--config", path});
    CHECK(ran.code == 3);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, path + ": "));
    CHECK(has(ran.err, why));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    if (!sanitized) CHECK(ran.peak_bytes < (std::uint64_t{200} << 20));
  }
  CHECK(mica({"run", "--print-config", "--config", folder.file("exact.toml", std::string(1 << 20, '\n'))})
            .code == 0);
}

}  // namespace
}  // namespace mica::test::config_test

#endif
