// SPDX-License-Identifier: Apache-2.0
//
// What files of hybrids say of their layers. How those compute is tested with the blocks and with tiny hybrids.

#include "arch/family_file.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/qwen_delta_net.hpp"

#include <doctest/doctest.h>

namespace mica::test::qwen35_test {
namespace {

FamilyFile make(const std::string& family = "qwen35", unsigned layers = 5) {
  FamilyFile file(family);
  file.shape(layers, 20, 4, 2, 6, 30);
  file.set("ssm.conv_kernel", 4u).set("ssm.state_size", 5u).set("ssm.group_count", 2u);
  file.set("ssm.time_step_rank", 4u).set("ssm.inner_size", 28u).set("rope.dimension_count", 4u);
  file.matrix("token_embd.weight", family_vocabulary, 20);
  return file;
}

/// 'd' for every layer that keeps a state, 'a' for every one that attends.
std::string mixers(FamilyFile& file) {
  std::string out;
  for (const auto& layer : arch::Qwen35::config(file.document()).layers)
    out += layer.has<block::Attention>() ? 'a' : 'd';
  return out;
}

Error refused(FamilyFile& file) {
  return refusal([&] { return arch::Qwen35::config(file.document()); });
}

}  // namespace

TEST_CASE("a Qwen 3.5 file becomes a config") {
  FamilyFile file = make();
  const arch::Config c = arch::Qwen35::config(file.document());
  const block::DeltaNetConfig& d = c.layers[0].get<block::DeltaNet>();
  CHECK(d.taps == 4);
  CHECK(d.k_heads == 2);
  CHECK(d.v_heads == 4);
  CHECK(d.k_dim == 5);
  CHECK(d.v_dim == 7);
  CHECK_FALSE(d.heads_interleaved);
  CHECK(c.layers[3].get<block::Attention>().q_gate);
  CHECK(c.layers[3].get<block::Attention>().head_norm == block::HeadNorm::weighted);
  CHECK(c.ropes[0].dims == 4);
  CHECK(c.layers[0].get<block::DenseFeedForward>().norm == "post_attention_norm");
}

TEST_CASE("which layers keep a state: by interval, or by name") {
  CHECK(mixers(make().set("vocab_size", 61u)) == "dddad");
  CHECK(mixers(make().set("full_attention_interval", 2u)) == "dadad");
  CHECK(mixers(make().set("full_attention_interval", 1u)) == "aaaaa");
  const std::vector<bool> some = {false, true, true, false, true};
  CHECK(mixers(make().set_array("attention.recurrent_layers", some)) == "addad");
}

TEST_CASE("blocks that predict further tokens are left out") {
  CHECK(mixers(make().set("nextn_predict_layers", 1u)) == "ddda");
  const std::vector<bool> some = {false, true, true, true, false};
  CHECK(mixers(make().set("nextn_predict_layers", 2u).set_array("attention.recurrent_layers", some)) ==
        "add");
  CHECK(mentions(refused(make().set("nextn_predict_layers", 5u)), "nextn_predict_layers", "5", "0 to 4"));
}

TEST_CASE("a Qwen 3.5 file with experts has one for every token") {
  FamilyFile file = make("qwen35moe");
  file.set("expert_count", 6u).set("expert_used_count", 2u).set("expert_feed_forward_length", 12u);
  file.set("expert_shared_feed_forward_length", 14u);
  const arch::Config c = arch::Qwen35Moe::config(file.document());
  CHECK(c.layers[0].get<block::Experts>().count == 6);
  CHECK(c.layers[0].get<block::Experts>().normalized);
  CHECK(c.layers[0].get<block::Experts>().shared_ff_width == 14);
  CHECK(c.layers[0].get<block::Experts>().shared_gate);
  CHECK_FALSE(c.layers[0].has<block::DenseFeedForward>());
}

TEST_CASE("a hybrid whose keys make no sense is refused by name") {
  CHECK(mentions(refused(make().set("ssm.inner_size", 29u)), "ssm.inner_size", "29", "multiple", "4"));
  CHECK(mentions(refused(make().set("ssm.group_count", 3u)), "ssm.time_step_rank", "4", "multiple", "3"));
  CHECK(mentions(refused(make().set("ssm.conv_kernel", 0u)), "ssm.conv_kernel", "1 to"));
  CHECK(mentions(refused(make().set("ssm.conv_kernel", 1000u)), "ssm.conv_kernel", "1000", "1 to"));
  CHECK(mentions(refused(make().set("full_attention_interval", 0u)), "full_attention_interval", "1 to"));
  CHECK(mentions(refused(make().without("ssm.state_size")), "ssm.state_size", "missing"));
  CHECK(mentions(refused(make().set_array("attention.recurrent_layers", std::vector<bool>{true})),
                 "attention.recurrent_layers", "5"));
}

}  // namespace mica::test::qwen35_test
