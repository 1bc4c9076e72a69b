// SPDX-License-Identifier: Apache-2.0
//
// tokenize, detokenize and template against the conformance kit, and chat on a pipe.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

#include <sstream>

namespace mica::test::text_test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string request(const Json& one, const char* flag) {
  Json line;
  line[one.contains("text") ? "text" : "b64"] = one.contains("text") ? one["text"] : one["b64"];
  if (*flag != '\0') line[flag] = true;
  return line.dump() + "\n";
}

/// A vocabulary of the kit, unpacked into the folder where it is packed; empty when it cannot be had.
std::string vocabulary_file(const std::string& name, const std::string& path, const TemporaryFolder& folder) {
  const auto root = shared_dir(name, "conformance");
  if (!root || std::filesystem::exists(*root / path)) return root ? (*root / path).string() : "";
  const std::string unpacked = folder.path("vocabulary.gguf");
  const std::string command = "xz -dc '" + (*root / path).string() + ".xz' > '" + unpacked + "'";
  if (std::system(command.c_str()) == 0) return unpacked;
  skipped(name, "xz cannot unpack " + path + ".xz");
  return "";
}

void check_vocabulary(const std::string& name) {
  CAPTURE(name);
  const auto path = shared_dir("cases of " + name, "conformance/tokenizer/" + name + ".cases.json");
  if (!path) return;
  const Json kit = Json::parse(contents(path->string()));
  const TemporaryFolder folder;
  const std::string vocab = kit["vocab"];  // a model, or the name of a vocabulary alone
  const std::string inside = vocab.ends_with(".gguf") ? vocab : "tokenizer/" + vocab + ".gguf";
  const std::string file = vocabulary_file(name, inside, folder);
  if (file.empty()) return;
  std::string input;
  for (const Json& one : kit["cases"])
    input += request(one, "") + request(one, "add_special") + request(one, "parse_special");
  const Ran ran = mica({"tokenize", file, "--jsonl"}, input);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const auto lines = lines_of(ran.out);
  REQUIRE(lines.size() == 3 * kit["cases"].size());
  for (std::size_t i = 0; i < kit["cases"].size(); ++i) {
    const Json& one = kit["cases"][i];
    CAPTURE(one.dump());
    CHECK(Json::parse(lines[3 * i])["ids"] == one["ids"]);
    CHECK(Json::parse(lines[3 * i + 1])["ids"] == one.value("ids_add", one["ids"]));
    const Json parsed = Json::parse(lines[3 * i + 2]);
    CHECK(parsed["ids"] == one.value("ids_parse", one["ids"]));
    if (one.contains("pieces")) CHECK(parsed["pieces"] == one["pieces"]);
  }
}

TEST_CASE("lines of JSON are tokenized as the kit says, with every vocabulary") {
  for (const std::string name :
       {"gemma2", "gpt-oss", "llama-mha-spm", "llama3-gqa", "llama4", "phi3", "qwen3"})
    check_vocabulary("tiny-" + name);
  for (const char* const name : {"deepseek-coder", "deepseek-llm", "falcon", "gemma2", "gemma3", "gpt-2",
                                 "llama-bpe", "llama-spm", "phi-3", "qwen2", "starcoder"})
    check_vocabulary(name);
}

TEST_CASE("one text gives ids and pieces, and detokenize gives the text back") {
  const auto model = shared_dir("tokenize", "models/stories260K.gguf");
  if (!model) return;
  const Json json =
      Json::parse(mica({"tokenize", model->string(), "Once upon", "--add-special", "--json"}).out);
  CHECK(json["ids"] == Json({1, 403, 407}));
  CHECK(json["pieces"] == Json({"<s>", " Once", " upon"}));
  CHECK(mica({"detokenize", model->string(), "--ids", "1,403,407"}).out == "Once upon");
  const Json bytes = Json::parse(mica({"tokenize", model->string(), "--jsonl"}, "{\"b64\":\"//8=\"}\n").out);
  CHECK(bytes["pieces"].back() == Json({{"b64", "/w=="}}));
  CHECK(mica({"tokenize", model->string(), "--jsonl"}, "{\"text\":\n").code == 2);
  CHECK(mica({"detokenize", model->string(), "--ids", "1,99999"}).code == 2);
}

TEST_CASE("a vocabulary without tensors is enough to tokenize") {
  const auto file = shared_dir("vocabularies alone", "conformance/tokenizer/llama-spm.gguf");
  if (!file) return;
  CHECK(Json::parse(mica({"tokenize", file->string(), "Hello", "--json"}).out)["ids"].size() == 1);
  CHECK(has(mica({"inspect", file->string()}).out, "a vocabulary alone"));
}

