// SPDX-License-Identifier: Apache-2.0

#include "convert/hf_folder.hpp"
#include "convert/kit_folder.hpp"
#include "convert/kit_vocabulary.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/convert/tokenizer/read_vocabulary.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

namespace mica::test::vocabulary_test {
namespace {

using convert::VocabularyData;
using nlohmann::json;
using text::TokenType;

/// A folder with nothing but a tokenizer.
class TokenizerFolder {
 public:
  json tokenizer = small_tokenizer(), settings, generation;
  std::string spm;  // bytes of tokenizer.model

  VocabularyData read(std::uint64_t n_vocab, std::string_view family = "") const {
    const auto write = [&](const char* name, const json& value) {
      if (!value.is_null()) write_text(folder_.path(name), value.dump());
    };
    write("tokenizer.json", tokenizer);
    write("tokenizer_config.json", settings);
    write("generation_config.json", generation);
    if (!spm.empty()) write_text(folder_.path("tokenizer.model"), spm);
    return convert::read_vocabulary(folder_.path(""), convert::Config(json::object(), "config.json"), n_vocab,
                                    family);
  }
  Error refused(std::uint64_t n_vocab = 12) const {
    return refusal([&] { return read(n_vocab); });
  }
  [[nodiscard]] std::string path(const char* name) const { return folder_.path(name); }

 private:
  TemporaryFolder folder_;
};

/// A message of protocol buffers, field by field.
class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    return varint(value);
  }
  Message& text(unsigned field, const std::string& value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes += value;
    return *this;
  }
  Message& real(unsigned field, float value) {
    varint(field << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  std::string bytes;

 private:
  Message& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    bytes += static_cast<char>(value);
    return *this;
  }
};

using Pieces = std::vector<std::tuple<std::string, float, unsigned>>;

/// tokenizer.model with pieces of (text, score, type), the trainer and the normaliser.
std::string sentencepiece(const Pieces& pieces, const Message& trainer, const Message& normalizer) {
  Message model;
  for (const auto& [text, score, type] : pieces) {
    Message piece;
    piece.text(1, text).real(2, score);
    if (type != 1) piece.number(3, type);
    model.text(1, piece.bytes);
  }
  model.text(2, trainer.bytes);
  model.text(3, normalizer.bytes);
  return model.bytes;
}
/// The same with usual ones; kind 1 is Unigram, 2 is BPE.
std::string sentencepiece(const Pieces& pieces, unsigned kind = 2, bool prefix = true) {
  return sentencepiece(pieces, Message().number(3, kind),
                       Message().text(1, "identity").number(3, prefix ? 1 : 0));
}

/// A BPE in the manner of SentencePiece: ids 0 to 4, of which 0 stands for unknown characters.
json spm_tokenizer() {
  return json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
    "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
              "vocab": {"<unk>": 0, "<0x41>": 1, "a": 2, "b": 3, "ab": 4}, "merges": ["a b"]}})");
}

