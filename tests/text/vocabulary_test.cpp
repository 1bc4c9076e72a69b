// SPDX-License-Identifier: Apache-2.0

#include "mica/text/vocabulary.hpp"

#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace vocabulary_test {

using namespace mica;
using namespace mica::text;
using test::SmallVocabulary;

namespace {

/// The text of the error that building raises; empty when it raises none.
std::string refusal(const VocabularySource& source, ErrorCode code = ErrorCode::file) {
  try {
    const Vocabulary vocabulary(source);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.message();
  }
  return {};
}

SmallVocabulary abc(std::string_view model) {
  SmallVocabulary v(model);
  v.add("<unk>", TokenType::unknown);
  v.add("<s>", TokenType::control);
  v.add("</s>", TokenType::control);
  v.add("a");
  v.add("b");
  v.add("ab");
  return v;
}

}  // namespace

TEST_CASE("a vocabulary gives back what it was built from") {
  auto small = abc("llama");
  small.source().name = "toy";
  const Vocabulary v = small.build();
  CHECK(v.size() == 6);
  CHECK(v.kind() == TokenizerKind::spm);
  CHECK(v.name() == "toy");
  CHECK(v.text(5) == "ab");
  CHECK(v.type(1) == TokenType::control);
  CHECK(v.longest_text_bytes() == 5);
  CHECK(v.bytes() > 0);
}

TEST_CASE("a text may hold any byte, NUL included") {
  auto small = abc("llama");
  const TokenId id = small.add(std::string("x\0y", 3));
  const Vocabulary v = small.build();
  CHECK(v.text(id).size() == 3);
  CHECK(v.find(std::string_view("x\0y", 3)) == id);
  CHECK(v.find("x") == no_token);
}

TEST_CASE("ordinary text never becomes a control, unknown or byte token") {
  auto small = abc("llama");
  small.add_bytes();
  const Vocabulary v = small.build();
  CHECK(v.find("ab") == 5);
  CHECK(v.find("<s>") == no_token);
  CHECK(v.find("<unk>") == no_token);
  CHECK(v.find("<0x41>") == no_token);
  CHECK(v.find_special("<s>") == 1);
  CHECK(v.find_special("<unk>") == 0);
  CHECK(v.find_special("ab") == no_token);
}

TEST_CASE("of two tokens with one text the first encodes and both decode") {
  auto small = abc("llama");
  const TokenId again = small.add("ab");
  const Vocabulary v = small.build();
  CHECK(v.find("ab") == 5);
  CHECK(v.text(again) == "ab");
}

TEST_CASE("texts that were chosen to collide are refused, and texts beside them are not found") {
  constexpr std::size_t most = 512, slots = 1024;  // of 512 to 681 tokens
  SmallVocabulary small("gpt2");
  std::string text = "0000";
  const auto next = [&] {
    do {
      for (std::size_t i = 0; ++text[i] == '{'; ++i) text[i] = '0';
    } while (mica::text::detail::hash(text) % slots != 0);
    return text;
  };
  for (std::size_t i = 0; i < most; ++i) small.add(next());
  const Vocabulary v = small.build();
  CHECK(v.find(text) == most - 1);
  const std::string other = next();
  CHECK(v.find(other) == no_token);
  small.add(other);
  CHECK(refusal(small.source()) == "tokenizer.ggml.tokens: token 512 '" + other +
                                       "' collides with more than 512 others; no honest vocabulary does");
}

TEST_CASE("of two special tokens with one text the first is found") {
  auto small = abc("llama");
  const TokenId again = small.add("<s>", TokenType::control);
  const Vocabulary v = small.build();
  CHECK(v.find_special("<s>") == 1);
  CHECK(v.special_prefix("<s>a", true) == 1);
  CHECK(v.type(again) == TokenType::control);
}

