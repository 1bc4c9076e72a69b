// SPDX-License-Identifier: Apache-2.0
//
// What this machine gives to a model: instruction sets, cores, limits, memory; with a file, the speed of its disk.
#include "console.hpp"
#include "embedded.hpp"
#include "json_text.hpp"
#include "meter.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/kernel/highway/byte_dots.hpp"
#include "options.hpp"
#include "targets.hpp"
#include "verbs.hpp"

#include <hwy/base.h>
#include <hwy/detect_targets.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

/// One line of the report: a name, a value for JSON, and a value for people.
struct Fact {
  std::string_view name;
  std::string json;
  std::string text;
};

Fact size_fact(std::string_view name, std::uint64_t bytes) {
  if (bytes == budget::MemoryLimits::unlimited) return {name, "null", "no limit"};
  return {name, join(bytes), budget::size_text(bytes)};
}

Fact text_fact(std::string_view name, const std::string& text) { return {name, json_string(text), text}; }

Fact list_fact(std::string_view name, const std::vector<std::string>& list) {
  Fact fact{name, "[", ""};
  for (const std::string& entry : list) {
    fact.json += join(fact.json.size() > 1 ? "," : "", json_string(entry));
    fact.text += join(fact.text.empty() ? "" : " ", entry);
  }
  fact.json += "]";
  return fact;
}

/// The word of a kernel's setting that is in brackets: "always [madvise] never".
std::string chosen_word(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::size_t begin = line.find('['), end = line.find(']');
  return begin == std::string::npos || end == std::string::npos ? std::string("unknown")
                                                                : line.substr(begin + 1, end - begin - 1);
}

/// The name of the CPU, where the system tells.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

/// What the disk of a file, or of a packed folder, gives to streamed weights.
std::vector<Fact> disk_facts(const std::string& path) {
  const auto measure = [&] {
    if (!gguf::is_packed_folder(path)) return disk_speed(io::File::open(path));
    const gguf::Document document = gguf::open(path);
    return disk_speed(*largest_file(document));
  };
  const io::DiskSpeed speed = measure();
  const auto rate = [](std::string_view name, double bytes) {
    const auto whole = static_cast<std::uint64_t>(bytes);
    return Fact{name, join(whole), join(budget::size_text(whole), " a second")};
  };
  return {rate("disk_in_order", speed.in_order), rate("disk_scattered", speed.scattered)};
}

std::vector<Fact> facts() {
  const std::int64_t here = hwy::SupportedTargets(), compiled = here & HWY_TARGETS;
  const bool dots = kernel::highway::ByteDots::used();
  const budget::CpuLimits cpu = budget::cpu_limits();
  const budget::MemoryLimits memory = budget::memory_limits();
  const bool has_quota = std::isfinite(cpu.quota);
  const std::string quota = has_quota ? fixed(cpu.quota, 2) : std::string("null");
  return {text_fact("version", MICA_PROGRAM_VERSION),
          text_fact("cpu", cpu_name()),
          list_fact("targets", target_names(here, dots)),
          list_fact("compiled", target_names(HWY_TARGETS, true)),
          text_fact("chosen", target_names(compiled, dots).front()),
          {"cores", join(std::thread::hardware_concurrency()), join(std::thread::hardware_concurrency())},
          {"affinity", join(cpu.cpus), join(cpu.cpus)},
          {"quota", quota, has_quota ? join(quota, " cores") : std::string("no limit")},
          {"threads", join(cpu.threads()), join(cpu.threads())},
          size_fact("installed_bytes", memory.installed),
          size_fact("available_bytes", memory.available),
          size_fact("cgroup_bytes", memory.cgroup),
          size_fact("cgroup_left_bytes", memory.cgroup_left),
          size_fact("address_space_bytes", memory.address_space),
          size_fact("usable_bytes", memory.usable()),
          text_fact("limited_by", std::string(memory.authority())),
          text_fact("huge_pages", chosen_word("/sys/kernel/mm/transparent_hugepage/enabled")),
          size_fact("bundled_model_bytes", embedded_model().size())};
}

}  // namespace

int doctor(const Options& options) {
  std::string text;
  std::vector<Fact> all = facts();
  if (!options.model.empty()) {
    for (Fact& fact : disk_facts(options.model)) all.push_back(std::move(fact));
  }
  for (const Fact& fact : all) {
    if (options.json) {
      text += join(text.empty() ? "{" : ",", json_string(fact.name), ":", fact.json);
    } else {
      text += join(fact.name, std::string(22 - fact.name.size(), ' '), escaped(fact.text, 200), "\n");
    }
  }
  print(options.json ? text + "}\n" : text);
  return 0;
}

}  // namespace mica::program
