// SPDX-License-Identifier: Apache-2.0
//
// This machine: instruction sets, cores, limits, memory, and what its settings mean for a run; with a file,
// its file system, and the speed of its disk.
#include "advice_text.hpp"
#include "columns.hpp"
#include "console.hpp"
#include "embedded.hpp"
#include "json_text.hpp"
#include "machine_speed.hpp"
#include "meter.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "running_options.hpp"
#include "targets.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

class Doctor final : public Verb {
 public:
  Doctor()
      : Verb({"doctor", "this machine: instruction sets, limits, memory, advice; with a file, its disk",
              "mica doctor --measure"},
             Needs::local) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    add_threads(flags, threads_, "Speed");
    flags.group("Speed");
    flags.toggle(
        "--measure", measure_,
        "measure for up to a minute what kernels do here with each format, and keep it for mica plan "
        "and mica fit; a measurement replaces the one before");
  }

  std::size_t threads_ = 0;
  bool measure_ = false;
};

/// One line of the report: a name, a value for JSON, and a value for people.
struct Fact {
  std::string name;
  std::string json;
  std::string text;
};

Fact size_fact(std::string name, std::uint64_t bytes) {
  if (bytes == budget::MemoryLimits::unlimited) return {name, "null", "no limit"};
  return {name, join(bytes), budget::size_text(bytes)};
}

Fact text_fact(std::string name, const std::string& text) { return {name, json_string(text), text}; }

Fact list_fact(std::string name, const std::vector<std::string>& list) {
  Fact fact{name, "[", ""};
  for (const std::string& entry : list) {
    fact.json += join(fact.json.size() > 1 ? "," : "", json_string(entry));
    fact.text += join(fact.text.empty() ? "" : " ", entry);
  }
  fact.json += "]";
  return fact;
}

Fact rate_fact(std::string name, double bytes) {
  const auto whole = static_cast<std::uint64_t>(bytes);
  return {name, join(whole), join(budget::size_text(whole), " a second")};
}

/// A file, or the largest of a packed directory, with which a disk is measured.
io::File file_of(const std::string& path) {
  return io::File::open(gguf::is_packed_folder(path) ? largest_file(gguf::open(path))->path() : path);
}

/// The speed of the disk of a file, for streamed weights; without it, why it cannot be measured.
std::vector<Fact> disk_facts(const io::File& file, bool& measured) {
  measured = true;
  try {
    const io::DiskSpeed speed = disk_speed(file);
    return {rate_fact("disk_in_order", speed.in_order), rate_fact("disk_scattered", speed.scattered)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::usage) throw;
    measured = false;
    return {{"disk_in_order", "null", join("not measured: ", error.message())},
            {"disk_scattered", "null", "not measured"}};
  }
}

/// The speed of products and attention: bytes for one token, multiply-adds for many.
std::vector<Fact> speed_facts(const plan::MachineSpeed& speed) {
  const auto both = [](std::string name, double bytes, double macs) {
    return Fact{name,
                join("{\"decode_bytes\":", static_cast<std::uint64_t>(bytes),
                     ",\"prefill_macs\":", static_cast<std::uint64_t>(macs), "}"),
                join(budget::size_text(static_cast<std::uint64_t>(bytes)), " a second, ",
                     fixed(macs / 1e9, 0), " GMAC/s")};
  };
  std::vector<Fact> facts = {rate_fact("read_bytes", speed.read_bytes),
                             {"dot_macs", join(static_cast<std::uint64_t>(speed.dot_macs)),
                              join(fixed(speed.dot_macs / 1e9, 0), " GMAC/s")}};
  for (const auto& [id, found] : speed.formats)
    facts.push_back(both(std::string(format::name(id)), found.decode_bytes, found.prefill_macs));
  for (const auto& [name, found] : speed.elements)
    facts.push_back(both(join("kv_", name), found.decode_bytes, found.prefill_macs));
  return facts;
}

std::vector<Fact> facts(const advice::MachineFacts& machine) {
  using kernel::highway::Beside;
  const budget::CpuLimits cpu = budget::cpu_limits();
  const budget::MemoryLimits& memory = machine.memory;
  const bool has_quota = std::isfinite(cpu.quota);
  const std::string quota = has_quota ? fixed(cpu.quota, 2) : std::string("null");
  return {text_fact("version", MICA_PROGRAM_VERSION),
          text_fact("cpu", cpu_name()),
          list_fact("targets", target_names(hwy::SupportedTargets(), Beside::used)),
          list_fact("compiled", target_names(kernel::highway::compiled_targets(), Beside::all)),
          text_fact("chosen", chosen_target()),
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
          text_fact("huge_pages", machine.huge_pages ? machine.huge_pages->enabled : "unknown"),
          size_fact("bundled_model_bytes", embedded_model().size())};
}

int Doctor::run() {
  std::string text;
  const advice::MachineFacts machine = advice::read_machine_facts("");
  std::vector<advice::Advice> lines = advice::advise(machine);
  const auto add_lines = [&](const std::vector<advice::Advice>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  };
  add_lines(advice::advise(advice::read_cards("")));
  std::vector<Fact> all = facts(machine);
  const auto add = [&](std::vector<Fact> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
  std::optional<io::File> file;
  bool knows_disk = false;
  if (!model_path.empty()) {
    add(disk_facts(file.emplace(file_of(model_path)), knows_disk));
    add_lines(advice::advise(advice::read_file_facts(*file)));
  }
  if (measure_) {
    const std::size_t threads = threads_ == 0 ? budget::cpu_limits().threads() : threads_;
    add(speed_facts(measure_speed(*this, threads, knows_disk ? &*file : nullptr)));
  }
  for (const Fact& fact : all) {
    if (json) {
      text += join(text.empty() ? "{" : ",", json_string(fact.name), ":", fact.json);
    } else {
      text += join(at_left(fact.name, 22), escaped(fact.text, 200), "\n");
    }
  }
  print(json ? join(text, ",\"advice\":", advice_json(lines), "}\n")
             : join(text, "\n", advice_text(lines, 22)));
  return 0;
}

}  // namespace

AnyVerb make_doctor() { return std::make_unique<Doctor>(); }

}  // namespace mica::program
