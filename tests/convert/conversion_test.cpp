// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/convert/conversion.hpp"

#include "convert/hf_folder.hpp"
#include "convert/kit_folder.hpp"
#include "mica/gguf/reader.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::conversion_test {
namespace {

using convert::Conversion;
using nlohmann::json;

/// What opening the folder is refused with.
Error refused(const HfFolder& folder, const convert::ConversionOptions& options = {}) {
  const std::string path = folder.write();
  return refusal([&] { return Conversion::open(path, options); });
}

/// A folder that converts.
struct SmallLlama : HfFolder {
  explicit SmallLlama(const std::string& dtype = "BF16") { fill_small_llama(*this, dtype); }
};

/// As it was.
void refill(HfFolder& folder) {
  folder.tensors.clear();
  fill_small_llama(folder);
}

gguf::Document converted(const HfFolder& folder, const convert::ConversionOptions& options = {}) {
  Conversion::open(folder.write(), options).write(folder.path("out.gguf"));
  return gguf::open(folder.path("out.gguf"));
}

TEST_CASE("a folder keeps the type it has, and vectors are F32") {
  for (const std::string dtype : {"BF16", "F16", "F32"}) {
    CAPTURE(dtype);
    const SmallLlama folder(dtype);
    const gguf::Document out = converted(folder);
    CHECK(out.tensor("blk.1.ffn_down.weight").format.name == dtype);
    CHECK(out.tensor("token_embd.weight").shape() == "8 x 12");
    CHECK(out.tensor("output_norm.weight").format.name == "F32");
    const auto& stored_bytes = folder.tensors.at("model.layers.1.mlp.down_proj.weight").bytes;
    std::vector<std::byte> bytes(stored_bytes.size());
    out.read(out.tensor("blk.1.ffn_down.weight"), bytes);
    CHECK(std::memcmp(bytes.data(), stored_bytes.data(), bytes.size()) == 0);
  }
}

TEST_CASE("the keys of a model are those of its config") {
  const gguf::Document out = converted(SmallLlama(), {.name = "small"});
  const gguf::Metadata& m = out.metadata();
  CHECK(m.require<std::string>("general.architecture") == "llama");
  CHECK(m.require<std::string>("general.name") == "small");
  CHECK(m.require<std::uint32_t>("general.file_type") == 32);
  CHECK(m.require<std::uint32_t>("llama.vocab_size") == 12);
  CHECK(m.require<std::uint32_t>("llama.attention.head_count_kv") == 1);
  CHECK(m.require<std::uint32_t>("llama.rope.dimension_count") == 4);
  CHECK(m.require<std::uint32_t>("llama.feed_forward_length") == 12);
  CHECK_FALSE(m.contains("llama.expert_count"));
}

TEST_CASE("an asked type is that of all matrices whose rows it divides") {
  HfFolder folder;
  fill_small_llama(folder);
  folder.config["hidden_size"] = 32;
  for (auto& [name, tensor] : folder.tensors) {
    for (auto& dim : tensor.shape) dim = dim == 8 ? 32 : dim == 4 ? 16 : dim;
    if (tensor.shape.size() == 2 && tensor.shape[0] == 12 && tensor.shape[1] == 12) tensor.shape[1] = 32;
    tensor = numbered("BF16", tensor.shape);
  }
  const gguf::Document out = converted(folder, {.format = format::Q8_0::id});
  CHECK(out.tensor("blk.0.attn_q.weight").format.name == "Q8_0");
  CHECK(out.tensor("blk.0.ffn_down.weight").format.name == "F16");  // rows of 12
  CHECK(out.tensor("blk.0.attn_norm.weight").format.name == "F32");
  CHECK(out.metadata().require<std::uint32_t>("general.quantization_version") == 2);
  CHECK(out.metadata().require<std::uint32_t>("general.file_type") == 7);
  const gguf::Document wide = converted(folder, {.format = format::Q4_K::id});
  CHECK(wide.tensor("blk.0.attn_q.weight").format.name == "Q8_0");  // rows of 32 are no block of 256
  CHECK(refused(folder, {.format = format::NVFP4::id}).code() == ErrorCode::unsupported);
}

TEST_CASE("eight-bit floats are multiplied by the scales beside them") {
  SmallLlama folder;
  std::vector<std::uint8_t> ones(64, 0x38);
  const std::string name = "model.layers.0.self_attn.o_proj.weight";
  folder.tensors[name] = stored("F8_E4M3", {8, 8}, ones);
  CHECK(mentions(refused(folder), "no scale"));
  folder.tensors[name + "_scale_inv"] = stored<float>("F32", {1, 1}, {0.25F});
  const auto values = [&] {
    const gguf::Document out = converted(folder, {.format = format::F32::id});
    return decoded(out, out.tensor("blk.0.attn_output.weight"));
  };
  CHECK(values() == std::vector<float>(64, 0.25F));
  folder.tensors[name + "_scale_inv"] = stored<float>("F32", {8, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(values()[63] == 7.0F);
  CHECK(values()[8] == 1.0F);
  folder.tensors[name + "_scale_inv"] = stored<float>("F32", {8}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(values()[63] == 7.0F);
  folder.tensors[name + "_scale_inv"] = stored<float>("F32", {}, {0.5F});
  CHECK(values() == std::vector<float>(64, 0.5F));
  folder.tensors[name + "_scale_inv"] = stored<float>("F32", {3, 1}, {0, 1, 2});
  CHECK(mentions(refused(folder), "does not scale"));
  folder.tensors.erase(name + "_scale_inv");
  folder.tensors[name + "_scale"] = stored<float>("F32", {1}, {2.0F});
  CHECK(values() == std::vector<float>(64, 2.0F));
}

TEST_CASE("blocks of 128 by 128 have a scale each, the last ones being smaller") {
  const auto values = [](std::uint64_t width, const std::vector<float>& scales) {
    SmallLlama folder;
    folder.config["intermediate_size"] = width;
    for (const std::string layer : {"model.layers.0.mlp.", "model.layers.1.mlp."}) {
      folder.tensors[layer + "gate_proj.weight"] = numbered("BF16", {width, 8});
      folder.tensors[layer + "up_proj.weight"] = numbered("BF16", {width, 8});
      folder.tensors[layer + "down_proj.weight"] = numbered("BF16", {8, width});
    }
    const std::string name = "model.layers.0.mlp.down_proj.weight";
    folder.tensors[name] = stored("F8_E4M3", {8, width}, std::vector<std::uint8_t>(8 * width, 0x38));
    folder.tensors[name + "_scale_inv"] = stored<float>("F32", {1, scales.size()}, scales);
    const gguf::Document out = converted(folder, {.format = format::F32::id});
    return decoded(out, out.tensor("blk.0.ffn_down.weight"));
  };
  const auto two = values(200, {2.0F, 3.0F});
  CHECK(two[127] == 2.0F);
  CHECK(two[128] == 3.0F);
  CHECK(two[1599] == 3.0F);
  const auto three = values(260, {2.0F, 3.0F, 4.0F});
  CHECK(three[127] == 2.0F);
  CHECK(three[255] == 3.0F);
  CHECK(three[256] == 4.0F);
  CHECK(three[260] == 2.0F);
}

TEST_CASE("an unknown model is refused before its weights are looked at, with the known ones") {
  SmallLlama folder;
  folder.config["model_type"] = "gpt_neox";
  folder.tensors.clear();
  const Error error = refused(folder);
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "'gpt_neox'", "llama", "qwen3_next", "gemma3n_text", "gpt_oss"));
  folder.config.erase("model_type");
  CHECK(mentions(refused(folder), "model_type"));
}

TEST_CASE("a tensor without a place is refused by name, towers of other senses are listed") {
  SmallLlama folder;
  folder.tensors["model.layers.0.self_attn.gate.weight"] = numbered("BF16", {8});
  const Error error = refused(folder);
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "'model.layers.0.self_attn.gate.weight'", "[8]"));
  folder.tensors.erase("model.layers.0.self_attn.gate.weight");
  folder.tensors["model.layers.0..mlp.up_proj.weight"] = numbered("BF16", {12, 8});
  CHECK(mentions(refused(folder), "'model.layers.0..mlp.up_proj.weight'", "no place"));
  folder.tensors.erase("model.layers.0..mlp.up_proj.weight");
  folder.tensors["vision_tower.patch.weight"] = numbered("BF16", {8});
  folder.tensors["model.layers.2.input_layernorm.weight"] = numbered("BF16", {8});  // beyond the last
  CHECK(Conversion::open(folder.write()).skipped() ==
        std::vector<std::string>{"model.layers.2.input_layernorm.weight", "vision_tower.patch.weight"});
}

