// SPDX-License-Identifier: Apache-2.0
//
// How the program ends: exit codes, one sentence of why, and which stream it is on.

#include "program/program.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#ifdef MICA_PROGRAM

namespace mica::test::exit_codes_test {
namespace {

std::string story_model() {
  const auto path = shared_dir("exit codes", "models/stories260K.gguf");
  return path ? path->string() : std::string();
}

/// The codes in the table of the page about the program, those of signals too.
std::set<int> documented_codes() {
  std::ifstream page(MICA_SOURCE "/docs/cli.md");
  std::set<int> codes;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## Exit codes";
    if (inside && line.starts_with("| ") && line[2] >= '0' && line[2] <= '9')
      codes.insert(std::stoi(line.substr(2)));
  }
  return codes;
}

TEST_CASE("each exit code of the page about the program is met, and with --json an error is an object too") {
  const std::string model = MICA_SOURCE "/examples/models/fairy.gguf";
  const TemporaryFolder folder;
  const std::string refusing = folder.file("refusing.jinja", "{{ raise_exception('no such role') }}");
  const std::string messages = folder.file("messages.json", "[{\"role\":\"user\",\"content\":\"hi\"}]");
  struct Case {
    int code;
    std::string type;
    Words words;
  };
  const Case cases[] = {
      {0, "", {"inspect", model}},
      {1, "failed", {"template", "--template-file", refusing, "--messages", messages}},
      {2, "usage", {"complete", model, "--temp", "abc"}},
      {2, "usage", {"rnu", model}},
      {2, "usage", {"detokenize", model}},
      {2, "usage", {"run", "--grammar", "g.gbnf"}},
      {3, "file", {"complete", folder.path("none.gguf"), "x"}},
      {3, "file", {"complete", model, "x", "--config", folder.path("none.toml")}},
      {4, "budget", {"complete", model, "x", "--memory", "1M"}},
      {5, "unsupported", {"complete", "http://localhost:1/model.gguf", "x"}},
      {6, "limit", {"complete", model, "Once upon a time there was a girl", "-c", "4"}},
  };
  std::set<int> met;
  for (const Case& each : cases) {
    CAPTURE(each.words[0]);
    CAPTURE(each.code);
    met.insert(each.code);
    CHECK(mica(each.words).code == each.code);
    for (const char* flag : {"--json", "--jsonl"}) {
      const Ran ran = mica(each.words + Words{flag});
      CHECK(ran.code == each.code);
      if (each.code == 0) continue;
      const std::string begin = "{\"error\":{\"code\":" + std::to_string(each.code) + ",\"type\":\"" +
                                each.type + "\",\"message\":\"";
      CHECK(ran.out.starts_with(begin));
      CHECK(ran.out.ends_with("\"}}\n"));
      CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 1);
      CHECK(has(ran.err, "mica"));
    }
  }
  std::set<int> documented = documented_codes();
  documented.erase(documented.upper_bound(128), documented.end());
  CHECK(met == documented);
}

TEST_CASE(
    "the page of recorded sessions has a command for each exit code, and mica's sentence for each error") {
  std::ifstream page(MICA_SOURCE "/docs/session.md");
  REQUIRE(page);
  constexpr std::string_view heading = "### Exit code ";
  std::set<int> recorded;
  int code = -1;
  bool ran = false, is_code = false, has_sentence = false;
  for (std::string line; std::getline(page, line);) {
    CAPTURE(line);
    if (line.starts_with("#")) code = line.starts_with(heading) ? std::stoi(line.substr(heading.size())) : -1;
    if (is_code && code >= 0) {
      CHECK(line == std::to_string(code));
      CHECK(ran);
      CHECK((has_sentence || code == 0 || code > 128));
      recorded.insert(code);
    }
    is_code = line == "$ echo $?";
    if (line.starts_with("$ mica ")) {
      ran = true;
      has_sentence = false;
    }
    has_sentence = has_sentence || line.starts_with("mica: ") || line.starts_with("mica run: ");
  }
  CHECK(recorded == documented_codes());
}

TEST_CASE("bench answers a wrong use in the form that -o asks for, and knows --json as that form") {
  for (const Words& words :
       {Words{"bench", "-o", "json", "-p", "abc"}, Words{"bench", "-o", "jsonl", "--zzz"}}) {
    const Ran ran = mica(words);
    CHECK(ran.code == 2);
    CHECK(ran.out.starts_with("{\"error\":{\"code\":2,"));
  }
  CHECK(mica({"bench", "--json", "-p", "8", "-n", "0", "-r", "1"}).out.starts_with("["));
}

TEST_CASE("with --json there is one object on stdout: an error after the answer adds none") {
  const Ran ran = mica({"fit", "llama-8b", "--ram", "300M", "--json"});
  CHECK(ran.code == 4);
  CHECK(ran.out.starts_with("{"));
  CHECK(ran.out.find("\"error\"") == std::string::npos);
  CHECK(has(ran.err, "mica: "));
}

