// SPDX-License-Identifier: Apache-2.0
//
// Every tokenizer case of the conformance kit: eleven published vocabularies and seven small ones inside of
// models. Ids, pieces and texts are those of llama.cpp 0.7.0.

#include "mica/gguf/reader.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#if defined(MICA_HAS_TEXT)

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace conformance_test {

using namespace mica::text;
namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<TokenId>;

namespace {

std::string from_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::size_t bits = 0, value = 0;
  for (const char c : text.substr(0, text.find('='))) {
    value = (value << 6 | digits.find(c)) & 0xFFFF;
    bits += 6;
    if (bits >= 8) out.push_back(static_cast<char>(value >> (bits -= 8) & 0xFF));
  }
  return out;
}

/// A text of the kit: a string, or an object with "text" or "b64".
std::string bytes_of(const json& j) {
  if (j.is_string()) return j.get<std::string>();
  return j.contains("b64") ? from_base64(j["b64"].get<std::string>()) : j["text"].get<std::string>();
}

/// A file of the kit, unpacked where it is packed; removed with this object when it was.
class KitFile {
 public:
  KitFile(std::string_view test, const fs::path& path) : path_(path) {
    const fs::path packed = path.string() + ".xz";
    if (fs::exists(path_)) return;
    temporary_ =
        fs::temp_directory_path() / ("mica-" + std::to_string(std::rand()) + path.filename().string());
    path_ = *temporary_;
    const std::string command = "xz -dc '" + packed.string() + "' > '" + path_.string() + "'";
    if (std::system(command.c_str()) == 0) return;
    mica::test::skipped(test, "xz cannot unpack " + packed.string());
    path_.clear();
  }
  KitFile(const KitFile&) = delete;
  KitFile& operator=(const KitFile&) = delete;
  ~KitFile() {
    std::error_code ignored;
    if (temporary_) fs::remove(*temporary_, ignored);
  }

  [[nodiscard]] const fs::path& path() const { return path_; }  // empty: not to be had

 private:
  fs::path path_;
  std::optional<fs::path> temporary_;
};

AnyTokenizer tokenizer_of(const fs::path& path) {
  return make_tokenizer(vocabulary_from(mica::gguf::open(path.string()).metadata()));
}

void check_pieces(const AnyTokenizer& tokenizer, const Ids& ids, const json& pieces) {
  REQUIRE(pieces.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(tokenizer.piece(ids[i], true) == bytes_of(pieces[i]));
}

void check_case(const AnyTokenizer& tokenizer, const json& c) {
  const std::string text = bytes_of(c);
  CAPTURE(text);
  const Ids ids = c["ids"].get<Ids>();
  const Ids parsed = c.contains("ids_parse") ? c["ids_parse"].get<Ids>() : ids;
  CHECK(tokenizer.encode(text, {.add_special = false}) == ids);
  CHECK(tokenizer.encode(text) == (c.contains("ids_add") ? c["ids_add"].get<Ids>() : ids));
  CHECK(tokenizer.encode(text, {.add_special = false, .parse_special = true}) == parsed);
  const std::string shown = c["detok"] == "same" ? text : bytes_of(c["detok"]);
  CHECK(tokenizer.decode(parsed, {.show_special = true, .tidy_spaces = true}) == shown);
  if (c.contains("pieces")) check_pieces(tokenizer, parsed, c["pieces"]);
}

void check_special_ids(const Vocabulary& vocabulary, const json& info) {
  const auto id = [](const std::optional<TokenId>& found) {
    return found ? static_cast<long long>(*found) : -1;
  };
  CHECK(vocabulary.size() == info["n_vocab"].get<std::size_t>());
  CHECK(id(vocabulary.special().bos) == info["bos"].get<long long>());
  CHECK(id(vocabulary.special().eos) == info["eos"].get<long long>());
  CHECK(id(vocabulary.special().padding) == info["pad"].get<long long>());
  CHECK(vocabulary.add_bos() == (info["add_bos"].get<int>() != 0));
  CHECK(vocabulary.add_eos() == (info["add_eos"].get<int>() != 0));
}

/// Runs the cases of one vocabulary and of its upstream vectors, if it has any.
void check_vocabulary(std::string_view test, const fs::path& kit, const std::string& name) {
  CAPTURE(name);
  const json cases = json::parse(std::ifstream(kit / "tokenizer" / (name + ".cases.json")));
  const std::string vocab = cases["vocab"].get<std::string>();
  const KitFile file(
      test, vocab.find('/') == std::string::npos ? kit / "tokenizer" / (vocab + ".gguf") : kit / vocab);
  if (file.path().empty()) return;
  const AnyTokenizer tokenizer = tokenizer_of(file.path());
  check_special_ids(tokenizer.vocabulary(), cases["info"]);
  CHECK(tokenizer.vocabulary().ignored_merges() == 0);
  for (const json& c : cases["cases"]) check_case(tokenizer, c);
  std::ifstream upstream(kit / "tokenizer" / (name + ".upstream.json"));
  if (!upstream) return;
  for (const json& c : json::parse(upstream)) {
    CHECK(tokenizer.encode(c["text"].get<std::string>(), {.add_special = false}) == c["ids"].get<Ids>());
  }
}

void check_all(std::string_view test, std::initializer_list<const char*> names) {
  const auto kit = mica::test::shared_dir(test, "conformance");
  if (!kit) return;
  for (const char* name : names) check_vocabulary(test, *kit, name);
}

}  // namespace

TEST_CASE("the SentencePiece vocabularies of the kit give the reference's tokens and texts") {
  check_all("tokenizer conformance, SPM", {"llama-spm", "phi-3", "gemma2", "gemma3"});
}

TEST_CASE("the byte-level BPE vocabularies of the kit give the reference's tokens and texts") {
  check_all("tokenizer conformance, BPE",
            {"llama-bpe", "qwen2", "gpt-2", "deepseek-coder", "deepseek-llm", "falcon", "starcoder"});
}

TEST_CASE("the vocabularies inside the kit's models give the reference's tokens and texts") {
  check_all("tokenizer conformance, models",
            {"tiny-llama-mha-spm", "tiny-gemma2", "tiny-phi3", "tiny-llama3-gqa", "tiny-llama4", "tiny-qwen3",
             "tiny-gpt-oss"});
}

TEST_CASE("hostile vocabularies are refused by the name of their key, or harm nothing") {
  const auto hostile = mica::test::shared_dir("hostile vocabularies", "hostile");
  if (!hostile) return;
  const auto refusal = [&](const char* name) -> std::string {
    try {
      const AnyTokenizer tokenizer = tokenizer_of(*hostile / name);
      CHECK(tokenizer.decode(tokenizer.encode("hello world")) == "hello world");
    } catch (const mica::Error& error) {
      return error.message();
    }
    return {};
  };
  CHECK(refusal("good_spm.gguf").empty());
  CHECK(refusal("good_bpe.gguf").empty());
  CHECK(refusal("scores_half.gguf").find("tokenizer.ggml.scores: found") != std::string::npos);
  CHECK(refusal("eos_far_away.gguf").find("tokenizer.ggml.eos_token_id: found") != std::string::npos);
  CHECK(refusal("merge_garbage.gguf").empty());
}

}  // namespace conformance_test

#endif
