// SPDX-License-Identifier: Apache-2.0
//
// From a candidate and a machine to one configuration. If a speed is requested, each mode is first tried with
// the requested context, headroom and that speed, in the best quantisation that has all three. The first mode
// with Q4_K_M or better is taken, else the mode with the best quantisation. Fewer bits than Q4_K_M may save
// memory, but do not count as a way to the requested speed.
//
// Otherwise modes are tried from the fastest down; in a mode
//
//   the requested context, with headroom, then without -> half of it -> ... -> 1,024 tokens
//
// and for each of these the quantisations from the best down, or from Q4_K_M down if the requested speed is
// not possible; keys and values in F16 before Q8_0. The first that fits is taken.
#pragma once

#include "mica_tools/fit/candidate.hpp"
#include "mica_tools/fit/level.hpp"
#include "mica_tools/fit/machine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica::fit {

/// The default context in tokens, and the minimum of halved contexts.
inline constexpr std::size_t default_context = 8192, min_context = 1024;

/// Bytes of an engine for graphics cards beside weights, keys and values: the context of its driver and its
/// buffers. An estimate of llmfit.
inline constexpr std::uint64_t gpu_margin_bytes = std::uint64_t{512} << 20;

/// The part of a card's bandwidth that engines reach when they decode: llmfit's number.
inline constexpr double gpu_part = 0.55;

/// Tokens of the prompt that a step reads, here as in `mica run`.
inline constexpr std::size_t chunk_tokens = 512;

/// The request.
struct Request {
  std::size_t max_context = 0;  // tokens; 0: default_context
  double min_decode = 0;        // tokens per second

  /// The requested context, for a model that was trained for that length or more.
  [[nodiscard]] std::size_t context() const noexcept {
    return max_context == 0 ? default_context : max_context;
  }
};

/// One configuration of a candidate, and its properties.
struct Fit {
  std::string name;                       // of the candidate
  std::string title;                      // for people
  const Row* row = nullptr;               // null: a file
  const Row* model = nullptr;             // with the date and the purpose; null: not known
  double parameters = 0;                  // all
  double active = 0;                      // of them, those that a token uses
  double experts = 0;                     // those of all experts
  std::size_t n_ctx_train = 0;            // tokens
  std::size_t requested = 0;              // tokens of context: at most n_ctx_train
  std::size_t wanted = 0;                 // tokens of context, not limited by n_ctx_train
  Setting setting;                        // the chosen one
  std::string quantisation;               // its name
  double penalty = 0, worth = 1;          // of the quantisation
  Mode mode = Mode::cpu;                  // the chosen one
  Level level = Level::too_tight;         // in this mode
  Pools need;                             // bytes of the setting
  Pools available;                        // bytes of the machine in this mode
  std::uint64_t recommended = 0;          // bytes of a card
  double decode = 0;                      // tokens per second, predicted
  std::string basis;                      // of decode
  std::size_t max_context_that_fits = 0;  // tokens that fit in this mode and quantisation; 0: not computed
  std::vector<std::string> notes;         // sentences for users

  /// Whether memory is an estimate: that of another engine, from mica's plan and a margin.
  [[nodiscard]] bool estimated() const noexcept { return mode != Mode::cpu && mode != Mode::streamed; }
};

/// Chooses the configuration of each candidate for one machine and one request.
class Selector {
 public:
  /// The machine outlives this.
  Selector(const Machine& machine, Request requested) : machine_(machine), requested_(requested) {}

  /// The first configuration that fits, or else the one with the smallest requirement, as Level::too_tight.
  /// Raises what planning the candidate raises. Cost: some tens of plans at most.
  [[nodiscard]] Fit select(Candidate& candidate) const {
    const std::vector<std::size_t> tokens = contexts(candidate);
    const std::vector<Mode> possible = modes(candidate);
    if (auto quick = quick_fit(candidate, possible, tokens.front())) return *std::move(quick);
    for (const Mode mode : possible) {
      for (const std::size_t n_ctx : tokens) {
        for (const bool spacious : {true, false}) {
          if (const auto setting = first(candidate, mode, n_ctx, spacious))
            return described(candidate, mode, *setting);
        }
      }
    }
    const Mode last = possible.back();
    const bool streamed = last == Mode::streamed;
    const std::size_t fallback = streamed ? candidate.reference() : candidate.ladder().size() - 1;
    return described(
        candidate, last,
        {fallback, tokens.back(), kv::Element::q8_0, streamed, streamed ? machine_.available_bytes : 0});
  }

  /// The longest context, of whole steps of 256 tokens, that fits in the configuration of a fit. Cost: some
  /// ten plans.
  [[nodiscard]] std::size_t longest_context(Candidate& candidate, const Fit& fit) const {
    constexpr std::size_t grain = 256;
    const std::size_t max = requested_.max_context == 0 ? fit.n_ctx_train : fit.requested;
    const auto holds = [&](std::size_t n_ctx) {
      Setting setting = fit.setting;
      setting.n_ctx = n_ctx;
      return fits(need(candidate, fit.mode, setting), fit.available);
    };
    if (fit.level == Level::too_tight) return 0;
    if (holds(max)) return max;
    std::size_t low = fit.setting.n_ctx / grain, high = max / grain;  // fits; does not
    while (high > low + 1) {
      const std::size_t middle = low + (high - low) / 2;
      (holds(middle * grain) ? low : high) = middle;
    }
    return std::max(fit.setting.n_ctx, low * grain);
  }

