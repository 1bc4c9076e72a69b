// SPDX-License-Identifier: Apache-2.0
//
// Models whose weights pass through a ring give the bits of those whose weights stay, however much of them
// stays, from a file and from a packed folder.

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/paging/any_pager.hpp"
#include "mica_tools/pack/pack.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace mica::test::streamed_test {
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
  const auto open = [&](const gguf::Document& from, paging::Choice pager, std::uint64_t room) {
    return Paged(from, team, options, {.pager = [&](const paging::Table& table, auto allocator, LogSink log) {
                   return paging::AnyPager<>(table, allocator, log, pager, room);
                 }});
  };
  const auto ids = random_ids(77, 67);
  Paged whole = open(document, paging::Choice::mapped, 0);
  auto cache = whole.make_cache();
  const auto expected = feed(whole, cache, ids, 32);
  for (const std::uint64_t room :
       {std::uint64_t{1}, bytes.size() / 3, bytes.size() / 2, std::uint64_t{1} << 30}) {
    CAPTURE(room);
    for (const gguf::Document* const from : {&document, &packed}) {
      Paged model = open(*from, paging::Choice::streamed, room);
      auto streamed = model.make_cache();
      CHECK(same_bits(feed(model, streamed, ids, 32), expected));
      auto one_by_one = model.make_cache();
      CHECK(same_bits(feed(model, one_by_one, ids, 1), expected));
    }
  }
  for (const paging::Choice pager : {paging::Choice::mapped, paging::Choice::resident}) {
    CAPTURE(pager);
    Paged model = open(packed, pager, 0);
    auto served = model.make_cache();
    CHECK(same_bits(feed(model, served, ids, 32), expected));
  }
  const paging::WeightCapacity can = whole.weight_capacity();
  CHECK(can == paging::WeightCapacity());
  CHECK_FALSE(whole.resize_weights(1));
  for (const gguf::Document* const from : {&document, &packed}) {
    Paged model = open(*from, paging::Choice::streamed, std::uint64_t{1} << 30);
    const std::uint64_t max = model.weight_capacity().max, min = model.weight_capacity().min;
    for (const std::uint64_t room : {max, min, (max + min) / 2, max, std::uint64_t{0}}) {
      CAPTURE(room);
      CHECK(model.resize_weights(room));
      auto resized = model.make_cache();
      CHECK(same_bits(feed(model, resized, ids, 7), expected));
    }
    CHECK(model.streamed_bytes() > 0);
  }
  exec::Inline alone;
  const bool any = std::any_of(packed.tensors().begin(), packed.tensors().end(),
                               [](const gguf::TensorInfo& tensor) { return tensor.packed; });
  if (!any) return;
  const Error error = refusal([&] { return Model(packed, alone, options), 0; });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "lies packed", "AnyPager"));
}

/// Weights come and go between the tokens of one text, at random.
template <class Model>
void change_while_it_writes(std::span<const std::byte> bytes) {
  const TemporaryFolder folder;
  const gguf::Document document = gguf::open(folder.file("model.gguf", bytes));
  exec::Inline executor;
  using Paged = typename Model::template With<WithPager<paging::Streamed<>>>;
  Paged model(document, executor, {.n_ctx = 200, .log = {}});
  const auto ids = random_ids(60, 67);
  auto cache = model.make_cache();
  const auto expected = feed(model, cache, ids, 1);
  cache.rewind(0);
  CounterRng rng(8);
  std::vector<float> logits;
  std::atomic<bool> over{false};
  std::thread other([&] {
    for (CounterRng own(11); !over; std::this_thread::sleep_for(std::chrono::microseconds(own.next() % 500)))
      model.yield_weights(own.next() % 100'000);
  });
  for (const text::TokenId id : ids) {
    model.resize_weights(rng.next() % model.weight_capacity().max);
    REQUIRE(model.step(cache, std::span(&id, 1)) == model::StepStatus::ok);
    if (rng.next() % 2 == 0) model.resize_weights(model.weight_capacity().max);  // the head comes after it
    if (rng.next() % 3 == 0) CHECK(model.set_chunk(1 + rng.next() % model.max_chunk()));
    if (rng.next() % 5 == 0) cache.trim();
    const std::size_t row = 0;
    const auto got = model.logits(std::span(&row, 1));
    logits.insert(logits.end(), got[0].begin(), got[0].end());
  }
  over = true;
  other.join();
  CHECK(same_bits(logits, expected));
}

}  // namespace

