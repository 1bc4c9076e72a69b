// SPDX-License-Identifier: Apache-2.0
#include "machine_speed.hpp"

#include "console.hpp"
#include "meter.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/exec/team.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/fit/machine_probe.hpp"
#include "progress.hpp"
#include "targets.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::program {
namespace {

using Json = nlohmann::json;

constexpr std::size_t runs_kept = 9;
constexpr double strangest_ratio = 4;
constexpr double long_seconds = 20;  // a measurement repeats nothing after that

/// Empty if there is no folder for it. No std::filesystem::path is appended to: where memory is refused,
/// libstdc++ crashes in that.
std::string kept_file() {
  const char *const cache = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return join(cache, "/mica/machine.json");
  if (home != nullptr && *home != '\0') return join(home, "/.cache/mica/machine.json");
  return {};
}

/// The machine and program that the numbers belong to.
Json machine_of(std::size_t threads) {
  return {{"version", MICA_PROGRAM_VERSION},
          {"cpu", cpu_name()},
          {"target", chosen_target()},
          {"threads", threads}};
}

/// A disk is identified by the number of its device.
std::string disk_of(const io::File& file) { return std::to_string(file.identity().device); }

/// The measurement of this machine; null if the file is missing, is of another machine, or has another form.
Json read_kept(std::size_t threads) {
  const std::string path = kept_file();
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::ifstream in(path);
  const Json kept = Json::parse(in, nullptr, false);
  if (!kept.is_object() || kept.value("machine", Json()) != machine_of(threads)) return {};
  for (const char* const part : {"formats", "files", "elements", "rows", "disks", "runs"}) {
    if (kept.contains(part) && !kept[part].is_object()) return {};
  }
  return kept;
}

/// Writes the file completely or not at all; of several writers the last one counts.
void write_kept(const Json& kept) {
  const std::string path = kept_file();
  MICA_CHECK(!path.empty(), failed,
             "neither XDG_CACHE_HOME nor HOME is set, so there is no place for what was measured");
  std::error_code error;
  std::filesystem::create_directories(path.substr(0, path.rfind('/')), error);
  const std::string text = kept.dump(1) + "\n";
  io::write_atomically(path, [&](io::AtomicFile& out) { out.write(std::as_bytes(std::span(text))); });
}

double positive(const Json& of, const char* key) {
  const auto found = of.find(key);
  const double x = found != of.end() && found->is_number() ? found->get<double>() : 0;
  return x > 0 && x < 1e18 ? x : 0;
}

/// The median of the ratios of runs; 1 if there were none.
double median_ratio(const Json& kept, const char* phase, bool& some) {
  std::vector<double> ratios;
  const Json runs = kept.value("runs", Json::object()), of_phase = runs.value(phase, Json::array());
  for (const Json& each : of_phase) {
    if (each.is_number())
      ratios.push_back(std::clamp(each.get<double>(), 1 / strangest_ratio, strangest_ratio));
  }
  if (ratios.empty()) return 1;
  some = true;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2),
                   ratios.end());
  return ratios[ratios.size() / 2];
}

/// Rates by a number: {"4": 1e11}.
std::map<std::size_t, double> rates_by_number(const Json& of) {
  std::map<std::size_t, double> rates;
  const Json found = of.value("macs", Json::object());
  for (const auto& [number, rate] : found.items()) {
    const std::size_t n = std::strtoul(number.c_str(), nullptr, 10);
    if (const double known = positive(found, number.c_str()); n > 0 && known > 0) rates[n] = known;
  }
  return rates;
}

std::map<format::Id, plan::FormatSpeed> rates_by_format(const Json& of) {
  std::map<format::Id, plan::FormatSpeed> speeds;
  for (const auto& [name, rates] : of.items()) {
    if (const auto id = format::known.find(name))
      speeds[id->id] = {positive(rates, "decode_bytes"), positive(rates, "prefill_macs"),
                        rates_by_number(rates)};
  }
  return speeds;
}

/// Rates of operations on rows by their names.
plan::PerOperation rates_by_operation(const Json& rows, const char* tokens) {
  plan::PerOperation rates;
  const Json of = rows.value(tokens, Json::object());
  rates.for_each([&](plan::RowOperation operation, double) {
    rates[operation] = positive(of, std::string(plan::name(operation)).c_str());
  });
  return rates;
}

