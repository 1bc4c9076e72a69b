// SPDX-License-Identifier: Apache-2.0

#include "mica/paging/load_progress.hpp"

#include "mica/runtime/open.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mica::test::load_progress_test {
namespace {

/// What a model reported while it was opened.
struct Reports {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  std::thread::id thread;

  static void report(void* self, std::uint64_t done, std::uint64_t total) noexcept {
    auto& reports = *static_cast<Reports*>(self);
    reports.all.emplace_back(done, total);
    reports.thread = std::this_thread::get_id();
  }
};

Reports reports_of(paging::Choice weights, std::uint64_t weights_bytes = 0) {
  Reports reports;
  OpenOptions options{.n_ctx = 16, .threads = 1, .progress = {Reports::report, &reports}};
  options.choice.weights = weights;
  options.choice.weights_bytes = weights_bytes;
  Model model = open(MICA_SOURCE "/examples/models/fairy.gguf", options);
  const std::size_t before = reports.all.size();
  auto session = model.session();
  const TokenId id = 1;
  REQUIRE(session.feed(std::span(&id, 1)) == model::StepStatus::ok);
  CHECK(reports.all.size() == before);  // none after the model is open
  return reports;
}

}  // namespace

TEST_CASE("a model that is read reports every byte of its weights, up to all of them") {
  for (const auto& [weights, bytes] :
       {std::pair{paging::Choice::resident, 0}, std::pair{paging::Choice::streamed, 1 << 30}}) {
    const Reports reports = reports_of(weights, static_cast<std::uint64_t>(bytes));
    REQUIRE(reports.all.size() > 5);
    CHECK(reports.thread == std::this_thread::get_id());
    std::uint64_t last = 0;
    for (const auto& [done, total] : reports.all) {
      CHECK(done >= last);
      CHECK(total == reports.all.front().second);
      last = done;
    }
    CHECK(last == reports.all.front().second);
  }
}

TEST_CASE("opening ends with an error as soon as it is to stop, also where memory is watched") {
  for (const paging::Choice weights : {paging::Choice::resident, paging::Choice::streamed}) {
    for (const bool watched : {false, true}) {
      Reports reports;
      OpenOptions options{.n_ctx = 16, .threads = 1};
      options.progress = {.report = Reports::report, .context = &reports, .stopped = [](void* self) noexcept {
                            return static_cast<Reports*>(self)->all.size() == 3;
                          }};
      options.choice.weights = weights;
      if (watched) options.watch = std::make_shared<MemoryWatch>(MemoryWatchOptions{.thread = false});
      try {
        static_cast<void>(open(MICA_SOURCE "/examples/models/fairy.gguf", options));
        FAIL("it was opened");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::failed);
      }
      CHECK(reports.all.size() == 3);
    }
  }
}

TEST_CASE("weights that are read later are not reported") {
  CHECK(reports_of(paging::Choice::mapped).all.empty());
  const Reports none_resident = reports_of(paging::Choice::streamed, 1);
  const Reports all = reports_of(paging::Choice::resident);
  REQUIRE(!none_resident.all.empty());  // the norm of the output
  CHECK(none_resident.all.back().second < all.all.back().second);
}

}  // namespace mica::test::load_progress_test