TEST_CASE("a model inside of a larger one is found under its prefixes") {
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    CAPTURE(prefix);
    SmallLlama plain, nested;
    nested.config = {{"model_type", "llava"}, {"text_config", plain.config}};
    StoredTensors renamed;
    for (const auto& [name, tensor] : plain.tensors)
      renamed[name.starts_with("model.") ? prefix + name.substr(6) : name] = tensor;
    nested.tensors = renamed;
    CHECK(Conversion::open(nested.write()).tensors().size() ==
          Conversion::open(plain.write()).tensors().size());
  }
}

TEST_CASE("shapes that contradict the config are refused with both") {
  SmallLlama folder;
  folder.tensors["model.layers.1.self_attn.k_proj.weight"] = numbered("BF16", {8, 8});
  CHECK(mentions(refused(folder), "model.layers.1.self_attn.k_proj.weight", "[8, 8]", "[4, 8]"));
  refill(folder);
  folder.tensors["model.norm.weight"] = numbered("BF16", {8, 1});
  CHECK(mentions(refused(folder), "'model.norm.weight' of shape [8, 1]"));
  refill(folder);
  folder.tensors["model.layers.1.self_attn.q_proj.weight"] = numbered("BF16", {8});
  CHECK(mentions(refused(folder), "model.layers.1.self_attn.q_proj.weight' of shape [8];", "[8, 8]"));
  refill(folder);
  folder.config["num_attention_heads"] = 16;  // more than numbers of a row: heads of one
  CHECK(mentions(refused(folder), "of shape [8, 8]; config.json makes it [16, 8]"));
  refill(folder);
  folder.config["num_attention_heads"] = 3;
  CHECK(refused(folder).code() == ErrorCode::file);
}

