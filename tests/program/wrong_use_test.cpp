// SPDX-License-Identifier: Apache-2.0
//
// A wrong command line is answered by exit code 2 and one sentence of this program: what it is, what is
// needed, what is near.

#include "program/help_page.hpp"

#include <map>
#include <set>
#include <utility>

#ifdef MICA_PROGRAM

namespace mica::test::wrong_use_test {
namespace {

/// Whether a run ended as a wrong use does: code 2, nothing on stdout, one line on stderr that the program
/// begins.
bool refused(const Ran& ran) {
  const bool one_line = ran.err.size() > 1 && ran.err.find('\n') == ran.err.size() - 1;
  const bool ours = ran.err.starts_with("mica: ") || ran.err.starts_with("mica ");
  const bool clean =
      ran.err.find("exception") == std::string::npos && ran.err.find("std::") == std::string::npos;
  const bool right = ran.code == 2 && ran.out.empty() && one_line && ours && clean;
  if (!right) MESSAGE(ran.code << ": " << ran.out << ran.err);
  return right;
}

/// Values that a type cannot have; none for those that are any text.
std::vector<std::string> wrong_values(const HelpFlag& flag) {
  if (flag.type.empty()) return {"maybe", ""};  // behind a sign
  if (flag.type == "N")
    return {"abc", "", "1.5", " 1", "1x", "99999999999999999999999", "-99999999999999999999999"};
  if (flag.type == "X") return {"abc", "", "nan", "inf", "0,5", "1e999"};
  if (flag.type == "LIST" && flag.key() != "ids" && flag.key() != "positions")
    return {"abc", "1,,2", "1,-2", ""};
  static const std::set<std::string> named = {"WHEN", "WHAT", "FORMAT", "LIMIT", "HOW"};
  if (named.contains(flag.type)) return {"pagd-and-more"};
  static const std::set<std::string> keys = {"kv",     "kernels",       "weights",      "use",
                                             "level",  "chat-template", "cache-type-k", "cache-type-v",
                                             "memory", "keep-free"};
  if (keys.contains(flag.key())) return {"pagd-and-more", ""};
  return {};
}

/// One flag of each text, with a verb that has it: verbs share declarations.
std::vector<std::pair<std::string, HelpFlag>> distinct_flags() {
  std::map<std::string, std::pair<std::string, HelpFlag>> found;
  for (const std::string& verb : verbs_of_help()) {
    for (const HelpFlag& flag : flags_of_help(verb)) found.try_emplace(flag.key() + flag.text, verb, flag);
  }
  std::vector<std::pair<std::string, HelpFlag>> flags;
  for (auto& [text, flag] : found) flags.push_back(std::move(flag));
  return flags;
}

TEST_CASE("a wrong value of any flag is refused in one sentence that names the flag") {
  std::size_t tried = 0;
  for (const auto& [verb, flag] : distinct_flags()) {
    for (const std::string& value : wrong_values(flag)) {
      for (const std::string& name : {flag.names.front(), flag.names.back()}) {
        const auto& the_verb = verb;
        CAPTURE(the_verb);
        CAPTURE(name);
        CAPTURE(value);
        const Ran ran = mica({verb, name + "=" + value});
        CHECK(refused(ran));
        CHECK(has(ran.err, "mica " + verb + ": " + name));
        CHECK(has(ran.err, "See mica " + verb + " --help."));
        if (flag.names.size() == 1) break;
        ++tried;
      }
    }
  }
  CHECK(tried > 100);
}

TEST_CASE("a flag without the value that it needs is refused in one sentence") {
  for (const auto& [verb, flag] : distinct_flags()) {
    if (flag.type.empty()) continue;
    const auto& the_verb = verb;
    CAPTURE(the_verb);
    const auto& the_flag = flag;
    CAPTURE(the_flag.key());
    const Ran ran = mica({verb, flag.names.back()});
    CHECK(refused(ran));
    CHECK(has(ran.err, "nothing follows it"));
  }
}

TEST_CASE("values out of range name what is allowed") {
  const std::pair<Words, const char*> cases[] = {
      {{"run", "--temp", "abc"}, "mica run: --temp needs a number from 0 to 10000, found 'abc'."},
      {{"run", "--temp", "-1"}, "--temp needs a number from 0 to 10000, found '-1'."},
      {{"run", "-c", "-5"}, "-c needs a whole number from 0 to 16777216, found '-5'."},
      {{"run", "-n", "abc"}, "-n needs a whole number from 0 on, or -1 for no maximum, found 'abc'."},
      {{"run", "-t", "-2"}, "-t needs a whole number from 1 to 1024, or 0 or -1 for the machine's own"},
      {{"run", "--top-p", "1.5"}, "--top-p needs a number from 0 to 1, found '1.5'."},
      {{"run", "--top-k", "-1"}, "--top-k needs a whole number from 0 on, found '-1'."},
      {{"run", "--chunk", "0"}, "--chunk needs a whole number from 1 to 65536, found '0'."},
      {{"run", "--draft-max", "65"}, "--draft-max needs a whole number from 1 to 64, found '65'."},
      {{"bench", "-r", "0"}, "-r needs a whole number from 1 to 1000, found '0'."},
      {{"bench", "-p", "8,-1"}, "-p needs numbers with commas between them"},
      {{"run", "--temp", "--top-k", "5"}, "--temp needs a number from 0 to 10000, found '--top-k'."},
      {{"run", "--model"}, "--model needs a FILE, and nothing follows it."},
      {{"run", "--model", "--temp", "1"}, "--model needs a FILE, found the flag --temp"},
      {{"run", "--json=perhaps"}, "--json needs true or false, found 'perhaps'."},
      {{"bench", "x.gguf", "-o", "xml"}, "-o needs one of md csv json jsonl, found 'xml'."},
      {{"run", "--color", "xyz"}, "--color needs one of auto always on never off, found 'xyz'."}};
  for (const auto& [words, sentence] : cases) {
    const auto& the_sentence = sentence;
    CAPTURE(std::string(the_sentence));
    const Ran ran = mica(words);
    CHECK(refused(ran));
    CHECK(has(ran.err, sentence));
  }
}

TEST_CASE("a slip of the hand is answered with the name that is near") {
  const std::pair<Words, const char*> cases[] = {
      {{"rnu"}, "Did you mean run?"},
      {{"hepl"}, "Did you mean help?"},
      {{"help", "chta"}, "Did you mean chat?"},
      {{"run", "--tmep", "0"}, "Did you mean --temp?"},
      {{"run", "-tmep", "0"}, "Did you mean --temp?"},
      {{"run", "-prompt", "x"}, "Did you mean --prompt?"},
      {{"inspect", "--tnsors"}, "Did you mean --tensors?"},
      {{"run", "--kv", "pagd"}, "Did you mean paged?"},
      {{"run", "--weights", "maped"}, "Did you mean mapped?"},
      {{"run", "--cache-type-k", "q8"}, "Did you mean q8_0?"},
      {{"run", "-ctv", "f61"}, "Did you mean f16?"},
      {{"run", "--chat-template", "chatlm"}, "Did you mean chatml?"},
      {{"run", "--evict", "sink"}, "Did you mean sinks?"},
      {{"run", "--kernels", "fats8"}, "Did you mean fast8?"},
      {{"run", "--governor", "offf"}, "Did you mean off?"},
      {{"run", "--on-full", "shfit"}, "Did you mean shift?"},
      {{"doctor", "--color", "nevr"}, "Did you mean never?"},
      {{"bench", "-o", "jsnol"}, "Did you mean jsonl?"},
      {{"fit", "--use", "codign"}, "Did you mean coding?"},
      {{"fit", "--level", "prefect"}, "Did you mean perfect?"},
      {{"run", bundled_file(), "--targets", "SCALRA"}, "--targets SCALRA"},
      {{"quantize", bundled_file(), "COPY", "--dry-run", "--output-tensor-type", "Q8_00"},
       "Did you mean Q8_0?"},
      {{"quantize", bundled_file(), "out.gguf", "Q4_K_MM"},
       "unknown type 'Q4_K_MM'. Did you mean Q4_K_M? Known: "},
      {{"synth", "lama-8b", "Q4_0", "out.gguf"}, "unknown shape 'lama-8b'. Did you mean llama-8b? Known: "}};
  for (const auto& [words, near] : cases) {
    const auto& the_near = near;
    CAPTURE(std::string(the_near));
    const Ran ran = mica(words);
    CHECK(refused(ran));
    CHECK(has(ran.err, near));
  }
  const Ran targets = mica({"doctor", "--json"});
  const std::size_t at = targets.out.find("AVX2");
  if (at != std::string::npos)
    CHECK(has(mica({"run", bundled_file(), "x", "--targets", "AXV2"}).err, "Did you mean AVX2?"));
}

TEST_CASE("missing words and words too many are refused in one sentence") {
  for (const Words& words : {Words{"quantize"},
                             {"quantize", "a.gguf"},
                             {"quantize", "a.gguf", "b.gguf"},
                             {"quantize", "a", "b", "Q4_0", "2", "more"},
                             {"convert"},
                             {"convert", "dir"},
                             {"convert", "dir", "out", "F16", "more"},
                             {"pack"},
                             {"pack", "a.gguf"},
                             {"pack", "a.gguf", "dir", "more"},
                             {"synth"},
                             {"synth", "llama-8b"},
                             {"synth", "llama-8b", "Q4_0", "out", "more"},
                             {"template"},
                             {"logits"},
                             {"detokenize"},
                             {"detokenize", bundled_file()},
                             {"detokenize", "--ids", "1", "m", "2"},
                             {"plan", "a.gguf", "more"},
                             {"inspect", "a.gguf", "more"},
                             {"doctor", "a.gguf", "more"},
                             {"bench", "a.gguf", "more"},
                             {"logits", "a.gguf", "more"},
                             {"template", "a.gguf", "x"},
                             {"complete", "a.gguf", "word", "--prompt", "twice"},
                             {"run", "a.gguf", "--draft", "b", "--speculate", "ngram"}}) {
    std::string line;
    for (const std::string& word : words) line += word + " ";
    CAPTURE(line);
    CHECK(refused(mica(words)));
  }
  for (const std::string& verb : verbs_of_help()) {
    CAPTURE(verb);
    CHECK(refused(mica({verb, "--no-such-flag"})));
    CHECK(refused(mica({verb, "- a text that begins with a dash"})));
  }
}

TEST_CASE("no verb writes to a file that it reads, under any name") {
  const TemporaryFolder folder;
  const std::string model = folder.path("m.gguf"), link = folder.path("link"),
                    text = folder.file("t.txt", "a b c d");
  std::filesystem::copy_file(bundled_file(), model);
  std::filesystem::create_symlink(model, link);
  const std::string before = contents(model);
  const Words windows = {"-f", text, "-c", "16", "--chunks", "1"};
  for (const Words& words : {Words{"plan", model, "--svg", model},
                             {"logits", model, "--ids", "1", "-o", link},
                             Words{"imatrix", model, "-o", model} + windows,
                             Words{"imatrix", model, "-o", text} + windows,
                             Words{"perplexity", model, "--kl-divergence-base", model} + windows,
                             {"quantize", model, link, "COPY"},
                             {"convert", folder.path(""), model}}) {
    CAPTURE(words.front());
    const Ran ran = mica(words);
    CHECK(refused(ran));
    CHECK(has(ran.err, "choose another output name"));
  }
  CHECK(contents(model) == before);
  CHECK(contents(text) == "a b c d");
}

TEST_CASE("an empty value is no file, size or name") {
  for (const Words& words : {Words{"complete", "", "x"},
                             {"run", "x", "--session", ""},
                             {"run", "x", "--draft", ""},
                             {"run", "x", "--memory", ""},
                             {"plan", bundled_file(), "--svg", ""},
                             {"fit", "--ram", ""}}) {
    CAPTURE(words.back());
    const Ran ran = mica(words);
    CHECK(refused(ran));
    CHECK(has(ran.err, ", found ''."));
  }
}

TEST_CASE("what is written to /dev/stdout reaches a pipe, and is added to a file") {
  if (!std::filesystem::exists("/dev/stdout")) return skipped("/dev/stdout", "this system has none");
  const TemporaryFolder folder;
  const std::string file = folder.file("out", "before\n");
  const std::string plan = join(MICA_PROGRAM, " plan ", bundled_file(), " --svg /dev/stdout");
  const Ran piped = ProgramRun("/bin/sh", {"-c", plan + " | cat"}).run();
  CHECK(has(piped.out, "<svg"));
  CHECK(has(piped.out, "peak"));
  CHECK(ProgramRun("/bin/sh", {"-c", join(plan, " >> '", file, "'")}).run().code == 0);
  const std::string text = contents(file);
  CHECK(text.starts_with("before\n"));
  CHECK(has(text, "<svg"));
  CHECK(has(text, "peak"));
}

TEST_CASE("a file that does not know its size is read to its end") {
  if (!std::filesystem::exists("/proc/version")) return skipped("files of /proc", "this system has none");
  const Ran ran = mica({"tokenize", bundled_file(), "--text-file", "/proc/version"});
  CHECK(ran.code == 0);
  CHECK(!ran.out.empty());
}

TEST_CASE("ids are words, a flag or a file") {
  const Ran flag = mica({"detokenize", bundled_file(), "--ids", "2023,1958,1974"});
  CHECK(flag.code == 0);
  CHECK(!flag.out.empty());
  CHECK(mica({"detokenize", bundled_file(), "2023", "1958", "1974"}).out == flag.out);
  CHECK(mica({"detokenize", bundled_file(), "2023,1958", "1974"}).out == flag.out);
  CHECK(mica({"detokenize", bundled_file(), "fifteen"}).code == 2);
  CHECK(has(mica({"detokenize", bundled_file(), "1,fifteen,3"}).err, "ids: 'fifteen' is not a token id"));
}

TEST_CASE("more threads than cores are warned of, and -1 is the machine's own number") {
  const Ran many = mica({"plan", bundled_file(), "-t", "999"});
  CHECK(many.code == 0);
  CHECK(has(many.err, "999 threads share "));
  CHECK(mica({"plan", bundled_file(), "-t", "999", "-q"}).err.empty());
  CHECK(mica({"plan", bundled_file(), "-t", "1"}).err.empty());
  const Ran minus = mica({"plan", bundled_file(), "-t", "-1", "--memory", "1GiB"});
  CHECK(minus.out == mica({"plan", bundled_file(), "-t", "0", "--memory", "1GiB"}).out);
}

TEST_CASE("a model or flags without a verb run the model") {
  const Words rest = {"-n", "4", "--temp", "0", "-q"};
  const Ran run = mica(Words{"run", bundled_file(), "Once upon"} + rest);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(mica(Words{bundled_file(), "Once", "upon"} + rest).out == run.out);
  CHECK(mica(Words{"-m", bundled_file(), "-p", "Once upon"} + rest).out == run.out);
  CHECK(mica(Words{"run", "Once upon", "-m", bundled_file()} + rest).out == run.out);
  CHECK(has(mica({"-m", bundled_file(), "--tmep", "0"}).err, "mica run: unknown flag --tmep."));
}

TEST_CASE("a model that is no file is answered with how to get one") {
  const Ran named = mica({"run", "llama3.2", "hi"});
  CHECK(named.code == 3);
  CHECK(has(named.err, "hf.co/ORG/REPO"));
  CHECK(has(named.err, "mica convert"));
  const TemporaryFolder folder;
  folder.file("config.json", "{}");
  folder.file("model.safetensors", "x");
  const Ran converted = mica({"run", folder.path(""), "hi"});
  CHECK(converted.code == 3);
  CHECK(has(converted.err, "mica convert " + folder.path("") + " OUT.gguf"));
}

TEST_CASE("JSON that is none is answered with its line and column") {
  const TemporaryFolder folder;
  const std::string file = folder.file("bad.json", "[\n {\"role\": \"user\",\n  \"content\": oops}\n]\n");
  const Ran ran = mica({"template", bundled_file(), "--messages", file});
  CHECK(refused(ran));
  CHECK(has(ran.err, "bad.json: is not JSON: something is wrong at line 3, column 14"));
}

}  // namespace
}  // namespace mica::test::wrong_use_test

#endif
