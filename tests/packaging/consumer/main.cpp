// SPDX-License-Identifier: Apache-2.0
//
// The consumer: a model of its own, with an allocator policy of its own that refuses large blocks.

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"

#include <cstdio>

struct Capped : mica::alloc::Unbooked<Capped> {
  static constexpr bool dry = false;
  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= 4096 ? mica::alloc::Aligned{}.allocate(bytes, alignment) : nullptr;
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    mica::alloc::Aligned{}.deallocate(block, bytes);
  }
};

#ifndef CONSUMER_KERNELS
#define CONSUMER_KERNELS Scalar  // or Highway, where the units of kernels are linked
#endif
using Model = mica::Transformer<mica::arch::Llama, mica::WithKernels<mica::kernel::CONSUMER_KERNELS>,
                                mica::WithAllocator<Capped>>;

int main(int argc, char** argv) try {
  mica::exec::Inline executor;
  const mica::gguf::Document document = mica::gguf::open(argc > 1 ? argv[1] : "no-such.gguf");
  const Model model(document, executor, {.n_ctx = 256});
  std::puts("the model fits into blocks of 4096 bytes");
} catch (const mica::Error& error) {
  std::printf("refused: %s\n", error.what());
}