TEST_CASE("a byte-level vocabulary has its tokens, merges and special ids") {
  TokenizerFolder folder;
  folder.settings = {{"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}, {"add_bos_token", true}};
  const VocabularyData v = folder.read(14);
  CHECK(v.model == "gpt2");
  CHECK(v.pre == "gpt-2");
  REQUIRE(v.tokens.size() == 14);
  CHECK(v.tokens[8].text == "abcd");
  CHECK(v.tokens[8].type == TokenType::normal);
  CHECK(v.tokens[10].type == TokenType::control);
  CHECK(v.tokens[13].text == "[PAD13]");
  CHECK(v.tokens[13].type == TokenType::unused);
  CHECK(v.merges == std::vector<std::string>{"a b", "c d", "ab cd", "e f"});
  CHECK(v.bos == 10);
  CHECK(v.eos == 11);
  CHECK_FALSE(v.padding);
  CHECK(v.add_bos == true);
  CHECK_FALSE(v.add_eos);
}

TEST_CASE("merges may be pairs, and a space in one becomes what it is in a byte-level text") {
  TokenizerFolder folder;
  folder.tokenizer["model"]["merges"] = json::array({json::array({"a", "b"}), json::array({"c ", " d"})});
  CHECK(folder.read(12).merges == std::vector<std::string>{"a b",
                                                           "c\xC4\xA0 \xC4\xA0"
                                                           "d"});
  for (const char* const merge : {"ab", "a b c", " a", "a ", "", " "}) {
    CAPTURE(merge);
    folder.tokenizer["model"]["merges"] = json::array({merge});
    CHECK(mentions(folder.refused(12), "merge 0 is no pair of texts"));
  }
  folder.tokenizer["model"]["merges"] = json::array({json::array({"a", "b", "c"})});
  CHECK(mentions(folder.refused(), "merge 0 is no pair"));
}

TEST_CASE("an added token that is not special is found in any text") {
  TokenizerFolder folder;
  folder.tokenizer["added_tokens"][1]["special"] = false;
  CHECK(folder.read(12).tokens[11].type == TokenType::user_defined);
}

TEST_CASE("special ids may be numbers, and the end of a turn is told from the end of the text") {
  TokenizerFolder folder;
  folder.tokenizer["added_tokens"].push_back({{"id", 12}, {"content", "<|eot_id|>"}, {"special", true}});
  folder.generation = {{"bos_token_id", 10}, {"eos_token_id", {11, 12, 4000}}, {"pad_token_id", 99}};
  const VocabularyData v = folder.read(13);
  CHECK(v.bos == 10);
  CHECK(v.eos == 11);
  CHECK(v.eot == 12);
  CHECK_FALSE(v.padding);  // no such token
}

TEST_CASE("a special token that the vocabulary does not have is none") {
  TokenizerFolder folder;
  folder.tokenizer["model"]["vocab"].erase("e");  // of id 4
  folder.tokenizer["model"]["merges"].erase(3);
  CHECK(folder.read(12).tokens[4].text == "[PAD4]");
  for (const char* const token : {R"("[PAD4]")", R"("<eos>")", "5", R"({"content": 5})", "{}", "[11]"}) {
    CAPTURE(token);
    folder.settings = {{"eos_token", json::parse(token)}};
    CHECK_FALSE(folder.read(12).eos);
  }
  folder.settings = nullptr;
  for (const char* const id : {"12", "-1", R"("11")", "[]", R"([12, "11"])", "{}"}) {
    CAPTURE(id);
    folder.generation = {{"eos_token_id", json::parse(id)}};
    CHECK_FALSE(folder.read(12).eos);
  }
}

TEST_CASE("what stands around texts is what the post-processor puts there") {
  struct Row {
    std::string processor, around;  // bos, eos, separator; null where the file does not say
  };
  const Row rows[] = {
      {R"({"type": "RobertaProcessing", "sep": ["</s>", 11], "cls": ["<s>", 10]})", "[true, true, true]"},
      {R"({"type": "BertProcessing", "sep": ["</s>", 11], "cls": ["<s>", 10]})", "[true, true, false]"},
      {R"({"type": "TemplateProcessing", "single": ["<s>", "A", "</s>"], "pair": ["<s>", "A", "</s>", "B"]})",
       "[true, true, false]"},
      {R"({"type": "TemplateProcessing", "single": ["<s>", "A"], "pair": ["A", "</s>", "</s>", "B"]})",
       "[true, false, true]"},
      {R"({"type": "TemplateProcessing", "single": ["A", "</s>"], "pair": ["A"]})", "[false, true, null]"},
      {R"({"type": "TemplateProcessing", "single": ["A", "</s>"], "pair": 5})", "[false, true, null]"},
      {R"({"type": "Sequence", "processors": [
             {"type": "TemplateProcessing", "single": ["<s>", "A"]},
             {"type": "TemplateProcessing", "single": ["A", "</s>"]}, {"type": "ByteLevel"}]})",
       "[true, true, null]"},
      {R"({"type": "Sequence", "processors": [
             {"type": "TemplateProcessing", "single": ["A", "</s>"]},
             {"type": "TemplateProcessing", "single": ["<s>", "A"]}]})",
       "[true, true, null]"},
      {R"({"type": "ByteLevel"})", "[null, null, null]"},
      {R"({"type": "TemplateProcessing"})", "[null, null, null]"},
      {R"({"type": "TemplateProcessing", "single": 5})", "[null, null, null]"},
      {R"({"type": "TemplateProcessing", "single": []})", "[null, null, null]"},
      {R"({"type": "Sequence", "processors": 5})", "[null, null, null]"},
      {R"({"type": 5})", "[null, null, null]"},
      {R"({"type": "BertProcessing"})", "[false, false, false]"},
      {R"({"type": "BertProcessing", "sep": 5, "cls": []})", "[false, false, false]"},
      {R"({"type": "BertProcessing", "sep": [11, "</s>"], "cls": {"id": 10}})", "[false, false, false]"},
  };
  // A template's pieces are written out: {"SpecialToken": {"id": "<s>", ...}}.
  const auto spelled_out = [](json& step) {
    for (const char* const list : {"single", "pair"}) {
      if (!step.contains(list) || !step[list].is_array()) continue;
      for (json& piece : step[list])
        piece = {{piece.get<std::string>()[0] == '<' ? "SpecialToken" : "Sequence", {{"id", piece}}}};
    }
  };
  const auto said = [](std::optional<bool> flag) { return flag ? json(*flag) : json(nullptr); };
  for (const Row& row : rows) {
    CAPTURE(row.processor);
    TokenizerFolder folder;
    json processor = json::parse(row.processor);
    spelled_out(processor);
    if (processor.contains("processors") && processor["processors"].is_array()) {
      for (json& step : processor["processors"]) spelled_out(step);
    }
    folder.tokenizer["post_processor"] = processor;
    const VocabularyData v = folder.read(12);
    const json around = {said(v.add_bos), said(v.add_eos), said(v.add_separator)};
    CHECK(around == json::parse(row.around));
    CHECK(v.bos.has_value() == (around[0] == true));
    CHECK(v.eos.has_value() == (around[1] == true));
    folder.settings = json::parse(R"({"add_bos_token": false, "add_eos_token": false})");
    CHECK(folder.read(12).add_bos == false);
    CHECK(folder.read(12).add_eos == false);
    folder.settings = json::parse(R"({"add_bos_token": "no", "add_eos_token": 0})");  // no bools
    CHECK(said(folder.read(12).add_bos) == around[0]);
  }
}

