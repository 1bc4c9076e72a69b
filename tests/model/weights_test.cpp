// SPDX-License-Identifier: Apache-2.0

#include "mica/model/weights.hpp"

#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/block/lists.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::weights_test {
namespace {

template <class List = format::All>
using Weights = model::Weights<List, block::All>;

template <class List = format::All>
Weights<List> open(const TinyModel& tiny) {
  return Weights<List>(tiny.document(), arch::Llama::config(tiny.document()));
}

/// The tiny model with one tensor replaced by zeros of another shape or type.
Recipe replaced(const std::string& name, format::Id format, std::vector<std::uint64_t> dims) {
  Recipe recipe;
  recipe.without = {name};
  recipe.edit = [=](gguf::Writer& writer) {
    std::uint64_t bytes = format::info(format).block_bytes;
    for (const auto d : dims) bytes *= d;
    writer.add(name, format, dims, [=](const gguf::Sink& sink) {
      sink(std::vector<std::byte>(bytes / format::info(format).block_size));
    });
  };
  return recipe;
}

}  // namespace

TEST_CASE("every tensor has a unit: embedding, layers, head") {
  const TinyModel tiny{Recipe{}};
  const auto weights = open(tiny);
  CHECK(weights.units() == 4);
  REQUIRE(weights.extents().size() == 1 + 2 * 9 + 2);
  CHECK(weights.extents()[weights.token_embd().index].unit == 0);
  for (const std::uint32_t i : {0u, 1u}) {
    const auto& attention = weights.find<block::Attention>(i)->tensors;
    const auto& dense = weights.find<block::DenseFeedForward>(i)->tensors;
    CHECK(weights.extents()[attention.norm.index].unit == i + 1);
    CHECK(weights.extents()[dense.gated.down.index].unit == i + 1);
    CHECK(attention.q.rows == 60);
    CHECK(attention.k.rows == 20);
    CHECK(attention.output.cols == 60);
  }
  CHECK(weights.extents()[weights.output_norm().index].unit == 3);
  CHECK(weights.extents()[weights.output().index].unit == 3);
  std::uint64_t bytes = 0;
  for (const auto& tensor : tiny.document().tensors()) bytes += tensor.bytes;
  CHECK(weights.bytes() == bytes);
}

TEST_CASE("a head that the file lacks is the embedding, and is counted once") {
  const TinyModel tiny({.tied = true});
  const auto weights = open(tiny);
  CHECK(weights.output().index == weights.token_embd().index);
  CHECK(weights.extents().size() == 1 + 2 * 9 + 1);
}

TEST_CASE("every expert has an entry and a unit of its own, after the head") {
  for (const bool fused : {false, true}) {
    CAPTURE(fused);
    HybridRecipe recipe = of_q8_0(with_experts());
    recipe.fused_experts = fused;
    const TinyHybrid tiny(recipe);
    const auto config = arch::Qwen35Moe::config(tiny.document());
    const Weights<> weights(tiny.document(), config);
    REQUIRE(weights.units() == 4 + 2 + 4 * 9);
    for (std::size_t i = 0; i < 4; ++i) {
      const block::Experts::Tensors& t = weights.find<block::Experts>(i)->tensors;
      CHECK(t.first_unit == 6 + i * 9);
      CHECK(weights.extents()[t.router.index].unit == i + 1);
      CHECK(weights.extents()[t.shared.down.index].unit == i + 1);
      for (const block::ExpertsRef* ref : {&t.gate, &t.up, &t.down}) {
        const std::string_view name = weights.name(ref->first.index);
        const gguf::TensorInfo& whole = tiny.document().tensor(name);
        for (std::size_t e = 0; e < 9; ++e) {
          const paging::Extent& extent = weights.extents()[ref->expert(e).index];
          CHECK(weights.name(ref->expert(e).index) == name);
          CHECK(extent.unit == t.first_unit + e);
          CHECK(extent.bytes == whole.bytes / 9);
          CHECK(extent.offset == whole.offset + e * extent.bytes);
        }
      }
      CHECK(t.gate.first.byte_offset() == 0);
      CHECK(t.up.first.byte_offset() == (fused ? weights.extents()[t.up.first.index].bytes / 2 : 0));
    }
    std::uint64_t bytes = 0;
    for (const auto& tensor : tiny.document().tensors()) bytes += tensor.bytes;
    CHECK(weights.bytes() == bytes);
  }
}

TEST_CASE("each tensor that is missing is named") {
  for (const std::string name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight", "blk.1.attn_k.weight",
        "blk.1.attn_v.weight", "blk.0.attn_output.weight", "blk.1.ffn_norm.weight", "blk.0.ffn_gate.weight",
        "blk.0.ffn_up.weight", "blk.1.ffn_down.weight"}) {
    CAPTURE(name);
    Recipe recipe;
    recipe.without = {name};
    const TinyModel tiny(recipe);
    const Error error = refusal([&] { return open(tiny); });
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "tiny.gguf", name));
  }
}

TEST_CASE("a matrix of the wrong shape is refused by name, shape found and shape needed") {
  const TinyModel rows(replaced("blk.1.attn_k.weight", format::F32::id, {50, 21}));
  CHECK(mentions(refusal([&] { return open(rows); }), "tiny.gguf", "blk.1.attn_k.weight", "50 x 21",
                 "50 x 20"));
  const TinyModel cols(replaced("blk.0.ffn_down.weight", format::F32::id, {71, 50}));
  CHECK(mentions(refusal([&] { return open(cols); }), "blk.0.ffn_down.weight", "71 x 50", "70 x 50"));
  const TinyModel head(replaced("output.weight", format::F32::id, {50, 66}));
  CHECK(mentions(refusal([&] { return open(head); }), "output.weight", "50 x 66", "50 x 67"));
}

TEST_CASE("a norm that is no row of floats is refused") {
  const TinyModel half(replaced("blk.0.ffn_norm.weight", format::F16::id, {50}));
  CHECK(mentions(refusal([&] { return open(half); }), "blk.0.ffn_norm.weight", "F16", "F32 50"));
  const TinyModel longer(replaced("output_norm.weight", format::F32::id, {51}));
  CHECK(mentions(refusal([&] { return open(longer); }), "output_norm.weight", "51", "F32 50"));
}

TEST_CASE("a format outside of the list is refused with the list") {
  const TinyModel tiny(replaced("blk.0.attn_v.weight", format::I8::id, {50, 20}));
  const Error error = refusal([&] { return open<TypeList<format::Q4_K, format::F32>>(tiny); });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "blk.0.attn_v.weight", "I8", "Q4_K", "F32"));
  const TinyModel floats{Recipe{}};
  const Error narrow = refusal([&] { return open<TypeList<format::Q8_0, format::F16>>(floats); });
  CHECK(narrow.code() == ErrorCode::unsupported);
  CHECK(mentions(narrow, "token_embd.weight", "F32", "supported: Q8_0 F16"));
}

}  // namespace mica::test::weights_test