TEST_CASE("a layer without tensors and a folder without an embedding are incomplete") {
  SmallLlama folder;
  folder.config["num_hidden_layers"] = 3;
  CHECK(mentions(refused(folder), "no tensor of layer 2"));
  refill(folder);
  folder.tensors["model.embed_tokens.weight"] = numbered("BF16", {12});
  CHECK(mentions(refused(folder), "no tensor 'model.embed_tokens.weight'"));
  folder.tensors.erase("model.embed_tokens.weight");
  CHECK(mentions(refused(folder), "no tensor 'model.embed_tokens.weight'"));
}

TEST_CASE("the usual type of a checkpoint is that of most of its bytes") {
  const auto usual = [](const StoredTensors& tensors) {
    const TemporaryFolder folder;
    write_safetensors(folder.path("model.safetensors"), tensors);
    return convert::usual_format(convert::Checkpoint::open(folder.path("")));
  };
  const StoredTensor eight_bits{"F8_E5M2", {8}, std::string(8, '\0')},
      doubles{"F64", {8}, std::string(64, '\0')};
  CHECK(usual({{"a", numbered("F16", {3})}, {"b", numbered("F32", {1})}}) == format::F16::id);
  CHECK(usual({{"a", numbered("F16", {3})}, {"b", eight_bits}}) == format::BF16::id);
  CHECK(usual({{"a", numbered("BF16", {8})}, {"b", doubles}}) == format::F32::id);
  CHECK(usual({{"a", {"I32", {2}, std::string(8, '\0')}}}) == format::F32::id);
}

TEST_CASE("a model has the name of its folder") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("models/small"));
  CHECK(convert::detail::folder_name(folder.path("models/small")) == "small");
  CHECK(convert::detail::folder_name(folder.path("models/small/")) == "small");
  CHECK(convert::detail::folder_name(folder.path("models/small/.")) == "small");
  CHECK(convert::detail::folder_name(folder.path("models/small/later/")) == "later");
  CHECK(convert::detail::folder_name("/") == "model");
}

namespace {

/// A Mixtral of eleven experts; the first matrix of each has its number everywhere.
struct ElevenExperts : SmallLlama {
  ElevenExperts() {
    config.update(json{{"model_type", "mixtral"}, {"num_local_experts", 11}, {"num_experts_per_tok", 2}});
    for (const int layer : {0, 1}) {
      const std::string mlp = "model.layers." + std::to_string(layer) + ".";
      for (const char* name : {"gate_proj", "up_proj", "down_proj"})
        tensors.erase(mlp + "mlp." + name + ".weight");
      tensors[mlp + "block_sparse_moe.gate.weight"] = numbered("BF16", {11, 8});
      for (int e = 0; e < 11; ++e) {
        const std::string expert = mlp + "block_sparse_moe.experts." + std::to_string(e);
        tensors[expert + ".w1.weight"] =
            stored("F32", {12, 8}, std::vector<float>(96, static_cast<float>(e)));
        tensors[expert + ".w2.weight"] = numbered("BF16", {8, 12});
        tensors[expert + ".w3.weight"] = numbered("BF16", {12, 8});
      }
    }
  }
};

}  // namespace

