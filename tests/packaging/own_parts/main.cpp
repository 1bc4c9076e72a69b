// SPDX-License-Identifier: Apache-2.0
//
// usage: own_parts MODEL.gguf
//
// A model with a weight format (sym3.hpp, of lesson 4) and a block (moving_average.hpp, of lesson 9) that mica
// does not have. It takes a Llama in Q8_0, writes its layers in SYM3, and runs them to text by the
// specification, whose bits are the same on every machine.

#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/write/gguf_writer.hpp"
#include "moving_average.hpp"
#include "sym3.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

/// A Llama whose layers end with a moving average.
struct Averaging {
  // Required by Arch
  static constexpr std::string_view name = "llama";
  using Blocks = mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward, MovingAverage>;

  static mica::arch::Config config(const mica::gguf::Document& document) {
    mica::arch::Config config = mica::arch::Llama::config(document);
    for (mica::arch::Layer& layer : config.layers)
      layer.add<MovingAverage>({.width = config.width, .strength = 0.02f});
    return config;
  }
};

// What a name in this project stands for does not depend on how it is written: policies in any order, named
// defaults, and changes one by one give one type.
using Formats = mica::TypeList<mica::format::F32, mica::format::Q8_0, mine::Sym3>;
using Model = mica::Transformer<Averaging, mica::WithWeights<Formats>, mica::WithKv<mica::kv::Contiguous<>>,
                                mica::WithKernels<mica::kernel::Scalar>>;
static_assert(std::is_same_v<
              Model, mica::Transformer<Averaging, mica::WithKernels<mica::kernel::Scalar>,
                                       mica::WithKv<mica::kv::Contiguous<>>, mica::WithWeights<Formats>>>);
static_assert(
    std::is_same_v<
        Model, mica::Transformer<
                   Averaging, mica::WithExecutor<mica::exec::Inline>, mica::WithKv<mica::kv::Contiguous<>>,
                   mica::WithEviction<mica::kv::KeepAll>, mica::WithPager<mica::paging::Mapped<>>,
                   mica::WithWeights<Formats>, mica::WithAllocator<mica::alloc::Huge>,
                   mica::WithBlocks<Averaging::Blocks>, mica::WithObserver<mica::model::NoObserver>,
                   mica::WithKvElement<mica::format::F16>, mica::WithKernels<mica::kernel::Scalar>>>);
static_assert(
    std::is_same_v<Model, mica::Transformer<Averaging>::With<mica::WithKernels<mica::kernel::Scalar>>::With<
                              mica::WithWeights<Formats>, mica::WithKv<mica::kv::Contiguous<>>>>);

/// Blocks of Q8_0, each as one of SYM3: both have 32 values.
std::vector<std::byte> in_sym3(const std::vector<std::byte>& bytes) {
  using From = mica::format::Q8_0;
  static_assert(From::block_size == mine::Sym3::block_size);
  const auto* const blocks = reinterpret_cast<const From::Block*>(bytes.data());
  std::vector<std::byte> out(bytes.size() / sizeof(From::Block) * sizeof(mine::Sym3::Block));
  auto* const to = reinterpret_cast<mine::Sym3::Block*>(out.data());
  for (std::size_t i = 0; i < bytes.size() / sizeof(From::Block); ++i) {
    float values[From::block_size];
    From::decode(blocks[i], values);
    mine::Sym3::encode(values, to[i]);
  }
  return out;
}

/// The file with the matrices of its layers in SYM3.
std::vector<std::byte> file_in_sym3(const mica::gguf::Document& document) {
  mica::gguf::Writer writer(mica::format::table<Formats>());
  writer.copy(document.metadata());
  std::deque<std::vector<std::byte>> tensors;  // stay where they are until the file is written
  for (const mica::gguf::TensorInfo& tensor : document.tensors()) {
    std::vector<std::byte>& bytes = tensors.emplace_back(tensor.bytes);
    document.read(tensor, bytes);
    const bool matrix = tensor.format.id == mica::format::Q8_0::id && tensor.name.starts_with("blk.");
    if (matrix) bytes = in_sym3(bytes);
    writer.add(tensor.name, matrix ? mine::Sym3::id : tensor.format.id,
               std::span(tensor.dims).first(tensor.n_dims), bytes);
  }
  return writer.bytes();
}

/// Continues a text by the likeliest tokens.
std::string continued(const mica::gguf::Document& document, std::string text, std::size_t tokens) {
  const mica::text::Spm tokenizer(mica::text::vocabulary_from(document.metadata()));
  mica::exec::Inline executor;
  Model model(document, executor, {.n_ctx = 64, .chunk = 16});
  Model::Cache cache = model.make_cache();
  std::vector<mica::text::TokenId> next = tokenizer.encode(text);
  for (std::size_t n = 0; n < tokens; ++n) {
    const std::size_t last = next.size() - 1;
    if (model.step(cache, next) != mica::model::StepStatus::ok) break;
    const auto logits = model.logits({&last, 1})[0];
    const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    next = {static_cast<mica::text::TokenId>(likeliest)};
    tokenizer.append_piece(next.front(), false, text);
  }
  return text;
}

int main(int argc, char** argv) try {
  const std::vector<std::byte> file = file_in_sym3(mica::gguf::open(argc > 1 ? argv[1] : "no-such.gguf"));
  const auto document = mica::gguf::parse(file, "the model in SYM3", mica::format::table<Formats>());
  std::puts(continued(document, "Once upon a time", 24).c_str());
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
