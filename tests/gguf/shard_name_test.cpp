// SPDX-License-Identifier: Apache-2.0

#include "mica/gguf/detail/shard_name.hpp"

#include <doctest/doctest.h>

namespace mica::test::shard_name_test {
namespace {

using gguf::ShardName;

TEST_CASE("a shard's name gives its number and the names of the others") {
  const auto name = ShardName::parse("folder/model-Q4_K-00002-of-00011.gguf");
  REQUIRE(name);
  CHECK(name->prefix == "folder/model-Q4_K");
  CHECK(name->number == 2);
  CHECK(name->count == 11);
  CHECK(name->path_of(11) == "folder/model-Q4_K-00011-of-00011.gguf");
}

TEST_CASE("what only looks like a shard's name is none") {
  for (const char* path : {"model.gguf", "", "-00001-of-00002.gguf", "m-00000-of-00002.gguf",
                           "m-00003-of-00002.gguf", "m-0001-of-00002.gguf", "m-00001-of-00002.bin",
                           "m-+0001-of-00002.gguf", "m-00001_of-00002.gguf", "m-00001-of-0000x.gguf"}) {
    CAPTURE(path);
    CHECK(!ShardName::parse(path));
  }
}

}  // namespace
}  // namespace mica::test::shard_name_test
