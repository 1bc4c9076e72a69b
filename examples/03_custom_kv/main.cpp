// SPDX-License-Identifier: Apache-2.0
//
// Lesson 3 (03_custom_kv [MODEL.gguf]): a KV storage of your own. It takes a slab for every 64 tokens, so a
// cache is never much larger than its text. docs/policies/kv-storage.md says what each member promises.

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

#include <cstdio>
#include <filesystem>

template <mica::Allocator A>
class Slabs {
 public:
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Slabs<B>;
  static constexpr std::string_view name = "slabs";

  Slabs(A allocator, std::span<const mica::kv::LayerShape> layers, std::size_t max_tokens)
      : allocator_(allocator), layout_(layers), max_tokens_(max_tokens) {
    slabs_.reserve((max_tokens + 63) / 64);  // so that a step never grows the list itself
  }
  bool reserve(std::size_t tokens) noexcept {
    while (capacity() < tokens) {
      auto slab = mica::kv::Slab<A>::make(allocator_, layout_, {slabs_.size() * 4, 4});  // tiles of 16 tokens
      if (!slab || tokens > max_tokens_) return false;
      slabs_.push_back(std::move(*slab));
    }
    reached_ = std::max(reached_, tokens);
    return true;
  }
  void shrink(std::size_t tokens) noexcept {
    while (capacity() >= tokens + 64) slabs_.pop_back();
    if (tokens == 0) reached_ = 0;
  }
  std::size_t capacity() const noexcept { return slabs_.size() * 64; }
  std::size_t first_tile(std::size_t layer) const noexcept { return layout_.first_tile(layer, reached_); }
  mica::kv::Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const std::size_t place = layout_.place(layer, tile);  // of a layer with a window, round and round
    return slabs_[place / 4].run(layout_, layer, head, place);
  }

 private:
  A allocator_;
  mica::kv::SlabLayout layout_;
  std::size_t max_tokens_;
  std::size_t reached_ = 0;
  std::vector<mica::kv::Slab<A>> slabs_;
};

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a Llama file\n", path), 0;
  const auto document = mica::gguf::open(path);
  mica::exec::Inline executor;
  mica::Transformer<mica::arch::Llama, mica::WithKv<Slabs<mica::alloc::Huge>>> model(document, executor);
  auto cache = model.make_cache();
  for (mica::text::TokenId id = 1; id <= 130; ++id)
    if (model.step(cache, {&id, 1}) != mica::model::StepStatus::ok) return 1;
  std::printf("%zu tokens, room for %zu\n", cache.tokens, cache.storage.capacity());
  cache.rewind(10);
  std::printf("%zu tokens, room for %zu\n", cache.tokens, cache.storage.capacity());
}
