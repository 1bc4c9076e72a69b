// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithKv<...> needs a mica::KvStorage (kv/concept.hpp)
// expect: capacity

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

template <mica::Allocator A>
struct Storage {
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Storage<B>;
  static constexpr std::string_view name = "mine";

  Storage(A, std::span<const mica::kv::LayerShape>, std::size_t) {}
  bool reserve(std::size_t) noexcept { return false; }
  void shrink(std::size_t) noexcept {}
#ifdef MICA_FAIL
  std::size_t capasity() const noexcept { return 0; }
#else
  std::size_t capacity() const noexcept { return 0; }
#endif
  std::size_t first_tile(std::size_t) const noexcept { return 0; }
  mica::kv::Run run(std::size_t, std::size_t, std::size_t) const noexcept { return {}; }
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithKv<Storage<mica::alloc::Huge>>>) > 0);
