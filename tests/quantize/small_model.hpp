// SPDX-License-Identifier: Apache-2.0
//
// A file of a few matrices for tests that change formats: names and keys of a model, random numbers.

#pragma once

#include "mica/base/rng.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace mica::test {

/// A document in memory that is built tensor by tensor.
class SmallModel {
 public:
  explicit SmallModel(std::uint32_t layers = 4, std::uint32_t experts = 0) {
    writer_.set("general.architecture", "llama");
    writer_.set("general.file_type", std::uint32_t{0});
    writer_.set("llama.block_count", layers);
    writer_.set("llama.attention.head_count", std::uint32_t{4});
    writer_.set("llama.attention.head_count_kv", std::uint32_t{2});
    if (experts > 0) writer_.set("llama.expert_count", experts);
  }

  /// Adds an F32 tensor of random numbers, roughly -1 to 1.
  SmallModel& add(const std::string& name, const std::vector<std::uint64_t>& dims) {
    std::uint64_t n = 1;
    for (const std::uint64_t d : dims) n *= d;
    CounterRng rng(n + name.size());
    std::vector<float>& values = numbers_.emplace_back(static_cast<std::size_t>(n));
    for (float& x : values) x = static_cast<float>(rng.uniform() * 2 - 1);
    writer_.add(name, format::F32::id, std::span<const std::uint64_t>(dims),
                std::as_bytes(std::span(values)));
    return *this;
  }
  /// The usual matrices of a layer, `width` wide.
  SmallModel& add_layer(std::uint32_t layer, std::uint64_t width = 256) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate", "ffn_down"})
      add(prefix + name + ".weight", {width, 8});
    return add(prefix + "attn_norm.weight", {width});
  }

  [[nodiscard]] gguf::Writer& writer() { return writer_; }
  /// The numbers that were added last.
  [[nodiscard]] std::vector<float>& last() { return numbers_.back(); }
  [[nodiscard]] gguf::Document document() {
    bytes_ = writer_.bytes();
    return gguf::parse(bytes_, "small.gguf");
  }

 private:
  gguf::Writer writer_;
  std::deque<std::vector<float>> numbers_;
  std::vector<std::byte> bytes_;
};

}  // namespace mica::test
