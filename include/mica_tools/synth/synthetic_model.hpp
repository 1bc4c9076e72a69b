// SPDX-License-Identifier: Apache-2.0
//
// A file for measurements of speed and size: the shape is that of a published model, each tensor has the
// format that quantize() would give it, and the weights are random. It is the same on every machine.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/rng.hpp"
#include "mica/exec/concept.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/encode/encode.hpp"
#include "mica_tools/quantize/mix.hpp"
#include "mica_tools/synth/header_only.hpp"
#include "mica_tools/synth/shape.hpp"
#include "mica_tools/write/disk.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mica::quantize {

/// Called with the number of bytes done since the last call. May throw, which ends the work and leaves no
/// file.
using OnBytes = std::function<void(std::uint64_t)>;

/// Entries of the smallest vocabulary: 256 bytes and three that are no text.
inline constexpr std::size_t min_vocabulary = 259;

namespace detail {

/// A normal number with a deviation of 1, near enough: the sum of twelve uniform ones. Whole numbers until
/// the last step, so that the bits are the same everywhere.
[[nodiscard]] inline float random_normal(CounterRng& rng) noexcept {
  std::uint64_t sum = 0;
  for (int draw = 0; draw < 3; ++draw) {
    const std::uint64_t four = rng.next();
    for (int i = 0; i < 64; i += 16) sum += four >> i & 0xFFFF;
  }
  return static_cast<float>(static_cast<std::int64_t>(sum) - 6 * 65536) / 65536.0f;
}

/// Random weights in one format: a stretch of blocks that is encoded once. Rows are cut out of it at random
/// places, so that writing is copying. Those in F16 are numbers of BF16, as F16 files of models are that were
/// published in BF16.
class RandomBlocks {
 public:
  static constexpr std::size_t max_values = std::size_t{1} << 20;
  static constexpr float deviation = 0.02f;  // what training leaves

  /// `values`: what a model has in the format, at least 1. As many are encoded, at most max_values.
  template <Executor E>
  RandomBlocks(format::Id id, std::uint64_t values, E& executor)
      : block_bytes_(format::info(id).block_bytes) {
    constexpr std::size_t together = 4096;  // values of a task, whole blocks of every format
    const std::size_t tasks =
        (static_cast<std::size_t>(std::min<std::uint64_t>(values, max_values)) + together - 1) / together;
    const std::size_t task_bytes = format::info(id).row_bytes(together);
    bytes_.resize(tasks * task_bytes);
    executor.run(tasks, [&](std::size_t task, std::size_t) noexcept {
      CounterRng rng(task);
      float row[together];
      for (float& x : row) x = deviation * random_normal(rng);
      if (id == format::F16::id) {
        for (float& x : row) x = to_float(to_bfloat(x));
      }
      format::encode_rows(id, row, together, {}, std::span(bytes_).subspan(task * task_bytes, task_bytes));
    });
  }

  /// Fills one row from a random place on; where the stretch ends it begins again.
  void fill(std::span<std::byte> row, CounterRng& rng) const noexcept {
    std::size_t at = rng.next() % (bytes_.size() / block_bytes_) * block_bytes_;
    for (std::size_t n = 0; !row.empty(); row = row.subspan(n), at = 0) {
      n = std::min(row.size(), bytes_.size() - at);
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), n, row.begin());
    }
  }

 private:
  std::size_t block_bytes_;
  std::vector<std::byte> bytes_;
};

/// A function that sets numbers under keys of the shape's family.
[[nodiscard]] inline auto counts_of(const arch::Shape& shape, gguf::Writer& writer) {
  return [&](std::string_view key, std::size_t n) {
    writer.set(join(shape.arch, ".", key), static_cast<std::uint32_t>(n));
  };
}

