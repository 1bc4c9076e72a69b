// SPDX-License-Identifier: Apache-2.0
//
// Lesson 0: the shortest way to a text, in compile time.
//
//   00_story [MODEL.gguf]
//
// ./setup run builds this first: one unit, which compiles in seconds. The model is composed as in lesson 2,
// from the parts that the bundled model needs and from kernels in plain loops. Policies do not change the bits
// of an answer, so this is the story that the whole program tells with vector kernels (mica run).

#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/sample/standard.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/vocabulary_gguf.hpp"

#include <cstdio>
#include <exception>
#include <string_view>

using Story =
    mica::Transformer<mica::arch::Llama, mica::WithWeights<mica::TypeList<mica::format::Q8_0>>,
                      mica::WithBlocks<mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward>>,
                      mica::WithKv<mica::kv::Contiguous<>>, mica::WithKernels<mica::kernel::Scalar>>;

int main(int argc, char** argv) try {
  const mica::gguf::Document document = mica::gguf::open(argc > 1 ? argv[1] : "examples/models/fairy.gguf");
  const mica::text::Spm tokenizer(mica::text::vocabulary_from(document.metadata()));
  mica::exec::Inline executor;
  Story model(document, executor, {.n_ctx = 256});
  mica::Session session(model);
  mica::sample::Standard sampler({}, model.config().n_vocab);

  constexpr std::string_view beginning = "Once upon a time";
  const auto print = [](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  };
  print(beginning);
  mica::generate(session, tokenizer, sampler, tokenizer.encode(beginning), {.max_tokens = 240}, print);
  return print("\n") ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
