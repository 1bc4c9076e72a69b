// SPDX-License-Identifier: Apache-2.0
//
// usage: compiled MODEL.gguf
//
// One unit, in which no kernel is compiled: a model with an allocator policy of its own continues a text with the
// kernels of the installed library, and says how many bytes that policy gave it.

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/model/transformer.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/vocabulary_gguf.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

/// Counts what the model allocates.
struct Counted : mica::alloc::Unbooked<Counted> {
  static constexpr bool dry = false;
  inline static std::size_t bytes_in_all = 0;
  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    bytes_in_all += bytes;
    return mica::alloc::Aligned{}.allocate(bytes, alignment);
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    mica::alloc::Aligned{}.deallocate(block, bytes);
  }
};
using Model = mica::Transformer<mica::arch::Llama, mica::WithKernels<mica::kernel::Highway>,
                                mica::WithAllocator<Counted>>;

int main(int argc, char** argv) try {
  mica::exec::Inline executor;
  const mica::gguf::Document document = mica::gguf::open(argc > 1 ? argv[1] : "no-such.gguf");
  const mica::text::Spm tokenizer(mica::text::vocabulary_from(document.metadata()));
  Model model(document, executor, {.n_ctx = 64, .chunk = 16});
  Model::Cache cache = model.make_cache();
  std::string text = "Once upon a time";
  std::vector<mica::text::TokenId> next = tokenizer.encode(text);
  for (int n = 0; n < 24 && model.step(cache, next) == mica::model::StepStatus::ok; ++n) {
    const std::size_t last = next.size() - 1;
    const auto logits = model.logits({&last, 1})[0];  // (n_vocab)
    const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
    next = {static_cast<mica::text::TokenId>(likeliest)};
    tokenizer.append_piece(next.front(), false, text);
  }
  std::printf("%s\n%zu bytes\n", text.c_str(), Counted::bytes_in_all);
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
