// SPDX-License-Identifier: Apache-2.0

#include "mica/gguf/reader.hpp"

#include "gguf/sample_file.hpp"
#include "io/pages.hpp"

#include <algorithm>
#include <unistd.h>

namespace mica::test::reader_test {
namespace {

using gguf::Document;
using gguf::ValueType;

constexpr std::uint32_t f32 = 0;
constexpr std::uint32_t q8_0 = 8;

Error parse_refusal(std::span<const std::byte> bytes) {
  return refusal([&] { return gguf::parse(bytes, "model.gguf"); });
}
Error parse_refusal(const RawHeader& header) { return parse_refusal(header.bytes()); }

TEST_CASE("versions 2 and 3 are read, others are refused by number") {
  for (const std::uint32_t version : {2u, 3u}) {
    const RawHeader header(0, 0, version);
    CHECK(gguf::parse(header.bytes(), "m").version() == version);
  }
  for (const std::uint32_t version : {0u, 1u, 4u, 77u}) {
    const Error error = parse_refusal(RawHeader(0, 0, version));
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK(mentions(error, "model.gguf", join("GGUF version ", version), "2 and 3"));
  }
  CHECK(mentions(parse_refusal(RawHeader(0, 0, 3u << 24)), "big-endian", "version 3"));
}

TEST_CASE("what is not GGUF is refused with what it begins with") {
  CHECK(mentions(parse_refusal(std::as_bytes(std::span("version https://git-lfs"))), "not a GGUF file",
                 "'vers'", "git lfs pull"));
  for (const std::string_view page : {"<!DOCTYPE html>", "<!doctype html>", "<html>"})
    CHECK(mentions(parse_refusal(std::as_bytes(std::span(page))), "looks like a web page"));
  CHECK(mentions(parse_refusal(std::as_bytes(std::span("{\"error\":1}"))), "looks like JSON"));
  for (const std::string_view old : {"lmgg3456", "tjgg3456", "fmgg3456"})
    CHECK(mentions(parse_refusal(std::as_bytes(std::span(old))), "before GGUF", "convert the model again"));
  CHECK(mentions(parse_refusal(std::as_bytes(std::span("# A page"))), "'# A '", "mica convert"));
  CHECK(mentions(parse_refusal(std::span<const std::byte>{}), "truncated", "magic"));
}

TEST_CASE("a path that is empty or a folder is refused with what to name instead") {
  CHECK(mentions(refusal([] { return gguf::open(std::string()); }), "its path is empty"));
  const TemporaryFolder folder;
  CHECK(mentions(refusal([&] { return gguf::open(folder.path("")); }), "is a folder", "it has no GGUF file"));
  folder.file("notes.txt", "x");
  for (const char* name : {"g.gguf", "c.gguf", "f.gguf", "a.gguf", "e.gguf", "b.gguf", "d.gguf"})
    folder.file(name, "x");
  const Error error = refusal([&] { return gguf::open(folder.path("")); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(error.message().ends_with("name a file in it, such as a.gguf"));
}

TEST_CASE("counts that do not fit in the file are refused before anything is allocated") {
  CHECK(mentions(parse_refusal(RawHeader(UINT64_MAX, 0)), "18446744073709551615 tensors", "truncated"));
  CHECK(mentions(parse_refusal(RawHeader(0, 1u << 30)), "1073741824 key-value pairs", "truncated"));
  const RawHeader many = RawHeader(100'000, 0).data(4'000'000);
  CHECK(parse_refusal(many).code() == ErrorCode::limit);
  CHECK(mentions(parse_refusal(many), "100000 tensors", "65536 are allowed"));
}

TEST_CASE("an array or string that is larger than the file is refused by its key") {
  const auto start = [](ValueType element) {
    return RawHeader(0, 1).text("k").type(ValueType::array).type(element);
  };
  CHECK(mentions(parse_refusal(start(ValueType::f64).number(std::uint64_t{1} << 61)), "'k'",
                 "array of 2305843009213693952 f64"));
  CHECK(mentions(parse_refusal(start(ValueType::string).number(std::uint64_t{3}).data(0)), "'k'",
                 "array of 3 string"));
  CHECK(mentions(parse_refusal(start(ValueType::array).number(std::uint64_t{3}).data(0)), "'k'",
                 "array of 3 array"));
  CHECK(mentions(parse_refusal(RawHeader(0, 1).text("k").type(ValueType::string).number(UINT64_MAX)), "'k'",
                 "a string", "past the end"));
}

TEST_CASE("a key of more bytes than the format allows is refused with their number") {
  const auto with_key = [](std::size_t bytes) { return RawHeader(0, 1).pair(std::string(bytes, 'k'), 7); };
  const RawHeader longest = with_key(65535);
  CHECK(gguf::parse(longest.bytes(), "m").metadata().size() == 1);
  CHECK(mentions(parse_refusal(with_key(65536)), "the key is 65536 bytes long", "65535 are allowed"));
}

TEST_CASE("a value of an unknown type, or a bool that is neither 0 nor 1, is refused by its key") {
  CHECK(
      mentions(parse_refusal(RawHeader(0, 1).text("k").number(std::uint32_t{13}).data(8)), "'k'", "type 13"));
  CHECK(mentions(parse_refusal(RawHeader(0, 1).text("k").type(ValueType::boolean).number(std::uint8_t{2})),
                 "'k'", "a bool is 2"));
}

RawHeader nested(int levels) {
  RawHeader header(0, 1);
  header.text("deep").type(ValueType::array);
  for (int i = 1; i < levels; ++i) header.type(ValueType::array).number(std::uint64_t{1});
  return header.type(ValueType::u8).number(std::uint64_t{0});
}

TEST_CASE("arrays in arrays are walked to the eighth level and no deeper") {
  const RawHeader deep = nested(8);
  CHECK(gguf::parse(deep.bytes(), "m").metadata().find("deep")->element_type() == ValueType::array);
  CHECK(mentions(parse_refusal(nested(9)), "'deep'", "more than 8 levels"));
  CHECK(mentions(parse_refusal(nested(100'000)), "'deep'", "more than 8 levels"));
}

TEST_CASE("an alignment that is no power of two from 8 is refused by its key") {
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 0xFFFFFFFFu}) {
    CHECK(mentions(parse_refusal(RawHeader(0, 1).pair("general.alignment", alignment)), "'general.alignment'",
                   join("is ", alignment)));
  }
  const RawHeader largest = RawHeader(0, 1).pair("general.alignment", 1u << 31);
  CHECK(gguf::parse(largest.bytes(), "m").alignment() == 1u << 31);
}

TEST_CASE("an alignment of the wrong type is refused by its key") {
  const RawHeader header = RawHeader(0, 1).text("general.alignment").type(ValueType::string).text("32");
  CHECK(mentions(parse_refusal(header), "'general.alignment'", "'32' (string)"));
}

TEST_CASE("a shape that cannot be is refused with the tensor's name and the shape") {
  const auto shape = [](std::vector<std::uint64_t> dims, std::uint32_t type) {
    return parse_refusal(RawHeader(1, 0).tensor("w", std::move(dims), type, 0).data(64));
  };
  const std::uint64_t huge = std::uint64_t{1} << 33;
  CHECK(mentions(shape({}, f32), "'w'", "0 dimensions", "1 to 4"));
  CHECK(mentions(shape({1, 1, 1, 1, 1}, f32), "'w'", "5 dimensions"));
  CHECK(mentions(shape({huge, huge}, f32), "'w'", "8589934592 x 8589934592", "64 bits"));
  CHECK(mentions(shape({std::uint64_t{1} << 63}, f32), "'w'", "more bytes than 64 bits"));
  CHECK(mentions(shape({33}, q8_0), "'w'", "row of 33", "Q8_0's block of 32"));
  CHECK(mentions(shape({32}, 5), "'w'", "type 5 is not known; known: Q4_K"));
  CHECK(mentions(shape({32}, 1234), "'w'", "type 1234"));
}

TEST_CASE("a place that cannot be is refused with the tensor's name and offset") {
  const auto place = [](std::uint64_t offset, std::size_t data) {
    return parse_refusal(RawHeader(1, 0).tensor("w", {8}, f32, offset).data(data));
  };
  CHECK(mentions(place(16, 64), "'w'", "offset 16", "alignment 32"));
  CHECK(mentions(place(64, 64), "'w'", "32 bytes at offset 64", "past the end"));
  CHECK(mentions(place(0, 31), "'w'", "32 bytes at offset 0", "past the end", "truncated"));
  CHECK(mentions(place(UINT64_MAX - 31, 64), "'w'", "past the end"));
}

TEST_CASE("tensors that share a byte are refused by both names") {
  const auto two = [](std::uint64_t width_of_first, std::uint64_t offset_of_second) {
    return RawHeader(2, 0)
        .tensor("b", {8}, f32, offset_of_second)
        .tensor("a", {width_of_first}, f32, 0)
        .data(128);
  };
  CHECK(mentions(parse_refusal(two(9, 32)), "'a' and 'b' overlap", "36 bytes", "32 bytes"));
  CHECK(mentions(parse_refusal(two(8, 0)), "'a'", "'b'", "overlap"));
  const RawHeader apart = two(8, 32);
  CHECK(gguf::parse(apart.bytes(), "m").tensors().size() == 2);
}

TEST_CASE("a tensor name that appears twice is refused") {
  const RawHeader header = RawHeader(2, 0).tensor("w", {8}, f32, 0).tensor("w", {8}, f32, 32).data(64);
  CHECK(mentions(parse_refusal(header), "'w' appears twice"));
}

TEST_CASE("a tensor without values may be there, but nobody gets it") {
  const RawHeader header = RawHeader(2, 0).tensor("unused", {8, 0}, f32, 0).tensor("w", {8}, f32, 0).data(32);
  const Document document = gguf::parse(header.bytes(), "m");
  CHECK(document.tensor("w").bytes == 32);
  CHECK(document.contains("unused"));
  CHECK(mentions(refusal([&] { return document.find("unused"); }), "'unused'", "no values", "8 x 0"));
}

TEST_CASE("a tensor is found by its whole name; a missing one is refused by name") {
  const auto bytes = random_file(8).bytes();
  const Document document = gguf::parse(bytes, "random.gguf");
  for (const gguf::TensorInfo& tensor : document.tensors()) CHECK(document.find(tensor.name) == &tensor);
  CHECK(document.find("blk.0.weigh") == nullptr);
  CHECK(mentions(refusal([&] { return document.tensor("output.weight").bytes; }), "random.gguf",
                 "'output.weight'", "missing"));
}

TEST_CASE("a tensor's bytes are read from where it lies") {
  const auto bytes = random_file(8).bytes();
  const Document document = gguf::parse(bytes, "m");
  const gguf::TensorInfo& tensor = document.tensors().back();
  std::vector<std::byte> data(tensor.bytes);
  document.read(tensor, data);
  CHECK(std::ranges::equal(data, std::span(bytes).subspan(tensor.offset, tensor.bytes)));
}

TEST_CASE("every beginning of a valid file is refused") {
  for (const std::uint64_t seed : {1u, 2u, 8u}) {
    const auto bytes = random_file(seed).bytes();
    const Document document = gguf::parse(bytes, "m");
    std::uint64_t end = document.header_bytes();
    for (const auto& tensor : document.tensors()) end = std::max(end, tensor.offset + tensor.bytes);
    for (std::size_t n = 0; n < end; ++n) {
      CAPTURE(n);
      CHECK_THROWS_AS(static_cast<void>(gguf::parse(std::span(bytes).first(n), "m")), Error);
    }
  }
}

/// How many pairs and tensors of two documents differ in anything but a tensor's place; another number of
/// them is one more difference.
std::size_t differences(const Document& a, const Document& b) {
  const std::size_t pairs = std::min(a.metadata().size(), b.metadata().size());
  const std::size_t tensors = std::min(a.tensors().size(), b.tensors().size());
  std::size_t n =
      a.metadata().size() == b.metadata().size() && a.tensors().size() == b.tensors().size() ? 0 : 1;
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto x = a.metadata().value(i);
    const auto y = b.metadata().value(i);
    const bool same = x.type() == y.type() && std::ranges::equal(x.bytes(), y.bytes());
    n += a.metadata().key(i) == b.metadata().key(i) && same ? 0 : 1;
  }
  for (std::size_t i = 0; i < tensors; ++i) {
    const auto& x = a.tensors()[i];
    const auto& y = b.tensors()[i];
    n += x.name == y.name && x.dims == y.dims && x.format.id == y.format.id && x.n_dims == y.n_dims ? 0 : 1;
  }
  return n;
}

TEST_CASE("a flipped bit in the header is refused, or changes the one thing that it encodes") {
  const auto bytes = random_file(8).bytes();
  const Document before = gguf::parse(bytes, "m");
  std::size_t refused = 0;
  for (std::size_t at = 0; at < before.header_bytes(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = bytes;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      try {
        const Document after = gguf::parse(damaged, "m");
        CAPTURE(at);
        CAPTURE(bit);
        CHECK(differences(before, after) <= 1);
        for (const auto& tensor : after.tensors()) CHECK(tensor.offset + tensor.bytes <= damaged.size());
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > before.header_bytes());
}

TEST_CASE("a header larger than the first read is read on, and its document keeps no more than the header") {
  const TemporaryFolder folder;
  gguf::Writer writer;
  std::vector<std::string> tokens(60'000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = join("token ", i);
  writer.set_array("tokens", tokens);
  const auto data = numbered_bytes(4);
  writer.add("w", format::F32::id, {1}, data);
  writer.write(folder.path("large.gguf"));
  const Document document = gguf::open(folder.path("large.gguf"));
  const auto read = document.metadata().require<gguf::Array<std::string_view>>("tokens");
  CHECK(std::ranges::equal(std::vector<std::string_view>(read.begin(), read.end()), tokens));
  CHECK(document.header_bytes() > 1'000'000);
  CHECK(document.resident_bytes() < document.header_bytes() + 4096);
}

TEST_CASE("a file without tensors needs no data and no padding") {
  const RawHeader header = RawHeader(0, 1).pair("k", 1);
  CHECK(gguf::parse(header.bytes(), "vocabulary.gguf").tensors().empty());
}

TEST_CASE("a header leaves the page cache when it is read") {
  gguf::Writer writer(32);
  writer.set("a.long.text", std::string(std::size_t{1} << 20, 'x'));
  const TemporaryFolder folder;
  const std::string path = folder.path("m.gguf");
  writer.write(path);
  const io::File file = io::File::open(path);
  ::fsync(file.descriptor());
  const Document document = gguf::open(path);
  CHECK(document.header_bytes() > std::uint64_t{1} << 20);
  CHECK(pages_there(io::Mapping(file, io::MapAdvice::scattered)) <= 1);  // of 257: the last one is not whole
}

}  // namespace
}  // namespace mica::test::reader_test
