// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/tensor_role.hpp"

#include <doctest/doctest.h>

namespace mica::test::part_test {
namespace {

using quantize::role_of;
using quantize::TensorRole;

bool quantizable(std::string name, std::array<std::uint64_t, 4> dims = {256, 64, 1, 1}) {
  gguf::TensorInfo tensor;
  tensor.name = std::move(name);
  tensor.dims = dims;
  tensor.bytes = tensor.elements() * 4;
  return quantize::is_quantizable(tensor);
}

}  // namespace

TEST_CASE("parts are told by what a name holds") {
  CHECK(role_of("output.weight") == TensorRole::head);
  CHECK(role_of("token_embd.weight") == TensorRole::embedding);
  CHECK(role_of("per_layer_token_embd.weight") == TensorRole::embedding);
  CHECK(role_of("blk.0.attn_output.weight") == TensorRole::attention_out);
  CHECK(role_of("blk.11.attn_v.weight") == TensorRole::value);
  CHECK(role_of("blk.11.attn_qkv.weight") == TensorRole::value);
  CHECK(role_of("blk.11.attn_kv_b.weight") == TensorRole::value);
  CHECK(role_of("blk.11.attn_k.weight") == TensorRole::key);
  CHECK(role_of("blk.11.attn_q.weight") == TensorRole::query);
  CHECK(role_of("blk.3.ffn_down_exps.weight") == TensorRole::down);
  CHECK(role_of("blk.3.ffn_gate_up_exps.weight") == TensorRole::gate);
  CHECK(role_of("blk.3.ffn_up_shexp.weight") == TensorRole::up);
  CHECK(role_of("blk.3.ssm_out.weight") == TensorRole::other);
}

TEST_CASE("the layer stands between blk. and the next dot") {
  CHECK(quantize::layer_of("blk.0.attn_q.weight") == 0);
  CHECK(quantize::layer_of("blk.123.x") == 123);
  CHECK_FALSE(quantize::layer_of("blk."));
  CHECK_FALSE(quantize::layer_of("blk.x.y"));
  CHECK_FALSE(quantize::layer_of("blk.7"));
  CHECK_FALSE(quantize::layer_of("blk.99999999999.x"));
  CHECK_FALSE(quantize::layer_of("v.blk.0.attn_q.weight"));
}

TEST_CASE("matrices of weights are quantised; vectors, biases, norms, routers and convolutions are not") {
  CHECK(quantizable("blk.0.attn_q.weight"));
  CHECK(quantizable("blk.0.ffn_up_exps.weight", {256, 64, 8, 1}));
  CHECK_FALSE(quantizable("blk.0.attn_q.weight", {256, 1, 1, 1}));
  CHECK_FALSE(quantizable("blk.0.attn_q.bias"));
  CHECK_FALSE(quantizable("blk.0.attn_norm.weight"));
  CHECK_FALSE(quantizable("blk.0.ffn_gate_inp.weight"));
  CHECK_FALSE(quantizable("blk.0.ssm_conv1d.weight", {4, 512, 1, 1}));
  CHECK_FALSE(quantizable("per_layer_model_proj.weight"));
  CHECK_FALSE(quantizable("position_embd.weight"));
  CHECK_FALSE(quantizable("rope_freqs"));
  CHECK_FALSE(quantizable("blk.0.attn_q.weight", {0, 64, 1, 1}));
}

}  // namespace mica::test::part_test