/// The keys of layers that keep a state, under the names of state-space models.
inline void put_delta_net(const arch::Shape& shape, gguf::Writer& writer) {
  const auto count = counts_of(shape, writer);
  count("full_attention_interval", shape.interval);
  count("ssm.conv_kernel", shape.taps);
  count("ssm.state_size", shape.state_dim);
  count("ssm.group_count", shape.k_heads);
  count("ssm.time_step_rank", shape.v_heads);
  count("ssm.inner_size", shape.v_heads * shape.state_dim);
  constexpr std::int32_t pairs[] = {11, 11, 10, 0};  // that rotate with time, height, width; alike for text
  writer.set_array(join(shape.arch, ".rope.dimension_sections"), pairs);
}

/// The keys of layers that differ by whether they have a window (Gemma 4). Those of heads are of layers
/// without one.
inline void put_window_layers(const arch::Shape& shape, gguf::Writer& writer) {
  const auto count = counts_of(shape, writer);
  std::vector<std::uint32_t> kv_heads, ff_widths;
  for (std::size_t i = 0; i < shape.layers; ++i) {
    kv_heads.push_back(static_cast<std::uint32_t>(shape.kv_heads_of(i)));
    ff_widths.push_back(static_cast<std::uint32_t>(shape.ff_width_of(i)));
  }
  writer.set_array(join(shape.arch, ".attention.head_count_kv"), kv_heads);
  writer.set_array(join(shape.arch, ".feed_forward_length"), ff_widths);
  const std::size_t full = shape.full_head_dim == 0 ? shape.head_dim : shape.full_head_dim;
  for (const std::string_view key :
       {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
    count(key, full);
    count(join(key, "_swa"), shape.head_dim);
  }
  count("attention.sliding_window_pattern", shape.window_interval);
  count("attention.shared_kv_layers", shape.shared_kv);
  count("embedding_length_per_layer_input", shape.per_layer_width);
  writer.set(join(shape.arch, ".rope.freq_base_swa"), 10000.0f);
  writer.set(join(shape.arch, ".final_logit_softcapping"), 30.0f);
}

/// The keys of a model that embeds texts.
inline void put_embedder(const arch::Shape& shape, gguf::Writer& writer) {
  const auto count = counts_of(shape, writer);
  count("pooling_type", static_cast<std::size_t>(shape.pooling));
  if (arch::detail::family_of(shape).layer_norms) writer.set(join(shape.arch, ".attention.causal"), false);
  if (shape.types != 0)
    writer.set("tokenizer.ggml.token_type_count", static_cast<std::uint32_t>(shape.types));
  if (shape.dense_width == 0) return;
  count("dense_2_feat_in", shape.width);
  count("dense_2_feat_out", shape.dense_width);
  count("dense_3_feat_in", shape.dense_width);
  count("dense_3_feat_out", shape.width);
}

/// The keys of a shape under the names of its family.
inline void put_shape(const arch::Shape& shape, gguf::Writer& writer) {
  const auto set = [&](std::string_view key, auto value) { writer.set(join(shape.arch, ".", key), value); };
  const auto count = counts_of(shape, writer);
  count("block_count", shape.layers + shape.mtp_layers);
  if (shape.mtp_layers != 0) count("nextn_predict_layers", shape.mtp_layers);
  count("context_length", shape.n_ctx_train);
  count("embedding_length", shape.width);
  count("feed_forward_length", shape.ff_width);
  count("attention.head_count", shape.heads);
  count("attention.head_count_kv", shape.kv_heads);
  count("attention.key_length", shape.head_dim);
  count("attention.value_length", shape.head_dim);
  count("rope.dimension_count", shape.rope_dims == 0 ? shape.head_dim : shape.rope_dims);
  count("vocab_size", shape.n_vocab);
  set("rope.freq_base", static_cast<float>(shape.rope_base));
  set(arch::detail::family_of(shape).layer_norms ? "attention.layer_norm_epsilon"
                                                 : "attention.layer_norm_rms_epsilon",
      shape.norm_epsilon);
  if (shape.window != 0) count("attention.sliding_window", shape.window);
  if (shape.arch == "phi3") count("rope.scaling.original_context_length", shape.n_ctx_train);
  if (shape.arch == "gemma2") {
    set("attn_logit_softcapping", 50.0f);
    set("final_logit_softcapping", 30.0f);
  }
  if (shape.arch == "gpt-oss") {
    set("rope.scaling.type", "yarn");
    set("rope.scaling.factor", 32.0f);
    count("rope.scaling.original_context_length", 4096);
  }
  if (shape.pooling != arch::PoolingKey::none) put_embedder(shape, writer);
  if (shape.window_interval != 0) put_window_layers(shape, writer);
  if (shape.interval != 0) put_delta_net(shape, writer);
  if (shape.experts == 0) return;
  count("expert_count", shape.experts);
  count("expert_used_count", shape.experts_used);
  if (shape.expert_ff_width != shape.ff_width || shape.shared_ff_width != 0)
    count("expert_feed_forward_length", shape.expert_ff_width);
  if (shape.shared_ff_width != 0) count("expert_shared_feed_forward_length", shape.shared_ff_width);
}

/// A vocabulary of the right size in which every text can be written: the 256 bytes, and words without a
/// meaning.
inline void put_vocabulary(std::size_t n_vocab, gguf::Writer& writer) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> types = {2, 3, 3};  // unknown, control, control
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (std::size_t i = 0; i < 256; ++i) {
    tokens.push_back(join("<0x", digits[i / 16], digits[i % 16], ">"));
    types.push_back(6);  // byte
  }
  std::vector<float> scores(n_vocab);
  for (std::size_t i = 0; i < n_vocab; ++i) scores[i] = -static_cast<float>(i);
  for (std::size_t i = tokens.size(); i < n_vocab; ++i) tokens.push_back(join("\xE2\x96\x81t", i));
  types.resize(n_vocab, 1);  // normal
  writer.set("tokenizer.ggml.model", "llama");
  writer.set_array("tokenizer.ggml.tokens", tokens);
  writer.set_array("tokenizer.ggml.scores", scores);
  writer.set_array("tokenizer.ggml.token_type", types);
  writer.set("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  writer.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  writer.set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
}

[[nodiscard]] inline MixFacts mix_facts(const arch::Shape& shape) noexcept {
  MixFacts facts;
  facts.layers = shape.layers;
  facts.experts = shape.experts;
  facts.heads_per_kv_head = shape.heads / shape.kv_heads;
  facts.of_70b = is_of_70b(shape.arch, shape.layers, shape.heads, shape.kv_heads);
  return facts;
}

}  // namespace detail