TEST_CASE("what stands before a text follows from the post-processor when nothing else says it") {
  TokenizerFolder folder;
  CHECK_FALSE(folder.read(12).add_bos);
  const json bos = {{"SpecialToken", {{"id", "<s>"}}}}, text = {{"Sequence", {{"id", "A"}}}};
  folder.tokenizer["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {bos, text}}};
  CHECK(folder.read(12).add_bos == true);
  CHECK(folder.read(12).add_eos == false);
  const json step = folder.tokenizer["post_processor"];
  folder.tokenizer["post_processor"] = {{"type", "Sequence"},
                                        {"processors", {{{"type", "ByteLevel"}}, step}}};
  CHECK(folder.read(12).add_bos == true);
  folder.settings = {{"add_bos_token", false}};
  CHECK(folder.read(12).add_bos == false);
}

TEST_CASE("tokens without a row of the embedding are left out with a note") {
  TokenizerFolder folder;
  const VocabularyData v = folder.read(11);
  CHECK(v.tokens.size() == 11);
  REQUIRE(v.notes.size() == 1);
  CHECK(v.notes[0].find("'</s>' is left out") != std::string::npos);
  const VocabularyData small = folder.read(9);
  CHECK(small.tokens.size() == 9);
  CHECK(small.notes.front() == "token 9 'ef' is left out: the embedding has 9 rows");
}

TEST_CASE("tokenizers of other kinds are refused by name") {
  TokenizerFolder folder;
  const auto says = [&](const char* part) {
    const Error error = folder.refused();
    CHECK(error.code() == ErrorCode::unsupported);
    return mentions(error, part);
  };
  folder.tokenizer["model"]["type"] = "WordLevel";
  CHECK(says("WordLevel"));
  folder.tokenizer["model"].erase("type");  // old files tell a BPE by its merges
  CHECK(folder.read(12).model == "gpt2");
  folder.tokenizer["model"].erase("merges");
  CHECK(says("of the kind ''"));
  folder.tokenizer = small_tokenizer();
  folder.tokenizer["decoder"] = nullptr;
  for (const char* const step :
       {R"({"type": "Whitespace"})", R"({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}]})",
        R"({"type": "Sequence", "pretokenizers": 5})"}) {
    folder.tokenizer["pre_tokenizer"] = json::parse(step);
    CHECK(says("neither byte-level nor falls back to bytes"));
  }
}

TEST_CASE("an unknown pre-tokenizer is refused with its expressions") {
  TokenizerFolder folder;
  const json bytes = {{"type", "ByteLevel"}, {"use_regex", false}};
  const auto with = [&](const json& step) {
    folder.tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {step, bytes}}};
    const Error error = folder.refused();
    CHECK(error.code() == ErrorCode::unsupported);
    return error;
  };
  CHECK(mentions(with({{"type", "Split"}, {"pattern", {{"Regex", R"(\w+|x)"}}}}), "\\x5cw+|x"));
  CHECK(mentions(with({{"type", "BertPreTokenizer"}}), "'BertPreTokenizer'"));
  CHECK(mentions(with({{"type", "Split"}, {"pattern", {{"String", " "}}}}), "'Split'"));
  CHECK(mentions(with({{"type", "Split"}}), "'Split'"));
  CHECK(mentions(with({{"type", "Digits"}}), "\\x5cp{N}+"));  // runs of digits
  const json two = {{{"type", "Digits"}}, {{"type", "Split"}, {"pattern", {{"Regex", "x"}}}}};
  CHECK(mentions(with({{"type", "Sequence"}, {"pretokenizers", two}}), "{N}+  then  x"));
  folder.tokenizer["pre_tokenizer"] = nullptr;
  CHECK(mentions(folder.refused(), "no pre_tokenizer"));
}