TEST_CASE("the longest special token at the beginning of a text is found") {
  auto small = abc("llama");
  const TokenId one = small.add("\n", TokenType::user_defined);
  const TokenId three = small.add("\n\n\n", TokenType::user_defined);
  const TokenId tag = small.add("<|x|>", TokenType::control);
  const Vocabulary v = small.build();
  CHECK(v.special_prefix("\n\na", false) == one);
  CHECK(v.special_prefix("\n\n\n\na", false) == three);
  CHECK(v.special_prefix("<|x|>", true) == tag);
  CHECK(v.special_prefix("<|x|>", false) == no_token);
  CHECK(v.special_prefix("<|x|", true) == no_token);
  CHECK(v.special_prefix("", true) == no_token);
  CHECK(v.special_prefix("a\n", true) == no_token);
}

TEST_CASE("a special token too long to look for is still a token") {
  auto small = abc("llama");
  const std::string text(513, 'x');
  const TokenId id = small.add(text, TokenType::user_defined);
  const Vocabulary v = small.build();
  CHECK(v.special_prefix(text, true) == no_token);
  CHECK(v.text(id) == text);
}

TEST_CASE("an unknown tokenizer model is refused by name with the known ones") {
  auto small = abc("rwkv");
  const std::string said = refusal(small.source(), ErrorCode::unsupported);
  for (const char* name : {"'rwkv'", "'llama'", "'gpt2'", "'bert'", "'t5'"})
    CHECK(said.find(name) != std::string::npos);
}

TEST_CASE("a score that is no number is refused with its token") {
  auto small = abc("llama");
  VocabularySource source = small.source();
  std::vector<float> scores(source.scores.begin(), source.scores.end());
  scores[2] = std::numeric_limits<float>::quiet_NaN();
  source.scores = scores;
  CHECK(refusal(source) == "tokenizer.ggml.scores: found a NaN for token 2, a score must be a number");
}

TEST_CASE("arrays that do not fit the tokens are refused with both numbers") {
  auto small = abc("llama");
  VocabularySource source = small.source();
  source.scores = source.scores.first(3);
  CHECK(refusal(source) == "tokenizer.ggml.scores: found 3 entries, 6 tokens need 6 or none");
  source = small.source();
  source.types = source.types.first(5);
  CHECK(refusal(source) == "tokenizer.ggml.token_type: found 5 entries, 6 tokens need 6 or none");
  source.types = {};
  source.scores = {};
  CHECK(refusal(source).empty());
  source.tokens = {};
  CHECK(refusal(source).find("tokenizer.ggml.tokens") == 0);
}

TEST_CASE("a vocabulary without scores and types has tokens of score 0 that are ordinary text") {
  auto small = abc("gpt2");
  VocabularySource source = small.source();
  source.scores = {};
  source.types = {};
  const Vocabulary v(source);
  CHECK(v.score(5) == 0.0F);
  CHECK(v.type(1) == TokenType::normal);
  CHECK(v.find("<s>") == 1);
}

TEST_CASE("a token type outside the known ones is refused") {
  auto small = abc("llama");
  std::vector<std::int32_t> types(6, 1);
  VocabularySource source = small.source();
  source.types = types;
  types[4] = 7;
  CHECK(refusal(source) == "tokenizer.ggml.token_type: found 7 for token 4, allowed are 0 to 6");
  types[4] = -1;
  CHECK_FALSE(refusal(source).empty());
}

TEST_CASE("a special id outside the vocabulary is refused by its key") {
  auto small = abc("llama");
  small.source().eos = 6;
  CHECK(refusal(small.source()) ==
        "tokenizer.ggml.eos_token_id: found 6, the vocabulary has 6 tokens (0 to 5)");
  small.source().eos = 5;
  CHECK(small.build().special().eos == 5U);
  small.source().eos = 0xFFFF'FFFFU;  // "none" as some files write it
  CHECK_FALSE(small.build().special().eos.has_value());
}

TEST_CASE("an SPM file may leave out its usual special ids, a BPE file has none") {
  const Vocabulary spm = abc("llama").build();
  CHECK(spm.special().bos == 1U);
  CHECK(spm.special().eos == 2U);
  CHECK(spm.special().unknown == 0U);
  CHECK(spm.add_bos());
  CHECK(spm.add_space_prefix());
  const Vocabulary bpe = abc("gpt2").build();
  CHECK_FALSE(bpe.special().bos.has_value());
  CHECK_FALSE(bpe.add_bos());
  CHECK_FALSE(bpe.add_space_prefix());
}

