// SPDX-License-Identifier: Apache-2.0

#include "mica/text/vocabulary_gguf.hpp"

#include "mica/gguf/reader.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vocabulary_gguf_test {

using namespace mica;
using text::vocabulary_from;

namespace {

constexpr std::string_view scores = "tokenizer.ggml.scores";
constexpr std::string_view merges = "tokenizer.ggml.merges";
constexpr std::string_view pre = "tokenizer.ggml.pre";

gguf::Writer vocabulary(std::string_view model) {
  gguf::Writer file;
  file.set("tokenizer.ggml.model", model);
  file.set_array("tokenizer.ggml.tokens", std::vector<std::string_view>{"<unk>", "a", "b", "ab"});
  file.set_array("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 1, 1, 1});
  return file;
}

/// The error's text, without the name of the file; empty when there is none. Warnings are added to `said`.
std::string refusal(const gguf::Writer& file, std::string* said = nullptr) {
  const std::vector<std::byte> bytes = file.bytes();
  const LogSink log = {[](void* context, LogLevel level, std::string_view message) {
                         CHECK(level == LogLevel::warning);
                         if (context != nullptr) static_cast<std::string*>(context)->append(message);
                       },
                       said};
  try {
    (void)vocabulary_from(gguf::parse(bytes, "toy").metadata(), log);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
    CHECK(error.message().starts_with("toy: "));
    return error.message().substr(5);
  }
  return {};
}

constexpr std::string_view way_out = "convert the model again, or take the file from its publisher";

}  // namespace

TEST_CASE("a vocabulary without that by which its tokens join is refused by key, with the way out") {
  for (const auto& [model, key] :
       {std::pair("llama", scores), std::pair("gpt2", merges), std::pair("gemma4", merges)}) {
    const auto& the_model = model;
    CAPTURE(the_model);
    gguf::Writer file = vocabulary(model);
    CHECK(refusal(file).starts_with("key '" + std::string(key) + "' is missing; "));
    CHECK(refusal(file).ends_with(way_out));
    if (key == scores) {
      file.set_array(key, std::vector<float>{});
    } else {
      file.set_array(key, std::vector<std::string_view>{});
    }
    CHECK(refusal(file).starts_with("key '" + std::string(key) + "' is empty; "));
    if (key == scores) {
      file.set_array(key, std::vector<float>{0, -1, -2, -3});
    } else {
      file.set_array(key, std::vector<std::string_view>{"a b"});
    }
    CHECK(refusal(file).empty());
  }
}

TEST_CASE("a vocabulary of single characters has nothing to join and needs neither scores nor merges") {
  for (const char* model : {"llama", "gpt2"}) {
    gguf::Writer file = vocabulary(model);
    file.set_array("tokenizer.ggml.tokens", std::vector<std::string_view>{"<unk>", "a", "\u00FC", "\u2581"});
    CHECK(refusal(file).empty());
  }
}

TEST_CASE("without types every token is ordinary, and one without text or type has nothing to join") {
  gguf::Writer file;
  file.set("tokenizer.ggml.model", "llama");
  file.set_array("tokenizer.ggml.tokens", std::vector<std::string_view>{"", "a", "\u00FC"});
  CHECK(refusal(file).empty());
  file.set_array("tokenizer.ggml.tokens", std::vector<std::string_view>{"", "a", "ab"});
  CHECK(refusal(file).starts_with("key 'tokenizer.ggml.scores' is missing; "));
  file.set_array("tokenizer.ggml.token_type", std::vector<std::int32_t>{0, 0, 0});  // not defined
  CHECK(refusal(file).starts_with("key 'tokenizer.ggml.scores' is missing; "));
  file.set_array("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 3});
  CHECK(refusal(file).empty());
}

TEST_CASE("a special id is a number, and none where it is negative or the largest of 32 bits") {
  const auto bos = [](auto id) {
    gguf::Writer file = vocabulary("bert");
    file.set("tokenizer.ggml.bos_token_id", id);
    const std::vector<std::byte> bytes = file.bytes();
    return vocabulary_from(gguf::parse(bytes, "toy").metadata()).special().bos;
  };
  CHECK(bos(std::int32_t{2}) == text::TokenId{2});
  CHECK_FALSE(bos(std::int32_t{-1}));
  CHECK_FALSE(bos(std::uint32_t{0xFFFF'FFFF}));
}

TEST_CASE("scores of another type than the format's are refused") {
  gguf::Writer file = vocabulary("llama");
  file.set_array(scores, std::vector<double>{0, -1, -2, -3});
  CHECK(refusal(file) == "key 'tokenizer.ggml.scores' is array of 4 f64; needed: an array of f32");
  file.set(scores, 1.0F);
  CHECK(refusal(file) == "key 'tokenizer.ggml.scores' is 1 (f32); needed: an array of f32");
}

TEST_CASE("a missing pre-tokenizer is said once, with the one that stands in") {
  gguf::Writer file = vocabulary("gpt2");
  file.set_array(merges, std::vector<std::string_view>{"a b"});
  std::string said;
  CHECK(refusal(file, &said).empty());
  CHECK(said ==
        "toy: key 'tokenizer.ggml.pre' is missing; texts are cut into words by the rules named 'default', "
        "which may not be the model's own");
  file.set(pre, "llama-bpe");
  CHECK(refusal(file, &(said = {})).empty());
  CHECK(said.empty());
  gguf::Writer spm = vocabulary("llama");  // knows no pre-tokenizer
  spm.set_array(scores, std::vector<float>{0, -1, -2, -3});
  CHECK(refusal(spm, &said).empty());
  CHECK(said.empty());
}

TEST_CASE("the keys of text encoders are read, and a Unigram without scores is refused") {
  gguf::Writer bert = vocabulary("bert");
  CHECK(refusal(bert).empty());  // needs neither scores nor merges
  const auto read = [](const gguf::Writer& file) {
    const std::vector<std::byte> bytes = file.bytes();
    return vocabulary_from(gguf::parse(bytes, "toy").metadata());
  };
  CHECK(read(bert).lower_case());
  CHECK(read(bert).strip_accents());
  bert.set("tokenizer.ggml.normalizer.lowercase", false);
  CHECK_FALSE(read(bert).lower_case());
  CHECK_FALSE(read(bert).strip_accents());
  bert.set("tokenizer.ggml.normalizer.strip_accents", true);
  CHECK(read(bert).strip_accents());
  bert.set("tokenizer.ggml.cls_token_id", std::uint32_t{1});
  bert.set("tokenizer.ggml.seperator_token_id", std::uint32_t{2});
  bert.set("tokenizer.ggml.mask_token_id", std::uint32_t{3});
  CHECK(read(bert).special().bos == text::TokenId{1});
  CHECK(read(bert).special().eos == text::TokenId{2});
  CHECK(read(bert).special().mask == text::TokenId{3});
  bert.set("tokenizer.ggml.seperator_token_id", std::uint32_t{4});
  CHECK(refusal(bert).starts_with("tokenizer.ggml.seperator_token_id: found 4"));

  gguf::Writer t5 = vocabulary("t5");
  CHECK(refusal(t5).starts_with("key 'tokenizer.ggml.scores' is missing; "));
  t5.set_array(scores, std::vector<float>{0, -1, -2, -3});
  const std::vector<std::int8_t> charsmap = {4, 0, 0, 0, 0, 0, 0, 0};
  t5.set_array("tokenizer.ggml.precompiled_charsmap", charsmap);
  CHECK(read(t5).charsmap() == std::string(charsmap.begin(), charsmap.end()));
  t5.set_array("tokenizer.ggml.precompiled_charsmap", std::vector<std::uint8_t>{4, 0, 0, 0, 0xFF, 0, 0, 0});
  CHECK(read(t5).charsmap() == std::string("\4\0\0\0\xFF\0\0\0", 8));
  t5.set_array("tokenizer.ggml.precompiled_charsmap", std::vector<std::uint32_t>{4});
  CHECK(refusal(t5) ==
        "key 'tokenizer.ggml.precompiled_charsmap' is array of 1 u32; needed: an array of u8 or i8");
  t5.set("tokenizer.ggml.precompiled_charsmap", std::uint32_t{4});
  CHECK(refusal(t5) == "key 'tokenizer.ggml.precompiled_charsmap' is 4 (u32); needed: an array of u8 or i8");
  t5.set_array("tokenizer.ggml.precompiled_charsmap", std::vector<std::uint32_t>{});
  CHECK(read(t5).charsmap().empty());
}

}  // namespace vocabulary_gguf_test