TEST_CASE("rules that share their expressions are told apart by what else the file says") {
  TokenizerFolder folder;
  const auto pre = [&](const std::string& expression) {
    folder.tokenizer["pre_tokenizer"] = {{"type", "Sequence"},
                                         {"pretokenizers",
                                          {{{"type", "Split"}, {"pattern", {{"Regex", expression}}}},
                                           {{"type", "ByteLevel"}, {"use_regex", false}}}}};
    return folder.read(12).pre;
  };
  folder.tokenizer["model"]["ignore_merges"] = true;
  CHECK(pre(published_expression("llama-bpe")) == "llama-bpe");
  folder.tokenizer["model"]["ignore_merges"] = false;
  CHECK(pre(published_expression("llama-bpe")) == "dbrx");
  CHECK(pre(published_expression("qwen2")) == "qwen2");
  CHECK(pre(published_expression("gpt-4o")) == "gpt-4o");
  std::string by_number(text::detail::expressions::gpt2);
  for (std::size_t at = 0; (at = by_number.find('\'', at)) != by_number.npos;)
    by_number.replace(at, 1, "\\x{27}");
  CHECK(pre(by_number) == "gpt-2");  // a character and its number are the same
  const json digits = {{"type", "Digits"}, {"individual_digits", true}}, bytes = {{"type", "ByteLevel"}};
  folder.tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {digits, bytes}}};
  folder.settings = {{"clean_up_tokenization_spaces", false}};
  CHECK(folder.read(12).pre == "smollm");
  folder.settings = {{"clean_up_tokenization_spaces", true}};
  CHECK(folder.read(12).pre == "starcoder");
}

TEST_CASE("every pre-tokenizer known here is recognised by its own expressions") {
  TokenizerFolder folder;
  for (const text::PretokenizerRules& rules : text::all_pretokenizer_rules) {
    json steps = json::array();
    for (const std::string_view expression : rules.expressions)
      steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", std::string(expression)}}}});
    steps.push_back({{"type", "ByteLevel"}, {"use_regex", false}});
    folder.tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    folder.tokenizer["model"]["ignore_merges"] = rules.traits.whole_words;
    folder.settings = {{"clean_up_tokenization_spaces", rules.traits.tidies_spaces}};
    const text::PretokenizerRules* const found = text::find_pretokenizer_rules(folder.read(12).pre);
    REQUIRE(found != nullptr);
    CAPTURE(std::string(rules.names));
    CHECK(found->expressions.data() == rules.expressions.data());
    CHECK(found->traits.whole_words == rules.traits.whole_words);
    CHECK(found->traits.tidies_spaces == rules.traits.tidies_spaces);
  }
}

TEST_CASE("a vocabulary that is damaged is refused by what is wrong") {
  TokenizerFolder folder;
  const auto with_model = [&](const char* key, const json& value) {
    folder.tokenizer = small_tokenizer();
    folder.tokenizer["model"][key] = value;
    const Error error = folder.refused();
    CHECK(error.code() == ErrorCode::file);
    return error;
  };
  CHECK(mentions(with_model("vocab", json::array()), "'vocab'"));
  CHECK(mentions(with_model("vocab", {{"a", -1}}), "'a' has no id"));
  CHECK(mentions(with_model("vocab", {{"a", 1U << 30}}), "'a' has no id"));
  CHECK(mentions(with_model("vocab", {{"a", 1}, {"b", 1}}), "'a' and 'b' have the same id"));
  CHECK(mentions(with_model("merges", 7), "'merges'"));
  folder.tokenizer = small_tokenizer();
  folder.tokenizer["added_tokens"][0].erase("id");
  CHECK(mentions(folder.refused(), "no 'id'"));
  folder.tokenizer = json::object();
  CHECK(mentions(folder.refused(), "'model' is missing"));
}