TEST_CASE("a Unigram file may leave out its usual special ids, and those that it has are taken") {
  SmallVocabulary small("t5");
  small.add("<pad>", TokenType::control);
  small.add("</s>", TokenType::control);
  small.add("<unk>", TokenType::unknown);
  const TokenId other = small.add("<none>", TokenType::control);
  CHECK(small.build().special().padding == 0U);
  CHECK(small.build().special().eos == 1U);
  CHECK(small.build().special().unknown == 2U);
  small.source().padding = small.source().eos = small.source().unknown = other;
  CHECK(small.build().special().padding == other);
  CHECK(small.build().special().eos == other);
  CHECK(small.build().special().unknown == other);
}

TEST_CASE("default ids are not taken from tokens of another kind") {
  SmallVocabulary small("llama");
  for (const char* token : {"a", "b", "c"}) small.add(token);
  const Vocabulary v = small.build();
  CHECK_FALSE(v.special().bos.has_value());
  CHECK_FALSE(v.special().unknown.has_value());
  CHECK_FALSE(v.add_bos());
}

TEST_CASE("the tokens that end an answer are known by id and by name") {
  auto small = abc("gpt2");
  small.source().eos = 2;
  const TokenId turn = small.add("<|im_end|>");  // ordinary in the file, control here
  const TokenId text = small.add("<|endoftext|>", TokenType::control);
  const Vocabulary v = small.build();
  CHECK(v.special().eot == turn);
  CHECK(v.type(turn) == TokenType::control);
  CHECK(std::vector<TokenId>(v.ends().begin(), v.ends().end()) == std::vector<TokenId>{2, turn, text});
  CHECK(v.is_end(turn));
  CHECK_FALSE(v.is_end(3));
}

TEST_CASE("a mark around a gap is a control token, whatever its type in the file") {
  auto small = abc("gpt2");
  for (const char* mark : {"<|fim_prefix|>", "<fim_suffix>", "<PRE>", "<|file_sep|>"}) {
    const TokenId id = small.add(mark);
    const Vocabulary v = small.build();
    CHECK(v.type(id) == TokenType::control);
    CHECK(v.find(mark) == no_token);
    CHECK(v.find_special(mark) == id);
    CHECK_FALSE(v.is_end(id));
  }
}

TEST_CASE("a user-defined token that begins or ends texts is found only where control tokens are") {
  SmallVocabulary small("gpt2");
  const TokenId border = small.add("<x>", TokenType::user_defined);
  const TokenId end = small.add("</s>", TokenType::user_defined);
  const TokenId again = small.add("</s>", TokenType::user_defined);
  const TokenId free = small.add("<y>", TokenType::user_defined);
  small.source().bos = small.source().eos = border;
  const Vocabulary v = small.build();
  CHECK(again > end);
  for (const auto& [text, id] : {std::pair("<x>", border), std::pair("</s>", end)}) {
    CHECK(v.special_prefix(text, true) == id);
    CHECK(v.special_prefix(text, false) == no_token);
  }
  CHECK(v.special_prefix("<y>", false) == free);
}

TEST_CASE("where messages end with one token and answers with another, only the latter ends") {
  SmallVocabulary small("gpt2");
  const TokenId end = small.add("<|end|>", TokenType::control);
  const TokenId done = small.add("<|return|>", TokenType::control);
  const Vocabulary v = small.build();
  CHECK(v.special().eot == end);
  CHECK_FALSE(v.is_end(end));
  CHECK(v.is_end(done));
}

TEST_CASE("merges become ids and those that name a missing token are counted") {
  auto small = abc("gpt2");
  for (const char* merge : {"a b", "a c", "b", "", " ", "b b", "a  b"}) small.merge(merge);
  const Vocabulary v = small.build();
  REQUIRE(v.merges().size() == 1);
  CHECK(v.merges()[0].left == 3);
  CHECK(v.merges()[0].right == 4);
  CHECK(v.merges()[0].result == 5);
  CHECK(v.ignored_merges() == 6);
}

}  // namespace vocabulary_test