  /// The requirement of a setting in a mode.
  [[nodiscard]] Pools need(Candidate& candidate, Mode mode, const Setting& setting) const {
    using budget::Account;
    const plan::Plan& plan = candidate.plan(setting);
    if (mode == Mode::cpu || mode == Mode::streamed) return {0, plan.peak_bytes};
    const Parts weights = candidate.weights(setting.quantisation);
    const std::uint64_t rest = plan.accounts[Account::kv] + plan.accounts[Account::state] + gpu_margin_bytes;
    const auto all = static_cast<std::uint64_t>(weights.all);
    if (mode == Mode::gpu) return {all + rest, 0};
    if (mode == Mode::cpu_gpu) return {0, all + rest};
    const auto active = static_cast<std::uint64_t>(weights.active);
    return {active + rest, all - active};
  }

 private:
  [[nodiscard]] Pools available(Mode mode) const noexcept {
    if (mode == Mode::gpu) return {machine_.gpu_bytes(), 0};
    if (mode == Mode::moe_offload) return {machine_.vram_bytes, machine_.available_bytes};
    return {0, machine_.available_bytes};
  }
  [[nodiscard]] std::vector<Mode> modes(Candidate& candidate) const {
    if (machine_.mlx) return {Mode::gpu};
    const bool can_use_all = machine_.gpu_bytes() >= machine_.available_bytes;  // of unified memory
    if (machine_.unified && can_use_all) return {Mode::gpu, Mode::streamed};
    if (machine_.unified) return {Mode::gpu, Mode::cpu, Mode::streamed};
    if (machine_.vram_bytes == 0) return {Mode::cpu, Mode::streamed};
    std::vector<Mode> modes = {Mode::gpu};
    if (arch::largest_mixture(candidate.config()) != 0) modes.push_back(Mode::moe_offload);
    if (machine_.vram_bytes > gpu_margin_bytes) modes.push_back(Mode::cpu_gpu);
    modes.insert(modes.end(), {Mode::cpu, Mode::streamed});
    return modes;
  }
  /// The requested context, then its halves.
  [[nodiscard]] std::vector<std::size_t> contexts(Candidate& candidate) const {
    std::vector<std::size_t> contexts = {std::min(candidate.n_ctx_train(), requested_.context())};
    while (contexts.back() / 2 >= min_context) contexts.push_back(contexts.back() / 2);
    return contexts;
  }
  /// The fit with the requested context, headroom and the requested speed; empty if there is none or no speed
  /// is requested.
  [[nodiscard]] std::optional<Fit> quick_fit(Candidate& candidate, const std::vector<Mode>& modes,
                                             std::size_t n_ctx) const {
    std::optional<Fit> best;
    if (requested_.min_decode <= 0) return best;
    const double enough = worth_of("Q4_K_M", 0);
    const std::size_t reference = candidate.reference();
    for (const Mode mode : modes) {
      if (mode == Mode::streamed || (best && best->worth >= enough)) continue;
      for (std::size_t i = 0; i < candidate.ladder().size(); ++i) {
        if (best && best->worth >= candidate.ladder()[i].worth) break;
        // Fewer bits than the reference may save memory, not make a slow model quick.
        if (i == reference + 1 &&
            described(candidate, mode, {reference, n_ctx}).decode < requested_.min_decode)
          break;
        const auto setting = of_quantisation(candidate, mode, n_ctx, i, true);
        if (!setting) continue;
        Fit fit = described(candidate, mode, *setting);
        if (fit.decode < requested_.min_decode) continue;
        best = std::move(fit);
        break;
      }
    }
    return best;
  }
  /// The best quantisation that fits, with headroom where requested.
  [[nodiscard]] std::optional<Setting> first(Candidate& candidate, Mode mode, std::size_t n_ctx,
                                             bool spacious) const {
    // More bits would make streamed weights and slow models slower still.
    const bool streamed = mode == Mode::streamed;
    const std::size_t begin = streamed || requested_.min_decode > 0 ? candidate.reference() : 0;
    const std::size_t end = streamed ? begin + 1 : candidate.ladder().size();
    for (std::size_t i = begin; i < end; ++i) {
      if (auto setting = of_quantisation(candidate, mode, n_ctx, i, spacious)) return setting;
    }
    return std::nullopt;
  }
  /// This quantisation, keys and values in F16, else in Q8_0; empty if it does not fit. Weights alone that
  /// are too large need no plan.
  [[nodiscard]] std::optional<Setting> of_quantisation(Candidate& candidate, Mode mode, std::size_t n_ctx,
                                                       std::size_t quantisation, bool spacious) const {
    const bool streamed = mode == Mode::streamed;
    const Pools pools = available(mode);
    const double weights = candidate.weights(quantisation).all;
    if (!streamed && weights > static_cast<double>(pools.vram + pools.ram)) return std::nullopt;
    for (const kv::Element element : {kv::Element::f16, kv::Element::q8_0}) {
      const Setting setting{quantisation, n_ctx, element, streamed, streamed ? machine_.available_bytes : 0};
      const Pools needed = need(candidate, mode, setting);
      if (spacious ? has_headroom(needed, pools) : fits(needed, pools)) return setting;
    }
    return std::nullopt;
  }
  [[nodiscard]] plan::StepReads reads(Candidate& candidate, const Setting& setting) const {
    if (!setting.streamed) return {};
    return plan::reads_of(candidate.work(setting), candidate.plan(setting), chunk_tokens);
  }
  /// Tokens per second: 1 / the time in which a token reads its bytes. On cards: at gpu_part of their
  /// bandwidth.
  [[nodiscard]] double decode(Candidate& candidate, const Fit& fit) const {
    const plan::Work work = candidate.work(fit.setting);
    const double on_cpu =
        plan::predict(work, machine_.speed, reads(candidate, fit.setting), {chunk_tokens, chunk_tokens})
            .decode;
    if (fit.mode == Mode::cpu || fit.mode == Mode::streamed) return on_cpu;
    const double rate = machine_.gpu_rate() * gpu_part;
    const Parts weights = candidate.weights(fit.setting.quantisation);
    const double header = candidate.ladder()[fit.setting.quantisation].recipe || candidate.row() == nullptr
                              ? work.decode_bytes() - work.kv_bytes
                              : weights.active;  // a format that GGUF does not have
    const double all_on_card = (header + work.kv_bytes) / rate;
    if (fit.mode == Mode::gpu) return 1 / all_on_card;
    if (fit.mode == Mode::moe_offload) {
      // Of the experts that a token uses, the same part is elsewhere as of all experts.
      const double used = weights.active - (weights.all - weights.experts);
      const double elsewhere = weights.experts == 0 ? 0 : used * (1 - used / weights.experts);
      const double ram_rate = machine_.speed.read_bytes * plan::assumed_decode_part;
      return 1 / (all_on_card - elsewhere / rate + elsewhere / ram_rate);
    }
    const double kv_and_margin = static_cast<double>(fit.need.ram) - weights.all;
    const double left = std::max(0.0, static_cast<double>(machine_.vram_bytes) - kv_and_margin);
    const double part = std::min(1.0, left / weights.all);  // of the layers that are on the card
    return 1 / (part * all_on_card + (1 - part) / on_cpu);
  }