TEST_CASE("an error without --json leaves stdout empty, and text behind -- asks for nothing") {
  CHECK(mica({"complete", "none.gguf", "x"}).out.empty());
  CHECK(mica({"complete", "none.gguf", "--", "--json"}).out.empty());
  CHECK(has(mica({"bench", "none.gguf", "-o", "json"}).out, "{\"error\":{\"code\":3,\"type\":\"file\""));
  ProgramRun variable(MICA_PROGRAM, {"complete", "none.gguf", "x"});
  CHECK(has(variable.set("MICA_ARG_JSON", "true").run().out, "{\"error\":{\"code\":3"));
}

TEST_CASE("help and version go to stdout and end with 0") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"help"}, {"--version"}, {"help", "run"}, {"bench", "--help"}}) {
    const Ran ran = mica(words);
    CHECK(ran.code == 0);
    CHECK(!ran.out.empty());
    CHECK(ran.err.empty());
  }
  CHECK(has(mica({"help", "complete"}).out, "MICA_ARG_TOP_K"));
}

TEST_CASE("usage errors end with 2, on stderr alone, with a suggestion where one is near") {
  const Ran verb = mica({"perplexiti"});
  CHECK(verb.code == 2);
  CHECK(verb.out.empty());
  CHECK(has(verb.err, "Did you mean perplexity?"));
  const Ran flag = mica({"complete", "x.gguf", "--temprature", "0"});
  CHECK(flag.code == 2);
  CHECK(has(flag.err, "Did you mean --temperature?"));
  CHECK(mica({"complete", "x.gguf", "--top-k", "many"}).code == 2);
  CHECK(mica({"complete", "x.gguf", "word", "--prompt", "twice"}).code == 2);
  for (const char* how : {"oracle", "ngram:", "ngram:x", "ngram:3,", "ngram:3,4,5", "ngram,4", "ngram:0",
                          "ngram:3,99", "mtp:", "mtp:0", "mtp:65", "mtp3"}) {
    const Ran ran = mica({"complete", "x.gguf", "--speculate", how});
    CAPTURE(how);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "--speculate"));
  }
}

TEST_CASE("a file without a head for multi-token prediction is refused by its key") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Ran ran = mica({"complete", model, "x", "--speculate", "mtp"});
  CHECK(ran.code != 0);
  CHECK(has(ran.err, "nextn_predict_layers"));
}

TEST_CASE("a missing file ends with 3 and the nearest name") {
  const Ran ran = mica({"complete", "nowhere/q.gguf", "x"});
  CHECK(ran.code == 3);
  CHECK(has(ran.err, "no such file"));
  TemporaryFolder folder;
  folder.file("models-q4.gguf", "x");
  CHECK(has(mica({"inspect", folder.path("models-q5.gguf")}).err, "models-q4.gguf"));
}

TEST_CASE("a file that is no model ends with 3") {
  TemporaryFolder folder;
  const Ran ran = mica({"inspect", folder.file("text.gguf", "Once upon a time there was no magic at all.")});
  CHECK(ran.code == 3);
  CHECK(has(ran.err, "text.gguf"));
}

TEST_CASE("what does not fit the budget ends with 4 and says what would fit") {
  const std::string model = story_model();
  if (model.empty()) return;
  const auto complete = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"complete", model, "x", "-n", "1", "-t", "1", "--memory", "12872K"};
    words.insert(words.end(), more.begin(), more.end());
    return mica(words);
  };
  const auto fixed = [&](const std::string& n_ctx) {
    return complete({"-c", n_ctx, "-ctk", "f16", "--weights", "resident"});
  };
  const Ran ran = fixed("512");
  CHECK(ran.code == 4);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "needs "));
  CHECK(has(ran.err, ", budget 12.6 MiB (weights "));
  REQUIRE(has(ran.err, "Fits with -c "));
  const std::string n = ran.err.substr(ran.err.find("-c ") + 3);
  CHECK(fixed(n.substr(0, n.find_first_not_of("0123456789"))).code == 0);
  const Ran gave_way = complete({});  // what nobody asked for gives way
  CHECK(gave_way.code == 0);
  CHECK(has(gave_way.err, "mica: to fit 12.6 MiB: "));
  CHECK(mica({"plan", model, "--memory", "12072K"}).code == 4);
  CHECK(mica({"plan", model, "--memory", "1G"}).code == 0);
  CHECK(has(mica({"plan", model, "--memory", "1M"}).err, "The minimum is --memory "));
}

TEST_CASE("the line of what changes to fit leaves out a context that stays") {
  const Ran ran =
      mica({"complete", MICA_SOURCE "/examples/models/fairy.gguf", "x", "-n", "1", "--memory", "17MiB"});
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "mica: to fit 17.0 MiB: weights streamed ("), ran.err);
}