TEST_CASE("a folder without a tokenizer is refused") {
  TokenizerFolder folder;
  folder.tokenizer = nullptr;
  CHECK(mentions(folder.refused(), "neither tokenizer.json nor tokenizer.model, spiece.model"));
}

TEST_CASE("pieces of tokenizer.model keep scores and types, and added tokens take their places") {
  TokenizerFolder folder;
  folder.tokenizer = nullptr;
  folder.spm = sentencepiece({{"<unk>", 0, 2},
                              {"<s>", 0, 3},
                              {"<0x41>", 0, 6},
                              {"\xE2\x96\x81"
                               "a",
                               -1.5F, 1}},
                             2, false);
  folder.settings = {
      {"added_tokens_decoder",
       {{"4", {{"content", "<end>"}, {"special", true}}}, {"5", {{"content", "\xE2\x96\x81\xE2\x96\x81"}}}}},
      {"bos_token", "<s>"}};
  const VocabularyData v = folder.read(7);
  CHECK(v.model == "llama");
  CHECK(v.scored);
  CHECK(v.add_space_prefix == false);
  CHECK(v.unknown == 0);
  CHECK(v.bos == 1);
  CHECK(v.tokens[2].type == TokenType::byte);
  CHECK(v.tokens[3].score == -1.5F);
  CHECK(v.tokens[4].type == TokenType::control);
  CHECK(v.tokens[5].text == "  ");
  CHECK(v.tokens[5].type == TokenType::user_defined);
  CHECK(v.tokens[6].type == TokenType::unused);
}

TEST_CASE("a SentencePiece file has the scores, and tokenizer.json beside it the added tokens") {
  TokenizerFolder folder;
  folder.tokenizer = spm_tokenizer();
  folder.tokenizer["added_tokens"].push_back({{"id", 5}, {"content", "<tool>"}, {"special", true}});
  folder.settings = {{"added_tokens_decoder", {{"5", {{"content", "<other>"}}}}}};
  folder.spm =
      sentencepiece({{"<unk>", 0, 2}, {"<0x41>", 0, 6}, {"a", -7, 1}, {"b", -8, 1}, {"ab", -2.5F, 1}});
  VocabularyData v = folder.read(6);
  CHECK(v.tokens[4].score == -2.5F);
  CHECK(v.tokens[5].text == "<tool>");
  CHECK(v.merges.empty());
  CHECK(v.add_space_prefix == true);  // as the SentencePiece file says
  folder.tokenizer["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\xE2\x96\x81"}};
  CHECK(folder.read(6).add_space_prefix == false);  // as tokenizer.json says
  v = folder.read(6, "gemma4");                     // a kind that has merges
  CHECK(v.tokens[4].score == -4.0F);
  CHECK(v.merges.size() == 1);
  folder.tokenizer = small_tokenizer();  // byte-level: another vocabulary
  CHECK(folder.read(12).model == "gpt2");
}

TEST_CASE("a SentencePiece file that is not of the same tokenizer as tokenizer.json is refused") {
  TokenizerFolder folder;
  folder.tokenizer = spm_tokenizer();
  folder.spm = sentencepiece({{"a", 0, 1}}, 1);
  CHECK(mentions(folder.refused(), "tokenizer.model is a Unigram"));
  folder.spm = sentencepiece({{"a", 0, 1}});
  folder.tokenizer = nullptr;
  std::filesystem::remove(folder.path("tokenizer.json"));
  CHECK(mentions(refusal([&] { return folder.read(1, "gemma4"); }), "needs tokenizer.json"));
}

TEST_CASE("a Unigram of SentencePiece has a charsmap, and special ids in its trainer") {
  TokenizerFolder folder;
  folder.tokenizer = nullptr;
  const Pieces pieces = {{"<pad>", 0, 3}, {"</s>", 0, 3}, {"<unk>", 0, 2}, {"a", -1, 1}, {"b", -2, 1}};
  const Message normalizer = Message().text(2, "map").number(3, 0).number(4, 0);
  folder.spm = sentencepiece(
      pieces, Message().number(3, 1).number(24, 0).number(41, ~std::uint64_t{0}).number(42, 1).number(43, 0),
      normalizer);
  VocabularyData v = folder.read(5);
  CHECK(v.model == "t5");
  CHECK(v.charsmap == "map");
  CHECK(v.add_space_prefix == false);
  CHECK(v.remove_extra_spaces == false);
  CHECK_FALSE(v.bos);  // -1: none
  CHECK(v.eos == 1);
  CHECK(v.padding == 0);
  CHECK(v.unknown == 2);
  v = folder.read(4);
  CHECK(v.tokens.size() == 4);
  CHECK(v.unknown == 2);
  CHECK(v.notes == std::vector<std::string>{"tokens from 4 on are left out: the embedding has no more rows"});
  folder.spm = sentencepiece({{"a", 0, 1}, {"b", 0, 1}}, Message().number(3, 1), Message().number(2, 7));
  CHECK(folder.read(1).charsmap.empty());  // field 2 is a text
  CHECK_FALSE(folder.read(1).unknown);
  folder.spm = sentencepiece(pieces, Message().number(3, 2).number(24, 1), normalizer);
  CHECK(mentions(folder.refused(), "space of a word behind it"));
}

