// SPDX-License-Identifier: Apache-2.0
//
// usage: backend_bench [MODEL.gguf [BACKEND...]]
//
// A whole Llama by each backend, or by those that are named, on one thread: a prompt of 128 tokens in one
// step, and one token after it, with its logits. Milliseconds, best and median of two seconds. The file is in
// F32, F16, Q8_0, Q4_K, Q5_K or Q6_K. Backends without a choice at run time have the instruction set of this
// program's flags (bench/CMakeLists.txt).

#include "kernel/measure.hpp"
#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#ifdef MICA_HAS_EIGEN
#include "mica/kernel/eigen.hpp"
#endif
#ifdef MICA_HAS_XSIMD
#include "mica/kernel/xsimd.hpp"
#endif

#include <algorithm>
#include <span>
#include <string_view>

namespace {

using Model = mica::Transformer<
    mica::arch::Llama,
    mica::WithWeights<mica::TypeList<mica::format::F32, mica::format::F16, mica::format::Q8_0,
                                     mica::format::Q4_K, mica::format::Q5_K, mica::format::Q6_K>>>;

/// The program's arguments.
std::span<char*> arguments;

/// Whether a backend is named, or none is.
bool is_chosen(std::string_view name) {
  const auto names = arguments.subspan(std::min<std::size_t>(2, arguments.size()));
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

template <class Kernels>
void measure(const mica::gguf::Document& document) {
  if (!is_chosen(Kernels::name)) return;
  constexpr std::size_t prompt_tokens = 128;
  mica::exec::Inline executor;
  typename Model::With<mica::WithKernels<Kernels>> model(document, executor,
                                                         {.n_ctx = 160, .chunk = prompt_tokens});
  auto cache = model.make_cache();
  std::vector<mica::text::TokenId> prompt(prompt_tokens);
  for (std::size_t i = 0; i < prompt_tokens; ++i)
    prompt[i] = static_cast<mica::text::TokenId>((3 + 37 * i) % model.config().n_vocab);
  const auto read_from = [&](std::size_t pos, std::span<const mica::text::TokenId> tokens) {
    cache.rewind(pos);
    const std::size_t last = tokens.size() - 1;
    if (model.step(cache, tokens) != mica::model::StepStatus::ok) std::abort();
    static_cast<void>(model.logits({&last, 1}));
  };
  const bench::Spread prefill = bench::time([&] { read_from(0, prompt); }, 2);
  const bench::Spread decode = bench::time([&] { read_from(prompt_tokens, std::span(prompt).first(1)); }, 2);
  std::printf("%-10s %10.3f %10.3f %12.3f %10.3f\n", Kernels::name.data(), 1e3 * decode.best,
              1e3 * decode.median, 1e3 * prefill.best, 1e3 * prefill.median);
}

}  // namespace

int main(int argc, char** argv) try {
  arguments = {argv, static_cast<std::size_t>(argc)};
  const mica::gguf::Document document = mica::gguf::open(argc > 1 ? argv[1] : "examples/models/fairy.gguf");
  std::printf("%-10s %10s %10s %12s %10s\n", "backend", "token, ms", "median", "prompt, ms", "median");
  measure<mica::kernel::Highway>(document);
#ifdef MICA_HAS_XSIMD
  measure<mica::kernel::Xsimd>(document);
#endif
  measure<mica::kernel::Scalar>(document);
#ifdef MICA_HAS_EIGEN
  measure<mica::kernel::Eigen>(document);
#endif
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
