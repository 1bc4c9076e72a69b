// SPDX-License-Identifier: Apache-2.0
//
// A Hugging Face folder as one GGUF file: everything is planned and checked when the folder is opened, then
// written tensor by tensor. Include it in one .cpp of a program; it brings nlohmann/json.
#pragma once

#include "mica/arch/read_pooling.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/io/folder_file.hpp"
#include "mica_tools/convert/checkpoint.hpp"
#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/families.hpp"
#include "mica_tools/convert/modules.hpp"
#include "mica_tools/convert/plan_tensors.hpp"
#include "mica_tools/convert/tensor_bytes.hpp"
#include "mica_tools/convert/tokenizer/read_vocabulary.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"
#include "mica_tools/embed/text_tokens.hpp"
#include "mica_tools/synth/header_only.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// What a conversion may choose.
struct ConversionOptions {
  std::optional<format::Id> format = {};  // of matrices; empty: that of the checkpoint
  std::string name = {};                  // general.name; empty: that of the folder
};

/// Called before each tensor with its place among tensors(); throws to stop.
using ConversionProgress = std::function<void(std::size_t)>;

namespace detail {

/// Checkpoints that were quantised by another method than eight-bit floats or MXFP4 hold no values to
/// convert.
inline void refuse_quantized(const Config& config) {
  const Json* const settings = config.find("quantization_config");
  const std::string method = settings == nullptr ? "" : member_text(*settings, "quant_method");
  MICA_CHECK(method.empty() || method == "fp8" || method == "fbgemm_fp8" || method == "mxfp4", unsupported,
             config.where("quantization_config"), ": method '", escaped(method),
             "'; convert the model that it was made from, or one in fp8 or mxfp4");
}

/// Layers of a head for multi-token prediction; 0 where its own tensors are missing.
[[nodiscard]] inline std::uint64_t mtp_layers(const Checkpoint& checkpoint) {
  std::uint64_t layers = 0;
  if (checkpoint.find("mtp.fc.weight") == nullptr) return layers;
  while (layers < max_mtp_layers &&
         checkpoint.find(join("mtp.layers.", layers, ".input_layernorm.weight")) != nullptr)
    ++layers;
  return layers;
}

/// Whether one of a family's rules is meant.
template <class Is>
[[nodiscard]] bool has_rule(const Family& family, Is&& is) {
  return std::any_of(family.tables.begin(), family.tables.end(), [&](std::span<const TensorRule> table) {
    return std::any_of(table.begin(), table.end(), is);
  });
}

/// Whether a tensor of the checkpoint becomes the embedding.
[[nodiscard]] inline bool is_embedding(const Family& family, std::string_view pattern) {
  return has_rule(
      family, [&](const TensorRule& rule) { return rule.from == pattern && rule.to == "token_embd.weight"; });
}

/// Whether a folder says of itself that it is a reranker of Qwen 3: a model for texts has the same config.
[[nodiscard]] inline bool is_qwen3_reranker(const std::string& folder) {
  const std::string file = io::folder_file(folder, "README.md");
  return io::exists(file) && read_text(file).find("# Qwen3-Reranker") != std::string::npos;
}

/// The question of a reranker of Qwen 3 as its model card has it, with the names that llama.cpp fills in.
inline constexpr std::string_view rerank_template =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
    "Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: "
    "{query}\n"
    "<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

/// Raises ErrorCode::file where config.json says that attention has biases, and the checkpoint has none.
inline void check_biases(const Checkpoint& checkpoint, const Config& config, const Family& family) {
  constexpr std::string_view bias = "layers.#.self_attn.q_proj.bias";
  if (!config.flag_or("attention_bias", false)) return;
  // Others have them under another name, or for other products.
  if (!has_rule(family, [](const TensorRule& rule) { return rule.from == bias; })) return;
  const auto& all = checkpoint.entries();
  MICA_CHECK(std::any_of(all.begin(), all.end(),
                         [&](const auto& each) { return CanonicalName(each.first).pattern == bias; }),
             file, config.where("attention_bias"),
             " is true, and no tensor 'layers.0.self_attn.q_proj.bias' is in the safetensors files");
}

/// Rows of the embedding, which is the vocabulary that counts.
[[nodiscard]] inline std::uint64_t embedding_rows(const Checkpoint& checkpoint, const Config& config,
                                                  const Family& family) {
  for (const auto& [name, entry] : checkpoint.entries()) {
    if (!is_embedding(family, CanonicalName(name).pattern) || entry.tensor->shape.size() != 2) continue;
    const std::uint64_t rows = entry.tensor->shape[0];
    const std::uint64_t said = config.count_or("vocab_size", rows);
    MICA_CHECK(said == rows || family.padded, file, config.where("vocab_size"), " is ", said,
               ", and tensor '", escaped(name), "' has ", rows, " rows");
    const std::uint64_t all = std::max(rows, said);
    MICA_CHECK(all > 0 && all <= VocabularyData::max_tokens, limit, config.path(), ": ", all,
               " tokens; allowed: 1 to ", VocabularyData::max_tokens);
    return all;
  }
  raise(ErrorCode::file, config.path(), ": no tensor 'model.embed_tokens.weight', or the one that ",
        family.arch, " has for it, in the safetensors files");
}

/// The name of a folder, also of "." and "models/". Raises ErrorCode::file where the system cannot tell.
[[nodiscard]] inline std::string folder_name(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::weakly_canonical(folder, error);
  MICA_CHECK(!error, file, folder, ": cannot be examined: ", error.message());
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  return name.empty() ? "model" : name;
}

}  // namespace detail

