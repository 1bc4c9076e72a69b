// SPDX-License-Identifier: Apache-2.0
//
// Hugging Face folders made by tests: safetensors files, config.json and a small tokenizer.

#pragma once

#include "io/temporary_folder.hpp"
#include "mica/base/half.hpp"
#include "mica/base/rng.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mica::test {

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The bytes of a tensor with its shape and type.
struct StoredTensor {
  std::string dtype = "F32";
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

template <class T>
StoredTensor stored(std::string dtype, std::vector<std::uint64_t> shape, const std::vector<T>& values) {
  return {std::move(dtype), std::move(shape),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

inline std::uint64_t product(const std::vector<std::uint64_t>& shape) {
  std::uint64_t n = 1;
  for (const std::uint64_t dim : shape) n *= dim;
  return n;
}

/// Values that tell where they are from: -2 to 2 in steps that even BF16 keeps apart.
inline StoredTensor numbered(const std::string& dtype, std::vector<std::uint64_t> shape,
                             std::uint64_t seed = 1) {
  CounterRng rng(seed);
  std::vector<float> values(product(shape));
  for (float& v : values) v = static_cast<float>(static_cast<std::int64_t>(rng.next() % 129) - 64) / 32.0F;
  if (dtype == "F32") return stored(dtype, shape, values);
  std::vector<std::uint16_t> narrow;
  for (const float v : values) narrow.push_back(dtype == "F16" ? to_half(v).bits : to_bfloat(v).bits);
  return stored(dtype, shape, narrow);
}

/// The tensors of a file, in the order of their names.
using StoredTensors = std::map<std::string, StoredTensor>;

inline void write_safetensors(const std::string& path, const StoredTensors& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t n = text.size();
  write_text(path, std::string(reinterpret_cast<const char*>(&n), 8) + text + data);
}

/// A byte-level tokenizer of a few letters: ids 0 to 9, then two special tokens.
inline nlohmann::json small_tokenizer() {
  const auto special = [](int id, const char* text) {
    return nlohmann::json{{"id", id}, {"content", text}, {"special", true}};
  };
  return {{"added_tokens", {special(10, "<s>"), special(11, "</s>")}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"use_regex", true}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"vocab",
             {{"a", 0},
              {"b", 1},
              {"c", 2},
              {"d", 3},
              {"e", 4},
              {"f", 5},
              {"ab", 6},
              {"cd", 7},
              {"abcd", 8},
              {"ef", 9}}},
            {"merges", {"a b", "c d", "ab cd", "e f"}}}}};
}

/// A folder with all of it.
class HfFolder {
 public:
  nlohmann::json config, tokenizer = small_tokenizer(), tokenizer_config;
  StoredTensors tensors;                      // "2_Dense.linear.weight" is in the folder 2_Dense
  std::map<std::string, std::string> others;  // texts of more files, by name: "1_Pooling/config.json"

  /// Writes everything; the weights in one file.
  std::string write() const {
    write_text(folder_.path("config.json"), config.dump());
    if (!tokenizer.is_null()) write_text(folder_.path("tokenizer.json"), tokenizer.dump());
    if (!tokenizer_config.is_null())
      write_text(folder_.path("tokenizer_config.json"), tokenizer_config.dump());
    std::map<std::string, StoredTensors> parts{{"", {}}};
    for (const auto& [name, tensor] : tensors) {
      const std::size_t end = name.find("_Dense.");
      const std::string part = end == name.npos ? "" : name.substr(0, end + 6);
      parts[part][part.empty() ? name : name.substr(end + 7)] = tensor;
    }
    for (const auto& [part, own] : parts) {
      std::filesystem::create_directories(folder_.path(part));
      write_safetensors(folder_.path(part.empty() ? "model.safetensors" : part + "/model.safetensors"), own);
    }
    for (const auto& [name, text] : others) {
      std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
      write_text(folder_.path(name), text);
    }
    return folder_.path("");
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path(name); }

 private:
  TemporaryFolder folder_;
};

/// Llama with 12 tokens, width 8, two layers of two heads over one KV head.
inline void fill_small_llama(HfFolder& folder, const std::string& dtype = "BF16") {
  folder.config = {{"model_type", "llama"},         {"hidden_size", 8},
                   {"intermediate_size", 12},       {"num_hidden_layers", 2},
                   {"num_attention_heads", 2},      {"num_key_value_heads", 1},
                   {"max_position_embeddings", 64}, {"rms_norm_eps", 1e-5},
                   {"rope_theta", 10000.0},         {"vocab_size", 12}};
  std::uint64_t seed = 1;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    folder.tensors[name] = numbered(dtype, std::move(shape), ++seed);
  };
  add("model.embed_tokens.weight", {12, 8});
  add("lm_head.weight", {12, 8});
  add("model.norm.weight", {8});
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add(layer + "input_layernorm.weight", {8});
    add(layer + "post_attention_layernorm.weight", {8});
    add(layer + "self_attn.q_proj.weight", {8, 8});
    add(layer + "self_attn.k_proj.weight", {4, 8});
    add(layer + "self_attn.v_proj.weight", {4, 8});
    add(layer + "self_attn.o_proj.weight", {8, 8});
    add(layer + "mlp.gate_proj.weight", {12, 8});
    add(layer + "mlp.up_proj.weight", {12, 8});
    add(layer + "mlp.down_proj.weight", {8, 12});
  }
}

}  // namespace mica::test
