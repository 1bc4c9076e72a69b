// SPDX-License-Identifier: Apache-2.0

#include "mica/gguf/metadata.hpp"

#include "gguf/sample_file.hpp"
#include "mica/gguf/reader.hpp"

namespace mica::test::metadata_test {
namespace {

using gguf::Array;

struct Fixture {
  Fixture() {
    writer.set("llama.block_count", std::int32_t{3});
    writer.set("llama.rope.freq_base", 10'000.0);
    writer.set("general.name", "tiny");
    writer.set("negative", -3);
    writer.set_array("llama.attention.head_count_kv", std::array<std::uint32_t, 3>{1, 2, 4});
    writer.set_array("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "", "a"});
    bytes = writer.bytes();
    document.emplace(gguf::parse(bytes, "tiny.gguf"));
  }
  [[nodiscard]] const gguf::Metadata& metadata() const { return document->metadata(); }

  gguf::Writer writer;
  std::vector<std::byte> bytes;
  std::optional<gguf::Document> document;
};

TEST_CASE_FIXTURE(Fixture, "a key is found by its whole name and keeps its place in the file") {
  CHECK(metadata().size() == 6);
  CHECK(metadata().key(2) == "general.name");
  CHECK(metadata().value(2).as<std::string_view>() == "tiny");
  CHECK(metadata().contains("general.name"));
  for (const std::string_view absent : {"general.nam", "general.names", "", "zzz"}) {
    CHECK(!metadata().find(absent));
    CHECK(!metadata().get<int>(absent));
  }
}

TEST_CASE_FIXTURE(Fixture, "a number is taken in any width that holds it") {
  CHECK(metadata().get<std::uint32_t>("llama.block_count") == 3u);
  CHECK(metadata().require<std::uint8_t>("llama.block_count") == 3);
  CHECK(metadata().require<float>("llama.rope.freq_base") == 10'000.0f);
}

TEST_CASE_FIXTURE(Fixture,
                  "a value of the wrong kind is refused by file, key, what it is and what is needed") {
  const Error text = refusal([&] { return metadata().get<std::uint32_t>("general.name"); });
  CHECK(text.code() == ErrorCode::file);
  CHECK(mentions(text, "tiny.gguf", "'general.name'", "'tiny' (string)",
                 "a whole number from 0 to 4294967295"));
  CHECK(mentions(refusal([&] { return metadata().get<std::uint32_t>("negative"); }), "-3 (i32)", "from 0"));
  CHECK(mentions(refusal([&] { return metadata().get<std::string>("negative"); }), "a string"));
  CHECK(mentions(refusal([&] { return metadata().get<Array<float>>("tokenizer.ggml.tokens"); }),
                 "array of 3 string", "an array, each element a number (f32)"));
}

TEST_CASE_FIXTURE(Fixture, "a required key that is missing is named with what it would have been") {
  const Error error = refusal([&] { return metadata().require<std::uint32_t>("llama.embedding_length"); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "tiny.gguf", "'llama.embedding_length' is missing", "a whole number"));
}

TEST_CASE_FIXTURE(Fixture, "one number stands for all layers, an array must have one for each") {
  CHECK(metadata().get_each<std::uint32_t>("llama.block_count", 2) == std::vector<std::uint32_t>{3, 3});
  CHECK(metadata().get_each<int>("llama.attention.head_count_kv", 3) == std::vector<int>{1, 2, 4});
  CHECK(metadata().get_each<int>("absent", 3).empty());
  CHECK(mentions(refusal([&] { return metadata().get_each<int>("llama.attention.head_count_kv", 4); }),
                 "llama.attention.head_count_kv", "array of 3 u32", "one number or 4"));
}

TEST_CASE_FIXTURE(Fixture, "views of a metadata stay valid when its document moves") {
  const auto name = metadata().require<std::string_view>("general.name");
  const auto tokens = metadata().require<Array<std::string_view>>("tokenizer.ggml.tokens");
  const gguf::Document moved = std::move(*document);
  document.reset();
  CHECK(name == "tiny");
  CHECK(*tokens.begin() == "<s>");
  CHECK(moved.metadata().require<std::string_view>("general.name").data() == name.data());
}

TEST_CASE("a key that appears twice is refused with both values") {
  const RawHeader header = RawHeader(0, 3).pair("b", 1).pair("a", 2).pair("b", 3);
  CHECK(mentions(refusal([&] { return gguf::parse(header.bytes(), "m"); }), "key 'b' appears twice",
                 "1 (u32)", "3 (u32)"));
}

TEST_CASE("control bytes of a key do not reach the error text") {
  const RawHeader header = RawHeader(0, 2).pair("\x1b[2J", 1).pair("\x1b[2J", 2);
  const Error error = refusal([&] { return gguf::parse(header.bytes(), "m"); });
  CHECK(mentions(error, "\\x1b[2J"));
  CHECK(error.message().find('\x1b') == std::string::npos);
}

TEST_CASE("a key without a name and a tensor with an endless one are refused") {
  CHECK(mentions(refusal([] { return gguf::parse(RawHeader(0, 1).pair("", 1).bytes(), "m"); }),
                 "a key is empty; 1 to 65535 bytes are allowed"));
  const RawHeader endless = RawHeader(1, 0).text(std::string(100'000, 'x')).data(64);
  const Error error = refusal([&] { return gguf::parse(endless.bytes(), "m"); });
  CHECK(mentions(error, "the name is 100000 bytes long; 1024 are allowed"));
  CHECK(error.message().size() < 300);
}

}  // namespace
}  // namespace mica::test::metadata_test
