// SPDX-License-Identifier: Apache-2.0
//
// A Llama of random numbers in memory: what tests open, break on purpose and run. A recipe always gives the
// same bytes.

#pragma once

#include "mica/arch/tensor_names.hpp"
#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

/// What a tiny model is made of. The default has no number that is a multiple of 16.
struct Recipe {
  std::size_t layers = 2;
  std::size_t width = 50;
  std::size_t heads = 6;
  std::size_t kv_heads = 2;
  std::size_t head_dim = 10;
  std::size_t ff_width = 70;
  std::size_t n_vocab = 67;
  std::size_t n_ctx = 700;
  format::Id format = format::F32::id;  // of every matrix
  bool tied = false;
  bool mtp = false;  // with a head for multi-token prediction; the trunk's numbers are the same
  std::uint64_t seed = 1;
  std::set<std::string> without = {};            // keys and tensors to leave out
  std::function<void(gguf::Writer&)> edit = {};  // the last word: set() replaces a key
};

/// Widths that every block format divides.
inline Recipe blocks_of(format::Id format) {
  Recipe recipe;
  recipe.width = 256;
  recipe.heads = 4;
  recipe.head_dim = 64;
  recipe.ff_width = 256;
  recipe.format = format;
  return recipe;
}

namespace detail {

/// Roughly gaussian, variance 1.
inline float gaussian(CounterRng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return static_cast<float>(sum);
}

/// Random bytes with scales that keep the values finite and about `deviation` wide, where the block has such
/// a scale; else the first ones whose values are small.
template <WeightFormat F>
typename F::Block random_block(CounterRng& rng, float deviation) {
  typename F::Block block;
  const auto draw = [&] {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&block);
    for (std::size_t i = 0; i < sizeof block; ++i) bytes[i] = static_cast<std::uint8_t>(rng.next());
  };
  draw();
  if constexpr (requires { block.d = Half{}; } && IntegerFormat<F>) {
    const float codes = F::has_mins ? 170.0f : 1400.0f;  // deviation of scale * code for random bits
    block.d = to_half(deviation / codes);
    if constexpr (requires { block.dmin = Half{}; }) block.dmin = to_half(7.5f * deviation / codes);
    if constexpr (requires { block.m = Half{}; }) block.m = to_half(-7.5f * deviation / codes);
  } else {
    float values[F::block_size];
    const auto small = [&] {
      F::decode(block, values);
      return std::all_of(values, values + F::block_size, [](float v) { return std::fabs(v) < 1; });
    };
    while (!small()) draw();
  }
  return block;
}

template <WeightFormat F>
void append_random(std::vector<std::byte>& out, std::size_t n, float deviation, CounterRng& rng) {
  for (std::size_t b = 0; b < n / F::block_size; ++b) {
    typename F::Block block;
    if constexpr (EncodableFormat<F>) {
      float values[F::block_size];
      for (float& v : values) v = deviation * gaussian(rng);
      F::encode(values, block);
    } else {
      block = random_block<F>(rng, deviation);
    }
    const auto* const bytes = reinterpret_cast<const std::byte*>(&block);
    out.insert(out.end(), bytes, bytes + sizeof block);
  }
}

}  // namespace detail

/// Random weights of any format: variance as 1 / cols, so that activations keep their size.
inline std::vector<std::byte> random_matrix(format::Id format, std::size_t rows, std::size_t cols,
                                            CounterRng& rng) {
  std::vector<std::byte> out;
  const float deviation = 1.0f / std::sqrt(static_cast<float>(cols));
  visit_id<format::All>(format, [&](auto type) {
    detail::append_random<typename decltype(type)::type>(out, rows * cols, deviation, rng);
  });
  return out;
}

/// The file, as bytes and as a Document over them.
class TinyModel {
 public:
  explicit TinyModel(const Recipe& recipe)
      : bytes_(write(recipe)), document_(gguf::parse(bytes_, "tiny.gguf")) {}