/// A shape, a recipe, and the tensors and keys that follow.
class SyntheticModel {
 public:
  /// Raises ErrorCode::unsupported when the recipe needs a format that cannot be written, and usage for a
  /// shape whose family is not in arch::family_tensors or whose vocabulary has no room for 256 bytes.
  SyntheticModel(const arch::Shape& shape, Recipe recipe)
      : shape_(shape), recipe_(recipe), tensors_(arch::tensors_of(shape)) {
    MICA_CHECK(arch::find_family_tensors(shape.arch), usage, "shape '", escaped(shape.name), "': no family '",
               escaped(shape.arch), "' among those of shapes");
    MICA_CHECK(shape.n_vocab >= min_vocabulary, usage, "shape '", escaped(shape.name), "': a vocabulary of ",
               shape.n_vocab, " tokens; ", min_vocabulary, " at least are needed");
    formats_ = choose_formats(tensors_, detail::mix_facts(shape), recipe, {});
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      MICA_CHECK(format::known_codecs.writes(formats_[i]), unsupported, info(recipe).name, ": tensor '",
                 tensors_[i].name, "' is to become ", format::name(formats_[i]),
                 "; formats that can be written: ", format::known_codecs.written());
    }
  }

  /// The tensors of the file, as F32, and the format that tensor i gets.
  [[nodiscard]] std::span<const gguf::TensorInfo> tensors() const noexcept { return tensors_; }
  [[nodiscard]] format::Id format(std::size_t i) const noexcept { return formats_[i]; }
  /// Values of all tensors.
  [[nodiscard]] std::uint64_t elements() const noexcept {
    std::uint64_t sum = 0;
    for (const gguf::TensorInfo& tensor : tensors_) sum += tensor.elements();
    return sum;
  }
  /// Bytes of the whole file.
  [[nodiscard]] std::uint64_t file_bytes() const {
    gguf::Writer writer = header();
    detail::put_vocabulary(shape_.n_vocab, writer);
    add_tensors(writer);
    return writer.size_bytes();
  }

  /// The file as far as plans need it: its header without a vocabulary, and no weights.
  [[nodiscard]] gguf::Document document() const {
    gguf::Writer writer = header();
    add_tensors(writer);
    return gguf::header_only(join(shape_.name, " ", info(recipe_).name), writer);
  }

  /// Writes the file whole or not at all, at the speed of the disk and in constant memory: some 20 MiB. The
  /// bytes are the same for any number of workers. Raises as io::require_free_space() and
  /// gguf::Writer::write().
  template <Executor E>
  void write(const std::string& path, E& executor, OnBytes on_bytes = {}) const {
    constexpr std::size_t piece_bytes = std::size_t{4} << 20;
    io::require_free_space(path, file_bytes());
    std::map<format::Id, std::uint64_t> values;
    for (std::size_t i = 0; i < tensors_.size(); ++i) values[formats_[i]] += tensors_[i].elements();
    std::map<format::Id, detail::RandomBlocks> banks;
    std::vector<std::byte> piece;
    gguf::Writer writer = header();
    detail::put_vocabulary(shape_.n_vocab, writer);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      writer.add(tensors_[i].name, formats_[i], dims(i), [&, i](const gguf::Sink& sink) {
        const gguf::TensorInfo& tensor = tensors_[i];
        const bool decay = tensor.name.ends_with("ssm_a");  // negative, or states would grow
        if (decay || tensor.name.ends_with("norm.weight")) {
          const std::vector<float> same(tensor.elements(), decay ? -1.0f : 1.0f);
          return sink(std::as_bytes(std::span(same)));
        }
        const auto& blocks =
            banks.try_emplace(formats_[i], formats_[i], values.at(formats_[i]), executor).first->second;
        const std::size_t row = format::info(formats_[i]).row_bytes(tensor.width());
        const std::size_t at_once = std::max<std::size_t>(1, piece_bytes / row);
        CounterRng rng(i);
        for (std::uint64_t first = 0; first < tensor.rows(); first += at_once) {
          piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(at_once, tensor.rows() - first)) *
                       row);
          for (std::size_t at = 0; at < piece.size(); at += row)
            blocks.fill(std::span(piece).subspan(at, row), rng);
          sink(piece);
          if (on_bytes) on_bytes(piece.size());
        }
      });
    }
    writer.write(path);
  }

 private:
  [[nodiscard]] gguf::Writer header() const {
    gguf::Writer writer;
    writer.set("general.architecture", shape_.arch);
    writer.set("general.name", join(shape_.model, ", random"));
    writer.set("general.file_type", info(recipe_).file_type);
    writer.set("general.quantization_version", std::uint32_t{2});
    detail::put_shape(shape_, writer);
    return writer;
  }
  void add_tensors(gguf::Writer& writer) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      writer.add(tensors_[i].name, formats_[i], dims(i), [](const gguf::Sink&) {});
  }
  [[nodiscard]] std::span<const std::uint64_t> dims(std::size_t i) const noexcept {
    return std::span(tensors_[i].dims).first(tensors_[i].n_dims);
  }

  arch::Shape shape_;
  Recipe recipe_;
  std::vector<gguf::TensorInfo> tensors_;
  std::vector<format::Id> formats_;
};

}  // namespace mica::quantize