TEST_CASE("experts are stacked in their order, and a missing one is named") {
  ElevenExperts folder;
  const gguf::Document out = converted(folder);
  CHECK(out.tensor("blk.0.ffn_gate_exps.weight").shape() == "8 x 12 x 11");
  CHECK(out.tensor("blk.0.ffn_gate_inp.weight").format.name == "F32");
  const auto values = decoded(out, out.tensor("blk.0.ffn_gate_exps.weight"));
  for (std::size_t e = 0; e < 11; ++e) CHECK(values[e * 96] == static_cast<float>(e));  // 10 is not behind 1
  folder.tensors.erase("model.layers.1.block_sparse_moe.experts.4.w2.weight");
  CHECK(mentions(refused(folder), "number 4, is missing"));
  folder.tensors.erase("model.layers.1.block_sparse_moe.experts.10.w1.weight");
  CHECK(refused(folder).code() == ErrorCode::file);
}

TEST_CASE("experts have types of their own, and only those of eight bits have scales") {
  ElevenExperts folder;
  const std::string experts = "model.layers.0.block_sparse_moe.experts.";
  for (const char* e : {"0", "7"}) {
    folder.tensors[experts + e + ".w1.weight"] =
        stored("F8_E4M3", {12, 8}, std::vector<std::uint8_t>(96, 0x38));  // 1
    folder.tensors[experts + e + ".w1.weight_scale"] = stored<float>("F32", {1}, {0.25F});
  }
  const gguf::Document out = converted(folder, {.format = format::F32::id});
  const auto values = decoded(out, out.tensor("blk.0.ffn_gate_exps.weight"));
  for (std::size_t e = 0; e < 11; ++e)
    CHECK(values[e * 96] == (e == 0 || e == 7 ? 0.25F : static_cast<float>(e)));
  folder.tensors[experts + "5.w1.weight"] = stored("U8", {12, 8}, std::vector<std::uint8_t>(96, 1));
  const Error error = refused(folder);
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "experts.5.w1.weight", "is U8, which is no type of weights"));
}

TEST_CASE("a checkpoint of another method of quantisation is refused by that method") {
  SmallLlama folder;
  folder.config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4}};
  const Error error = refused(folder);
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "'gptq'"));
}

TEST_CASE("a config with values of the wrong kind is refused by the key") {
  const auto with = [](const std::string& key, const json& value) {
    SmallLlama folder;
    folder.config[key] = value;
    const Error error = refused(folder);
    CAPTURE(key);
    CHECK(error.code() == ErrorCode::file);
    return mentions(error, "'" + key + "'");
  };
  CHECK(with("hidden_size", "eight"));
  CHECK(with("hidden_size", -8));
  CHECK(with("hidden_size", 0));
  CHECK(with("num_hidden_layers", 1e9));
  CHECK(with("num_hidden_layers", 100000));
  CHECK(with("rms_norm_eps", json::array()));
  CHECK(with("num_key_value_heads", 1U << 20));
  CHECK(with("intermediate_size", json{1, 2, 3}));
}

TEST_CASE("a scaling that no key describes is refused by its type") {
  SmallLlama folder;
  folder.config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  CHECK(mentions(refused(folder), "'dynamic'"));
  folder.config["rope_scaling"] = {{"type", "linear"}};
  CHECK(mentions(refused(folder), "'factor' is missing"));
  folder.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  CHECK(converted(folder).metadata().require<float>("llama.rope.scaling.factor") == 4.0F);
}

TEST_CASE("files that are missing or no JSON are named") {
  SmallLlama folder;
  const std::string path = folder.write();
  const auto message = [&] { return refusal([&] { return Conversion::open(path); }); };
  write_text(folder.path("config.json"), "{\"model_type\": ");
  CHECK(mentions(message(), "config.json: is not JSON"));
  write_text(folder.path("config.json"), std::string(1000, '[') + std::string(1000, ']'));
  CHECK(mentions(message(), "nests deeper"));
  write_text(folder.path("config.json"), "[]");
  CHECK(mentions(message(), "not a JSON object"));
  std::filesystem::remove(folder.path("config.json"));
  CHECK(mentions(message(), "config.json: no such file"));
  CHECK(mentions(refusal([&] { return Conversion::open(folder.path("nowhere")); }), "is no folder"));
}

