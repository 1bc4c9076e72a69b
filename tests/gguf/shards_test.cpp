// SPDX-License-Identifier: Apache-2.0

#include "gguf/sample_file.hpp"
#include "mica/gguf/reader.hpp"

namespace mica::test::shards_test {
namespace {

/// What a shard says about itself, right unless a test changes it.
struct Shard {
  std::uint16_t number = 0;  // from 0
  std::uint16_t count = 3;
  int tensors = 3;
  std::string tensor = "w";
};

std::string write_shard(const TemporaryFolder& folder, const std::string& name, const Shard& shard) {
  gguf::Writer writer;
  if (shard.number == 0) writer.set("general.architecture", "llama");
  writer.set("split.no", shard.number);
  writer.set("split.count", shard.count);
  writer.set("split.tensors.count", shard.tensors);
  const std::vector<std::byte> data(4, static_cast<std::byte>(shard.number + 1));
  writer.add(shard.tensor, format::F32::id, {1}, data);
  writer.write(folder.path(name));
  return folder.path(name);
}

std::string shard_file(std::uint32_t number) { return gguf::ShardName{"m", number, 3}.path(); }

/// Three shards of a model, with one tensor each; the answer is the path of the first.
std::string write_three(const TemporaryFolder& folder) {
  for (std::uint16_t i = 0; i < 3; ++i) {
    write_shard(folder, shard_file(i + 1u), {.number = i, .tensor = join("w", int{i})});
  }
  return folder.path(shard_file(1));
}

TEST_CASE("a model of several files is the union of their tensors") {
  const TemporaryFolder folder;
  const gguf::Document document = gguf::open(write_three(folder));
  CHECK(document.sources().size() == 3);
  CHECK(document.tensors().size() == 3);
  CHECK(document.metadata().require<std::string>("general.architecture") == "llama");
  for (std::uint32_t i = 0; i < 3; ++i) {
    const gguf::TensorInfo& tensor = document.tensor(join("w", i));
    CHECK(tensor.source == i);
    CHECK(document.source(tensor).path() == folder.path(shard_file(i + 1)));
    std::array<std::byte, 4> data;
    document.read(tensor, data);
    CHECK(data[3] == static_cast<std::byte>(i + 1));
  }
}

TEST_CASE("any shard opens the whole model") {
  const TemporaryFolder folder;
  write_three(folder);
  const gguf::Document document = gguf::open(folder.path(shard_file(3)));
  CHECK(document.tensors().size() == 3);
  CHECK(document.path() == folder.path(shard_file(1)));
}

TEST_CASE("a missing shard is named, the first one too") {
  const TemporaryFolder folder;
  const std::string first = write_three(folder);
  std::filesystem::remove(folder.path(shard_file(2)));
  CHECK(mentions(refusal([&] { return gguf::open(first); }), "m-00002-of-00003.gguf",
                 "shard 2 of 3 is missing"));
  std::filesystem::remove(first);
  CHECK(mentions(refusal([&] { return gguf::open(folder.path(shard_file(3))); }), "shard 1 of 3 is missing"));
}

TEST_CASE("a shard that is another one than its name says is refused") {
  const TemporaryFolder folder;
  const std::string first = write_three(folder);
  write_shard(folder, shard_file(2), {.number = 2, .tensor = "w1"});
  CHECK(mentions(refusal([&] { return gguf::open(first); }), shard_file(2), "this is shard 3 of 3",
                 "shard 2 of 3 is needed"));
  write_shard(folder, shard_file(2), {.number = 1, .count = 2, .tensor = "w1"});
  CHECK(mentions(refusal([&] { return gguf::open(first); }), shard_file(2), "this is shard 2 of 2"));
  write_shard(folder, shard_file(2), {.number = 5, .tensor = "w1"});
  CHECK(mentions(refusal([&] { return gguf::open(first); }), shard_file(2), "'split.no' is 5"));
}

TEST_CASE("a shard of another model shows by its tensors") {
  const TemporaryFolder folder;
  const std::string first = write_three(folder);
  write_shard(folder, shard_file(3), {.number = 2, .tensors = 4, .tensor = "w2"});
  CHECK(mentions(refusal([&] { return gguf::open(first); }), "3 tensors", "split.tensors.count", "4"));
  write_shard(folder, shard_file(3), {.number = 2, .tensor = "w0"});
  CHECK(mentions(refusal([&] { return gguf::open(first); }), "'w0' appears twice", shard_file(1),
                 shard_file(3)));
}

TEST_CASE("a shard whose file was renamed says how it must be named") {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, "renamed.gguf", {.number = 1});
  CHECK(mentions(refusal([&] { return gguf::open(path); }), "renamed.gguf", "shard 2 of 3",
                 "-00002-of-00003.gguf"));
}

TEST_CASE("a split model of one file is a model of one file") {
  const TemporaryFolder folder;
  const std::string path = write_shard(folder, "whole.gguf", {.count = 1});
  CHECK(gguf::open(path).sources().size() == 1);
}

TEST_CASE("a shard in memory is refused, there are no files beside it") {
  gguf::Writer writer;
  writer.set("split.no", std::uint16_t{0});
  writer.set("split.count", std::uint16_t{2});
  const auto bytes = writer.bytes();
  CHECK(mentions(refusal([&] { return gguf::parse(bytes, "embedded"); }), "embedded", "shard 1 of 2"));
}

}  // namespace
}  // namespace mica::test::shards_test
