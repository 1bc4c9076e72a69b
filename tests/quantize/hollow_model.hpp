// SPDX-License-Identifier: Apache-2.0
//
// The header of a published model with a vocabulary, and how long the file would be that it begins: what a plan reads.

#pragma once

#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

struct HollowModel {
  std::vector<std::byte> header;
  std::uint64_t size = 0;  // of the whole file, weights included
};

/// n_vocab: tokens; 0: those of the shape. merges: pairs that a byte-level BPE merges, which make most of a header.
inline HollowModel hollow_model(std::string_view name, quantize::Recipe recipe, std::size_t n_vocab = 0,
                                std::size_t merges = 0) {
  const arch::Shape shape = *arch::find_shape(name);
  const gguf::Document document = quantize::SyntheticModel(shape, recipe).document();
  gguf::Writer writer;
  writer.copy(document.metadata());
  quantize::detail::put_vocabulary(n_vocab == 0 ? shape.n_vocab : n_vocab, writer);
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < merges; ++i) pairs.push_back(join("ab", i, " cd", i));
  if (merges > 0) writer.set_array("tokenizer.ggml.merges", pairs);
  for (const gguf::TensorInfo& tensor : document.tensors())
    writer.add(tensor.name, tensor.format.id, std::span(tensor.dims).first(tensor.n_dims),
               [](const gguf::Sink&) {});
  return {writer.header(), writer.size_bytes()};
}

}  // namespace mica::test
