// SPDX-License-Identifier: Apache-2.0
//
// The standard sampler: the common stages in the common order, set by options at run time. A stage whose
// option is off is not run.
//
//   logit bias -> penalties -> dry -> top-n-sigma -> top-k -> typical -> top-p -> min-p -> xtc
//     -> temperature -> draw
//   logit bias -> penalties -> dry -> temperature -> mirostat                         if mirostat is 1 or 2
//   logit bias -> penalties -> dry -> greedy                                          if temperature <= 0
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/account.hpp"
#include "mica/sample/dry.hpp"
#include "mica/sample/mirostat.hpp"
#include "mica/sample/penalties.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica/sample/stages.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace mica::sample {

/// Chooses tokens by SamplerOptions. Allocates from A once, booked under logits: 12 bytes for each token of
/// the vocabulary, or only for the best k where top-k is the first stage. The same options, logits and state
/// give the same token. One thread at a time.
template <Allocator A = alloc::Aligned>
class Standard {
 public:
  /// vocab > 0. Raises for options out of range (usage) and when A refuses (budget).
  explicit Standard(const SamplerOptions& options, std::size_t vocab, A allocator = A{})
      : greedy_(!(options.temperature > 0.0f)),
        bias_(options.logit_bias),
        biased_(!options.logit_bias.empty()),
        stages_(
            Penalties<A>({options.repeat_last_n, options.repeat_penalty, options.frequency_penalty,
                          options.presence_penalty},
                         allocator.book_as(budget::Account::logits)),
            Dry<A>(options.dry, allocator.book_as(budget::Account::logits)), TopNSigma(options.top_n_sigma),
            TopK(options.top_k), Typical(options.typical), TopP(options.top_p), MinP(options.min_p),
            Xtc(options.xtc_probability, options.xtc_threshold, xtc_rng(options.seed, 0)),
            Temperature(options.temperature <= 0.0f ? 1.0f : std::max(options.temperature, Temperature::min),
                        options.dynatemp_range, options.dynatemp_exponent)),
        draw_(options.mirostat, options.mirostat_tau, options.mirostat_eta, CounterRng(options.seed)),
        storage_(allocator) {
    put_in_order(options);
    storage_ = take(allocator.book_as(budget::Account::logits), vocab);
  }

  // Required by Sampler
  /// The next token; the caller accepts it if it becomes part of the text.
  /// Empty when a logit is NaN or +infinity, or when all are -infinity, before or after biases.
  /// logits.size() <= vocab; allocates nothing.
  [[nodiscard]] std::optional<TokenId> sample(std::span<const float> logits) noexcept {
    MICA_ASSERT(storage_.span().size() == storage_.size());
    Candidates candidates(storage_.span());
    if (!fill(candidates, logits)) return std::nullopt;
    if (biased_) bias_.apply(candidates);
    for (const Stage stage : std::span(order_).first(n_stages_))
      run(static_cast<std::size_t>(stage), candidates, std::make_index_sequence<std::tuple_size_v<Stages>>());
    greedy_ ? Greedy().apply(candidates) : draw_.apply(candidates);
    return candidates.chosen();
  }

  /// Records a token of the text for penalties and DRY.
  void accept(TokenId token) noexcept {
    std::get<Penalties<A>>(stages_).accept(token);
    std::get<Dry<A>>(stages_).accept(token);
  }

  // Required by SelectiveSampler
  /// If top-k or greedy comes first, only the best of the raw logits can be chosen, and the other tokens need
  /// no candidate.
  [[nodiscard]] std::size_t wanted(std::size_t vocab) const noexcept {
    if (biased_) return vocab;
    if (n_stages_ == 0) return greedy_ ? 1 : vocab;
    return order_[0] == Stage::top_k ? std::min(std::get<TopK>(stages_).k(), vocab) : vocab;
  }