TEST_CASE("XLM-RoBERTa's own file is numbered as its models are") {
  const TokenizerFolder folder;
  std::filesystem::create_directories(folder.path("older"));
  const auto read = [&](std::uint64_t n_vocab) {
    return convert::read_vocabulary(folder.path("older"), convert::Config(json::object(), "config.json"),
                                    n_vocab, "");
  };
  write_text(folder.path("older/sentencepiece.bpe.model"),
             sentencepiece({{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}, {",", -3, 1}, {"a", -4, 1}}, 1));
  const VocabularyData v = read(8);
  std::string texts;
  for (const auto& token : v.tokens) texts += token.text + " ";
  CHECK(texts == "<s> <pad> </s> <unk> , a <mask> [PAD7] ");
  CHECK(v.tokens[4].score == -3.0F);
  CHECK(v.tokens[3].type == TokenType::unknown);
  CHECK(v.bos == 0);
  CHECK(v.classifier == 0);
  CHECK(v.padding == 1);
  CHECK(v.separator == 2);
  CHECK(v.unknown == 3);
  CHECK(v.add_separator == true);
  CHECK(read(5).tokens.back().text == ",");
  CHECK(mentions(refusal([&] { return read(3); }), "the embedding has 3 rows"));
  std::filesystem::rename(folder.path("older/sentencepiece.bpe.model"), folder.path("older/spiece.model"));
  CHECK(read(5).tokens[3].text == ",");  // other models keep SentencePiece's ids
}

TEST_CASE("special tokens of tokenizer.model beyond the embedding are none") {
  TokenizerFolder folder;
  folder.tokenizer = nullptr;
  for (const unsigned kind : {1U, 2U}) {
    folder.spm = sentencepiece({{"a", 0, 1}, {"<s>", 0, 3}, {"</s>", 0, 3}, {"<unk>", 0, 2}}, kind);
    const VocabularyData v = folder.read(1);
    CHECK(v.tokens.size() == 1);
    CHECK_FALSE(v.bos);
    CHECK_FALSE(v.eos);
    CHECK_FALSE(v.unknown);
  }
}

TEST_CASE("tokenizer.model of another kind, or cut anywhere, is refused") {
  TokenizerFolder folder;
  folder.tokenizer = nullptr;
  folder.spm = sentencepiece({{"a", 0, 1}}, 3);
  CHECK(mentions(folder.refused(), "Word"));
  folder.spm = sentencepiece({{"a", 0, 9}});
  CHECK(mentions(folder.refused(), "type 9"));
  const std::string whole = sentencepiece({{"ab", -1, 1}, {"c", -2, 1}});
  folder.spm = whole;
  CHECK(folder.read(2).tokens[1].text == "c");
  for (std::size_t n = 1; n + 14 < whole.size(); ++n) {  // the last field is optional
    CAPTURE(n);
    folder.spm = whole.substr(0, n);
    CHECK(folder.refused(2).code() == ErrorCode::file);
  }
  folder.spm = std::string(20, '\xFF');
  CHECK(folder.refused().code() == ErrorCode::file);
}

TEST_CASE("scores follow the merges when ids do not") {
  TokenizerFolder folder;
  json tokenizer = {{"model",
                     {{"type", "BPE"},
                      {"byte_fallback", true},
                      {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"bc", 3}, {"ab", 4}}},
                      {"merges", {"a b", "b c"}}}}};
  folder.tokenizer = tokenizer;
  VocabularyData v = folder.read(5);
  CHECK(v.tokens[4].score > v.tokens[3].score);
  CHECK(v.tokens[3].score > v.tokens[0].score);
  tokenizer["model"]["merges"] = {"b c", "a b"};
  folder.tokenizer = tokenizer;
  v = folder.read(5);
  CHECK(v.tokens[3].score == -3.0F);
  CHECK(v.tokens[4].score == -4.0F);
}