TEST_CASE("an architecture that is not here ends with 5 and names those that are") {
  const auto model = shared_dir("unsupported architectures", "conformance/tokenizer/llama-spm.gguf");
  if (!model) return;
  std::ifstream in(*model, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t at = bytes.find("llama", bytes.find("general.architecture"));
  REQUIRE(at != std::string::npos);
  bytes.replace(at, 5, "mamba");
  const TemporaryFolder folder;
  const std::string file = folder.file("other.gguf", bytes);
  const Ran ran = mica({"complete", file, "x"});
  CHECK(ran.code == 5);
  CHECK(has(ran.err, "mamba"));
  CHECK(has(ran.err, "llama"));
  CHECK(mica({"inspect", file}).code == 0);
}

TEST_CASE("a prompt longer than the context ends with 6") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Ran ran = mica({"complete", model, "Once upon a time there was a girl", "-c", "4"});
  CHECK(ran.code == 6);
  CHECK(has(ran.err, "use -c 16, which takes"));
}

TEST_CASE("an endless template ends with 6 and a sentence") {
  const auto model = shared_dir("endless templates", "hostile/template_endless.gguf");
  if (!model) return;
  const Ran ran = mica({"run", model->string(), "hi", "-n", "4"});
  CHECK(ran.code == 6);
  CHECK(has(ran.err, "chat template"));
}

TEST_CASE("flags of other tools that make no sense here are ignored with a line") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Ran ran = mica({"complete", model, "Once", "-n", "2", "-ngl", "99", "-fa", "on", "--temp", "0"});
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "-ngl ignored"));
  CHECK(has(ran.err, "-fa ignored"));
  CHECK(mica({"complete", model, "Once", "-n", "2", "-ngl", "99", "-q"}).err.empty());
}

TEST_CASE("stdout has the answer alone, stderr the timings") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Ran ran = mica({"complete", model, "Once upon", "-n", "4", "--temp", "0"});
  CHECK(ran.out == " a time, there\n");
  CHECK(has(ran.err, "t/s"));
  CHECK(ran.err.find('\x1b') == std::string::npos);
  CHECK(mica({"complete", model, "-n", "4", "--temp", "0", "-q", "-f", "-"}, "Once upon").out ==
        " a time, there\n");
  CHECK(mica({"run", model, "-n", "4", "--temp", "0", "-q"}, "Once upon").out == " a time, there\n");
  CHECK(mica({"complete", model, "-n", "4", "--temp", "0", "-q"}, "Once upon").out == " a time, there\n");
}

TEST_CASE("without a model the bundled one tells a story, and a program without one says so") {
  const bool bundled = mica({"doctor"}).out.find("bundled_model_bytes   0 B") == std::string::npos;
  const Ran ran = mica({"run", "-q", "-n", "12", "--temp", "0"});
  CHECK(ran.code == (bundled ? 0 : 2));
  CHECK(ran.out.starts_with(bundled ? "Once upon a time" : ""));
  CHECK((ran.err.empty() == bundled));
  if (bundled) CHECK(ran.out.size() > std::string_view("Once upon a time\n").size());
}

TEST_CASE("notes are dim on a terminal that can, or when asked, and plain otherwise") {
  const std::string model = story_model();
  if (model.empty()) return;
  const auto notes = [&](std::vector<std::string> more, const char* variable) {
    std::vector<std::string> words = {"complete", model, "Once", "-n", "2"};
    words.insert(words.end(), more.begin(), more.end());
    ProgramRun run(MICA_PROGRAM, words);
    run.set(variable, "1");
    return run.run();
  };
  const auto colored = [](const Ran& ran) { return ran.err.find('\x1b') != std::string::npos; };
  CHECK(colored(notes({"--color", "always"}, "NO_COLOR")));
  CHECK(colored(notes({}, "CLICOLOR_FORCE")));
  CHECK(!colored(notes({"--color", "never"}, "CLICOLOR_FORCE")));
  CHECK(!colored(notes({}, "NO_COLOR")));
  CHECK(notes({"--color", "always"}, "NO_COLOR").out.find('\x1b') == std::string::npos);
}

TEST_CASE("an interrupt ends a run with 130 and what was printed so far") {
  const std::string model = story_model();
  if (model.empty()) return;
  const Ran ran =
      ProgramRun(MICA_PROGRAM, {"complete", model, "", "-n", "400000", "-c", "400000", "--ignore-eos"})
          .signal_after_output(SIGINT)
          .run();
  CHECK(ran.code == 130);
  CHECK(!ran.out.empty());
  CHECK(has(ran.err, "t/s"));
}

TEST_CASE("a reader that leaves early is no error") {
  const std::string model = story_model();
  if (model.empty()) return;
  const std::string command =
      std::string(MICA_PROGRAM) + " complete " + model + " '' -n 100 -q 2>&1 | head -c 3";
  std::string out;
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  ::pclose(pipe);
  CHECK(out.size() == 3);
}

}  // namespace
}  // namespace mica::test::exit_codes_test

#endif