  // Specific to Standard
  /// The state for restore(), in a sampler with the same options.
  [[nodiscard]] SamplerState save() const {
    const auto& penalised = std::get<Penalties<A>>(stages_).recent();
    const auto& searched = std::get<Dry<A>>(stages_).recent();
    const auto& recent = searched.size() > penalised.size() ? searched : penalised;
    SamplerState state{draw_.rng().seed(), draw_.rng().counter(), {}, draw_.active() ? draw_.mu() : 0.0f};
    for (std::size_t i = recent.size(); i > 0; --i) state.history.push_back(recent[i - 1]);
    return state;
  }
  /// Continues from a state. If its history is longer than a stage needs, the newest tokens count.
  void restore(const SamplerState& state) noexcept {
    draw_.restore(CounterRng(state.seed, state.counter), state.mu);
    std::get<Xtc>(stages_).set_rng(xtc_rng(state.seed, state.counter));
    std::get<Penalties<A>>(stages_).forget();
    std::get<Dry<A>>(stages_).forget();
    for (const TokenId token : state.history) accept(token);
  }

 private:
  using Stages = std::tuple<Penalties<A>, Dry<A>, TopNSigma, TopK, Typical, TopP, MinP, Xtc, Temperature>;
  static constexpr std::size_t n_all = std::tuple_size_v<Stages>;

  /// The random numbers of Xtc: a second stream of the seed, with one number for each of the first.
  [[nodiscard]] static CounterRng xtc_rng(std::uint64_t seed, std::uint64_t counter) noexcept {
    return CounterRng(~seed, counter);
  }
  /// Stores the stages that do something, in their order.
  void put_in_order(const SamplerOptions& o) {
    const bool narrows = !greedy_ && o.mirostat == 0;
    const bool on[n_all] = {std::get<Penalties<A>>(stages_).active(),
                            std::get<Dry<A>>(stages_).active(),
                            narrows && o.top_n_sigma > 0.0f,
                            narrows && o.top_k > 0,
                            narrows && o.typical < 1.0f,
                            narrows && o.top_p < 1.0f,
                            narrows && o.min_p > 0.0f,
                            narrows && o.xtc_probability > 0.0f,
                            !greedy_};
    bool seen[n_all] = {};
    for (std::size_t i = 0; i < (o.order.empty() ? n_all : o.order.size()); ++i) {
      const Stage stage = o.order.empty() ? static_cast<Stage>(i) : o.order[i];
      const auto at = static_cast<std::size_t>(stage);
      MICA_CHECK(at < n_all && !std::exchange(seen[at], true), usage, "samplers: stage ", at, " of ", n_all,
                 " is there twice, or is none; name each once");
      if (on[at]) order_[n_stages_++] = stage;
    }
  }
  template <std::size_t... I>
  void run(std::size_t stage, Candidates& candidates, std::index_sequence<I...>) noexcept {
    ((I == stage ? std::get<I>(stages_).apply(candidates) : void()), ...);
  }
  [[nodiscard]] alloc::Buffer<Candidate, A> take(A allocator, std::size_t vocab) const {
    const std::size_t n = wanted(vocab);
    auto buffer = alloc::Buffer<Candidate, A>::make(allocator, n);
    MICA_CHECK(buffer.has_value(), budget, "sampler: no memory for ", n, " candidates (",
               n * sizeof(Candidate), " bytes); a smaller top-k without penalties needs less");
    return std::move(*buffer);
  }
  [[nodiscard]] bool fill(Candidates& candidates, std::span<const float> logits) noexcept {
    const std::size_t n = wanted(logits.size());
    return n < logits.size() ? candidates.fill_best(logits, n) : candidates.fill(logits);
  }

  bool greedy_;
  LogitBias bias_;
  bool biased_;
  Stages stages_;
  Mirostat draw_;
  std::array<Stage, n_all> order_;
  std::size_t n_stages_ = 0;
  alloc::Buffer<Candidate, A> storage_;  // (wanted(vocab))
};

static_assert(SelectiveSampler<Standard<>>);

}  // namespace mica::sample
