// SPDX-License-Identifier: Apache-2.0
//
// Models whose weights pass through a ring give the bits of those whose weights stay, however much of them stays, from a file and from
// a packed folder.

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/pack/pack.hpp"
#include "mica/paging/any_pager.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace mica::test {
namespace {

template <class Model>
void compare(std::span<const std::byte> bytes) {
  const TemporaryFolder folder;
  const gguf::Document document = gguf::open(folder.file("model.gguf", bytes));
  pack::Plan plan = pack::make_plan(document);
  static_cast<void>(pack::pack(document, plan, folder.path("packed"), alloc::Aligned()));
  const gguf::Document packed = gguf::open(folder.path("packed"));
  exec::Team team(2);
  using Paged = typename Model::template With<WithPager<paging::AnyPager<>>, WithExecutor<exec::Team>>;
  const ModelOptions options{.n_ctx = 200, .chunk = 32, .logits_rows = 32, .log = {}};
  const auto open = [&](const gguf::Document& from, std::string_view pager, std::uint64_t room) {
    return Paged(from, team, options, {}, {}, [&](const paging::Table& table, auto allocator, LogSink log) {
      return paging::AnyPager<>(table, allocator, log, pager, room);
    });
  };
  const auto ids = random_ids(77, 67);
  Paged whole = open(document, "mapped", 0);
  auto cache = whole.make_cache();
  const auto expected = feed(whole, cache, ids, 32);
  for (const std::uint64_t room :
       {std::uint64_t{1}, bytes.size() / 3, bytes.size() / 2, std::uint64_t{1} << 30}) {
    CAPTURE(room);
    for (const gguf::Document* const from : {&document, &packed}) {
      Paged model = open(*from, "streamed", room);
      auto streamed = model.make_cache();
      CHECK(same_bits(feed(model, streamed, ids, 32), expected));
      auto one_by_one = model.make_cache();
      CHECK(same_bits(feed(model, one_by_one, ids, 1), expected));
    }
  }
  for (const char* const pager : {"mapped", "resident"}) {
    CAPTURE(pager);
    Paged model = open(packed, pager, 0);
    auto served = model.make_cache();
    CHECK(same_bits(feed(model, served, ids, 32), expected));
  }
  exec::Inline alone;
  const bool any = std::any_of(packed.tensors().begin(), packed.tensors().end(),
                               [](const gguf::TensorInfo& tensor) { return tensor.packed; });
  if (!any) return;
  const Error error = refusal([&] { return Model(packed, alone, options), 0; });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "lies packed", "AnyPager"));
}

}  // namespace

TEST_CASE("streamed weights, and packed ones, give the bits of mapped ones") {
  using F32 = Transformer<arch::Llama, WithWeights<format::F32>>;
  compare<F32>(TinyModel(Recipe{.layers = 5}).bytes());
  compare<F32>(TinyModel(Recipe{.layers = 3, .tied = true}).bytes());
  compare<Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>>>(
      TinyModel(blocks_of(format::Id::Q8_0)).bytes());
  Recipe tied = blocks_of(format::Id::Q8_0);
  tied.tied = true;
  compare<Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>>>(
      TinyModel(tied).bytes());
  compare<Hybrid>(TinyHybrid(HybridRecipe{}).bytes());
  compare<Hybrid>(TinyHybrid(with_experts()).bytes());
  compare<Hybrid>(TinyHybrid(of_q8_0(with_experts())).bytes());
}

}  // namespace mica::test
