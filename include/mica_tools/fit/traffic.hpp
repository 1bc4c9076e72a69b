// SPDX-License-Identifier: Apache-2.0
//
// What several ranks exchange for a token (model/detail/step.hpp), from the sizes of a model. The counts
// follow the blocks (block/lists.hpp) exchange by exchange.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/block/lists.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica_tools/fit/row_work.hpp"

#include <cstddef>

namespace mica::plan {

/// Of a token whose logits are computed.
struct Traffic {
  double bytes = 0;      // parts of all ranks together, each counted once
  double exchanges = 0;  // in each of them, every rank waits for all others
};

namespace detail {

/// Counts the blocks of a model of some width.
class TrafficCount {
 public:
  /// quantized: products read int8 codes.
  TrafficCount(std::size_t width, bool quantized) : width_(width), quantized_(quantized) {}

  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }

  template <class Config>
  void operator()(const Config& block) {
    count(block);
  }
  void floats(std::size_t numbers) { add(static_cast<double>(numbers * sizeof(float))); }

 private:
  void add(double bytes) {
    traffic_.bytes += bytes;
    traffic_.exchanges += 1;
  }
  /// The input of a product, of which each rank has some units: codes and a scale for 32 of them, or floats.
  void inputs(std::size_t numbers, std::size_t unit) {
    constexpr std::size_t group = kernel::activation_group;
    if (!quantized_ || unit % group != 0) return floats(numbers);
    add(static_cast<double>(numbers + numbers / group * sizeof(float)));
  }
  void hidden(std::size_t ff_width) {
    inputs(ff_width, block::hidden_unit(ff_width));
    floats(width_);
  }

  void count(const block::AttentionConfig& c) {
    if (c.alibi_max != 0 || c.second_codes) return;  // it is not divided
    inputs(c.q_width(), c.group() * c.head_dim);
    floats(width_);
  }
  void count(const block::DeltaNetConfig& c) {
    floats(c.channels());
    floats(c.v_width());
    floats(width_);
  }
  void count(const block::DenseFeedForward::Config& c) {
    if (c.sparsity == 0) hidden(c.ff_width);
  }
  void count(const block::ExpertsConfig& c) {
    const double before = traffic_.exchanges;
    for (std::size_t i = 0; i < c.used; ++i) hidden(c.ff_width);
    traffic_.exchanges = before + 2;  // those of a token go together
    if (c.shared_ff_width != 0) hidden(c.shared_ff_width);
  }
  void count(const block::ExpertsBesideDense::Config& c) {
    count(c.dense);
    count(c.experts);
  }
  /// Blocks that every rank computes whole.
  template <class Config>
  void count(const Config&) {}

  std::size_t width_;
  bool quantized_;
  Traffic traffic_;
};

}  // namespace detail

/// Of the logits of a token the sampler looks at the best `best`; 0: at all.
struct LogitsLookedAt {
  std::size_t best = 0;
  std::size_t ranks = 1;  // that have some of them

  /// Floats that are exchanged: each rank sends its best ones with their columns, if that is less than all.
  [[nodiscard]] std::size_t floats(std::size_t n_vocab) const noexcept {
    return best == 0 || best >= n_vocab / 2 / ranks ? n_vocab : 2 * best * ranks;
  }
};

/// Of a token of a model: its embedding, its layers, its logits. quantized: products read int8 codes, as
/// those of quantised weights do.
[[nodiscard]] inline Traffic traffic_of(const arch::Config& config, bool quantized,
                                        const LogitsLookedAt& logits = {}) {
  detail::TrafficCount count(config.width, quantized);
  count.floats(config.width);
  detail::for_each_block(config, count);
  count.floats(logits.floats(config.n_vocab));
  return count.traffic();
}

/// The same of ranks that divide layers: each passes the token on to the next, and the last has the logits.
[[nodiscard]] inline Traffic traffic_of_layers(const arch::Config& config, std::size_t ranks,
                                               std::size_t best = 0) {
  const std::size_t numbers = (ranks - 1) * config.width + LogitsLookedAt{best, 1}.floats(config.n_vocab);
  return {static_cast<double>(numbers * sizeof(float)), static_cast<double>(ranks)};
}

}  // namespace mica::plan