TEST_CASE("bytes, unknown characters and rows without a token have no place among the merges") {
  TokenizerFolder folder;
  folder.tokenizer = spm_tokenizer();
  json& model = folder.tokenizer["model"];
  model["vocab"].update(json::parse(R"({"<0x4": 6, "<0y41>": 7, "<0x412": 8, "bb": 9})"));
  const VocabularyData v = folder.read(10);
  CHECK(v.tokens[0].type == TokenType::unknown);
  CHECK(v.tokens[1].type == TokenType::byte);
  CHECK(v.tokens[5].type == TokenType::unused);
  for (const std::size_t id : {6U, 7U, 8U}) CHECK(v.tokens[id].type == TokenType::normal);
  CHECK(v.tokens[1].score == 0.0F);
  CHECK(v.tokens[4].score == -4.0F);
  model["merges"] = {"b b", "a b"};  // not in the order of ids
  const VocabularyData ranked = folder.read(10);
  CHECK(ranked.tokens[1].score == 0.0F);
  CHECK(ranked.tokens[9].score > ranked.tokens[4].score);
  CHECK(ranked.tokens[4].score > ranked.tokens[2].score);
  CHECK(ranked.notes.front().find("scores follow the merges") != std::string::npos);
  const VocabularyData small = folder.read(9);  // without "bb"
  CHECK(small.tokens[4].score == -4.0F);
}

TEST_CASE("a space before the text is put there by a Prepend or a Metaspace") {
  struct Row {
    std::string steps, prefix;  // null: no key is written
  };
  const Row rows[] = {
      {"{}", "null"},
      {R"({"normalizer": {"type": "Prepend", "prepend": "_"}})", "true"},
      {R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend"}]}})",
       "true"},
      {R"({"normalizer": {"type": "NFC"}})", "false"},
      {R"({"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Digits"}})", "false"},
      {R"({"pre_tokenizer": {"type": "Digits"}})", "null"},
      {R"({"pre_tokenizer": {"type": "Metaspace"}})", "true"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "add_prefix_space": true}})", "true"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "add_prefix_space": false}})", "false"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always"}})", "true"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first"}})", "true"},
      {R"({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never"}})", "false"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.steps);
    TokenizerFolder folder;
    folder.tokenizer = spm_tokenizer();
    folder.tokenizer.update(json::parse(row.steps));
    const std::optional<bool> prefix = folder.read(5).add_space_prefix;
    CHECK((prefix ? json(*prefix) : json(nullptr)) == json::parse(row.prefix));
  }
}

TEST_CASE("a family with its own kind of vocabulary gets merges and scores") {
  TokenizerFolder folder;
  folder.tokenizer = {{"added_tokens",
                       {{{"id", 3}, {"content", "<|channel>"}, {"special", true}},
                        {{"id", 4}, {"content", "<bos>"}, {"special", true}},
                        {{"id", 5}, {"content", "<x>"}, {"special", "yes"}}}},
                      {"model",
                       {{"type", "BPE"},
                        {"byte_fallback", true},
                        {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
                        {"merges", {"a b"}}}}};
  const VocabularyData v = folder.read(6, "gemma4");
  CHECK(v.model == "gemma4");
  CHECK(v.merges.size() == 1);
  CHECK(v.scored);
  CHECK(v.tokens[3].type == TokenType::user_defined);
  CHECK(v.tokens[4].type == TokenType::control);
  CHECK(v.tokens[5].type == TokenType::user_defined);
}

TEST_CASE("chat templates are a file, a text, or a list with names") {
  TokenizerFolder folder;
  folder.settings = {{"chat_template", "one"}};
  CHECK(folder.read(12).chat_templates == std::vector<std::pair<std::string, std::string>>{{"", "one"}});
  folder.settings = {
      {"chat_template",
       {{{"name", "default"}, {"template", "two"}}, {{"name", "tool_use"}, {"template", "three"}}}}};
  CHECK(folder.read(12).chat_templates ==
        std::vector<std::pair<std::string, std::string>>{{"", "two"}, {"tool_use", "three"}});
  gguf::Writer out;
  write_vocabulary(folder.read(12), out);
  const std::vector<std::byte> bytes = out.bytes();
  const gguf::Document document = gguf::parse(bytes, "toy");
  const gguf::Metadata& metadata = document.metadata();
  CHECK(metadata.require<std::string>("tokenizer.chat_template") == "two");
  CHECK(metadata.require<std::string>("tokenizer.chat_template.tool_use") == "three");
  const auto names = metadata.require<gguf::Array<std::string_view>>("tokenizer.chat_templates");
  CHECK(std::vector<std::string>(names.begin(), names.end()) == std::vector<std::string>{"tool_use"});
  folder.settings =
      json::parse(R"({"chat_template": [{"name": "a"}, {"template": "b"}, {"name": 1, "template": "c"},
                                                      {"name": "d", "template": 2}, "e"]})");
  CHECK(folder.read(12).chat_templates.empty());
  write_text(folder.path("chat_template.jinja"), "four");
  CHECK(folder.read(12).chat_templates == std::vector<std::pair<std::string, std::string>>{{"", "four"}});
}