plan::MachineSpeed speed_of(const Json& kept, const io::File* file) {
  plan::MachineSpeed speed;
  speed.basis = "measured";
  speed.read_bytes = positive(kept, "read_bytes");
  speed.dot_macs = positive(kept, "dot_macs");
  const Json elements = kept.value("elements", Json::object());
  speed.formats = rates_by_format(kept.value("formats", Json::object()));
  speed.files = rates_by_format(kept.value("files", Json::object()));
  for (const auto& [name, rates] : elements.items())
    speed.elements[name] = {positive(rates, "decode_bytes"), positive(rates, "prefill_macs"),
                            rates_by_number(rates), positive(rates, "stored_numbers")};
  const Json rows = kept.value("rows", Json::object());
  speed.rows = {rates_by_operation(rows, "one"), rates_by_operation(rows, "many")};
  speed.run_seconds = positive(kept, "run_seconds");
  if (file != nullptr) {
    const Json disks = kept.value("disks", Json::object());
    speed.disk_bytes = positive(disks, disk_of(*file).c_str());
  }
  bool some = false;
  speed.decode_factor = median_ratio(kept, "decode", some);
  speed.prefill_factor = median_ratio(kept, "prefill", some);
  if (some) speed.basis = "calibrated";
  return speed;
}

Json json_of(const std::map<std::size_t, double>& rates) {
  Json json = Json::object();
  for (const auto& [number, rate] : rates) json[std::to_string(number)] = rate;
  return json;
}

Json json_of(const std::map<format::Id, plan::FormatSpeed>& speeds) {
  Json json = Json::object();
  for (const auto& [id, rates] : speeds)
    json[std::string(format::name(id))] = {{"decode_bytes", rates.decode_bytes},
                                           {"prefill_macs", rates.prefill_macs},
                                           {"macs", json_of(rates.macs)}};
  return json;
}

Json json_of(const plan::PerOperation& rates) {
  Json json = Json::object();
  rates.for_each(
      [&](plan::RowOperation operation, double rate) { json[std::string(plan::name(operation))] = rate; });
  return json;
}

Json json_of(const plan::MachineSpeed& speed) {
  Json kept = {{"read_bytes", speed.read_bytes},
               {"dot_macs", speed.dot_macs},
               {"rows", {{"one", json_of(speed.rows.one)}, {"many", json_of(speed.rows.many)}}},
               {"run_seconds", speed.run_seconds},
               {"formats", json_of(speed.formats)},
               {"files", json_of(speed.files)}};
  for (const auto& [name, rates] : speed.elements)
    kept["elements"][name] = {{"decode_bytes", rates.decode_bytes},
                              {"prefill_macs", rates.prefill_macs},
                              {"macs", json_of(rates.macs)},
                              {"stored_numbers", rates.stored_numbers}};
  return kept;
}

/// Seconds of all cores of this process so far.
double processor_seconds() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const ::timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The fraction of the time of `threads` cores that other processes, or a quota, took since it was made.
class LostTime {
 public:
  [[nodiscard]] double fraction(std::size_t threads) const {
    const double all = watch_.seconds() * static_cast<double>(threads);
    return all > 0 ? std::max(0.0, 1 - (processor_seconds() - before_) / all) : 0;
  }

 private:
  Stopwatch watch_;
  double before_ = processor_seconds();
};

/// Above this fraction of lost time the figures are too low; an idle machine has some hundredths.
constexpr double max_lost = 0.25;
/// Threads of others that run, for each core: above it they take bandwidth, also from cores that are not
/// shared.
constexpr double max_load = 0.5;
/// Rates that differ by less than this vary from run to run.
constexpr double same_rate = 0.9;

/// The mean number of running threads of the last minute, for each core; 0 where the system does not say.
double load_of_cores() {
  double load = 0;
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return ::getloadavg(&load, 1) == 1 && cores > 0 ? load / static_cast<double>(cores) : 0;
}

/// How busy the machine was, for a note; empty for an idle one.
std::string busy_text(double lost, double load) {
  if (lost > max_lost)
    return join("other processes took ", fixed(100 * lost, 0),
                " % of the time of the cores while this machine was measured");
  if (load > max_load)
    return join("other processes kept ", fixed(100 * std::min(load, 1.0), 0),
                " % of the cores busy in the minute before this machine was measured");
  return {};
}

/// The maximum of the rates in `of` at which one token reads, of the formats that `now` has.
double read_rate(const plan::MachineSpeed& of, const plan::MachineSpeed& now) {
  double rate = 0;
  for (const auto& [id, found] : now.formats) {
    const auto same = of.formats.find(id);
    if (same != of.formats.end()) rate = std::max(rate, same->second.decode_bytes);
  }
  return rate;
}

