// SPDX-License-Identifier: Apache-2.0
//
// What config.json of a family decides: keys of the file, what is refused, tensors that are left out. The
// folders are those of hf_models.json and encoder_models.json with a change each.

#include "mica_tools/convert/families.hpp"

#include "convert/hf_folder.hpp"
#include "convert/kit_folder.hpp"
#include "convert/model_values.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/convert/conversion.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::families_test {
namespace {

using convert::Conversion;
using nlohmann::json;

const json& described(const std::string& name) {
  static const auto all = [] {
    json out;
    for (const char* const file : {"hf_models.json", "encoder_models.json"}) {
      std::ifstream in(std::string(MICA_SOURCE) + "/tests/convert/" + file);
      out.update(json::parse(in));
    }
    return out;
  }();
  return all.at(name);
}

/// The folder of a model of that name, with a change of its config: null removes a key.
struct ModelFolder : HfFolder {
  explicit ModelFolder(const std::string& name, const json& change = json::object()) {
    config = described(name)["config"];
    config.merge_patch(change);
    add_tensors(described(name)["tensors"], *this);
    const json files = described(name).value("files", json::object());
    for (const auto& [file, text] : files.items())
      others[file] = text.is_string() ? text.get<std::string>() : text.dump();
  }
  [[nodiscard]] gguf::Document outcome(const convert::ConversionOptions& options = {}) const {
    return Conversion::open(write(), options).outcome("out.gguf");
  }
  [[nodiscard]] Error refused() const {
    const std::string path = write();
    return refusal([&] { return Conversion::open(path); });
  }
  [[nodiscard]] std::vector<std::string> skipped() const { return Conversion::open(write()).skipped(); }
};

/// The value of a key; null where there is none.
json value_of(const gguf::Document& document, const std::string& key) {
  const auto found = document.metadata().find(key);
  if (!found) return nullptr;
  if (const auto text = found->as<std::string>()) return *text;
  if (const auto flag = found->as<bool>()) return *flag;
  if (const auto whole = found->as<std::int64_t>()) return *whole;
  if (const auto number = found->as<float>()) return *number;
  json list = json::array();
  if (const auto flags = found->as<gguf::Array<bool>>()) {
    for (const bool flag : *flags) list.push_back(flag);
  } else {
    const auto numbers = found->as<gguf::Array<std::int64_t>>();
    REQUIRE(numbers);
    for (const std::int64_t number : *numbers) list.push_back(number);
  }
  return list;
}

/// Random bytes, the same in each run.
StoredTensor random_bytes(std::vector<std::uint64_t> shape, std::uint64_t seed, unsigned first, unsigned n) {
  CounterRng rng(seed);
  std::vector<std::uint8_t> bytes(product(shape));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(first + rng.next() % n);
  return stored("U8", std::move(shape), bytes);
}

/// gpt-oss as it is published: experts in blocks of 32 numbers, 16 bytes and a scale each.
struct BlocksFolder : ModelFolder {
  BlocksFolder() : ModelFolder("gpt_oss") {
    for (const std::string layer : {"model.layers.0.mlp.experts.", "model.layers.1.mlp.experts."}) {
      add(layer + "gate_up_proj", {4, 256, 2});
      add(layer + "down_proj", {4, 64, 4});
    }
  }
  void add(const std::string& name, std::vector<std::uint64_t> shape) {
    tensors.erase(name);
    tensors[name + "_scales"] = random_bytes(shape, 1, 120, 16);
    shape.push_back(16);
    tensors[name + "_blocks"] = random_bytes(shape, 2, 0, 256);
  }
  /// Rows `first`, first + step, ... of each expert; the low half of a byte is the number that comes first.
  [[nodiscard]] std::vector<float> rows(const std::string& name, std::size_t first, std::size_t step) const {
    constexpr float magnitudes[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    const StoredTensor &blocks = tensors.at(name + "_blocks"), &scales = tensors.at(name + "_scales");
    const std::uint64_t n_rows = scales.shape[1], per_row = scales.shape[2];
    std::vector<float> out;
    for (std::uint64_t row = first; row < 4 * n_rows; row += step) {
      for (std::uint64_t k = 0; k < per_row * 32; ++k) {
        const std::uint64_t block = row * per_row + k / 32;
        const unsigned byte = static_cast<std::uint8_t>(blocks.bytes[block * 16 + k % 32 / 2]);
        const unsigned code = k % 2 == 0 ? byte & 15U : byte >> 4;
        const float sign = code < 8 ? 1.0F : -1.0F;
        out.push_back(sign *
                      std::ldexp(magnitudes[code % 8], static_cast<std::uint8_t>(scales.bytes[block]) - 127));
      }
    }
    return out;
  }
};

}  // namespace

TEST_CASE("a key is in the file as config.json has it, and is not there where readers know the value") {
  struct Row {
    std::string model, change, key, value;
  };
  const Row rows[] = {
      {"mistral", R"({"sliding_window": 32})", "llama.attention.sliding_window", "32"},
      {"mistral", R"({"sliding_window": null})", "llama.attention.sliding_window", "null"},
      {"llama4", "{}", "llama4.attention.chunk_size", "256"},
      {"llama4", R"({"attention_chunk_size": null})", "llama4.attention.chunk_size", "null"},
      {"qwen2", R"({"use_sliding_window": true, "max_window_layers": 2})", "qwen2.attention.sliding_window",
       "null"},
      {"qwen3_moe", "{}", "qwen3moe.feed_forward_length", "128"},
      {"qwen3_moe", R"({"intermediate_size": null})", "qwen3moe.feed_forward_length", "null"},
      {"gemma3", "{}", "gemma3.attention.scale", "null"},
      {"gemma3", R"({"query_pre_attn_scalar": 64})", "gemma3.attention.scale", "0.125"},
      {"gemma3", R"({"rope_parameters": {"sliding_attention": null}})", "gemma3.rope.freq_base_swa", "10000"},
      {"gemma3", R"({"rope_parameters": {"sliding_attention": {"rope_theta": 500}}})",
       "gemma3.rope.freq_base_swa", "500"},
      {"gemma3", R"({"layer_types": null})", "gemma3.attention.sliding_window_pattern", "null"},
      {"gemma3", R"({"layer_types": null, "sliding_window_pattern": 2})",
       "gemma3.attention.sliding_window_pattern", "[true, false, true, false, true, false, true]"},
      {"gemma3n", R"({"activation_sparsity_pattern": null})", "gemma3n.activation_sparsity_scale", "null"},
      {"gemma4", "{}", "gemma4.attention.key_length", "64"},
      {"gemma4", R"({"per_layer_config": null})", "gemma4.attention.key_length", "32"},
      {"gemma4", R"({"per_layer_config": null, "global_head_dim": 48})", "gemma4.attention.key_length", "48"},
      {"phi3", R"({"rope_parameters": {"original_max_position_embeddings": null}})",
       "phi3.rope.scaling.original_context_length", "128"},
      {"phi3", R"({"rope_parameters": {"rope_type": "default"}})",
       "phi3.rope.scaling.original_context_length", "128"},
      {"phi3", R"({"rope_parameters": null, "original_max_position_embeddings": null})",
       "phi3.rope.scaling.original_context_length", "512"},
      {"phi3", R"({"rope_parameters": {"rope_type": "default"}})", "phi3.rope.scaling.attn_factor", "null"},
      {"qwen3_next", R"({"rope_parameters": {"partial_rotary_factor": null}})",
       "qwen3next.rope.dimension_count", "8"},
      {"qwen3_next", R"({"partial_rotary_factor": 0.5, "rope_parameters": {"partial_rotary_factor": null}})",
       "qwen3next.rope.dimension_count", "16"},
      {"qwen3_next", "{}", "qwen3next.attention.recurrent_layers", "null"},
      {"qwen3_next",
       R"({"layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"]})",
       "qwen3next.attention.recurrent_layers", "[false, true, true, false]"},
      {"qwen3_5", "{}", "qwen35.rope.dimension_sections", "[11, 11, 10, 0]"},
      {"qwen3_5", R"({"rope_parameters": {"mrope_section": [3, 3, 2]}})", "qwen35.rope.dimension_sections",
       "[3, 3, 2, 0]"},
      {"nomic", R"({"n_embd": null, "hidden_size": 64})", "nomic-bert.embedding_length", "64"},
      {"nomic", R"({"n_head": 5, "num_attention_heads": 4})", "nomic-bert.attention.head_count", "4"},
      {"xlm-roberta", "{}", "bert.context_length", "128"},
      {"xlm-roberta", R"({"pad_token_id": null})", "bert.context_length", "130"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.model);
    CAPTURE(row.change);
    CHECK(value_of(ModelFolder(row.model, json::parse(row.change)).outcome(), row.key) ==
          json::parse(row.value));
  }
}

TEST_CASE("models of one type are told apart by what else their config says") {
  const auto arch = [](const char* model, const char* change) {
    return value_of(ModelFolder(model, json::parse(change)).outcome(), "general.architecture");
  };
  CHECK(arch("gemma3", "{}") == "gemma3");
  CHECK(arch("gemma3", R"({"use_bidirectional_attention": null})") == "gemma3");
  CHECK(arch("gemma3", R"({"use_bidirectional_attention": "vision"})") == "gemma3");
  CHECK(arch("gemma3", R"({"use_bidirectional_attention": true})") == "gemma-embedding");
  CHECK(arch("gemma3", R"({"architectures": ["Gemma3ForCausalLM"]})") == "gemma3");
  CHECK(arch("gemma3", R"({"architectures": ["Gemma3TextModel"]})") == "gemma-embedding");
  CHECK(arch("jina", "{}") == "jina-bert-v2");
  CHECK(arch("bert", R"({"position_embedding_type": null})") == "bert");
}

TEST_CASE("a model is a classifier if one of its architectures says so") {
  const auto labelled = [](const json& architectures) {
    const ModelFolder folder("bert-reranker", {{"architectures", architectures}});
    return folder.outcome().metadata().contains("bert.classifier.output_labels");
  };
  CHECK(labelled({"BertForSequenceClassification"}));
  CHECK(labelled({7, "BertModel", "BertForSequenceClassification"}));
  CHECK_FALSE(labelled({"BertModel"}));
  CHECK_FALSE(labelled({7}));
  CHECK_FALSE(labelled("BertForSequenceClassification"));
}

TEST_CASE("what config.json asks for and no key can say is refused by its name") {
  struct Row {
    std::string model, change, part;
  };
  const Row rows[] = {
      {"qwen2", R"({"use_sliding_window": true, "max_window_layers": 1})", "'use_sliding_window' is true"},
      {"qwen3_5", R"({"rope_parameters": {"mrope_section": 3}})", "'mrope_section' is no list"},
      {"qwen3_5", R"({"rope_parameters": {"mrope_section": []}})", "'mrope_section' is no list"},
      {"qwen3_5", R"({"rope_parameters": {"mrope_section": [1, 1, 1, 1, 1]}})", "up to four numbers"},
      {"qwen3_5", R"({"rope_parameters": {"mrope_section": [1, "2"]}})", "'mrope_section' is"},
      {"bert", R"({"position_embedding_type": 5})", "'position_embedding_type' is no text"},
      {"phi3", R"({"rope_parameters": {"long_factor": [1, 2]}})", "'long_factor' is no list of 8"},
      {"gemma3n", R"({"activation_sparsity_pattern": [1, 0, 0, 0]})", "'activation_sparsity_pattern' has 1"},
      {"llama", R"({"hidden_act": "gelu"})", "'hidden_act' is 'gelu'; this family is supported with 'silu'"},
      {"qwen3", R"({"hidden_act": "relu"})", "'hidden_act' is 'relu'"},
      {"gemma2", R"({"hidden_activation": "silu"})", "'hidden_activation' is 'silu'"},
      {"mistral", R"({"rope_parameters": {"rope_type": "longrope"}})", "type 'longrope' becomes tensors"},
      {"qwen3", R"({"rope_parameters": {"rope_type": "llama3"}})", "the family 'qwen3' does not have"},
      {"llama", R"({"model_type": 3})", "'model_type' is missing"},
      {"llama", R"({"attention_bias": true})", "'attention_bias' is true, and no tensor"},
      {"llama", R"({"vocab_size": 70000})", "'vocab_size' is 70000, and tensor"},
      {"llama", R"({"model_type": "3_next"})", "'model_type' is '3_next'"},  // an end of qwen3_next
      {"llama", R"({"model_type": "gemma3_"})", "'model_type' is 'gemma3_'"},
      {"llama", R"({"model_type": ""})", "'model_type' is ''"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.model);
    CAPTURE(row.change);
    CHECK(mentions(ModelFolder(row.model, json::parse(row.change)).refused(), row.part));
  }
}

TEST_CASE("tensors that only training or another program needs are listed and left out") {
  const std::pair<const char*, std::vector<std::string>> rows[] = {
      {"mistral",
       {"model.layers.0.self_attn.q_proj.input_scale", "model.layers.0.self_attn.rotary_emb.inv_freq"}},
      {"llama", {"lm_head.weight"}},  // its embedding is its output
      {"bert", {"cls.predictions.bias", "cls.seq_relationship.weight", "embeddings.position_ids"}},
      {"xlm-roberta",
       {"lm_head.bias", "lm_head.dense.weight", "roberta.embeddings.position_ids",
        "roberta.pooler.dense.bias"}},
      {"modernbert",
       {"classifier.weight", "decoder.bias", "head.dense.weight", "head.norm.weight", "lm_head.bias"}},
  };
  for (const auto& [model, names] : rows) {
    const auto& the_model = model;
    CAPTURE(the_model);
    ModelFolder folder(model);
    for (const std::string& name : names) folder.tensors[name] = numbered("F32", {8});
    CHECK(folder.skipped() == names);
  }
}

TEST_CASE("of a head for multi-token prediction sixteen layers are kept, the others are listed") {
  ModelFolder folder("qwen3_next");
  folder.tensors["mtp.fc.weight"] = numbered("F32", {64, 128});
  for (int layer = 0; layer < 17; ++layer)
    folder.tensors["mtp.layers." + std::to_string(layer) + ".input_layernorm.weight"] = numbered("F32", {64});
  folder.tensors["mtp.layers.next.weight"] = numbered("F32", {64});
  CHECK(folder.skipped() ==
        std::vector<std::string>{"mtp.layers.16.input_layernorm.weight", "mtp.layers.next.weight"});
  const gguf::Document out = folder.outcome();
  CHECK(value_of(out, "qwen3next.nextn_predict_layers") == 16);
  CHECK(value_of(out, "qwen3next.block_count") == 20);
  CHECK(out.contains("blk.19.attn_norm.weight"));
}

TEST_CASE("factors of a rope are tensors only where the rope has factors") {
  const auto has = [](const char* model, const char* change, const char* tensor) {
    return ModelFolder(model, json::parse(change)).outcome().contains(tensor);
  };
  CHECK(has("gemma4", "{}", "rope_freqs.weight"));
  CHECK_FALSE(has("gemma4", R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})",
                  "rope_freqs.weight"));
  CHECK(has("phi3", "{}", "rope_factors_long.weight"));
  CHECK_FALSE(has("phi3", R"({"rope_parameters": null})", "rope_factors_long.weight"));
}