TEST_CASE("a number that no double holds is refused by file and key, wherever a folder has numbers") {
  for (const std::string file :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "chat_template.json", "model.safetensors.index.json"}) {
    CAPTURE(file);
    for (const std::string& number : {std::string("1e999"), std::string(5'000, '9')}) {
      const SmallLlama folder;
      const std::string path = folder.write();
      write_text(folder.path(file), R"({"outer": {"some_number": )" + number + "}}");
      const Error error = refusal([&] { return Conversion::open(path); });
      CHECK(error.code() == ErrorCode::file);
      CHECK(mentions(error, file + ": key 'outer.some_number' is " + number.substr(0, 5)));
      CHECK(error.message().size() < 400);
    }
  }
}

TEST_CASE("no file of a folder may be a link that leaves it, but for those of a Hugging Face cache") {
  namespace fs = std::filesystem;
  const TemporaryFolder outside;
  for (const std::string file :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "tokenizer.model",
        "chat_template.jinja", "chat_template.json", "model.safetensors", "model.safetensors.index.json"}) {
    CAPTURE(file);
    SmallLlama folder;
    folder.tokenizer_config = json::object();
    const std::string path = folder.write();
    if (fs::exists(folder.path(file))) {  // the same bytes elsewhere
      fs::copy_file(folder.path(file), outside.path(file));
      fs::remove(folder.path(file));
    } else {
      write_text(outside.path(file), "root:x:0:0");
    }
    fs::create_symlink(outside.path(file), folder.path(file));
    CHECK(mentions(refusal([&] { return Conversion::open(path); }), file + ": is a link to ",
                   "outside of the folder"));
  }
  SmallLlama folder;
  folder.write();
  const std::string repository = outside.path("models--owner--name"),
                    snapshot = repository + "/snapshots/1f2e";
  fs::create_directories(snapshot);
  fs::create_directories(repository + "/blobs");
  for (const std::string file : {"config.json", "tokenizer.json", "model.safetensors"}) {
    fs::copy_file(folder.path(file), repository + "/blobs/" + file);
    fs::create_symlink("../../blobs/" + file, snapshot + "/" + file);
  }
  CHECK(Conversion::open(snapshot).tensors().size() == Conversion::open(folder.path("")).tensors().size());
}

TEST_CASE("a progress that throws leaves no file behind") {
  const SmallLlama folder;
  const Conversion conversion = Conversion::open(folder.write());
  std::size_t calls = 0;
  CHECK_THROWS_AS(conversion.write(folder.path("out.gguf"),
                                   [&](std::size_t i) {
                                     CHECK(i == calls++);
                                     if (i == 5) raise(ErrorCode::failed, "enough");
                                   }),
                  Error);
  CHECK(calls == 6);
  CHECK_FALSE(std::filesystem::exists(folder.path("out.gguf")));
}

TEST_CASE("a shard that is missing is named, and what was planned is what is written") {
  SmallLlama folder;
  const std::string path = folder.write();
  json map;
  for (const auto& [name, tensor] : folder.tensors) map[name] = "model-00002-of-00002.safetensors";
  write_text(folder.path("model.safetensors.index.json"), json{{"weight_map", map}}.dump());
  CHECK(mentions(refusal([&] { return Conversion::open(path); }),
                 "model-00002-of-00002.safetensors: no such file"));
  std::filesystem::rename(folder.path("model.safetensors"), folder.path("model-00002-of-00002.safetensors"));
  const Conversion conversion = Conversion::open(path);
  conversion.write(folder.path("out.gguf"));
  const gguf::Document out = gguf::open(folder.path("out.gguf"));
  REQUIRE(out.tensors().size() == conversion.tensors().size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < out.tensors().size(); ++i) {
    CHECK(out.tensors()[i].name == conversion.tensors()[i].name);
    CHECK(out.tensors()[i].shape() == conversion.tensors()[i].shape());
    CHECK(out.tensors()[i].bytes == conversion.tensors()[i].bytes());
    bytes += out.tensors()[i].bytes;
  }
  CHECK(bytes == conversion.tensor_bytes());
}

}  // namespace
}  // namespace mica::test::conversion_test