TEST_CASE("streamed weights, and packed ones, give the bits of mapped ones") {
  using F32 = Transformer<arch::Llama, WithWeights<format::F32>>;
  compare<F32>(TinyModel(Recipe{.layers = 5}).bytes());
  compare<F32>(TinyModel(Recipe{.layers = 3, .tied = true}).bytes());
  compare<Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>>>(
      TinyModel(blocks_of(format::Q8_0::id)).bytes());
  Recipe tied = blocks_of(format::Q8_0::id);
  tied.tied = true;
  for (const bool is_tied : {false, true}) {  // the output matrix passes in slices
    Recipe large = blocks_of(format::Q8_0::id);
    large.n_vocab = 40'003;
    large.tied = is_tied;
    compare<Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>>>(
        TinyModel(large).bytes());
  }
  compare<Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>>>(
      TinyModel(tied).bytes());
  compare<Hybrid>(TinyHybrid(HybridRecipe{}).bytes());
  compare<Hybrid>(TinyHybrid(with_experts()).bytes());
  compare<Hybrid>(TinyHybrid(of_q8_0(with_experts())).bytes());
}

TEST_CASE("steps become shorter and longer again, with the scratch that they need and the same bits") {
  const TinyModel tiny(Recipe{});
  const auto bytes = tiny.bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  exec::Inline executor;
  budget::Ledger ledger;
  using A = alloc::Budgeted<alloc::Huge>;
  using Model = Transformer<arch::Llama, WithWeights<format::F32>, WithAllocator<A>>;
  Model model(document, executor, {.n_ctx = 200, .chunk = 64, .logits_rows = 64, .log = {}},
              {.allocator = A(ledger, budget::Account::weights)});
  const auto ids = random_ids(77, 67);
  auto cache = model.make_cache();
  const auto expected = feed(model, cache, ids, 64);
  const std::uint64_t scratch = ledger.used(budget::Account::activations);
  CHECK(model.set_chunk(8));
  CHECK(model.chunk() == 8);
  CHECK(ledger.used(budget::Account::activations) < scratch * 2 / 3);
  CHECK(ledger.peak(budget::Account::activations) == scratch);
  cache.rewind(0);
  CHECK(same_bits(feed(model, cache, ids, 8), expected));
  {
    const auto taken = alloc::Booking::make(A(ledger, budget::Account::kv), budget::Account::kv,
                                            ledger.left() - scratch / 4);
    REQUIRE(taken);
    CHECK_FALSE(model.set_chunk(64));
    CHECK(model.chunk() == 8);
    cache.rewind(3);
    const auto part = feed(model, cache, std::span(ids).subspan(3, 8), 8);
    CHECK(same_bits(part, std::span(expected).subspan(3 * 67, 8 * 67)));
  }
  CHECK(model.set_chunk(64));
  CHECK(ledger.used(budget::Account::activations) == scratch);
  cache.rewind(0);
  CHECK(same_bits(feed(model, cache, ids, 64), expected));
}

TEST_CASE("weights that leave memory and come back while a text is written change no bit of it") {
  change_while_it_writes<Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>>>(
      TinyModel(blocks_of(format::Q8_0::id)).bytes());
  change_while_it_writes<Hybrid>(TinyHybrid(with_experts()).bytes());
}

}  // namespace mica::test::streamed_test
