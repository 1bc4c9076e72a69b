// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/importance_collector.hpp"

#include "quantize/small_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::importance_collector_test {
namespace {

using quantize::Importance;
using quantize::ImportanceCollector;

SmallModel some_model() {
  SmallModel model(1, 3);
  model.add("token_embd.weight", {4, 8})
      .add("blk.0.attn_q.weight", {4, 8})
      .add("blk.0.attn_norm.weight", {4});
  model.add("blk.0.ffn_up_exps.weight", {2, 4, 3}).add("blk.0.attn_q.bias", {8});
  return model;
}

}  // namespace

TEST_CASE("squares are summed by column and rows are counted") {
  SmallModel model = some_model();
  const auto document = model.document();
  ImportanceCollector collector(document);
  const std::vector<float> rows = {1, -2, 3, 0, 99, 2, 0, 0.5F, 1, 99};  // (2, 4), five apart
  collector.product("blk.0.attn_q.weight", MatrixView<const float>(rows.data(), 2, 4, 5));
  collector.layer(0, {});
  collector.product("blk.0.attn_q.weight", MatrixView<const float>(rows.data(), 1, 4));
  const Importance importance = collector.importance();
  REQUIRE(importance.entries.size() == 1);  // what was not used is not there
  const auto* const entry = importance.find("blk.0.attn_q.weight");
  REQUIRE(entry != nullptr);
  CHECK(entry->sums == std::vector<float>{6, 8, 18.25F, 1});
  CHECK(entry->counts == std::vector<float>{3});
}

TEST_CASE("a matrix that is shown part by part is counted once, until its layer ends") {
  SmallModel model = some_model();
  const auto document = model.document();
  ImportanceCollector collector(document);
  const std::vector<float> row = {1, 2, 3, 4};
  const MatrixView<const float> rows(row.data(), 1, 4);
  for (int part = 0; part < 3; ++part) collector.product("blk.0.attn_q.weight", rows);
  CHECK(collector.importance().find("blk.0.attn_q.weight")->counts == std::vector<float>{1});
  collector.layer(0, rows);
  collector.product("blk.0.attn_q.weight", rows);
  CHECK(collector.importance().find("blk.0.attn_q.weight")->counts == std::vector<float>{2});
  CHECK(collector.importance().find("blk.0.attn_q.weight")->sums == std::vector<float>{2, 8, 18, 32});
}

TEST_CASE("each expert has sums of its own, and one that was never chosen has none") {
  SmallModel model = some_model();
  const auto document = model.document();
  ImportanceCollector collector(document);
  const std::vector<float> rows = {1, 2, 3, 4};
  collector.product("blk.0.ffn_up_exps.weight", MatrixView<const float>(rows.data(), 2, 2), 2);
  collector.product("blk.0.ffn_up_exps.weight", MatrixView<const float>(rows.data(), 1, 2), 0);
  const Importance importance = collector.importance();
  const auto* const entry = importance.find("blk.0.ffn_up_exps.weight");
  REQUIRE(entry != nullptr);
  CHECK(entry->sums == std::vector<float>{1, 4, 0, 0, 10, 20});
  CHECK(entry->counts == std::vector<float>{1, 0, 2});
  CHECK(entry->means("x", 1, 3, 2) == std::vector<float>{1, 1});
  CHECK(entry->means("x", 2, 3, 2) == std::vector<float>{5, 10});
}

TEST_CASE("the head is collected on demand, vectors and unknown names never") {
  SmallModel model = some_model();
  const auto document = model.document();
  const std::vector<float> row = {1, 1, 1, 1};
  const MatrixView<const float> rows(row.data(), 1, 4);
  ImportanceCollector without(document);
  ImportanceCollector with(document, true);
  for (ImportanceCollector* each : {&without, &with}) {
    for (const char* name :
         {"token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.bias", "blk.9.x.weight"})
      each->product(name, rows);
  }
  CHECK(without.importance().entries.empty());
  CHECK(with.importance().entries.size() == 1);
  CHECK(with.importance().find("token_embd.weight") != nullptr);
}

TEST_CASE("sums do not lose what is small beside what is large") {
  SmallModel model = some_model();
  const auto document = model.document();
  ImportanceCollector collector(document);
  const std::vector<float> large = {4096, 0, 0, 0};
  const std::vector<float> small = {1, 0, 0, 0};
  collector.product("blk.0.attn_q.weight", MatrixView<const float>(large.data(), 1, 4));
  for (int i = 0; i < 4096; ++i) {
    collector.layer(0, {});
    collector.product("blk.0.attn_q.weight", MatrixView<const float>(small.data(), 1, 4));
  }
  CHECK(collector.importance().find("blk.0.attn_q.weight")->sums[0] == 16777216.0F + 4096.0F);
}

}  // namespace mica::test::importance_collector_test
