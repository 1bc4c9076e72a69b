// SPDX-License-Identifier: Apache-2.0
//
// Which tensors a model needs, where they lie, and that they have the shapes its Config promises. All checks happen here,
// before anything is read: a step never meets a surprise.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/paging/concept.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace mica::model {

/// One tensor of a model: its number in the pager's table, its format, its shape.
struct TensorRef {
  std::uint32_t index = 0;
  format::Id id = format::Id::F32;
  std::size_t rows = 0;
  std::size_t cols = 0;
};

struct LayerTensors {
  TensorRef attn_norm;    // (width)
  TensorRef attn_q;       // (heads * head_dim, width)
  TensorRef attn_k;       // (kv_heads * head_dim, width)
  TensorRef attn_v;       // (kv_heads * head_dim, width)
  TensorRef attn_output;  // (width, heads * head_dim)
  TensorRef ffn_norm;     // (width)
  TensorRef ffn_gate;     // (ff_width, width)
  TensorRef ffn_up;       // (ff_width, width)
  TensorRef ffn_down;     // (width, ff_width)
};

/// All tensors of a model. List: the formats it can compute with.
template <class List>
class Weights {
 public:
  /// Raises ErrorCode::file or ErrorCode::unsupported, naming the tensor, what was found and what is needed.
  Weights(const gguf::Document& document, const arch::Config& config);

  [[nodiscard]] const TensorRef& token_embd() const noexcept { return token_embd_; }
  [[nodiscard]] const LayerTensors& layer(std::size_t i) const noexcept { return layers_[i]; }
  [[nodiscard]] const TensorRef& output_norm() const noexcept { return output_norm_; }
  /// The head; the embedding itself when they are tied.
  [[nodiscard]] const TensorRef& output() const noexcept { return output_; }

  [[nodiscard]] std::span<const paging::Extent> extents() const noexcept { return extents_; }
  /// Embedding, layers, head.
  [[nodiscard]] std::size_t groups() const noexcept { return layers_.size() + 2; }
  /// Bytes of all tensors, as they lie in the file.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// The tensor as a matrix, at the address that its pager gives.
  [[nodiscard]] static tensor::AnyMatrix<List> matrix(const TensorRef& ref, const std::byte* data) noexcept {
    return {ref.id, data, ref.rows, ref.cols};
  }

 private:
  [[nodiscard]] TensorRef add(const gguf::TensorInfo& tensor, std::size_t group);
  [[nodiscard]] TensorRef matrix(std::string_view name, std::size_t rows, std::size_t cols,
                                 std::size_t group);
  [[nodiscard]] TensorRef vector(std::string_view name, std::size_t width, std::size_t group);
  [[nodiscard]] LayerTensors read_layer(std::size_t i, const arch::Config& config);

  const gguf::Document& document_;
  std::vector<paging::Extent> extents_;
  TensorRef token_embd_;
  std::vector<LayerTensors> layers_;
  TensorRef output_norm_;
  TensorRef output_;
};

template <class List>
Weights<List>::Weights(const gguf::Document& document, const arch::Config& config) : document_(document) {
  namespace names = arch::tensor_names;
  const std::size_t head_group = config.layers.size() + 1;
  token_embd_ = matrix(names::token_embd, config.n_vocab, config.width, 0);
  for (std::size_t i = 0; i < config.layers.size(); ++i) layers_.push_back(read_layer(i, config));
  output_norm_ = vector(names::output_norm, config.width, head_group);
  const bool tied = document.find(names::output) == nullptr;
  output_ = tied ? token_embd_ : matrix(names::output, config.n_vocab, config.width, head_group);
}

template <class List>
LayerTensors Weights<List>::read_layer(std::size_t i, const arch::Config& config) {
  const arch::LayerConfig& layer = config.layers[i];
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  const std::size_t width = config.width, q = layer.q_width(), kv = layer.kv_width(), ff = layer.ff_width,
                    group = i + 1;
  LayerTensors t;
  t.attn_norm = vector(name("attn_norm"), width, group);
  t.attn_q = matrix(name("attn_q"), q, width, group);
  t.attn_k = matrix(name("attn_k"), kv, width, group);
  t.attn_v = matrix(name("attn_v"), kv, width, group);
  t.attn_output = matrix(name("attn_output"), width, q, group);
  t.ffn_norm = vector(name("ffn_norm"), width, group);
  t.ffn_gate = matrix(name("ffn_gate"), ff, width, group);
  t.ffn_up = matrix(name("ffn_up"), ff, width, group);
  t.ffn_down = matrix(name("ffn_down"), width, ff, group);
  return t;
}

template <class List>
std::uint64_t Weights<List>::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const paging::Extent& extent : extents_) sum += extent.bytes;
  return sum;
}

template <class List>
TensorRef Weights<List>::add(const gguf::TensorInfo& tensor, std::size_t group) {
  extents_.push_back({tensor.source, static_cast<std::uint32_t>(group), tensor.offset, tensor.bytes});
  return {static_cast<std::uint32_t>(extents_.size() - 1), tensor.format.id,
          static_cast<std::size_t>(tensor.rows()), static_cast<std::size_t>(tensor.width())};
}

template <class List>
TensorRef Weights<List>::matrix(std::string_view name, std::size_t rows, std::size_t cols,
                                std::size_t group) {
  const gguf::TensorInfo& tensor = document_.tensor(name);
  MICA_CHECK(tensor.width() == cols && tensor.rows() == rows, file, document_.metadata().file(), ": tensor '",
             name, "' is ", tensor.shape(), "; needed: ", cols, " x ", rows);
  MICA_CHECK(visit_id<List>(tensor.format.id, [](auto) {}), unsupported, document_.metadata().file(),
             ": tensor '", name, "' has type ", tensor.format.name, "; supported: ", format::names<List>());
  return add(tensor, group);
}

template <class List>
TensorRef Weights<List>::vector(std::string_view name, std::size_t width, std::size_t group) {
  const gguf::TensorInfo& tensor = document_.tensor(name);
  MICA_CHECK(tensor.format.id == format::Id::F32 && tensor.elements() == width, file,
             document_.metadata().file(), ": tensor '", name, "' is ", tensor.format.name, " ",
             tensor.shape(), "; needed: F32 ", width);
  return add(tensor, group);
}

}  // namespace mica::model
