// SPDX-License-Identifier: Apache-2.0
#include "rank_hosts.hpp"

#include "columns.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace mica::program {
namespace {

struct Unit {
  std::string_view name;
  double value;
};
constexpr Unit rate_units[] = {{"GB/s", 1e9}, {"MB/s", 1e6}, {"Gbit/s", 1e9 / 8}, {"Mbit/s", 1e6 / 8}};
constexpr Unit time_units[] = {{"us", 1e-6}, {"ms", 1e-3}};

/// The words of a line.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  while (true) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    line.remove_prefix(begin);
    if (line.empty()) return words;
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// One line of the file, for its errors.
struct Line {
  const std::string& path;
  std::size_t number;

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    raise(ErrorCode::file, path, ": line ", number, ": ", parts...);
  }
  /// "20GB/s" in bytes per second.
  [[nodiscard]] double number_with(std::string_view word, std::string_view value,
                                   std::span<const Unit> units) const {
    double found = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), found);
    const std::string_view unit(end, static_cast<std::size_t>(value.data() + value.size() - end));
    const auto at = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
    if (error == std::errc() && at != units.end() && found > 0 && found <= 1e6) return found * at->value;
    std::string names;
    for (const Unit& each : units) names += join(names.empty() ? "" : ", ", each.name);
    refuse("'", escaped(std::string(word), 60), "': needed is a number above 0 and one of ", names);
  }
};

/// f(key, value) for each word KEY=VALUE.
template <class F>
void for_each_value(const Line& line, const std::vector<std::string_view>& words, F&& f) {
  for (const std::string_view word : std::span(words).subspan(1)) {
    const std::size_t at = word.find('=');
    if (at == word.npos || !f(word.substr(0, at), word.substr(at + 1), word))
      line.refuse("'", escaped(std::string(word), 60), "' is not known; ",
                  words[0] == "network" ? "speed= and latency= belong to the network"
                                        : "memory=, reads= and disk= belong to a machine");
  }
}

void read_network(const Line& line, const std::vector<std::string_view>& words, plan::Network& network) {
  for_each_value(line, words, [&](std::string_view key, std::string_view value, std::string_view word) {
    if (key == "speed") return network.bytes = line.number_with(word, value, rate_units), true;
    if (key == "latency") return network.latency = line.number_with(word, value, time_units), true;
    return false;
  });
}

plan::RankMachine machine_of(const Line& line, const std::vector<std::string_view>& words) {
  plan::RankMachine machine{.name = std::string(words[0])};
  for_each_value(line, words, [&](std::string_view key, std::string_view value, std::string_view word) {
    if (key == "reads") return machine.read_bytes = line.number_with(word, value, rate_units), true;
    if (key == "disk") return machine.disk_bytes = line.number_with(word, value, rate_units), true;
    if (key != "memory") return false;
    machine.memory_bytes =
        budget::parse_size(std::string(value), 0, join(line.path, ": line ", line.number, ": memory"));
    return true;
  });
  if (machine.memory_bytes == 0 || machine.read_bytes == 0)
    line.refuse(
        "a machine needs memory=, such as 6GiB, and reads=, such as 20GB/s: what it reads of its "
        "memory in a second, as mica doctor --measure says there");
  return machine;
}

/// "1Gbit/s"
std::string bits_text(double bytes) {
  const double bits = 8 * bytes;
  return bits >= 1e9 ? join(fixed(bits / 1e9, bits < 1e10 ? 1 : 0), " Gbit/s")
                     : join(fixed(bits / 1e6, 0), " Mbit/s");
}
std::string milliseconds(double seconds) { return join(fixed(1e3 * seconds, seconds < 0.01 ? 2 : 1), " ms"); }
std::string megabytes(double bytes) { return join(fixed(bytes / 1e6, 2), " MB"); }

/// "3,1,1"; empty for equal shares.
std::string shares_text(const plan::RanksPlan& plan) {
  double least = 1;
  bool equal = true;
  for (const plan::RankPlan& rank : plan.ranks) {
    least = std::min(least, rank.share);
    equal = equal && std::abs(rank.share - plan.ranks[0].share) < 1e-9;
  }
  std::string text;
  if (equal) return text;
  for (const plan::RankPlan& rank : plan.ranks)
    text += join(text.empty() ? "" : ",", fixed(rank.share / std::max(least, 1e-6), 3));
  return text;
}