/// The conversion of one model. Move-only.
class Conversion {
 public:
  /// Reads config, tokenizer and the headers of the weights. Raises ErrorCode::file for what is missing,
  /// damaged or contradicts itself, unsupported for a family, tokenizer, tensor or type that is not known,
  /// each by name.
  [[nodiscard]] static Conversion open(const std::string& folder, const ConversionOptions& options = {}) {
    MICA_CHECK(io::is_folder(folder), file, folder,
               ": is no folder; needed: one with config.json, tokenizer.json and safetensors files");
    const std::string file = io::folder_file(folder, "config.json");
    Config config(read_json(file), file);
    (void)find_family(config);  // an unknown model is refused before its weights are read
    detail::refuse_quantized(config);
    Conversion out(std::move(config), Checkpoint::open(folder), read_modules(folder));
    out.plan(folder, options);
    return out;
  }

  /// general.architecture of the file.
  [[nodiscard]] std::string_view arch() const noexcept { return family_->arch; }
  /// The tensors of the file, in its order.
  [[nodiscard]] const std::vector<TensorPlan>& tensors() const noexcept { return plans_.tensors; }
  /// Tensors of the checkpoint that have no place in the file: vision and audio towers, multi-token
  /// prediction.
  [[nodiscard]] const std::vector<std::string>& skipped() const noexcept { return plans_.skipped; }
  /// Decisions of the conversion, as text for users.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return vocabulary_.notes; }
  /// Bytes of all tensors in the file.
  [[nodiscard]] std::uint64_t tensor_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const TensorPlan& tensor : plans_.tensors) sum += tensor.bytes();
    return sum;
  }

  /// The file that write() makes, by its header alone: it can be planned and checked, and its weights not
  /// read. `name` stands for the file in error texts.
  [[nodiscard]] gguf::Document outcome(std::string name) const {
    const auto nothing = [](std::size_t, const gguf::Sink&) {};
    return gguf::header_only(std::move(name), writer(nothing));
  }

  /// Writes the file whole or not at all. Raises what gguf::Writer::write raises.
  /// Cost: one pass over the checkpoint; memory as write_tensor says, and the pages of one tensor.
  void write(const std::string& path, const ConversionProgress& progress = {}) const {
    const auto fill = [&](std::size_t i, const gguf::Sink& sink) {
      const TensorPlan& tensor = plans_.tensors[i];
      if (progress) progress(i);
      write_tensor(tensor, sink);
      for (const Checkpoint::Entry& part : tensor.stored.parts) part.file->release(*part.tensor);
    };
    writer(fill).write(path);
  }

 private:
  Conversion(Config config, Checkpoint checkpoint, Modules modules)
      : config_(std::move(config)), checkpoint_(std::move(checkpoint)), modules_(std::move(modules)) {}

  void plan(const std::string& folder, const ConversionOptions& options) {
    family_ = &find_family(config_);
    config_.set_names(family_->names);
    for (const DenseModule& dense : modules_.dense) checkpoint_.add_below(folder, dense.folder);
    name_ = options.name.empty() ? detail::folder_name(folder) : options.name;
    sizes_ = read_sizes(config_, family_->defaults);
    sizes_.vocabulary = detail::embedding_rows(checkpoint_, config_, *family_);
    detail::check_biases(checkpoint_, config_, *family_);
    if (family_->mtp) sizes_.mtp_layers = detail::mtp_layers(checkpoint_);
    const Rope rope = read_rope(config_, family_->defaults);
    vocabulary_ = read_vocabulary(folder, config_, sizes_.vocabulary, family_->vocabulary);
    if (family_->reranks && detail::is_qwen3_reranker(folder)) find_answers();
    const FamilyInput input{config_, sizes_, rope, modules_, answers_};
    const TargetFormat formats(options.format, checkpoint_);
    file_type_ = formats.file_type();
    quantized_ = !is_float(formats.requested());
    gguf::Writer rehearsal;
    Keys keys(rehearsal, family_->arch);
    family_->write_keys(input, keys);
    const bool tied = config_.flag_or("tie_word_embeddings", family_->defaults.tied);
    plans_ = TensorPlanner(checkpoint_, *family_, input, formats, tied).plan();
    check_encoder(folder);
  }
  /// What a text encoder cannot do without: the tokens around a text, and of a reranker the classifier.
  void check_encoder(const std::string& folder) const {
    MICA_CHECK(vocabulary_.model != "bert" || (vocabulary_.classifier && vocabulary_.separator), file, folder,
               ": the tokenizer lacks [CLS] or [SEP], which stand around every text");
    if (!family_->arch.ends_with("bert") || !has_architecture(config_, "ForSequenceClassification")) return;
    const auto output = [](const TensorPlan& tensor) { return tensor.name == "cls.output.weight"; };
    MICA_CHECK(std::any_of(plans_.tensors.begin(), plans_.tensors.end(), output), file, config_.path(),
               ": 'architectures' names a classifier, and the folder has no tensor of one, such as ",
               "'classifier.weight'");
  }
  void find_answers() {
    for (const char* const answer : {"yes", "no"}) {
      const auto id = vocabulary_.find(answer);
      MICA_CHECK(id, file, config_.path(), ": a reranker without a token '", answer, "'");
      answers_.push_back(static_cast<std::uint32_t>(*id));
    }
    vocabulary_.chat_templates.emplace_back("rerank", detail::rerank_template);
  }

  void write_keys(gguf::Writer& out) const {
    out.set("general.architecture", family_->arch);
    out.set("general.type", "model");
    out.set("general.name", name_);
    if (file_type_) out.set("general.file_type", *file_type_);
    if (quantized_) out.set("general.quantization_version", std::uint32_t{2});
    const Rope rope = read_rope(config_, family_->defaults);
    Keys keys(out, family_->arch);
    if (modules_.pooling) keys.count("pooling_type", static_cast<std::uint64_t>(*modules_.pooling));
    family_->write_keys({config_, sizes_, rope, modules_, answers_}, keys);
    if (!answers_.empty()) {
      keys.count("pooling_type", static_cast<std::uint64_t>(arch::PoolingKey::rank));
      keys.texts("classifier.output_labels", {"yes", "no"});
    }
    if (!modules_.query_prefix.empty()) out.set(query_prefix_key, std::string_view(modules_.query_prefix));
    if (!modules_.document_prefix.empty())
      out.set(document_prefix_key, std::string_view(modules_.document_prefix));
    write_vocabulary(vocabulary_, out);
    for (const TensorPlan& tensor : plans_.tensors) {
      if (tensor.name == arch::tensor_names::token_types)
        out.set("tokenizer.ggml.token_type_count", static_cast<std::uint32_t>(tensor.dims[1]));
    }
  }
  /// The file with nothing but its description; fill(i, sink) hands over tensor i.
  template <class Fill>
  [[nodiscard]] gguf::Writer writer(const Fill& fill) const {
    gguf::Writer out;
    write_keys(out);
    for (std::size_t i = 0; i < plans_.tensors.size(); ++i) {
      const TensorPlan& tensor = plans_.tensors[i];
      out.add(tensor.name, tensor.format, tensor.dims, [&fill, i](const gguf::Sink& sink) { fill(i, sink); });
    }
    return out;
  }

  Config config_;
  Checkpoint checkpoint_;
  const Family* family_ = nullptr;
  Sizes sizes_{};
  std::string name_;
  std::optional<std::uint32_t> file_type_;
  bool quantized_ = false;
  Modules modules_;
  std::vector<std::uint32_t> answers_;
  VocabularyData vocabulary_;
  TensorPlans plans_;
};

}  // namespace mica::convert
