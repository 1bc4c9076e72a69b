// SPDX-License-Identifier: Apache-2.0
//
// A file of any family in memory, made key by key and tensor by tensor of random F32 numbers, and what every
// family's tests do with one: run it in steps of any size and compare its logits with those of a reference
// (arch/reference.hpp).

#pragma once

#include "mica/alloc/counting.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"
#include "mica_tools/write/gguf_writer.hpp"
#include "model/run_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// A tensor of the file, (rows, cols).
struct Numbers {
  std::vector<float> values;
  std::size_t rows = 0;
  std::size_t cols = 0;

  [[nodiscard]] double at(std::size_t row, std::size_t col) const {
    return static_cast<double>(values[row * cols + col]);
  }
};

/// The file under construction. Keys are named without the family; set() replaces, without() removes.
class FamilyFile {
 public:
  explicit FamilyFile(std::string arch) : arch_(std::move(arch)) {
    set("context_length", 64u).set("attention.layer_norm_rms_epsilon", 1e-5f);
  }

  template <class T>
  FamilyFile& set(const std::string& key, T value) {
    keys_[arch_ + "." + key] = [=](gguf::Writer& writer, const std::string& name) {
      writer.set(name, value);
    };
    return *this;
  }
  /// A key that is named whole.
  template <class T>
  FamilyFile& set_plain(const std::string& key, T value) {
    keys_[key] = [=](gguf::Writer& writer, const std::string& name) { writer.set(name, value); };
    return *this;
  }
  template <class T>
  FamilyFile& set_array(const std::string& key, std::vector<T> values) {
    keys_[arch_ + "." + key] = [=](gguf::Writer& writer, const std::string& name) {
      writer.set_array(name, values);
    };
    return *this;
  }
  /// Layers, width, heads, KV heads, head_dim, feed-forward width.
  FamilyFile& shape(unsigned layers, unsigned width, unsigned heads, unsigned kv_heads, unsigned head_dim,
                    unsigned ff_width) {
    set("block_count", layers).set("embedding_length", width).set("feed_forward_length", ff_width);
    set("attention.head_count", heads).set("attention.head_count_kv", kv_heads);
    return set("attention.key_length", head_dim).set("attention.value_length", head_dim);
  }
  FamilyFile& without(const std::string& name) {
    keys_.erase(arch_ + "." + name);
    tensors_.erase(name);
    return *this;
  }
  FamilyFile& put(const std::string& name, Numbers numbers) {
    tensors_[name] = std::move(numbers);
    return *this;
  }
  /// Numbers around 0 that keep the size of what they are multiplied with, times `size`.
  FamilyFile& matrix(const std::string& name, std::size_t rows, std::size_t cols, double size = 1) {
    return add(name, rows, cols, 0, size / std::sqrt(static_cast<double>(cols)));
  }
  /// Numbers around `middle`.
  FamilyFile& vector(const std::string& name, std::size_t n, double middle = 1, double deviation = 0.2) {
    return add(name, 1, n, middle, deviation);
  }
  FamilyFile& layer_matrix(std::size_t i, std::string_view part, std::size_t rows, std::size_t cols,
                           double size = 1) {
    return matrix(arch::tensor_names::layer(i, part), rows, cols, size);
  }
  FamilyFile& layer_vector(std::size_t i, std::string_view part, std::size_t n) {
    return vector(arch::tensor_names::layer(i, part), n);
  }

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }
  [[nodiscard]] const Numbers& operator[](const std::string& name) const { return tensors_.at(name); }
  [[nodiscard]] const Numbers& layer(std::size_t i, std::string_view part) const {
    return tensors_.at(arch::tensor_names::layer(i, part));
  }

  /// The file as it is now. A document lives as long as this, or until the next one.
  [[nodiscard]] const gguf::Document& document() {
    gguf::Writer writer;
    writer.set("general.architecture", std::string_view(arch_));
    for (const auto& [name, write] : keys_) write(writer, name);
    for (const auto& [name, tensor] : tensors_) {
      std::vector<std::uint64_t> dims = {tensor.cols};
      if (tensor.rows != 1) dims.push_back(tensor.rows);
      writer.add(name, format::F32::id, dims, std::as_bytes(std::span(tensor.values)));
    }
    bytes_ = writer.bytes();
    document_.emplace(gguf::parse(bytes_, "family.gguf"));
    return *document_;
  }

 private:
  FamilyFile& add(const std::string& name, std::size_t rows, std::size_t cols, double middle,
                  double deviation) {
    Numbers numbers{std::vector<float>(rows * cols), rows, cols};
    for (float& v : numbers.values) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += rng_.uniform();
      v = static_cast<float>(middle + deviation * sum);
    }
    return put(name, std::move(numbers));
  }

  std::string arch_;
  CounterRng rng_{3};
  std::map<std::string, std::function<void(gguf::Writer&, const std::string&)>> keys_;
  std::map<std::string, Numbers> tensors_;
  std::vector<std::byte> bytes_;
  std::optional<gguf::Document> document_;
};

