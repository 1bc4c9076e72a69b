// SPDX-License-Identifier: Apache-2.0
//
// One plan for a model on several machines: the share of each, so that all need the same time for a token and
// none more than its memory; and the time that a token takes, with the network.
//
//   share of a machine   in proportion to the bytes that it reads in a second, within its memory
//   time of a token      that of the slowest machine, or of all where they divide layers
//                        + bytes on the wire + exchanges * latency
#pragma once

#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica/gguf/document.hpp"
#include "mica/plan/plan.hpp"
#include "mica/ranks/several.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica_tools/fit/traffic.hpp"
#include "mica_tools/fit/work.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::plan {

/// A machine that is a rank.
struct RankMachine {
  std::string name;
  std::uint64_t memory_bytes = 0;  // the budget of the rank
  double read_bytes = 0;           // of memory, per second
  double disk_bytes = 0;           // per second, for streamed weights; 0: it streams none
};

/// The network between all of them: a switch, each machine with a link in both directions.
struct Network {
  double bytes = 125e6;     // per second, of a link
  double latency = 100e-6;  // seconds, of a message
};

/// Of one rank.
struct RankPlan {
  double share = 0;  // of the rows; all shares add up to 1
  Plan plan;
  double seconds = 0;  // of a token, without the network
};

struct RanksPlan {
  std::vector<RankPlan> ranks;
  Question question;  // of each, but for its part
  Traffic traffic;
  double wire_seconds = 0;     // of a token: the bytes of the rank that sends or receives most
  double latency_seconds = 0;  // of a token

  [[nodiscard]] bool by_layers() const noexcept {
    return question.choice.ranks.split() == ranks::Split::layers;
  }
  /// Bytes that a rank sends, or receives, for a token: the larger number. Where they divide layers, the
  /// mean.
  [[nodiscard]] double bytes_of(std::size_t rank) const noexcept {
    if (ranks.size() == 1) return 0;
    if (by_layers()) return traffic.bytes / static_cast<double>(ranks.size());
    const double share = ranks[rank].share, others = static_cast<double>(ranks.size() - 1);
    return traffic.bytes * std::max(share * others, 1 - share);
  }
  /// Of the rank that needs most.
  [[nodiscard]] double slowest() const noexcept {
    double slowest = 0;
    for (const RankPlan& rank : ranks) slowest = std::max(slowest, rank.seconds);
    return slowest;
  }
  /// Of a token.
  [[nodiscard]] double seconds() const noexcept {
    double work = slowest();
    if (by_layers()) {
      work = 0;
      for (const RankPlan& rank : ranks) work += rank.seconds;
    }
    return work + wire_seconds + latency_seconds;
  }
};

/// Plans a question within a budget (fit::Planner).
using RankPlanner = std::function<Plan(const gguf::Document&, Question, std::uint64_t budget_bytes)>;

namespace detail {

class RankSolver {
 public:
  RankSolver(gguf::DocumentRef document, const Question& question, const std::vector<RankMachine>& machines,
             const Network& network, const RankPlanner& planner)
      : document_(document), machines_(machines), network_(network), planner_(planner) {
    out_.question = question;
  }

  /// Raises ErrorCode::budget.
  [[nodiscard]] RanksPlan solve() {
    for (const RankMachine& machine : machines_) {
      most_.push_back(most_of(machine));
      rates_.push_back(machine.read_bytes);
    }
    std::optional<RanksPlan> best;
    for (int round = 0; round < max_rounds; ++round) {
      divide();
      if (!plan_all()) continue;
      add_times();
      if (!best || out_.slowest() + out_.wire_seconds < best->slowest() + best->wire_seconds) best = out_;
      // The time is no multiple of the share where weights are streamed, so half of the way.
      for (std::size_t r = 0; r < rates_.size(); ++r)
        rates_[r] = out_.ranks[r].share / std::sqrt(out_.ranks[r].seconds);
    }
    MICA_CHECK(best, budget, document_.path(),
               ": ranks have whole heads and blocks, which do not fit the memory "
               "of these machines; give one of them more");
    return std::move(*best);
  }

 private:
  static constexpr int max_rounds = 16, halvings = 10;

