// SPDX-License-Identifier: Apache-2.0
#include "targets.hpp"

#include "mica/base/assert.hpp"
#include "suggestion.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace mica::program {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

std::vector<std::string> target_names(std::int64_t bits, kernel::highway::Beside which) {
  std::vector<std::string> names;
  for (const auto& set : kernel::highway::instruction_sets(bits, which)) names.emplace_back(set.name);
  return names;
}

std::string chosen_target() {
  const std::int64_t bits = hwy::SupportedTargets() & kernel::highway::compiled_targets();
  const std::vector<std::string> names = target_names(bits, kernel::highway::Beside::used);
  return names.empty() ? "none" : names.front();
}

void check_machine() {
  using namespace kernel::highway;
  if (!instruction_sets().empty()) return;
  const auto names = [](std::int64_t bits) { return instruction_sets(bits, Beside::all).front().name; };
  raise(ErrorCode::unsupported, "this program was compiled for ", names(compiled_targets()),
        "; this machine has ", names(hwy::SupportedTargets()),
        ". Build it on this machine, or for all machines with -DMICA_NATIVE=OFF");
}

void limit_targets(const std::string& best) {
  std::string name = best;
  std::vector<std::string> known;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const auto& set : kernel::highway::instruction_sets()) {
    if (set.name == name) return kernel::highway::limit_to(set);
    known.emplace_back(set.name);
  }
  std::string list;
  for (const std::string& each : known) list += join(" ", each);
  const auto here = target_names(hwy::SupportedTargets(), kernel::highway::Beside::used);
  if (std::find(here.begin(), here.end(), name) != here.end())
    raise(ErrorCode::usage, "--targets ", escaped(best),
          ": this machine has it, but this program was compiled without it; known:", list, ".",
          known.size() == 1 ? " -DMICA_NATIVE=OFF compiles all that mica uses." : "");
  raise(ErrorCode::usage, "--targets ", escaped(best),
        ": not an instruction set of this machine and program; known:", list, ".", suggestion(name, known));
}

}  // namespace mica::program
