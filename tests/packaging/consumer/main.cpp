// SPDX-License-Identifier: Apache-2.0
//
// The consumer: a model of its own, with an allocator policy of its own that refuses large blocks, and a
// weight format that GGUF does not have.

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/gguf/reader.hpp"
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

/// Bytes in sixteenths.
struct Sixteenths {
  static constexpr mica::format::Id id{0x53313600};
  static constexpr std::string_view name = "SIXTEENTHS";
  static constexpr std::size_t block_size = 1;
  static constexpr auto arithmetic = mica::format::Arithmetic::real;
  static constexpr bool vector_codec = false;
  struct Block {
    std::int8_t value;
  };
  static void decode(const Block& block, float* values) noexcept { *values = block.value / 16.0f; }
};
using Formats = mica::Append<mica::format::All, Sixteenths>;
static_assert(mica::format::table<Formats>().find("sixteenths")->block_bytes == 1);

#ifndef CONSUMER_KERNELS
#define CONSUMER_KERNELS Scalar  // or Highway, where the units of kernels are linked
#endif
using Model = mica::Transformer<mica::arch::Llama, mica::WithKernels<mica::kernel::CONSUMER_KERNELS>,
                                mica::WithAllocator<Capped>, mica::WithWeights<Formats>>;

int main(int argc, char** argv) try {
  mica::exec::Inline executor;
  const mica::gguf::Document document =
      mica::gguf::open(argc > 1 ? argv[1] : "no-such.gguf", mica::format::table<Formats>());
  const Model model(document, executor, {.n_ctx = 256});
  std::puts("the model fits into blocks of 4096 bytes");
} catch (const mica::Error& error) {
  std::printf("refused: %s\n", error.what());
}