  /// The largest share that the memory of a machine holds.
  [[nodiscard]] double most_of(const RankMachine& machine) {
    const auto fits = [&](double share) {
      if (layers_ != 0 && share * layers_ < 1) return true;  // not one layer
      const bool all = share == 1 || (layers_ != 0 && (1 - share) * layers_ < 1);
      const std::vector<double> shares = all ? std::vector{1.0} : std::vector{share, 1 - share};
      return plan_of(shares, 0, machine).peak_bytes <= machine.memory_bytes;
    };
    if (fits(1)) return 1;
    double low = 0, high = 1;
    for (int i = 0; i < halvings; ++i) {
      const double middle = (low + high) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }
  [[nodiscard]] Plan plan_of(const std::vector<double>& shares, std::size_t rank,
                             const RankMachine& machine) {
    Question question = out_.question;
    question.choice.ranks =
        ranks::Several<ranks::AnyLink>(ranks::Division(shares, rank), question.choice.ranks.split());
    question.tokenizer_bytes = tokenizer_bytes_;
    Plan plan = planner_(document_, question, machine.memory_bytes);
    tokenizer_bytes_ = plan.accounts[budget::Account::tokenizer];
    if (out_.by_layers()) layers_ = static_cast<double>(plan.config.layers.size());
    return plan;
  }
  /// By speed, where memory allows it; what it does not allow goes to the others. Raises ErrorCode::budget.
  void divide() {
    double all = 0;
    for (const double most : most_) all += most;
    MICA_CHECK(all >= 1, budget, document_.path(), ": the memory of these ", machines_.size(),
               " machines holds ", static_cast<int>(100 * all),
               " % of it; add a machine, give them more memory, or stream weights");
    out_.ranks.resize(machines_.size());
    std::vector<bool> full(machines_.size());
    for (bool again = true; again;) {
      double rest = 1, speed = 0;
      for (std::size_t r = 0; r < full.size(); ++r) full[r] ? rest -= most_[r] : speed += rates_[r];
      again = false;
      for (std::size_t r = 0; r < full.size(); ++r) {
        double& share = out_.ranks[r].share;
        share = full[r] ? most_[r] : rest * rates_[r] / speed;
        if (full[r] || share <= most_[r]) continue;
        full[r] = again = true;
      }
    }
  }
  /// False where a rank has more than its memory, since parts are rounded: it gets less the next time.
  [[nodiscard]] bool plan_all() {
    std::vector<double> shares;
    const double least = layers_ == 0 ? 1e-6 : 1.1 / layers_;  // a layer at least
    for (const RankPlan& rank : out_.ranks) shares.push_back(std::max(rank.share, least));
    bool fit = true;
    for (std::size_t r = 0; r < shares.size(); ++r) {
      out_.ranks[r].plan = plan_of(shares, r, machines_[r]);
      const double peak = static_cast<double>(out_.ranks[r].plan.peak_bytes),
                   memory = static_cast<double>(machines_[r].memory_bytes);
      if (peak <= memory) continue;
      most_[r] = out_.ranks[r].share * std::min(0.99, memory / peak);
      fit = false;
    }
    return fit;
  }
  /// What does not depend on the shares.
  void count_token() {
    const Plan& plan = out_.ranks[0].plan;
    const model::Choice& choice = out_.question.choice;
    const Work work =
        work_of(document_, plan.config, {choice.cache_type_k, choice.cache_type_v}, plan.n_ctx / 2);
    decode_bytes_ = work.decode_bytes();
    bool quantized = false;
    for (const auto& [id, weights] : work.weights)
      quantized = quantized || (detail::is_integer(id) && weights.decode_macs > 0);
    const auto best = static_cast<std::size_t>(sample::SamplerOptions().top_k);
    out_.traffic = out_.by_layers() ? traffic_of_layers(plan.config, machines_.size(), best)
                                    : traffic_of(plan.config, quantized, {best, machines_.size()});
    out_.latency_seconds = machines_.size() == 1 ? 0 : out_.traffic.exchanges * network_.latency;
  }
  void add_times() {
    if (decode_bytes_ == 0) count_token();
    double all = 0;
    for (const RankPlan& rank : out_.ranks) all += static_cast<double>(rank.plan.weight_bytes);
    out_.wire_seconds = 0;
    for (std::size_t r = 0; r < machines_.size(); ++r) {
      RankPlan& rank = out_.ranks[r];
      const auto streamed = static_cast<double>(rank.plan.streamed_bytes);
      MICA_CHECK(
          streamed == 0 || machines_[r].disk_bytes > 0, usage, machines_[r].name, ": reads ",
          budget::size_text(rank.plan.streamed_bytes),
          " of weights from its disk for each token; say with disk= how many bytes it reads in a second");
      const double part = static_cast<double>(rank.plan.weight_bytes) / all;
      rank.seconds = decode_bytes_ * part / machines_[r].read_bytes;
      if (streamed > 0) rank.seconds = std::max(rank.seconds, streamed / machines_[r].disk_bytes);
      const double wire = out_.bytes_of(r) / network_.bytes;
      out_.wire_seconds = out_.by_layers() ? out_.wire_seconds + wire : std::max(out_.wire_seconds, wire);
    }
  }

  const gguf::Document& document_;
  const std::vector<RankMachine>& machines_;
  const Network& network_;
  const RankPlanner& planner_;
  RanksPlan out_;
  double layers_ = 0;          // of the model, where these are divided
  double decode_bytes_ = 0;    // that a token reads on all ranks together
  std::vector<double> most_;   // the largest share of each
  std::vector<double> rates_;  // at which each works on its share
  std::optional<std::uint64_t> tokenizer_bytes_;
};

}  // namespace detail

/// The plan of a question on machines, at least one. Raises ErrorCode::budget where their memory does not
/// hold the model, usage where weights are streamed and a disk is not described, and what the planner raises.
/// question.choice.ranks says by split() what they divide. Cost: some twenty dry runs for each machine.
[[nodiscard]] inline RanksPlan plan_ranks(gguf::DocumentRef document, const Question& question,
                                          const std::vector<RankMachine>& machines, const Network& network,
                                          const RankPlanner& planner) {
  return detail::RankSolver(document, question, machines, network, planner).solve();
}

}  // namespace mica::plan
