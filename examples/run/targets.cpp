// SPDX-License-Identifier: Apache-2.0
#include "targets.hpp"

#include "mica/base/assert.hpp"

#include <hwy/base.h>
#include <hwy/detect_targets.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cctype>

namespace mica::program {

std::vector<std::string> target_names(std::int64_t bits) {
  std::vector<std::string> names;
  for (std::int64_t rest = bits; rest != 0; rest &= rest - 1)
    names.emplace_back(hwy::TargetName(rest & -rest));
  return names;
}

void limit_targets(const std::string& best) {
  std::string name = best;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const std::int64_t here = hwy::SupportedTargets() & HWY_TARGETS;
  std::string known;
  for (std::int64_t rest = here; rest != 0; rest &= rest - 1) {
    const std::int64_t bit = rest & -rest;  // better sets have lower bits
    if (name == hwy::TargetName(bit)) return hwy::DisableTargets(bit - 1);
    known += join(known.empty() ? "" : " ", hwy::TargetName(bit));
  }
  raise(ErrorCode::usage, "--targets ", escaped(best),
        ": not an instruction set of this machine and program; known: ", known);
}

}  // namespace mica::program