TEST_CASE("small matrices that quantisation would spoil keep the checkpoint's type") {
  const gguf::Document out = ModelFolder("gemma3n").outcome({.format = format::Q8_0::id});
  CHECK(out.tensor("blk.0.attn_q.weight").format.name == "Q8_0");
  CHECK(out.tensor("blk.0.laurel_l.weight").format.name == "F32");
  CHECK(out.tensor("per_layer_model_proj.weight").format.name == "F32");
  const gguf::Document half = ModelFolder("gemma3n").outcome({.format = format::F16::id});
  CHECK(half.tensor("blk.0.laurel_l.weight").format.name == "F16");
}

TEST_CASE("a type that has no number among file types is written without one") {
  const ModelFolder folder("llama");
  CHECK(value_of(folder.outcome({.format = format::Q4_0::id}), "general.file_type") == 2);
  const gguf::Document out = folder.outcome({.format = format::NF4::id});
  CHECK(out.tensor("blk.0.attn_q.weight").format.name == "NF4");
  CHECK_FALSE(out.metadata().contains("general.file_type"));
}

TEST_CASE("a folder is a reranker of Qwen 3 only if its README says so") {
  ModelFolder folder("qwen3-reranker");
  folder.tokenizer["model"]["vocab"].update({{"yes", 12}, {"no", 13}});
  CHECK(folder.outcome().contains("cls.output.weight"));
  folder.others["README.md"] = "# Qwen3-Embedding-0.6B";
  CHECK_FALSE(folder.outcome().contains("cls.output.weight"));
}

