// SPDX-License-Identifier: Apache-2.0
//
// Several ranks of one model as threads of a test: each makes the model and calls the same functions.
#pragma once

#include "mica/model/transformer.hpp"
#include "mica/ranks/threads.hpp"

#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace mica::test {

using RanksOfThreads = ranks::Several<ranks::Threads::Link>;

/// Calls run(ranks) in a thread for each share; answers the results by rank.
template <class Run>
auto each_rank(const std::vector<double>& shares, Run&& run, ranks::Split split = ranks::Split::rows) {
  using Result = decltype(run(std::declval<RanksOfThreads>()));
  ranks::Threads meeting(shares.size());
  std::vector<Result> results(shares.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    threads.emplace_back([&, r] {
      ranks::Threads::Link link(meeting, r);
      try {
        results[r] = run(RanksOfThreads(link, shares, split));
      } catch (...) {  // the others end too; the result stays empty
      }
      meeting.leave();
    });
  }
  for (std::thread& each : threads) each.join();
  return results;
}

}  // namespace mica::test