double most_bytes(const plan::RanksPlan& plan) {
  double most = 0;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) most = std::max(most, plan.bytes_of(r));
  return most;
}

}  // namespace

RankHosts parse_rank_hosts(const std::string& path, const std::string& text) {
  RankHosts hosts;
  Line line{path, 0};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ++line.number;
    const auto words = words_of(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    if (words.empty()) continue;
    if (words[0] == "network") {
      read_network(line, words, hosts.network);
    } else {
      hosts.machines.push_back(machine_of(line, words));
    }
  }
  MICA_CHECK(!hosts.machines.empty() && hosts.machines.size() <= 1024, file, path, ": found ",
             hosts.machines.size(),
             " machines, allowed 1 to 1024, a line for each: node1 memory=6GiB reads=20GB/s");
  return hosts;
}

std::string ranks_text(const RankHosts& hosts, const plan::RanksPlan& plan, const std::string& model_path) {
  std::string text = "rank  machine            share     weights        peak      memory       a token\n";
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const plan::RankPlan& rank = plan.ranks[r];
    text += join(at_right(join(r), 4), "  ", at_left(escaped(hosts.machines[r].name, 16), 17),
                 at_right(join(fixed(100 * rank.share, 1), " %"), 7),
                 at_right(budget::size_text(rank.plan.weight_bytes), 12),
                 at_right(budget::size_text(rank.plan.peak_bytes), 12),
                 at_right(budget::size_text(hosts.machines[r].memory_bytes), 12),
                 at_right(milliseconds(rank.seconds), 14),
                 rank.plan.streamed_bytes == 0
                     ? ""
                     : join("  ", budget::size_text(rank.plan.streamed_bytes), " of it from the disk"),
                 "\n");
  }
  const double seconds = plan.seconds();
  text += join("network   ", megabytes(most_bytes(plan)), " a token and rank in ",
               fixed(plan.traffic.exchanges, 0), " exchanges: ", milliseconds(plan.wire_seconds), " at ",
               bits_text(hosts.network.bytes), ", ", milliseconds(plan.latency_seconds), " of latency\n",
               "speed     ", fixed(1 / seconds, 2), " tokens a second, ", milliseconds(seconds),
               " each, at the rates of this file\n");
  const std::string shares = shares_text(plan);
  if (plan.ranks.size() > 1)
    text +=
        join("start     mpirun -n ", plan.ranks.size(),
             " --hostfile HOSTS --bind-to none --enable-recovery mica run ", escaped(model_path),
             plan.by_layers() ? " --rank-split layers" : "", shares.empty() ? "" : " --rank-shares ", shares,
             plan.question.choice.weights == paging::Choice::streamed ? " --weights streamed" : "", "\n");
  return text;
}

std::string ranks_json(const RankHosts& hosts, const plan::RanksPlan& plan) {
  std::string ranks;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const plan::RankPlan& rank = plan.ranks[r];
    ranks +=
        join(r == 0 ? "" : ",", "{\"machine\":", json_string(hosts.machines[r].name),
             ",\"share\":", fixed(rank.share, 6), ",\"weight_bytes\":", rank.plan.weight_bytes,
             ",\"peak_bytes\":", rank.plan.peak_bytes, ",\"memory_bytes\":", hosts.machines[r].memory_bytes,
             ",\"streamed_bytes\":", rank.plan.streamed_bytes, ",\"seconds\":", fixed(rank.seconds, 6),
             ",\"network_bytes\":", fixed(plan.bytes_of(r), 0), "}");
  }
  return join("{\"ranks\":[", ranks, "],\"exchanges\":", fixed(plan.traffic.exchanges, 0),
              ",\"wire_seconds\":", fixed(plan.wire_seconds, 6),
              ",\"latency_seconds\":", fixed(plan.latency_seconds, 6),
              ",\"decode_per_second\":", fixed(1 / plan.seconds(), 3),
              ",\"rank_shares\":", json_string(shares_text(plan)), "}\n");
}

}  // namespace mica::program
