// SPDX-License-Identifier: Apache-2.0
//
// Lesson 4: a weight format of your own, first decoded only, then with a vector codec.
//
//   04_custom_format [MODEL.gguf]
//
// The lesson rewrites a model's matrices in Q4_1 (q4_1.hpp), in memory, and lets the result tell the same story
// twice. Decoding alone is enough for any format; a codec (q4_1_codec-inl.hpp and its unit, q4_1_kernels.cpp)
// computes with the codes themselves. docs/policies/weights.md has the table of members.

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/encode/gguf_writer.hpp"
#include "q4_1.hpp"

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

/// The rows of a matrix of any format in Q4_1.
std::vector<lesson::Q4_1::Block> requantized(const mica::gguf::Document& document,
                                             const mica::gguf::TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  document.read(tensor, bytes);
  const mica::tensor::AnyMatrix<mica::format::All> matrix(tensor.format.id, bytes.data(), tensor.rows(),
                                                          tensor.width());
  std::vector<lesson::Q4_1::Block> blocks(tensor.elements() / 32);
  std::vector<float> row(tensor.width());
  matrix.visit([&](auto w) {
    for (std::size_t r = 0, block = 0; r < w.rows(); ++r) {
      w.decode_row(r, row.data());
      for (std::size_t k = 0; k < row.size(); k += 32) lesson::Q4_1::encode(&row[k], blocks[block++]);
    }
  });
  return blocks;
}

/// The same model with every matrix in Q4_1 whose rows are whole blocks; norms and the like stay as they are.
std::vector<std::byte> in_q4_1(const mica::gguf::Document& document) {
  mica::gguf::Writer writer;
  writer.copy(document.metadata());
  for (const mica::gguf::TensorInfo& tensor : document.tensors()) {
    const std::span dims(tensor.dims.data(), tensor.n_dims);
    if (tensor.n_dims == 2 && tensor.width() % 32 == 0) {
      writer.add(tensor.name, mica::format::Id::Q4_1, dims,
                 [&document, &tensor](const mica::gguf::Sink& sink) {
                   const auto blocks = requantized(document, tensor);
                   sink(std::as_bytes(std::span(blocks)));
                 });
    } else {
      writer.add(tensor.name, tensor.format.id, dims, [&document, &tensor](const mica::gguf::Sink& sink) {
        std::vector<std::byte> bytes(tensor.bytes);
        document.read(tensor, bytes);
        sink(bytes);
      });
    }
  }
  return writer.bytes();
}

/// Writes 40 tokens with a model that knows Format besides all others.
template <class Format>
void tell(const char* what, const mica::gguf::Document& document) {
  using Formats = mica::Concat<mica::TypeList<Format>, mica::format::All>;
  mica::exec::Inline executor;
  mica::Transformer<mica::arch::Llama, mica::WithWeights<Formats>> model(document, executor, {.n_ctx = 256});
  mica::Session session(model);
  const mica::text::Spm tokenizer(mica::text::vocabulary_from(document.metadata()));
  mica::sample::Sampler sampler({.temperature = 0}, model.config().n_vocab);
  std::printf("%s: Once upon a time", what);
  const auto result = mica::generate(
      session, tokenizer, sampler, tokenizer.encode("Once upon a time"), {.max_tokens = 40},
      [](std::string_view text) { return std::fwrite(text.data(), 1, text.size(), stdout) == text.size(); });
  std::printf("\n(%zu tokens)\n\n", result.tokens.size());
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) {
    std::printf("%s is not there: name a small Llama with a SentencePiece vocabulary\n", path.c_str());
    return 0;
  }
  const std::vector<std::byte> bytes = in_q4_1(mica::gguf::open(path));
  const mica::gguf::Document document = mica::gguf::parse(bytes, "the model in Q4_1");
  tell<lesson::Q4_1>("Decoded to floats", document);
  tell<lesson::IntegerQ4_1>("Integer products", document);
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