/// The vocabulary of a file, and what comes back from the JSON files that it could have come from.
struct Pair {
  text::Vocabulary kit, ours;
};

Pair vocabularies(const std::string& path, std::string_view family = "") {
  const gguf::Document document = gguf::open(path);
  const gguf::Metadata& metadata = document.metadata();
  const KitVocabulary kit(metadata);
  TokenizerFolder folder;
  folder.tokenizer =
      tokenizer_json(kit, metadata.get<bool>("tokenizer.ggml.add_space_prefix").value_or(true));
  folder.settings = tokenizer_config(metadata);
  gguf::Writer out;
  out.set("general.name", metadata.get<std::string>("general.name").value_or(""));
  write_vocabulary(folder.read(kit.tokens.size(), family), out);
  const std::vector<std::byte> bytes = out.bytes();
  return {text::vocabulary_from(metadata), text::vocabulary_from(gguf::parse(bytes, "ours").metadata())};
}

void check_same(const Pair& pair) {
  const auto& [kit, ours] = pair;
  REQUIRE(kit.size() == ours.size());
  std::size_t different = 0;
  for (TokenId id = 0; id < kit.size(); ++id) {
    if (kit.type(id) == TokenType::unused || ours.type(id) == TokenType::unused) continue;
    different += kit.text(id) == ours.text(id) && kit.type(id) == ours.type(id) ? 0U : 1U;
  }
  CHECK(different == 0);
  CHECK(text::find_pretokenizer_rules(kit.pre()) ==
        text::find_pretokenizer_rules(ours.pre()));  // llama4, gpt-4o
  CHECK(kit.merges().size() == ours.merges().size());
  CHECK(kit.special().bos == ours.special().bos);
  CHECK(kit.special().eos == ours.special().eos);
  CHECK(kit.special().unknown == ours.special().unknown);
  CHECK(kit.special().padding == ours.special().padding);
  CHECK(kit.add_bos() == ours.add_bos());
  CHECK(kit.add_space_prefix() == ours.add_space_prefix());
}

/// The texts of the kit's cases, each encoded by both.
void check_same_ids(const Pair& pair, const std::filesystem::path& cases) {
  std::ifstream in(cases);
  const json all = json::parse(in);
  const text::AnyTokenizer kit(pair.kit), ours(pair.ours);
  std::size_t compared = 0;
  for (const json& each : all["cases"]) {
    if (!each.contains("text")) continue;
    const auto text = each["text"].get<std::string>();
    CAPTURE(text);
    for (const bool parse : {false, true})
      CHECK(kit.encode(text, {.add_special = true, .parse_special = parse}) ==
            ours.encode(text, {.add_special = true, .parse_special = parse}));
    ++compared;
  }
  CHECK(compared > 20);
}

TEST_CASE("vocabularies of the kit return from tokenizer.json, and cut its cases alike") {
  const auto root = shared_dir("vocabularies as tokenizer.json", "conformance");
  if (!root) return;
  const std::pair<const char*, const char*> models[] = {
      {"models/llama-mha-spm.F16.gguf", "tiny-llama-mha-spm"},
      {"models/llama3-gqa.F32.gguf", "tiny-llama3-gqa"},
      {"models/qwen3.Q8_0.gguf", "tiny-qwen3"},
      {"models/gemma2.Q8_0.gguf", "tiny-gemma2"},
      {"models/gpt-oss.MXFP4_MOE.gguf", "tiny-gpt-oss"},
      {"models/llama4.Q8_0.gguf", "tiny-llama4"},
      {"models/phi3.Q8_0.gguf", "tiny-phi3"},
      {"tokenizer/llama-spm.gguf", "llama-spm"},
  };
  for (const auto& [file, cases] : models) {
    SUBCASE(file) {
      const Pair pair = vocabularies((*root / file).string());
      check_same(pair);
      check_same_ids(pair, *root / "tokenizer" / (std::string(cases) + ".cases.json"));
    }
  }
}

}  // namespace
}  // namespace mica::test::vocabulary_test
