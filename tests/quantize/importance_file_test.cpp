// SPDX-License-Identifier: Apache-2.0

#include "io/temporary_folder.hpp"
#include "mica_tools/quantize/importance.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace mica::test::importance_file_test {
namespace {

using quantize::Importance;
using quantize::read_importance;
using quantize::write_importance;

Importance some_importance() {
  Importance importance;
  importance.entries["blk.0.attn_q.weight"] = {{2, 4, 6}, {2}};
  importance.entries["blk.0.ffn_up_exps.weight"] = {{1, 2, 3, 4, 0, 0}, {1, 2, 0}};
  importance.datasets = {"a.txt", "b.txt"};
  importance.chunk_count = 7;
  importance.chunk_size = 512;
  return importance;
}

/// Bytes of a legacy file, put together by hand.
class Legacy {
 public:
  Legacy& number(std::int32_t n) {
    bytes_.append(reinterpret_cast<const char*>(&n), sizeof n);
    return *this;
  }
  Legacy& text(const std::string& text) {
    number(static_cast<std::int32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  Legacy& floats(const std::vector<float>& values) {
    number(static_cast<std::int32_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace

TEST_CASE("an importance matrix that was written is read back") {
  const TemporaryFolder folder;
  const Importance before = some_importance();
  write_importance(before, folder.path("imatrix.gguf"));
  const Importance after = read_importance(folder.path("imatrix.gguf"));
  CHECK(after.datasets == before.datasets);
  CHECK(after.chunk_count == 7);
  CHECK(after.chunk_size == 512);
  REQUIRE(after.entries.size() == 2);
  for (const auto& [name, entry] : before.entries) {
    const auto* const found = after.find(name);
    REQUIRE(found != nullptr);
    CHECK(found->sums == entry.sums);
    CHECK(found->counts == entry.counts);
  }
  CHECK(after.find("blk.1.attn_q.weight") == nullptr);
}

TEST_CASE("the legacy format is read, with and without what later versions added") {
  const TemporaryFolder folder;
  Legacy legacy;
  legacy.number(2).text("a.weight").number(4).floats({4, 8}).text("b.weight").number(0).floats({0, 0, 0});
  const Importance plain = read_importance(folder.file("plain.dat", legacy.bytes()));
  REQUIRE(plain.find("a.weight") != nullptr);
  CHECK(plain.find("a.weight")->means("a.weight", 0, 1, 2) == std::vector<float>{1, 2});
  CHECK(plain.find("a.weight")->means("a.weight", 1, 2, 1) == std::vector<float>{2});
  CHECK(plain.find("b.weight")->means("b.weight", 0, 1, 3) == std::vector<float>{1, 1, 1});
  CHECK(plain.chunk_count == 0);
  legacy.number(9).text("wiki.txt");
  const Importance later = read_importance(folder.file("later.dat", legacy.bytes()));
  CHECK(later.chunk_count == 9);
  CHECK(later.datasets == std::vector<std::string>{"wiki.txt"});
}

TEST_CASE("damaged files are refused, and nothing is allocated for what they only claim") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& bytes) {
    const std::string path = folder.file("bad.dat", bytes);
    return refusal([&] { return read_importance(path).entries.size(); }).code();
  };
  const std::string good = Legacy().number(1).text("a.weight").number(4).floats({4, 8}).bytes();
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(refused(good.substr(0, size)) == ErrorCode::file);
  }
  constexpr std::int32_t huge = std::numeric_limits<std::int32_t>::max();
  CHECK(refused(Legacy().number(huge).bytes()) == ErrorCode::file);
  CHECK(refused(Legacy().number(-1).bytes()) == ErrorCode::file);
  CHECK(refused(Legacy().number(1).number(huge).bytes()) == ErrorCode::file);
  CHECK(refused(Legacy().number(1).text("a").number(1).number(huge).bytes()) == ErrorCode::file);
  CHECK(refused(Legacy().number(1).text("a").number(-3).floats({1}).bytes()) == ErrorCode::file);
  CHECK(refused(Legacy().number(1).text("a").number(1).floats({-1}).bytes()) == ErrorCode::file);
  CHECK(refused(Legacy().number(0).bytes()) == ErrorCode::file);
}

TEST_CASE("a GGUF file that is no importance matrix, or one that contradicts itself, is refused") {
  const TemporaryFolder folder;
  const auto refused = [&](gguf::Writer& writer) {
    writer.write(folder.path("bad.gguf"));
    return refusal([&] { return read_importance(folder.path("bad.gguf")).entries.size(); });
  };
  const std::vector<float> numbers = {1, 2, 3, std::numeric_limits<float>::infinity()};
  const auto some = [&](std::size_t n) { return std::as_bytes(std::span(numbers).first(n)); };
  gguf::Writer model;
  model.set("general.type", "model");
  CHECK(mentions(refused(model), "general.type"));
  gguf::Writer none;
  none.set("general.type", "imatrix");
  CHECK(mentions(refused(none), "no entries"));
  gguf::Writer lonely;
  lonely.set("general.type", "imatrix");
  lonely.add("a.weight.in_sum2", format::F32::id, {3, 1}, some(3));
  CHECK(mentions(refused(lonely), "a.weight.counts"));
  gguf::Writer unequal;
  unequal.set("general.type", "imatrix");
  unequal.add("a.weight.in_sum2", format::F32::id, {1, 3}, some(3));
  unequal.add("a.weight.counts", format::F32::id, {1, 2}, some(2));
  CHECK(mentions(refused(unequal), "2 counts for 3 rows"));
  gguf::Writer infinite;
  infinite.set("general.type", "imatrix");
  infinite.add("a.weight.in_sum2", format::F32::id, {4, 1}, some(4));
  infinite.add("a.weight.counts", format::F32::id, {1, 1}, some(1));
  CHECK(mentions(refused(infinite), "not finite"));
}

}  // namespace mica::test::importance_file_test