TEST_CASE("a module that normalises adds nothing to the file") {
  ModelFolder folder("bert");
  json modules = json::parse(folder.others["modules.json"]);
  modules.push_back({{"type", "sentence_transformers.models.Normalize"}, {"path", "2_Normalize"}});
  folder.others["modules.json"] = modules.dump();
  CHECK(value_of(folder.outcome(), "bert.pooling_type") == 1);  // the mean
}

TEST_CASE("MXFP4 blocks of a checkpoint keep their numbers, gate and up by turns") {
  const BlocksFolder folder;
  Conversion::open(folder.write(), {.format = format::Q8_0::id}).write(folder.path("out.gguf"));
  const gguf::Document out = gguf::open(folder.path("out.gguf"));
  CHECK(out.tensor("blk.1.ffn_gate_exps.weight").format.name == "MXFP4");
  CHECK(out.tensor("blk.1.ffn_gate_exps.weight").shape() == "64 x 128 x 4");
  CHECK(out.tensor("blk.1.ffn_down_exps.weight").shape() == "128 x 64 x 4");
  const std::string experts = "model.layers.1.mlp.experts.";
  CHECK(decoded(out, out.tensor("blk.1.ffn_gate_exps.weight")) ==
        folder.rows(experts + "gate_up_proj", 0, 2));
  CHECK(decoded(out, out.tensor("blk.1.ffn_up_exps.weight")) == folder.rows(experts + "gate_up_proj", 1, 2));
  CHECK(decoded(out, out.tensor("blk.1.ffn_down_exps.weight")) == folder.rows(experts + "down_proj", 0, 1));
}

TEST_CASE("MXFP4 blocks of another type or without their scales are refused") {
  const std::string name = "model.layers.1.mlp.experts.down_proj";
  const auto with = [&](const char* end, const StoredTensor& tensor) {
    BlocksFolder folder;
    folder.tensors[name + end] = tensor;
    return folder.refused();
  };
  CHECK(mentions(with("_blocks", numbered("F16", {4, 64, 4, 16})), name + "_blocks", "no tensor of MXFP4"));
  CHECK(mentions(with("_blocks", numbered("F16", {4, 64, 4})), name + "_blocks", "[4, 64, any, 16]"));
  CHECK(mentions(with("_scales", random_bytes({4, 64, 3}, 1, 0, 9)), name + "_scales", "of another shape"));
  CHECK(mentions(with("_scales", numbered("F16", {4, 64, 4})), name + "_scales", "missing or of another"));
  BlocksFolder folder;
  folder.tensors.erase(name + "_scales");
  CHECK(mentions(folder.refused(), name + "_scales", "are missing"));
}

}  // namespace mica::test::families_test