inline constexpr std::size_t family_vocabulary = 61;

/// Attention of layer i without its norms, and of what a dense block needs.
inline void add_attention(FamilyFile& file, std::size_t i, std::size_t width, std::size_t q_rows,
                          std::size_t kv_rows) {
  file.layer_vector(i, "attn_norm", width);
  file.layer_matrix(i, "attn_q", q_rows, width);
  file.layer_matrix(i, "attn_k", kv_rows, width);
  file.layer_matrix(i, "attn_v", kv_rows, width);
  file.layer_matrix(i, "attn_output", width, q_rows);
}

inline void add_feed_forward(FamilyFile& file, std::size_t i, std::size_t width, std::size_t ff_width) {
  file.layer_vector(i, "ffn_norm", width);
  file.layer_matrix(i, "ffn_gate", ff_width, width);
  file.layer_matrix(i, "ffn_up", ff_width, width);
  file.layer_matrix(i, "ffn_down", width, ff_width);
}

template <class Family>
using FamilyModel = Transformer<Family, WithWeights<TypeList<format::F32>>,
                                WithKvElement<kv::Fixed<format::F32, format::F32>>>;

/// Logits of every position, (ids, n_vocab).
template <class Family>
std::vector<float> run_family(FamilyFile& file, std::span<const text::TokenId> ids, std::size_t chunk) {
  exec::Inline executor;
  FamilyModel<Family> model(file.document(), executor,
                            {.n_ctx = 64, .chunk = chunk, .logits_rows = chunk, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, ids, chunk);
}

/// Each of three texts gets the bits of a model of its own, whatever else the steps of its model hold.
template <class Family>
void check_independence(FamilyFile& file, std::span<const text::TokenId> ids) {
  exec::Inline executor;
  FamilyModel<Family> model(file.document(), executor,
                            {.n_ctx = 64, .chunk = 16, .logits_rows = 16, .log = {}});
  const auto at = [&](std::size_t first, std::size_t n) {
    std::vector<text::TokenId> text;
    for (std::size_t i = 0; i < n; ++i) text.push_back(ids[(first + i) % ids.size()]);
    return text;
  };
  const std::vector<std::vector<text::TokenId>> texts = {at(0, ids.size()), at(3, 11), at(5, 17)};
  for (const auto& sizes : std::vector<std::vector<std::size_t>>{{1}, {5, 1, 1, 3}}) {
    const auto together = feed_shared(model, texts, sizes);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto cache = model.make_cache();
      CHECK(same_bits(together[i], feed(model, cache, texts[i], 16)));
    }
  }
}

/// The logits are those expected, the same bits for steps of any size and beside any neighbours, and a dry
/// run takes the file.
template <class Family>
void check_family(FamilyFile& file, std::span<const text::TokenId> ids,
                  const std::vector<std::vector<double>>& expected, double tolerance = 1e-4) {
  const std::vector<float> found = run_family<Family>(file, ids, ids.size());
  REQUIRE(found.size() == expected.size() * expected.front().size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double wanted = expected[i / expected.front().size()][i % expected.front().size()];
    worst = std::max(worst, std::fabs(static_cast<double>(found[i]) - wanted));
  }
  CHECK(worst < tolerance);
  for (const std::size_t chunk : {1u, 5u}) CHECK(same_bits(found, run_family<Family>(file, ids, chunk)));
  check_independence<Family>(file, ids);
  budget::Ledger ledger;
  exec::Inline executor;
  using Dry = typename FamilyModel<Family>::template With<WithAllocator<alloc::Counting>>;
  Dry plan(file.document(), executor, {.n_ctx = 64, .chunk = ids.size(), .log = {}},
           {.allocator = alloc::Counting(ledger, budget::Account::weights)});
  auto cache = plan.make_cache();
  CHECK(plan.step(cache, ids) == model::StepStatus::ok);
  CHECK(ledger.used() > 0);
}

}  // namespace mica::test
