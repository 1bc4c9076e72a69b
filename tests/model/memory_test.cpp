// SPDX-License-Identifier: Apache-2.0
//
// Every byte of a model is booked: the dry run is the plan, and a refusal anywhere leaves nothing behind.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/reserved.hpp"
#include "mica/kv/spilled.hpp"
#include "mica/paging/resident.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <map>

namespace mica::test::memory_test {
namespace {

using Plain = Transformer<arch::Llama>;
using Threaded = Plain::With<WithExecutor<exec::Team>>;
using Booked = alloc::Budgeted<alloc::Huge>;

/// Makes a model and feeds it 300 tokens; answers each account's peak.
template <class Model, class A>
budget::Accounts peaks(const TinyModel& tiny) {
  budget::Ledger ledger;
  {
    typename Model::Executor executor(3);
    Model model(tiny.document(), executor, {.n_ctx = 2000, .chunk = 40, .logits_rows = 5, .log = {}},
                {.allocator = A(ledger, budget::Account::weights)});
    auto cache = model.make_cache();
    const auto ids = random_ids(40, model.config().n_vocab);
    for (int i = 0; i < 8; ++i) REQUIRE(model.step(cache, ids) == model::StepStatus::ok);
    if (Model::dry) CHECK(model.logits(std::vector<std::size_t>{0}).rows() == 0);
  }
  CHECK(ledger.used() == 0);
  return ledger.peaks();
}

template <class Model>
void dry_equals_real(const TinyModel& tiny) {
  const auto plan =
      peaks<typename Model::template With<WithAllocator<alloc::Counting>>, alloc::Counting>(tiny);
  const auto real = peaks<typename Model::template With<WithAllocator<Booked>>, Booked>(tiny);
  real.for_each([&](budget::Account account, std::uint64_t bytes) {
    CAPTURE(budget::name(account));
    CHECK(plan[account] == bytes);
  });
  CHECK(real[budget::Account::weights] > 0);
  CHECK(real[budget::Account::kv] > 0);
  CHECK(real[budget::Account::activations] > 0);
  CHECK(real[budget::Account::logits] == 5 * 67 * sizeof(float));
}

/// What the refusing allocator and its test share.
struct Meter {
  std::size_t asked = 0;
  std::size_t refuse = 0;  // the number, from 1, of the request to refuse; all later ones are refused too
  std::map<std::byte*, std::size_t> alive;
};

/// The heap, until it has had enough.
class Refusing : public alloc::Unbooked<Refusing> {
 public:
  explicit Refusing(Meter& meter) noexcept : meter_(&meter) {}

  // Required by Allocator
  static constexpr bool dry = false;
  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (++meter_->asked >= meter_->refuse) return nullptr;
    std::byte* const block = alloc::Aligned{}.allocate(bytes, alignment);
    meter_->alive[block] = bytes;
    return block;
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    const auto at = meter_->alive.find(block);
    CHECK(at != meter_->alive.end());
    CHECK(at->second == bytes);
    meter_->alive.erase(at);
    alloc::Aligned{}.deallocate(block, bytes);
  }

 private:
  Meter* meter_;
};

/// Makes a model and runs it; whether all went well.
template <class Model>
bool survives(const TinyModel& tiny, Meter& meter) {
  exec::Inline executor;
  try {
    Model model(tiny.document(), executor, {.n_ctx = 700, .chunk = 100, .logits_rows = 1, .log = {}},
                {.allocator = Refusing(meter)});
    auto cache = model.make_cache();
    const auto ids = random_ids(100, 67);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto status = model.step(cache, ids);
      if (status == model::StepStatus::ok) continue;
      CHECK(status == model::StepStatus::no_memory);
      CHECK(cache.tokens == 100 * i);
      return false;
    }
    return true;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::budget);
    CHECK(error.message().find("were refused by the allocator") != std::string::npos);
    return false;
  }
}

}  // namespace

TEST_CASE("a dry run books what a real run books, account by account") {
  const TinyModel floats({.layers = 1}), codes(blocks_of(format::Q4_K::id));
  dry_equals_real<Threaded>(floats);
  dry_equals_real<Threaded::With<WithPager<paging::Resident<>>>>(floats);
  dry_equals_real<Threaded::With<WithKv<kv::Contiguous<>>>>(floats);
  dry_equals_real<Threaded::With<WithKv<kv::Reserved<>>>>(floats);
  dry_equals_real<Threaded::With<WithKv<kv::Paged<>>>>(floats);
  dry_equals_real<Threaded::With<WithKv<kv::Spilled<>>>>(floats);
  dry_equals_real<Threaded::With<WithKvElement<format::Q8_0>>>(floats);
  dry_equals_real<Threaded::With<WithPager<paging::Resident<>>, WithKv<kv::Contiguous<>>>>(codes);
}

TEST_CASE("an allocator may refuse at any point and nothing is lost") {
  const TinyModel tiny({.layers = 1});
  const auto check = [&](auto type) {
    using Model = typename decltype(type)::type;
    std::size_t failures = 0;
    for (std::size_t refuse = 1;; ++refuse) {
      CAPTURE(refuse);
      Meter meter{0, refuse, {}};
      const bool whole = survives<Model>(tiny, meter);
      CHECK(meter.alive.empty());
      if (whole) break;
      ++failures;
      REQUIRE(failures < 100);
    }
    CHECK(failures >= 12);  // the buffers of a step and the frame of its blocks, weights, bounce, tiles
  };
  using Base = Plain::With<WithAllocator<Refusing>, WithPager<paging::Resident<>>>;
  check(Type<Base>{});
  check(Type<Base::With<WithKv<kv::Contiguous<>>>>{});
  check(Type<Base::With<WithKv<kv::Paged<>>>>{});
}

TEST_CASE("a ledger that is too small refuses the model by name and keeps nothing") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Budgeted = Plain::With<WithAllocator<Booked>>;
  budget::Ledger open;
  const std::uint64_t needed = [&] {
    const Budgeted model(tiny.document(), executor, {.chunk = 16},
                         {.allocator = Booked(open, budget::Account::weights)});
    return open.used();
  }();
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{1000}, needed / 2, needed - 1}) {
    CAPTURE(limit);
    budget::Ledger ledger(limit);
    CHECK_THROWS_AS(Budgeted(tiny.document(), executor, {.chunk = 16},
                             {.allocator = Booked(ledger, budget::Account::weights)}),
                    Error);
    CHECK(ledger.used() == 0);
  }
  budget::Ledger enough(needed);
  CHECK_NOTHROW(Budgeted(tiny.document(), executor, {.chunk = 16},
                         {.allocator = Booked(enough, budget::Account::weights)}));
}

}  // namespace mica::test::memory_test