/// The first cases of a template, rendered by the program. Counts those that are equal.
void check_template(const std::string& name, std::size_t max) {
  const auto path = shared_dir("template " + name, "conformance/chat/" + name + ".json");
  if (!path) return;
  const Json kit = Json::parse(contents(path->string()));
  TemporaryFolder folder;
  const std::string source = folder.file("template", kit["template"].get<std::string>());
  const auto text = [&](const char* key) {
    return kit[key].is_string() ? kit[key].get<std::string>() : std::string();
  };
  for (std::size_t i = 0; i < std::min(max, kit["cases"].size()); ++i) {
    const Json& one = kit["cases"][i];
    std::vector<std::string> words = {"template",
                                      "--template-file",
                                      source,
                                      "--messages",
                                      folder.file("messages", one["messages"].dump()),
                                      "--bos",
                                      text("bos_token"),
                                      "--eos",
                                      text("eos_token"),
                                      "--now",
                                      text("now")};
    if (!one["tools"].is_null())
      words.insert(words.end(), {"--tools", folder.file("tools", one["tools"].dump())});
    if (!one["add_generation_prompt"].get<bool>()) words.emplace_back("--no-generation-prompt");
    for (const auto& [key, value] : one["kwargs"].items())
      words.insert(words.end(), {"--set", key + "=" + value.dump()});
    const Ran ran = mica(words);
    CAPTURE(name);
    CAPTURE(one["name"].get<std::string>());
    if (one.contains("error")) {
      CHECK(ran.code == 1);
    } else {
      CHECK(ran.out == one["rendered"].get<std::string>());
    }
  }
}

TEST_CASE("templates render as their authors' tools render them") {
  for (const char* const name :
       {"deepseek-r1-distill", "deepseek-v3.1", "gemma2", "gemma3", "gemma4", "gpt-oss", "llama-3.1",
        "llama-3.2", "mistral-nemo", "phi-3.5", "qwen2.5", "qwen3", "qwen3.5", "smollm3"})
    check_template(name, 8);
}

TEST_CASE("a template's own refusal ends with 1 and its words") {
  TemporaryFolder folder;
  const std::string source = folder.file("t", "{{ raise_exception('no such role') }}");
  const Ran ran = mica({"template", "--template-file", source, "--messages", folder.file("m", "[]")});
  CHECK(ran.code == 1);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "no such role"));
}

std::string chat_file() {
  const auto model = shared_dir("chat", "models/stories260K.gguf");
  return model ? model->string() : std::string();
}

TEST_CASE("JSON with a number that no double holds is refused by name and key") {
  TemporaryFolder folder;
  const std::string source = folder.file("t", "{{ messages }}"), good = folder.file("m", "[]");
  const std::string bad = folder.file("bad.json", R"([{"role": "user", "content": 1e999}])");
  const auto refused = [&](std::vector<std::string> words, const std::string& name) {
    words.insert(words.begin(), {"template", "--template-file", source});
    const Ran ran = mica(words);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, name + "1e999, which is beyond the largest number"));
  };
  refused({"--messages", bad}, bad + ": key 'content' is ");
  refused({"--messages", good, "--tools", bad}, bad + ": key 'content' is ");
  refused({"--messages", good, "--set", "x=1e999"}, "--set x=1e999: ");
  const auto model = shared_dir("lines of JSON", "models/stories260K.gguf");
  if (!model) return;
  const Ran ran = mica({"tokenize", model->string(), "--jsonl"}, "{\"text\": \"a\"}\n{\"text\": 1e999}\n");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "stdin, line 2: key 'text' is 1e999"));
}

TEST_CASE("chat on a pipe answers each line and obeys commands") {
  const std::string model = chat_file();
  if (model.empty()) return;
  ProgramRun run(MICA_PROGRAM, {"chat", model, "-n", "6", "--temp", "0", "--chat-template", "plain"});
  const std::string saved = run.folder().path("saved");
  const Ran ran =
      run.input(
             "/system Be brief.\nhello\n/regen\n\"\"\"two\nlines\"\"\"\n/undo\n/set top_k 5\n/set nothing 1\n"
             "/show stats\n/show plan\n/show template\n/save " +
             saved + "\n/what\n/bye\nnever said\n")
          .run();
  CHECK(ran.code == 0);
  CHECK(lines_of(ran.out).size() >= 3);
  const std::string text = contents(saved);
  CHECK(has(text, "### system\n\nBe brief."));
  CHECK(has(text, "### user\n\nhello"));
  CHECK(text.find("two\nlines") == std::string::npos);
  CHECK(has(ran.err, " Known: temp top_k"));
  CHECK(has(ran.err, "unknown command /what"));
  CHECK(has(ran.err, "of 512 tokens"));
  CHECK(has(ran.err, "weights"));
  CHECK(has(ran.err, "plain"));
}

TEST_CASE("an answer again is the same answer: what is common stays in the cache") {
  const std::string model = chat_file();
  if (model.empty()) return;
  const Ran ran =
      mica({"chat", model, "-n", "12", "--temp", "0", "-q", "--chat-template", "plain"}, "hello\n/regen\n");
  const auto half = ran.out.size() / 2;
  CHECK(ran.out.size() > 4);
  CHECK(ran.out.substr(0, half) == ran.out.substr(half));
}

}  // namespace
}  // namespace mica::test::text_test

#endif
