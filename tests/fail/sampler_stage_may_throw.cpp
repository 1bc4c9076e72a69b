// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::sample::Chain: a stage needs void apply(mica::sample::Candidates&) noexcept

#include "mica/sample/chain.hpp"

struct Mine : mica::sample::Memoryless {
#ifdef MICA_FAIL
  void apply(mica::sample::Candidates& candidates) { candidates.keep_best(2); }
#else
  void apply(mica::sample::Candidates& candidates) noexcept { candidates.keep_best(2); }
#endif
};

void make() { mica::sample::Chain chain(Mine{}, mica::sample::Greedy{}); }
