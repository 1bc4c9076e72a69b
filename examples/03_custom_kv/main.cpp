// SPDX-License-Identifier: Apache-2.0
//
// Lesson 3 (03_custom_kv [MODEL.gguf]): a KV storage of your own, slabs.hpp, in a model. The one of
// lesson 7 does more.

#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"
#include "slabs.hpp"

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a Llama file\n", path), 0;
  const auto document = mica::gguf::open(path);
  mica::exec::Inline executor;
  mica::Transformer<mica::arch::Llama, mica::WithKv<Slabs<mica::alloc::Huge>>> model(document, executor);
  auto cache = model.make_cache();
  for (mica::text::TokenId id = 1; id <= 130; ++id)
    if (model.step(cache, {&id, 1}) != mica::model::StepStatus::ok) return 1;
  std::printf("%zu tokens, capacity for %zu\n", cache.tokens, cache.storage.capacity());
  cache.rewind(10);
  std::printf("%zu tokens, capacity for %zu\n", cache.tokens, cache.storage.capacity());
}
