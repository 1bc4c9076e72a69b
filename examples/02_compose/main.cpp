// SPDX-License-Identifier: Apache-2.0
//
// Lesson 2: a model composed from types.
//
//   02_compose [MODEL.gguf]
//
// mica::open() of lesson 1 chooses at run time, from the header of the file. Here the choice is a type. A
// Transformer has the axes of docs/policies/README.md; an axis that is not named keeps its default. Three
// change:
//
//   storage   the whole context in one block, instead of growing segments
//   element   keys and values as eight-bit codes, instead of half floats: half the memory, and the only one of
//             the three that changes numbers
//   executor  a team of two threads, instead of the thread of the caller
//
// The order does not matter, and a misspelt or unsuitable policy does not compile.

#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/sample/standard.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/vocabulary_gguf.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

using MyModel =
    mica::Transformer<mica::arch::Llama, mica::WithKv<mica::kv::Contiguous<>>,
                      mica::WithKvElement<mica::format::Q8_0>, mica::WithExecutor<mica::exec::Team>>;

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) {
    std::printf("%s is not there: name a small Llama with a SentencePiece vocabulary\n", path.c_str());
    return 0;
  }
  // Each of these objects outlives the next one, which refers to it.
  const mica::gguf::Document document = mica::gguf::open(path);
  const mica::text::Spm tokenizer(mica::text::vocabulary_from(document.metadata()));
  mica::exec::Team team(2);
  MyModel model(document, team, {.n_ctx = 256});
  mica::Session session(model);
  mica::sample::Standard sampler({.temperature = 0}, model.config().n_vocab);

  const auto prompt = tokenizer.encode("Once upon a time");
  std::printf("Once upon a time");
  const auto result = mica::generate(
      session, tokenizer, sampler, prompt, {.max_tokens = 60},
      [](std::string_view text) { return std::fwrite(text.data(), 1, text.size(), stdout) == text.size(); });
  std::printf("\n\n%zu tokens, %zu bytes of keys and values for every 16\n", result.tokens.size(),
              model.kv_bytes_per_tile());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
