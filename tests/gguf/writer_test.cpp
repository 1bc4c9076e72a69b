// SPDX-License-Identifier: Apache-2.0

#include "gguf/sample_file.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>

namespace mica::test::writer_test {
namespace {

using gguf::Writer;

TEST_CASE("what is written is read back: every value, every tensor, every byte") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const auto bytes = random_file(seed).bytes();
    const gguf::Document document = gguf::parse(bytes, "random.gguf");
    CHECK(document.version() == 3);
    CHECK(document.data_offset() % document.alignment() == 0);
    Writer again(document.alignment());
    again.copy(document.metadata());
    for (const gguf::TensorInfo& tensor : document.tensors()) {
      CHECK(tensor.offset % document.alignment() == 0);
      again.add(tensor.name, tensor.format.id, std::span(tensor.dims).first(tensor.n_dims),
                std::span(bytes).subspan(tensor.offset, tensor.bytes));
    }
    CHECK(again.bytes() == bytes);
  }
}

TEST_CASE("a file on the disk is the same as the one in memory, and opens") {
  const TemporaryFolder folder;
  const Writer writer = random_file(8);
  writer.write(folder.path("random.gguf"));
  const std::string written = contents(folder.path("random.gguf"));
  CHECK(std::ranges::equal(std::as_bytes(std::span(written)), writer.bytes()));
  const gguf::Document document = gguf::open(folder.path("random.gguf"));
  REQUIRE(!document.tensors().empty());
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    std::vector<std::byte> data(tensor.bytes);
    document.read(tensor, data);
    const auto i = static_cast<std::byte>(&tensor - document.tensors().data() + 1);
    CHECK(std::ranges::all_of(data, [i](std::byte b) { return b == i; }));
  }
}

TEST_CASE("a key that is set again keeps its place and takes the new value and type") {
  Writer writer;
  writer.set("a", 1u);
  writer.set("b", "x");
  writer.set("a", "now a string");
  const auto bytes = writer.bytes();
  CHECK(writer.size_bytes() == bytes.size());
  const gguf::Document document = gguf::parse(bytes, "m");
  CHECK(document.metadata().size() == 2);
  CHECK(document.metadata().key(0) == "a");
  CHECK(document.metadata().require<std::string>("a") == "now a string");
}

TEST_CASE("an alignment other than 32 is written and obeyed") {
  Writer writer(256);
  const auto data = numbered_bytes(8);
  writer.add("a", format::F32::id, {2}, data);
  writer.add("b", format::F32::id, {1, 2}, data);
  const auto bytes = writer.bytes();
  const gguf::Document document = gguf::parse(bytes, "m");
  CHECK(document.alignment() == 256);
  CHECK(document.tensor("b").offset == document.tensor("a").offset + 256);
  CHECK(mentions(refusal([] { return Writer(24).bytes(); }), "alignment 24"));
  CHECK(mentions(refusal([&] {
                   writer.set("general.alignment", 8u);
                   return 0;
                 }),
                 "general.alignment"));
}

TEST_CASE("a tensor of the wrong size or shape is refused by name when it is added") {
  Writer writer;
  const auto data = numbered_bytes(34);
  const auto add = [&](std::vector<std::uint64_t> dims, std::size_t bytes) {
    return refusal([&] {
      writer.add("w", format::Q8_0::id, dims, std::span(data).first(bytes));
      return 0;
    });
  };
  CHECK(mentions(add({32}, 33), "'w'", "takes 34 bytes", "33 were given"));
  CHECK(mentions(add({33}, 34), "'w'", "33 values", "block of 32"));
  CHECK(mentions(add({}, 34), "0 dimensions"));
  CHECK(mentions(add({32, 1, 1, 1, 1}, 34), "5 dimensions"));
  CHECK(mentions(add({std::uint64_t{1} << 62, 64}, 34), "larger than any file"));
  writer.add("w", format::Q8_0::id, {32}, data);
  CHECK(gguf::parse(writer.bytes(), "m").tensors().size() == 1);
}

TEST_CASE("a function that hands over too few bytes spoils nothing on the disk") {
  const TemporaryFolder folder;
  Writer writer;
  writer.add("w", format::F32::id, {4}, gguf::Fill([](const gguf::Sink& sink) { sink(numbered_bytes(15)); }));
  const Error error = refusal([&] {
    writer.write(folder.path("m.gguf"));
    return 0;
  });
  CHECK(mentions(error, "'w'", "takes 16 bytes", "15 were handed over"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("a tensor that was added twice is refused when the file is written") {
  Writer writer;
  const auto data = numbered_bytes(4);
  writer.add("w", format::F32::id, {1}, data);
  writer.add("w", format::F32::id, {1}, data);
  CHECK(mentions(refusal([&] { return writer.bytes(); }), "'w' was added twice"));
}

}  // namespace
}  // namespace mica::test::writer_test
