// SPDX-License-Identifier: Apache-2.0
//
// Tiny models of every family as the library that defines them saves them (hf_models.py): every tensor must
// find its place, and the converted model must give the logits of the original.

#include "convert/hf_folder.hpp"
#include "convert/model_values.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/mtp_drafter.hpp"
#include "mica_tools/convert/conversion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mica::test::hf_models_test {
namespace {

using nlohmann::json;
using Model = Transformer<arch::AnyOf<arch::All>, WithKvElement<format::F32>, WithKernels<kernel::Scalar>>;

/// Logits after the last of 24 tokens. The context is one in which Phi-3 takes its short factors.
std::vector<float> last_logits(const std::string& path) {
  const gguf::Document document = gguf::open(path);
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = 128, .chunk = 32, .logits_rows = 1, .log = {}});
  auto cache = model.make_cache();
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 24; ++i) ids.push_back((i * 37 + 11) % 250 + 4);
  REQUIRE(model.step(cache, ids) == model::StepStatus::ok);
  const std::vector<std::size_t> last = {23};
  const auto logits = model.logits(last);
  return {logits[0].begin(), logits[0].end()};
}

void check_model(const json& model) {
  HfFolder folder;
  folder.config = model["config"];
  add_tensors(model["tensors"], folder);
  const auto conversion = convert::Conversion::open(folder.write());
  CHECK(conversion.skipped().empty());
  conversion.write(folder.path("out.gguf"));
  const auto ours = last_logits(folder.path("out.gguf"));
  const auto wanted = model["logits"].get<std::vector<float>>();
  float largest = 0, difference = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    largest = std::max(largest, std::fabs(wanted[k]));
    difference = std::max(difference, std::fabs(ours[k * 18 + 5] - wanted[k]));
  }
  CAPTURE(difference);
  CHECK(largest > 0.5F);
  CHECK(difference < 2e-4F * largest);
}

}  // namespace

TEST_CASE("a converted model gives the logits of the original, in every family") {
  std::ifstream in(std::string(MICA_SOURCE) + "/tests/convert/hf_models.json");
  const json models = json::parse(in);
  CHECK(models.size() == 20);
  for (const auto& [name, model] : models.items()) {
    SUBCASE(name.c_str()) { check_model(model); }
  }
}

TEST_CASE("a model that also sees converts by its text part, and the rest is listed") {
  std::ifstream in(std::string(MICA_SOURCE) + "/tests/convert/hf_models.json");
  const json models = json::parse(in);
  for (const std::string name : {"gemma3", "qwen3_5", "llama4", "gemma4"}) {
    CAPTURE(name);
    HfFolder plain, nested;
    plain.config = models[name]["config"];
    add_tensors(models[name]["tensors"], plain);
    nested.config = {{"model_type", name}, {"text_config", plain.config}, {"vision_config", json::object()}};
    for (const auto& [tensor, stored] : plain.tensors) {
      const bool inside = tensor.starts_with("model.");
      nested.tensors[inside ? "model.language_model." + tensor.substr(6) : tensor] = stored;
    }
    for (const char* tower :
         {"model.visual.blocks.0.norm1.weight", "model.vision_tower.encoder.layers.0.q.weight",
          "model.multi_modal_projector.norm.weight", "model.audio_tower.layers.0.norm.weight",
          "mtp.layers.0.input_layernorm.weight"})
      nested.tensors[tower] = numbered("F32", {8});
    const auto conversion = convert::Conversion::open(nested.write());
    CHECK(conversion.skipped().size() == 5);
    CHECK(conversion.tensors().size() == convert::Conversion::open(plain.write()).tensors().size());
  }
}

TEST_CASE("a head for multi-token prediction becomes the layer behind the others, and runs") {
  std::ifstream in(std::string(MICA_SOURCE) + "/tests/convert/hf_models.json");
  const json models = json::parse(in);
  HfFolder folder;
  folder.config = models["qwen3_5"]["config"];
  add_tensors(models["qwen3_5"]["tensors"], folder);
  const std::uint64_t layers = folder.config["num_hidden_layers"], width = folder.config["hidden_size"];
  std::string attends;  // "model.layers.3."
  for (const auto& [name, tensor] : folder.tensors) {
    const std::size_t at = name.find("self_attn.q_proj");
    if (at != name.npos) attends = name.substr(0, at);
  }
  REQUIRE(!attends.empty());
  const StoredTensors trunk = folder.tensors;
  for (const auto& [name, tensor] : trunk) {
    if (name.starts_with(attends)) folder.tensors["mtp.layers.0." + name.substr(attends.size())] = tensor;
  }
  folder.tensors["mtp.fc.weight"] = numbered("F32", {width, 2 * width});
  for (const char* name : {"mtp.norm", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden"})
    folder.tensors[std::string(name) + ".weight"] = numbered("F32", {width});
  const std::string path = folder.path("out.gguf");
  const auto conversion = convert::Conversion::open(folder.write());
  CHECK(conversion.skipped().empty());
  conversion.write(path);
  const gguf::Document document = gguf::open(path);
  CHECK(arch::mtp_layers(document) == 1);
  const std::string head = join("blk.", layers, ".");
  for (const char* part : {"attn_q.weight", "post_attention_norm.weight", "nextn.eh_proj.weight"})
    CHECK_MESSAGE(document.find(head + part) != nullptr, part);
  const gguf::TensorInfo& norm = document.tensor(head + "nextn.enorm.weight");
  std::vector<float> values(width), expected(width);
  document.read(norm, writable_bytes_of(values.data(), values.size()));
  std::memcpy(expected.data(), folder.tensors["mtp.pre_fc_norm_embedding.weight"].bytes.data(),
              width * sizeof(float));
  for (std::uint64_t i = 0; i < width; ++i) CHECK(values[i] == expected[i] + 1);
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = 64, .chunk = 16, .drafts = true, .log = {}}),
      its_head(document, executor, {.n_ctx = 64, .chunk = 8, .mtp = true, .log = {}});
  Session session(model);
  MtpDrafter drafter(session, its_head, {.drafts = 2});
  const std::vector<TokenId> ids = {1, 2, 3, 4, 5};
  REQUIRE(session.feed(ids) == model::StepStatus::ok);
  std::vector<TokenId> drafts(2);
  CHECK(drafter.draft(session.tokens(), 6, drafts) == 2);
}

}  // namespace mica::test::hf_models_test
