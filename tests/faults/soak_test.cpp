// SPDX-License-Identifier: Apache-2.0
//
// Models are opened, run, saved and closed in turns that are drawn at random, for 20 seconds or for those of
// MICA_TEST_SECONDS in the environment. What the process holds afterwards is what it held after the first
// turns.

#include "faults/faults.hpp"
#include "io/temporary_folder.hpp"
#include "mica/base/rng.hpp"
#include "mica/plan/plan.hpp"
#include "mica/runtime/open.hpp"
#include "mica_tools/pack/pack.hpp"
#include "model/run_model.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>
#include <unistd.h>

namespace mica::test::soak_test {
namespace {

using faults::Held;
using Clock = std::chrono::steady_clock;

/// Resident memory of the process, in bytes.
std::int64_t resident_bytes() {
  std::int64_t size = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

double seconds_to_run() {
  const char* const chosen = std::getenv("MICA_TEST_SECONDS");
  return chosen != nullptr ? std::strtod(chosen, nullptr) : 20;
}

Recipe recipe_of(std::uint64_t i) {
  Recipe recipe = talking(i % 2 == 0 ? blocks_of(format::Q8_0::id) : blocks_of(format::Q4_K::id));
  recipe.layers = 2 + i % 3;
  return recipe;
}

/// Models in files, one of them packed, and one saved session.
class Turns {
 public:
  Turns() {
    for (std::uint64_t i = 0; i < 4; ++i)
      files_.push_back(folder_.file(std::to_string(i) + ".gguf", TinyModel(recipe_of(i)).bytes()));
    const gguf::Document document = gguf::open(files_[0]);
    pack::Plan plan = pack::make_plan(document);
    files_.push_back(folder_.path("packed"));
    static_cast<void>(pack::pack(document, plan, files_.back(), alloc::Aligned(), {}));
  }

  /// One of all that a program does with a model. The same number does the same.
  void turn(std::uint64_t number) {
    CounterRng rng(number);
    const std::string& file = files_[rng.next() % files_.size()];
    if (rng.next() % 8 == 0) return refuse(file, rng);
    using K = kv::Choice;
    using W = paging::Choice;
    OpenOptions options{.n_ctx = 128, .chunk = 1 + rng.next() % 32, .threads = 1 + rng.next() % 3};
    options.choice.kv = std::array{K::segmented, K::contiguous, K::reserved,
                                   K::paged,     K::spilled,    K::spilled_paged}[rng.next() % 6];
    options.choice.weights = std::array{W::mapped, W::resident, W::streamed}[rng.next() % 3];
    options.choice.weights_bytes = 1;
    Model model = mica::open(file, options);
    Session<AnyModel> session = model.session();
    REQUIRE(session.feed(random_ids(1 + rng.next() % 60, 258, number)) == model::StepStatus::ok);
    session.rewind(rng.next() % session.tokens().size());
    REQUIRE(session.feed(random_ids(1 + rng.next() % 30, 258, number + 1)) == model::StepStatus::ok);
    const std::span<const float> row = session.logits();
    const std::vector<float> expected(row.begin(), row.end());
    session.save(folder_.path("session"));
    Session<AnyModel> again = model.open_session(folder_.path("session"));
    again.rewind(again.tokens().size() - 1);
    REQUIRE(again.feed(std::vector<text::TokenId>{session.tokens().back()}) == model::StepStatus::ok);
    CHECK(same_bits(again.logits(), expected));
  }

 private:
  /// A budget that is too small, a file that is cut, and a plan.
  void refuse(const std::string& file, CounterRng& rng) {
    CHECK_THROWS_AS(static_cast<void>(mica::open(file, {.memory_bytes = 1000 + rng.next() % 100'000})),
                    Error);
    const std::string cut = folder_.path("cut.gguf");
    const std::string whole = contents(files_[1]);
    folder_.file("cut.gguf", std::string_view(whole).substr(0, rng.next() % whole.size()));
    CHECK_THROWS_AS(static_cast<void>(mica::open(cut, {})), Error);
    plan::Question question;
    question.model.n_ctx = 100;
    CHECK(plan::make_plan(gguf::open(file), question).peak_bytes > 0);
  }

  TemporaryFolder folder_;
  std::vector<std::string> files_;
};

}  // namespace

TEST_CASE("memory and descriptors are after many turns what they were after few") {
  constexpr std::uint64_t sample = 50;  // turns
  Turns turns;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Held held;
  std::int64_t resident = 0, grown = 0;
  std::uint64_t done = 0;
  while (done < 4 * sample || seconds() < seconds_to_run()) {
    ::alarm(300);  // of this turn; the case may last for hours
    CAPTURE(done);
    turns.turn(done++);
    if (done % sample != 0) continue;
    const Held now = Held::now();
    if (done == 2 * sample) {
      held = now;
      resident = resident_bytes();
    }
    if (done <= 2 * sample) continue;
    CHECK(now.blocks <= held.blocks);
    CHECK(now.mapped_bytes <= held.mapped_bytes);
    CHECK(now.files <= held.files);
    grown = resident_bytes() - resident;
    CHECK(grown < (std::int64_t{8} << 20));
  }
  std::printf("soak: %llu turns in %.0f s; resident memory %+.1f MiB\n",
              static_cast<unsigned long long>(done), seconds(), static_cast<double>(grown) / (1 << 20));
}

}  // namespace mica::test::soak_test
