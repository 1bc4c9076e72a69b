// SPDX-License-Identifier: Apache-2.0
//
// Lesson 5: a small program.
//
//   05_small [MODEL.gguf]
//
// Policies that are not named are not in the program: it has the two formats of a Q4_K_M file, one storage of
// keys and values in one element, one tokenizer and the most likely token. The compiler sees no other, and
// the linker drops what is left over (lesson.cmake beside this file). A file of this family may have experts;
// without that block in its list the program has no code for them, and refuses such a file.
// bench/size/measure.py says how many bytes each part has.

#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/session.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/vocabulary_gguf.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

using Small =
    mica::Transformer<mica::arch::Llama,
                      mica::WithWeights<mica::TypeList<mica::format::Q4_K, mica::format::Q6_K>>,
                      mica::WithBlocks<mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward>>,
                      mica::WithKv<mica::kv::Contiguous<>>, mica::WithKvElement<mica::format::F16>,
                      mica::WithExecutor<mica::exec::Team>>;

namespace {

void write_story(const std::string& path) {
  const mica::gguf::Document document = mica::gguf::open(path);
  const mica::text::Spm tokenizer(mica::text::vocabulary_from(document.metadata()));
  mica::exec::Team team(2);
  Small model(document, team, {.n_ctx = 256});
  mica::Session session(model);
  auto tokens = tokenizer.encode("Once upon a time");
  std::printf("Once upon a time");
  for (int n = 0; n < 60; ++n) {
    if (session.feed(tokens) != mica::model::StepStatus::ok) break;
    const auto logits = session.logits();
    const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    tokens = {static_cast<mica::text::TokenId>(likeliest)};
    std::string text;
    tokenizer.append_piece(tokens.front(), false, text);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::printf(
        "name a Llama in Q4_K_M with a SentencePiece vocabulary, such as mica synth tinyllama Q4_K_M OUT "
        "writes\n");
    return 0;
  }
  write_story(argv[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
