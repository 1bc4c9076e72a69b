// SPDX-License-Identifier: Apache-2.0
//
// Models of the conformance kit, taken back to the folders that they could have come from and converted
// again: every key and every number must return.

#include "convert/kit_folder.hpp"
#include "convert/kit_vocabulary.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/convert/conversion.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

namespace mica::test::kit_test {
namespace {

using nlohmann::json;

/// A model of the kit with what its config.json would have said beyond the common numbers.
struct KitModel {
  std::string file;
  std::string model_type;
  json more;
};

json llama3_scaling() {
  return {{"rope_type", "llama3"},
          {"factor", 8.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 128}};
}

json delta_numbers() {
  return {{"linear_conv_kernel_dim", 4}, {"linear_key_head_dim", 64},   {"linear_num_key_heads", 2},
          {"linear_num_value_heads", 4}, {"linear_value_head_dim", 64}, {"partial_rotary_factor", 0.25},
          {"full_attention_interval", 4}};
}

json with(json base, const json& more) {
  base.update(more);
  return base;
}

std::vector<KitModel> kit_models() {
  return {
      {"llama-mha-spm.F16", "llama", json::object()},
      {"llama3-gqa.F32", "llama", {{"rope_scaling", nullptr}}},
      {"mixtral.Q8_0", "mixtral", {{"num_local_experts", 4}, {"num_experts_per_tok", 2}}},
      {"qwen2.BF16", "qwen2", json::object()},
      {"qwen2-yarn.F16",
       "qwen2",
       {{"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}}}}},
      {"qwen3.Q8_0", "qwen3", {{"head_dim", 128}}},
      {"qwen3moe.Q8_0",
       "qwen3_moe",
       {{"num_experts", 8},
        {"num_experts_per_tok", 3},
        {"moe_intermediate_size", 128},
        {"norm_topk_prob", true}}},
      {"gemma.F16", "gemma", json::object()},
      {"gemma2.Q8_0",
       "gemma2",
       {{"attn_logit_softcapping", 5.0},
        {"final_logit_softcapping", 15.0},
        {"sliding_window", 16},
        {"query_pre_attn_scalar", 64}}},
      {"gemma3.Q8_0",
       "gemma3_text",
       {{"sliding_window", 32},
        {"rope_local_base_freq", 10000.0},
        {"query_pre_attn_scalar", 128},
        {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}}},
      {"gemma4.Q8_0",
       "gemma4_text",
       {{"head_dim", 64},
        {"global_head_dim", 128},
        {"sliding_window", 16},
        {"num_kv_shared_layers", 2},
        {"use_double_wide_mlp", true},
        {"hidden_size_per_layer_input", 64},
        {"final_logit_softcapping", 15.0},
        {"intermediate_size", 256},
        {"num_key_value_heads", 1},
        {"layer_types",
         {"sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
          "sliding_attention", "full_attention"}},
        {"rope_parameters",
         {{"full_attention",
           {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.25}}},
          {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}}}},
      {"phi3.Q8_0", "phi3", {{"original_max_position_embeddings", 256}}},
      {"qwen35.Q8_0", "qwen3_5_text",
       with(delta_numbers(), {{"rope_parameters",
                               {{"rope_type", "default"},
                                {"rope_theta", 1e6},
                                {"partial_rotary_factor", 0.25},
                                {"mrope_section", {6, 5, 5}}}}})},
      {"qwen3next.Q8_0", "qwen3_next",
       with(delta_numbers(), {{"num_experts", 4},
                              {"num_experts_per_tok", 2},
                              {"moe_intermediate_size", 128},
                              {"shared_expert_intermediate_size", 128}})},
      {"gpt-oss.MXFP4_MOE",
       "gpt_oss",
       {{"num_local_experts", 4},
        {"num_experts_per_tok", 2},
        {"sliding_window", 16},
        {"rope_scaling",
         {{"rope_type", "yarn"}, {"factor", 32.0}, {"original_max_position_embeddings", 64}}}}},
      {"llama4.Q8_0",
       "llama4_text",
       {{"num_local_experts", 4},
        {"num_experts_per_tok", 1},
        {"interleave_moe_layer_step", 2},
        {"intermediate_size", 128},
        {"intermediate_size_mlp", 256}}},
  };
}

/// What is the same under other names, and the extra of the model on top.
json config_of(const KitModel& model, const gguf::Document& document) {
  const gguf::Metadata& metadata = document.metadata();
  const std::string arch = metadata.require<std::string>("general.architecture") + ".";
  const std::map<std::string, std::string> counts = {{"hidden_size", "embedding_length"},
                                                     {"num_hidden_layers", "block_count"},
                                                     {"num_attention_heads", "attention.head_count"},
                                                     {"num_key_value_heads", "attention.head_count_kv"},
                                                     {"max_position_embeddings", "context_length"},
                                                     {"intermediate_size", "feed_forward_length"},
                                                     {"head_dim", "attention.key_length"}};
  json config = {{"model_type", model.model_type}};
  for (const auto& [theirs, ours] : counts) {
    const auto found = metadata.find(arch + ours);
    if (found && !found->is_array()) config[theirs] = *found->as<std::uint64_t>();
  }
  config["rms_norm_eps"] = metadata.require<float>(arch + "attention.layer_norm_rms_epsilon");
  config["rope_theta"] = metadata.get<float>(arch + "rope.freq_base").value_or(10000.0F);
  config.update(model.more);
  return config;
}

/// Rope factors that the kit drew at random go into the config, those that follow from numbers must follow.
void add_rope(const KitModel& model, const gguf::Document& document, json& config) {
  const auto list = [&](const std::string& name) { return decoded(document, document.tensor(name)); };
  if (model.file == "llama3-gqa.F32") config["rope_scaling"] = llama3_scaling();
  if (model.file != "phi3.Q8_0") return;
  config["rope_scaling"] = {{"type", "longrope"},
                            {"long_factor", list("rope_factors_long.weight")},
                            {"short_factor", list("rope_factors_short.weight")}};
}

/// What differs by choice: more is said here than in the kit, or the same in another way.
const std::set<std::string> said_otherwise = {"phi3.rope.scaling.attn_factor"};

void check_keys(const gguf::Metadata& ours, const gguf::Metadata& kit) {
  const std::string arch = kit.require<std::string>("general.architecture") + ".";
  for (std::size_t i = 0; i < kit.size(); ++i) {
    const std::string key(kit.key(i));
    if (!key.starts_with(arch) || said_otherwise.contains(key)) continue;
    const gguf::Value wanted = kit.value(i);
    CAPTURE(key);
    const auto found = ours.find(key);
    REQUIRE(found);
    CAPTURE(found->description());
    CAPTURE(wanted.description());
    if (wanted.is_array() && !found->is_array()) {
      const auto each_layer = *wanted.as<gguf::Array<std::uint64_t>>();
      for (const std::uint64_t each : each_layer) CHECK(each == *found->as<std::uint64_t>());
    } else {
      CHECK(found->type() == wanted.type());
      CHECK(std::equal(found->bytes().begin(), found->bytes().end(), wanted.bytes().begin(),
                       wanted.bytes().end()));
    }
  }
}

/// Bit for bit, but where an exponential function lies between.
void check_values(const std::string& name, const std::vector<float>& ours, const std::vector<float>& kit) {
  CAPTURE(name);
  REQUIRE(ours.size() == kit.size());
  const bool rounded = name.ends_with("ssm_a") || name.starts_with("rope_freqs");
  std::size_t different = 0;
  for (std::size_t i = 0; i < kit.size(); ++i) {
    const bool same = rounded ? std::fabs(ours[i] - kit[i]) <= 1e-6F * std::fabs(kit[i]) : ours[i] == kit[i];
    different += same ? 0U : 1U;
  }
  CHECK(different == 0);
}

void check_tensors(const gguf::Document& ours, const gguf::Document& kit) {
  CHECK(ours.tensors().size() == kit.tensors().size());
  for (const gguf::TensorInfo& wanted : kit.tensors()) {
    CAPTURE(wanted.name);
    REQUIRE(ours.contains(wanted.name));
    const gguf::TensorInfo& found = ours.tensor(wanted.name);
    CHECK(found.shape() == wanted.shape());
    const bool plain = wanted.format.block_size == 1 || wanted.format.id == format::MXFP4::id;
    if (plain) CHECK(found.format.name == wanted.format.name);
    check_values(wanted.name, decoded(ours, found), decoded(kit, wanted));
  }
}

void check_model(const std::filesystem::path& models, const KitModel& model, bool one_tensor) {
  CAPTURE(model.file);
  CAPTURE(one_tensor);
  HfFolder folder;
  KitFolder back((models / (model.file + ".gguf")).string(), folder);
  back.add_tensors(one_tensor);
  const gguf::Document& kit = back.document();
  folder.config = config_of(model, kit);
  add_rope(model, kit, folder.config);
  const gguf::Metadata& metadata = kit.metadata();
  folder.tokenizer = tokenizer_json(KitVocabulary(metadata),
                                    metadata.get<bool>("tokenizer.ggml.add_space_prefix").value_or(true));
  folder.tokenizer_config = tokenizer_config(metadata);

  const auto conversion = convert::Conversion::open(folder.write());
  CHECK(conversion.skipped().empty());
  conversion.write(folder.path("out.gguf"));
  const gguf::Document ours = gguf::open(folder.path("out.gguf"));
  check_keys(ours.metadata(), metadata);
  const bool as_blocks =
      kit.metadata().require<std::string>("general.architecture") != "gpt-oss" || !one_tensor;
  if (as_blocks) check_tensors(ours, kit);
}

}  // namespace

TEST_CASE("every model of the kit returns from the folder that it could have come from") {
  const auto models = shared_dir("models of the kit as Hugging Face folders", "conformance/models");
  if (!models) return;
  for (const KitModel& model : kit_models()) {
    SUBCASE(model.file.c_str()) { check_model(*models, model, false); }
  }
}

TEST_CASE("experts in one tensor are the same experts") {
  const auto models = shared_dir("experts in one tensor", "conformance/models");
  if (!models) return;
  for (const KitModel& model : kit_models()) {
    if (model.file != "qwen3moe.Q8_0" && model.file != "qwen3next.Q8_0") continue;
    SUBCASE(model.file.c_str()) { check_model(*models, model, true); }
  }
}

}  // namespace mica::test::kit_test