  [[nodiscard]] const gguf::Document& document() const { return document_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  /// The bytes of a tensor, to be changed in place.
  [[nodiscard]] std::span<std::byte> tensor(std::string_view name) {
    const gguf::TensorInfo& info = document_.tensor(name);
    return std::span(bytes_).subspan(info.offset, info.bytes);
  }

 private:
  static std::vector<std::byte> write(const Recipe& r);
  static void write_keys(const Recipe& r, gguf::Writer& writer);

  std::vector<std::byte> bytes_;
  gguf::Document document_;
};

inline void TinyModel::write_keys(const Recipe& r, gguf::Writer& writer) {
  const auto number = [&](std::string_view key, std::size_t value) {
    if (!r.without.contains(std::string(key))) writer.set(key, static_cast<std::uint32_t>(value));
  };
  if (!r.without.contains("general.architecture")) writer.set("general.architecture", "llama");
  writer.set("general.name", "tiny");
  number("llama.block_count", r.layers + (r.mtp ? 1 : 0));
  if (r.mtp) number("llama.nextn_predict_layers", 1);
  number("llama.context_length", r.n_ctx);
  number("llama.embedding_length", r.width);
  number("llama.feed_forward_length", r.ff_width);
  number("llama.attention.head_count", r.heads);
  number("llama.attention.head_count_kv", r.kv_heads);
  number("llama.attention.key_length", r.head_dim);
  number("llama.attention.value_length", r.head_dim);
  if (!r.without.contains("llama.attention.layer_norm_rms_epsilon")) {
    writer.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  }
}

inline std::vector<std::byte> TinyModel::write(const Recipe& r) {
  CounterRng rng(r.seed);
  gguf::Writer writer;
  write_keys(r, writer);
  std::deque<std::vector<std::byte>> data;  // stays where it is until the file is written
  const auto matrix = [&](const std::string& name, std::size_t rows, std::size_t cols) {
    data.push_back(random_matrix(r.format, rows, cols, rng));
    if (!r.without.contains(name))
      writer.add(name, r.format, {cols, rows}, std::span<const std::byte>(data.back()));
  };
  const auto vector = [&](const std::string& name) {
    std::vector<float> values(r.width);
    for (float& v : values) v = 1.0f + 0.1f * detail::gaussian(rng);
    data.emplace_back(r.width * sizeof(float));
    std::memcpy(data.back().data(), values.data(), data.back().size());
    if (!r.without.contains(name))
      writer.add(name, format::F32::id, {r.width}, std::span<const std::byte>(data.back()));
  };
  matrix("token_embd.weight", r.n_vocab, r.width);
  const auto layer = [&](std::size_t i) {
    const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
    const std::size_t q = r.heads * r.head_dim, kv = r.kv_heads * r.head_dim;
    vector(name("attn_norm"));
    matrix(name("attn_q"), q, r.width);
    matrix(name("attn_k"), kv, r.width);
    matrix(name("attn_v"), kv, r.width);
    matrix(name("attn_output"), r.width, q);
    vector(name("ffn_norm"));
    matrix(name("ffn_gate"), r.ff_width, r.width);
    matrix(name("ffn_up"), r.ff_width, r.width);
    matrix(name("ffn_down"), r.width, r.ff_width);
  };
  for (std::size_t i = 0; i < r.layers; ++i) layer(i);
  vector("output_norm.weight");
  if (!r.tied) matrix("output.weight", r.n_vocab, r.width);
  if (r.mtp) {
    const auto name = [&](std::string_view part) { return arch::tensor_names::layer(r.layers, part); };
    layer(r.layers);
    vector(name("nextn.enorm"));
    vector(name("nextn.hnorm"));
    matrix(name("nextn.eh_proj"), r.width, 2 * r.width);
    vector(name("nextn.shared_head_norm"));
  }
  if (r.edit) r.edit(writer);
  return writer.bytes();
}

}  // namespace mica::test
