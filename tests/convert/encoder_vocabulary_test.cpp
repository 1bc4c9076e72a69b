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

TEST_CASE("without tokenizer_config.json, the tokens around a text are the classifier and the separator") {
  const TemporaryFolder folder;
  write_text(folder.path("tokenizer.json"), bert().dump());
  const VocabularyData v = read(folder, 6);
  CHECK(v.classifier == 2);
  CHECK(v.separator == 3);
  CHECK(text::AnyTokenizer(written(v)).encode("un") == std::vector<TokenId>{2, 4, 3});
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

TEST_CASE("a step may be the only one of a sequence") {
  const TemporaryFolder folder;
  json tokenizer = bert();
  tokenizer["normalizer"] = {{"type", "Sequence"}, {"normalizers", {tokenizer["normalizer"]}}};
  tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {tokenizer["pre_tokenizer"]}}};
  write_text(folder.path("tokenizer.json"), tokenizer.dump());
  CHECK(read(folder, 6).lower_case == true);
  tokenizer["normalizer"]["normalizers"].push_back({{"type", "NFC"}});
  CHECK(mentions(refused(tokenizer), "not BertNormalizer"));
  tokenizer["normalizer"]["normalizers"] = 5;
  CHECK(mentions(refused(tokenizer), "not BertNormalizer"));
}

TEST_CASE("a WordPiece says what it does otherwise, and rows without a token stay so") {
  const TemporaryFolder folder;
  json tokenizer = bert();
  tokenizer["model"]["max_input_chars_per_word"] = 50;
  tokenizer["model"]["vocab"]["##able"] = 6;
  write_text(folder.path("tokenizer.json"), tokenizer.dump());
  const VocabularyData v = read(folder, 7);
  REQUIRE(v.notes.size() == 2);
  CHECK(v.notes[0].find("more than 100 characters") != std::string::npos);
  CHECK(v.notes[0].ends_with("more than 50"));
  CHECK(v.tokens[5].text == "[PAD5]");
  CHECK(v.tokens[5].type == TokenType::unused);
  CHECK(v.tokens[6].text == "able");
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

TEST_CASE("the special tokens of vocab.txt have BERT's names, or those of the settings") {
  const TemporaryFolder folder;
  write_text(folder.path("vocab.txt"), "[PAD]\n[UNK]\n<cls>\n[SEP]\nun\n##able\n");
  const auto with = [&](const char* settings) {
    write_text(folder.path("tokenizer_config.json"), settings);
    return read(folder, 6);
  };
  CHECK(with("{}").tokens[2].text == "\u2581<cls>");
  CHECK(with("{}").tokens[3].type == TokenType::control);
  for (const char* const settings : {R"({"cls_token": "<cls>"})", R"({"cls_token": {"content": "<cls>"}})",
                                     R"({"cls_token": "<cls>", "sep_token": 5})"}) {
    CAPTURE(settings);
    const VocabularyData v = with(settings);
    CHECK(v.tokens[2].text == "<cls>");
    CHECK(v.tokens[2].type == TokenType::control);
    CHECK(v.tokens[3].type == TokenType::control);
    CHECK(v.classifier == 2);
  }
  const VocabularyData added = with(R"({"added_tokens_decoder": {"4": {"content": "un", "special": true}}})");
  CHECK(added.tokens[4].type == TokenType::control);
  CHECK(with(R"({"added_tokens_decoder": [{"id": 4, "content": "un"}]})").tokens[4].type ==
        TokenType::normal);
  CHECK(read(folder, 4).tokens.size() == 4);
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

TEST_CASE("the steps of a Unigram say what happens to spaces") {
  struct Row {
    std::string steps;
    bool prefix, removes;
  };
  const Row rows[] = {
      {R"({"normalizer": null, "pre_tokenizer": null})", false, false},
      {R"({"normalizer": {"type": "Strip"}, "pre_tokenizer": null})", false, false},
      {R"({"normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
           "pre_tokenizer": {"type": "Metaspace"}})",
       true, true},
      {R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled"},
             {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]},
           "pre_tokenizer": {"type": "Metaspace", "add_prefix_space": false}})",
       false, true},
      {R"({"pre_tokenizer": {"type": "WhitespaceSplit"}})", false, true},
      {R"({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always"}})", true, false},
      {R"({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never"}})", false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.steps);
    const TemporaryFolder folder;
    json tokenizer = xlm_roberta();
    tokenizer.update(json::parse(row.steps));
    write_text(folder.path("tokenizer.json"), tokenizer.dump());
    const VocabularyData v = read(folder, 6);
    CHECK(v.add_space_prefix == row.prefix);
    CHECK(v.remove_extra_spaces == row.removes);
  }
}

TEST_CASE("a Unigram has byte tokens if it falls back to bytes, and as many tokens as rows") {
  const TemporaryFolder folder;
  json tokenizer = xlm_roberta();
  for (const char* const text : {"<0x0A>", "<0x0A", "<0y0A>", "<0x0AB"})
    tokenizer["model"]["vocab"].push_back(json::array({text, -5.0}));
  const auto with = [&](std::uint64_t n_vocab) {
    write_text(folder.path("tokenizer.json"), tokenizer.dump());
    return read(folder, n_vocab);
  };
  CHECK(with(10).tokens[6].type == TokenType::normal);
  tokenizer["model"]["byte_fallback"] = true;
  CHECK(with(10).tokens[6].type == TokenType::byte);
  for (const std::size_t id : {7U, 8U, 9U}) CHECK(with(10).tokens[id].type == TokenType::normal);
  const VocabularyData small = with(9);
  CHECK(small.tokens.size() == 9);
  CHECK(small.notes ==
        std::vector<std::string>{"tokens from 9 on are left out: the embedding has no more rows"});
  tokenizer["model"]["unk_id"] = 9;
  CHECK_FALSE(with(9).unknown);
  CHECK(with(10).unknown == 9);
  for (const char* const none : {"null", "-1", "\"<unk>\""}) {
    tokenizer["model"]["unk_id"] = json::parse(none);
    CHECK_FALSE(with(10).unknown);
  }
}

TEST_CASE("a Unigram that is damaged or has other steps than SentencePiece's is refused") {
  json tokenizer = xlm_roberta();
  tokenizer["normalizer"] = {{"type", "NFKC"}};
  CHECK(mentions(refused(tokenizer), "'NFKC'"));
  for (const char* const step : {R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": " "})",
                                 R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"})",
                                 R"({"type": "Replace", "pattern": {"String": "``"}, "content": "\""})",
                                 R"({"type": "Replace", "content": " "})"}) {
    tokenizer["normalizer"] = json::parse(step);
    CHECK(mentions(refused(tokenizer), "'Replace'"));
  }
  for (const char* const step : {R"({"type": "Sequence"})", R"({"type": "Sequence", "normalizers": 5})"}) {
    tokenizer["normalizer"] = json::parse(step);
    CHECK(mentions(refused(tokenizer), "'Sequence'"));
  }
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