  [[nodiscard]] Fit described(Candidate& candidate, Mode mode, const Setting& setting) const {
    Fit fit;
    fit.name = candidate.name();
    fit.title = candidate.title();
    fit.row = candidate.row();
    fit.model = candidate.model();
    const Parts parameters = candidate.parameters();
    fit.parameters = parameters.all;
    fit.active = parameters.active;
    fit.experts = parameters.experts;
    fit.n_ctx_train = candidate.n_ctx_train();
    fit.requested = contexts(candidate).front();
    fit.wanted = requested_.context();
    fit.setting = setting;
    fit.quantisation = candidate.ladder()[setting.quantisation].name;
    fit.penalty = candidate.ladder()[setting.quantisation].penalty;
    fit.worth = candidate.ladder()[setting.quantisation].worth;
    fit.mode = mode;
    fit.need = need(candidate, mode, setting);
    fit.available = available(mode);
    fit.recommended = candidate.recommended_bytes();
    fit.level = level_of(mode, fit.need, fit.available, fit.recommended, setting.n_ctx == fit.requested);
    fit.decode = decode(candidate, fit);
    const bool card =
        mode != Mode::cpu && mode != Mode::streamed && !(machine_.unified && machine_.vram_rate == 0);
    const std::string& ram = machine_.speed.basis;
    fit.basis = !card || mode == Mode::cpu_gpu ? ram : machine_.vram_basis;
    if (mode == Mode::cpu_gpu && machine_.vram_basis == "assumed") fit.basis = machine_.vram_basis;
    add_notes(candidate, fit);
    return fit;
  }

  void add_notes(Candidate& candidate, Fit& fit) const {
    if (fit.level == Level::too_tight) return;
    if (fit.setting.n_ctx != fit.requested)
      fit.notes.push_back(join("context halved from ", fit.requested, " to ", fit.setting.n_ctx, " tokens"));
    if (fit.setting.element != kv::Element::f16)
      fit.notes.push_back(join("keys and values in ", kv::name(fit.setting.element)));
    if (fit.mode == Mode::streamed) {
      const plan::StepReads read = reads(candidate, fit.setting);
      const std::string bytes =
          budget::size_text(static_cast<std::uint64_t>(read.always + read.token_experts));
      fit.notes.push_back(join("some ", bytes, " are read from the disk for each token"));
    }
  }

  const Machine& machine_;
  Request requested_;
};

}  // namespace mica::fit