/// Whether figures of a busy machine are kept: not in place of higher ones. Says what becomes of the former.
bool replaces(const OutputOptions& options, double before, double now, const std::string& busy) {
  const auto rate = [](double bytes) {
    return budget::size_text(static_cast<std::uint64_t>(bytes)) + " a second";
  };
  const bool lower = now < same_rate * before;
  if (!busy.empty())
    note(options, join("mica: ", busy,
                       ", so the figures are low; mica doctor --measure on an idle machine replaces them"));
  if (lower)
    note(options, join("mica: weights are read at ", rate(now), "; ", rate(before), " was stored before and ",
                       busy.empty() ? "is replaced"
                                    : "stays with all other figures, since the machine is busy; remove " +
                                          kept_file() + " to drop them"));
  return !lower || busy.empty();
}

/// A whole measurement with these parts in place of its own, without the ratios of runs, which belong to the
/// former figures.
Json with_parts(Json whole, const Json& parts) {
  for (const char* const name : {"formats", "files", "elements"}) {
    if (parts.contains(name)) whole[name].update(parts[name]);
  }
  whole["rows"] = parts["rows"];
  whole["run_seconds"] = parts["run_seconds"];
  whole.erase("runs");
  return whole;
}

/// Four times the last cache, but at most a quarter of the memory.
std::size_t probe_bytes() {
  constexpr std::size_t max = std::size_t{1} << 29, step = std::size_t{2} << 20;
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t wanted = cache > 0 ? 4 * static_cast<std::size_t>(cache) : max / 4;
  const std::uint64_t remaining = budget::memory_limits().usable() / 4;
  using Probe = fit::MachineProbe<exec::Team>;
  return std::max<std::size_t>(
      static_cast<std::size_t>(std::min<std::uint64_t>(remaining, std::min(wanted, max))) / step * step,
      Probe::min_bytes);
}

}  // namespace

std::optional<plan::MachineSpeed> known_speed(std::size_t threads, const io::File* file) {
  const Json kept = read_kept(threads);
  if (kept.is_null()) return std::nullopt;
  const plan::MachineSpeed speed = speed_of(kept, file);
  return speed.known() ? std::optional(speed) : std::nullopt;
}

plan::MachineSpeed measure_speed(const OutputOptions& options, std::size_t threads, const io::File* file,
                                 const plan::SpeedParts* only) {
  Json disks = Json::object();
  const Json before = read_kept(threads);
  if (before.is_object()) disks = before.value("disks", Json::object());
  const plan::MachineSpeed known = before.is_object() ? speed_of(before, nullptr) : plan::MachineSpeed();
  if (!known.known()) only = nullptr;
  bool keeps = true;
  const auto measure = [&] {
    using Probe = fit::MachineProbe<exec::Team>;
    const std::string what = only == nullptr ? "this machine" : "what this model uses";
    note(options, join("mica: measuring ", what, ", which takes ",
                       only == nullptr ? "up to a minute" : "some seconds"));
    Progress progress(options);
    const double load = load_of_cores();
    exec::Team team(threads, log_to_stderr(options));
    Probe probe(team, probe_bytes());
    const LostTime lost;
    const plan::MachineSpeed found = probe.measure(
        3, &interrupted(), long_seconds,
        [&](std::size_t done) {
          progress.update({.what = "measuring " + what, .done = done, .all = Probe::pieces_of(only)});
        },
        only);
    progress.clear();
    if (interrupted()) throw Stop{130, {}};
    keeps =
        replaces(options, read_rate(known, found), found.read_bytes, busy_text(lost.fraction(threads), load));
    if (file != nullptr) disks[disk_of(*file)] = disk_speed(*file).in_order;
    return only == nullptr ? json_of(found) : with_parts(before, json_of(found));
  };
  Json kept = measure();
  kept["machine"] = machine_of(threads);
  kept["disks"] = disks;
  Json stored = keeps ? kept : before;
  stored["disks"] = disks;
  try {
    write_kept(stored);
  } catch (const Error& error) {
    note(options, join("mica: what was measured is not kept: ", error.what()));
  }
  return speed_of(kept, file);
}

void learn_speed(std::size_t threads, double decode_ratio, double prefill_ratio) {
  Json kept = read_kept(threads);
  if (kept.is_null()) return;
  const auto learn = [&](const char* phase, double ratio) {
    if (!(ratio > 1 / strangest_ratio && ratio < strangest_ratio)) return;
    Json& runs = kept["runs"][phase];
    if (!runs.is_array()) runs = Json::array();
    runs.push_back(ratio);
    if (runs.size() > runs_kept) runs.erase(runs.begin());
  };
  learn("decode", decode_ratio);
  learn("prefill", prefill_ratio);
  try {
    write_kept(kept);
  } catch (const Error&) {  // the correction is lost
  }
}

}  // namespace mica::program
