// SPDX-License-Identifier: Apache-2.0
//
// Lesson 7 (07_own_kv [MODEL.gguf]): a KV storage and a KV element that the library does not have, each in
// one file: file_tiles.hpp keeps tiles in a mapped file, f8.hpp stores numbers in a byte. The storage changes
// only the place of keys and values, so the bits of an answer stay the same; the element rounds them.
// tests/archetype/own_kv_test.cpp checks both with the tests of the library's own: include the same two
// headers of tests/ for yours.

#include "f8.hpp"
#include "file_tiles.hpp"
#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <vector>

/// The logits after some tokens, read sixteen at a time.
template <class... With>
std::vector<float> logits_of(const mica::gguf::Document& document) {
  mica::exec::Inline executor;
  mica::Transformer<mica::arch::Llama, With...> model(document, executor, {.n_ctx = 512, .chunk = 16});
  auto cache = model.make_cache();
  std::vector<mica::text::TokenId> ids(16);
  for (std::size_t step = 0; step < 20; ++step) {
    for (std::size_t i = 0; i < 16; ++i)
      ids[i] = static_cast<mica::text::TokenId>(3 + (step * 16 + i) * 37 % 250);
    if (model.step(cache, ids) != mica::model::StepStatus::ok) std::abort();
  }
  const std::size_t last = 15;
  const auto row = model.logits({&last, 1})[0];
  return {row.begin(), row.end()};
}

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a Llama file\n", path), 0;
  const auto document = mica::gguf::open(path);
  using Own = FileTiles<mica::alloc::Huge>;
  const auto expected = logits_of<>(document);
  const bool same = expected == logits_of<mica::WithKv<Own>>(document);
  const auto rounded = logits_of<mica::WithKv<Own>, mica::WithKvElement<F8>>(document);
  double error = 0, all = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(static_cast<double>(rounded[i] - expected[i]), 2);
    all += std::pow(static_cast<double>(expected[i]), 2);
  }
  std::printf("tiles in a file: %s; keys and values in bytes move the logits by %.3f of their size\n",
              same ? "the same logits" : "OTHER LOGITS", std::sqrt(error / all));
  return same ? 0 : 1;
}
