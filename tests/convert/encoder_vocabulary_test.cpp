// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies of text encoders: WordPiece and Unigram, from each of the files that have them to the keys of
// a GGUF file and back.

#include "convert/hf_folder.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/convert/tokenizer/read_vocabulary.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::encoder_vocabulary_test {
namespace {

using convert::VocabularyData;
using nlohmann::json;
using text::TokenType;

VocabularyData read(const TemporaryFolder& folder, std::uint64_t n_vocab) {
  return convert::read_vocabulary(folder.path(""), convert::Config(json::object(), "config.json"), n_vocab,
                                  "");
}

/// The vocabulary after it was a GGUF file.
text::Vocabulary written(const VocabularyData& vocabulary) {
  gguf::Writer out;
  write_vocabulary(vocabulary, out);
  const std::vector<std::byte> bytes = out.bytes();
  return text::vocabulary_from(gguf::parse(bytes, "toy").metadata());
}

json special(const char* id) { return {{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; }
json sequence(const char* id) { return {{"Sequence", {{"id", id}, {"type_id", 0}}}}; }

json bert() {
  json out;
  out["model"] = {
      {"type", "WordPiece"},
      {"unk_token", "[UNK]"},
      {"continuing_subword_prefix", "##"},
      {"max_input_chars_per_word", 100},
      {"vocab", {{"[PAD]", 0}, {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3}, {"un", 4}, {"##able", 5}}}};
  out["normalizer"] = {{"type", "BertNormalizer"}, {"strip_accents", nullptr}, {"lowercase", true}};
  out["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  out["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {special("[CLS]"), sequence("A"), special("[SEP]")}},
      {"pair", {special("[CLS]"), sequence("A"), special("[SEP]"), sequence("B"), special("[SEP]")}}};
  for (const auto& [id, text] :
       {std::pair(0, "[PAD]"), std::pair(1, "[UNK]"), std::pair(2, "[CLS]"), std::pair(3, "[SEP]")})
    out["added_tokens"].push_back({{"id", id}, {"content", text}, {"special", true}});
  return out;
}

json xlm_roberta() {
  json out;
  json vocab = json::array();
  for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) vocab.push_back(json::array({token, 0.0}));
  vocab.push_back(json::array({"\u2581", -3.5}));
  vocab.push_back(json::array({"a", -4.25}));
  out["model"] = {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", vocab}};
  out["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "BAAAAAAAAAA="}};
  out["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"add_prefix_space", true}}}}};
  out["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {"<s>", 0}}, {"sep", {"</s>", 2}}};
  for (const auto& [id, text] :
       {std::pair(0, "<s>"), std::pair(1, "<pad>"), std::pair(2, "</s>"), std::pair(3, "<unk>")})
    out["added_tokens"].push_back({{"id", id}, {"content", text}, {"special", true}});
  return out;
}

Error refused(const json& tokenizer) {
  const TemporaryFolder folder;
  write_text(folder.path("tokenizer.json"), tokenizer.dump());
  return refusal([&] { return read(folder, 6); });
}

}  // namespace

TEST_CASE("a WordPiece vocabulary marks the tokens that begin words, and keeps special ones") {
  const TemporaryFolder folder;
  write_text(folder.path("tokenizer.json"), bert().dump());
  write_text(folder.path("tokenizer_config.json"),
             json{{"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}, {"pad_token", "[PAD]"}}.dump());
  const VocabularyData v = read(folder, 7);
  CHECK(v.model == "bert");
  CHECK(v.tokens[4].text == "\u2581un");
  CHECK(v.tokens[5].text == "able");
  CHECK(v.tokens[1].text == "[UNK]");
  CHECK(v.tokens[1].type == TokenType::control);
  CHECK(v.tokens[6].text == "[PAD6]");
  CHECK(v.tokens[6].type == TokenType::unused);
  CHECK(v.unknown == 1);
  CHECK(v.bos == 2);
  CHECK(v.classifier == 2);
  CHECK(v.eos == 3);
  CHECK(v.separator == 3);
  CHECK(v.add_separator == false);
  const text::AnyTokenizer tokenizer(written(v));
  CHECK(tokenizer.encode("Un\u00E1ble") == std::vector<TokenId>{2, 4, 5, 3});
}

TEST_CASE("letter case and accents are as the normaliser says") {
  const auto options = [](bool lower_case, const json& strip_accents) {
    json tokenizer = bert();
    tokenizer["normalizer"]["lowercase"] = lower_case;
    tokenizer["normalizer"]["strip_accents"] = strip_accents;
    const TemporaryFolder folder;
    write_text(folder.path("tokenizer.json"), tokenizer.dump());
    const text::Vocabulary v = written(read(folder, 6));
    return std::pair(v.lower_case(), v.strip_accents());
  };
  CHECK(options(true, nullptr) == std::pair(true, true));
  CHECK(options(false, nullptr) == std::pair(false, false));
  CHECK(options(true, false) == std::pair(true, false));
  CHECK(options(false, true) == std::pair(false, true));
}

TEST_CASE("a WordPiece with other steps than BERT's is refused") {
  const auto with = [](const char* key, const json& value) {
    json tokenizer = bert();
    tokenizer[key] = value;
    const Error error = refused(tokenizer);
    CHECK(error.code() == ErrorCode::unsupported);
    return error;
  };
  CHECK(mentions(with("normalizer", {{"type", "Lowercase"}}), "not BertNormalizer"));
  CHECK(mentions(with("normalizer", {{"type", "BertNormalizer"}, {"clean_text", false}}), "'clean_text'"));
  CHECK(mentions(with("normalizer", {{"type", "BertNormalizer"}, {"handle_chinese_chars", false}}),
                 "ideographs"));
  CHECK(mentions(with("pre_tokenizer", {{"type", "Whitespace"}}), "not BertPreTokenizer"));
}

TEST_CASE("vocab.txt alone is a vocabulary, with the settings beside it") {
  const TemporaryFolder folder;
  write_text(folder.path("vocab.txt"), "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\nUn\n##able");
  write_text(folder.path("tokenizer_config.json"), json{{"do_lower_case", false}}.dump());
  const VocabularyData v = read(folder, 6);
  CHECK(v.tokens[4].text == "\u2581Un");
  const text::AnyTokenizer tokenizer(written(v));
  CHECK(tokenizer.encode("Unable un") == std::vector<TokenId>{2, 4, 5, 1, 3});
  write_text(folder.path("tokenizer_config.json"), json{{"tokenize_chinese_chars", false}}.dump());
  CHECK(mentions(refusal([&] { return read(folder, 6); }), "'tokenize_chinese_chars'"));
}

TEST_CASE("a Unigram vocabulary has scores, its charsmap and what stands around texts") {
  const TemporaryFolder folder;
  write_text(folder.path("tokenizer.json"), xlm_roberta().dump());
  const VocabularyData v = read(folder, 6);
  CHECK(v.model == "t5");
  CHECK(v.scored);
  CHECK(v.tokens[4].score == -3.5F);
  CHECK(v.tokens[3].type == TokenType::unknown);
  CHECK(v.charsmap == std::string("\4\0\0\0\0\0\0\0", 8));
  CHECK(v.bos == 0);
  CHECK(v.eos == 2);
  const text::Vocabulary read_back = written(v);
  CHECK(read_back.charsmap() == v.charsmap);
  CHECK(read_back.remove_extra_spaces());
  CHECK(read_back.add_space_prefix());
  CHECK(read_back.add_separator());
  CHECK(text::AnyTokenizer(read_back).encode(" a ") == std::vector<TokenId>{0, 4, 5, 2});
}

TEST_CASE("a Unigram that is damaged or has other steps than SentencePiece's is refused") {
  json tokenizer = xlm_roberta();
  tokenizer["normalizer"] = {{"type", "NFKC"}};
  CHECK(mentions(refused(tokenizer), "'NFKC'"));
  tokenizer = xlm_roberta();
  tokenizer["pre_tokenizer"] = {{"type", "Digits"}};
  CHECK(mentions(refused(tokenizer), "'Digits'"));
  tokenizer = xlm_roberta();
  tokenizer["normalizer"]["precompiled_charsmap"] = "?";
  CHECK(mentions(refused(tokenizer), "no base64"));
  tokenizer = xlm_roberta();
  tokenizer["model"]["unk_id"] = 6;
  CHECK(mentions(refused(tokenizer), "'unk_id'"));
  tokenizer = xlm_roberta();
  tokenizer["model"]["vocab"][4] = "x";
  CHECK(mentions(refused(tokenizer), "no pair"));
}

}  // namespace mica::test::encoder_vocabulary_test
