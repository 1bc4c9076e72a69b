// SPDX-License-Identifier: Apache-2.0
//
// A model that yields memory: called between two steps, it reads the pressure on memory, and applies the
// decision of a Governor. No token of an answer changes; where nothing is left to yield, it may end early.
// With a MemoryWatch weights are also yielded while a step runs.
//
//   auto model = mica::open(path, {.watch = std::make_shared<mica::MemoryWatch>()});  // a thread
//   GenerateOptions options;
//   mica::Governed governed(model.transformer(), {.session = &session, .watch = model.memory_watch()});
//   options.between_steps = [&] { governed(); };
#pragma once

#include "mica/base/bits.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/size.hpp"
#include "mica/format/concept.hpp"
#include "mica/runtime/governor.hpp"
#include "mica/runtime/memory_watch.hpp"
#include "mica/runtime/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace mica {

/// The other objects that yield, and the log. They outlive the Governed.
template <ResizableModel Model>
struct GovernedOptions {
  GovernorOptions governor = {};      // thresholds without a watch, which has its own
  Session<Model>* session = nullptr;  // its cache frees unused memory, and its context shortens; null: none
  /// Frees memory that can be restored, and returns whether it did: a PrefixCache, IdleSessions.
  std::function<bool()> free_memory = {};
  /// Bytes that all sessions but `session` will take for `tokens` more tokens each. Empty: none.
  std::function<std::uint64_t(std::size_t tokens)> growth = {};
  /// With less than `low` remaining and nothing left to yield: the bytes by which these sessions may still
  /// grow; otherwise Pressure::unlimited. Called after each reading.
  std::function<void(std::uint64_t bytes)> limit_growth = {};
  /// A step is not made shorter than this; at least the sequences of a batch.
  std::size_t min_chunk = 32;
  /// Yields within steps, and reads for this; the model is attached to it, as open() does. Null: memory is
  /// read between steps alone.
  MemoryWatch* watch = nullptr;
  std::string root = {};  // without a watch: stands before /proc and /sys, for tests
  LogSink log = {};       // gets each change as a warning
};

/// One thread, the one that steps.
template <ResizableModel Model>
class Governed {
 public:
  using Clock = std::chrono::steady_clock;  // of readings

  /// The model outlives it, and the capacity of its weights is already set: it never grows beyond that.
  explicit Governed(Model& model, GovernedOptions<Model> options = {})
      : model_(model),
        options_(with_thresholds(std::move(options))),
        tile_bytes_(model.kv_bytes_per_tile()),
        reader_(options_.root),
        governor_(model.weight_capacity(), options_.governor) {}

  /// Between two steps; returns whether something changed. Cost: a reading of the clock; ten times a second a
  /// reading of pressure; reclaimed weights are read here. Each change is one line of the log. Logits after a
  /// long last step may be lost (BasicTransformer::set_chunk).
  bool operator()(Clock::time_point now = Clock::now()) {
    const MemoryWatch::State state = read(now);
    if (!state.pressure) return false;
    std::string done;
    if (state.yielded > 0 || state.loaded_short) {
      const Decision decision = governor_.note_urgent(now);
      done = state.yielded == 0 ? "fewer weights were loaded"
                                : join(budget::size_text(state.yielded), " of weights left memory at once");
      add(done, follow(decision));
    }
    const std::uint64_t own = own_growth();
    // What frees nothing is not waited for.
    for (bool again = !state.halted; again;) {
      const auto decision =
          governor_.decide(*state.pressure, model_.weight_capacity(), now, state.growth, own);
      if (!decision) break;
      refused_ = false;
      const std::string changed = follow(*decision);
      if (refused_) governor_.refuse(*decision);
      again = changed.empty() && decision->to > decision->from;
      if (again) governor_.hurry();
      add(done, changed);
    }
    if (!state.halted) add(done, limit_sessions(state, own));
    if (done.empty()) return false;
    const budget::Pressure& pressure = *state.pressure;
    const auto waited = static_cast<int>(pressure.stalled * 100 + 0.5);
    options_.log(LogLevel::warning,
                 join("governor: ", budget::size_text(pressure.left), " of ",
                      budget::size_text(pressure.limit), " left of ", pressure.authority,
                      waited == 0 ? "" : join(", ", waited, " % of the time waited for memory"), ": ", done));
    return true;
  }

  /// The session will be idle for a while: where memory is short, its keys and values are written to a file,
  /// if their storage has one. Logits need a feed() first then. Returns whether it happened.
  bool rest() {
    return governor_.yield() >= Yield::cold && options_.session != nullptr && options_.session->park();
  }

  /// The yield at this moment.
  [[nodiscard]] Yield yield() const noexcept { return governor_.yield(); }
  /// Whether the watch halted the model: nothing is left to yield, and the limit is near. Steps end with
  /// no_memory.
  [[nodiscard]] bool halted() const noexcept { return options_.watch != nullptr && options_.watch->halted(); }
  /// Replaces GovernedOptions::session; null: none.
  void watch(Session<Model>* session) noexcept { options_.session = session; }

 private:
  [[nodiscard]] static GovernedOptions<Model> with_thresholds(GovernedOptions<Model> options) {
    if (options.watch != nullptr) options.governor = options.watch->thresholds();
    return options;
  }
  /// The reading of the watch, if it is a new one, or one of our own.
  [[nodiscard]] MemoryWatch::State read(Clock::time_point now) {
    if (options_.watch == nullptr) return {.pressure = reader_.poll(now), .others_came = true};
    MemoryWatch::State state = options_.watch->take(model_);
    if (std::exchange(readings_, state.readings) == state.readings && state.yielded == 0 &&
        !state.loaded_short)
      state.pressure.reset();
    return state;
  }
  static void add(std::string& to, const std::string& text) {
    if (!text.empty()) to += join(to.empty() ? "" : ", ", text);
  }
  /// Takes the steps between both yields, one after the other. Returns what changed, for the log.
  [[nodiscard]] std::string follow(const Decision& decision) {
    std::string done;
    const auto passes = [&](Yield yield, Yield low, Yield high) { return low < yield && yield <= high; };
    if (decision.weight_bytes != 0)
      add(done, resize_weights(decision.weight_bytes));  // the largest first, when it is urgent
    const std::size_t max = model_.max_chunk();
    if (passes(Yield::caches, decision.from, decision.to)) add(done, yield_caches());
    if (passes(Yield::chunk, decision.from, decision.to)) {
      add(done, set_chunk(std::min(max, std::max(max / 8, options_.min_chunk))));
    }
    if (passes(Yield::chunk, decision.to, decision.from)) add(done, set_chunk(max));
    return done;
  }

  /// Bytes that sessions will take within GovernorOptions::growth_tokens, or within a step as long as the
  /// last one of the session.
  [[nodiscard]] std::uint64_t own_growth() const {
    const std::size_t tokens = options_.governor.growth_tokens;
    const std::uint64_t bytes = options_.growth ? options_.growth(tokens) : 0;
    if (options_.session == nullptr) return bytes;
    const Session<Model>& session = *options_.session;
    const std::size_t soon = std::min(std::max(tokens, session.chunk_size()), session.remaining());
    return bytes + ceil_div(soon, format::tile_tokens) * tile_bytes_;
  }
  /// Sessions grow no further than memory lasts. Returns the change of the session's context, for the log.
  [[nodiscard]] std::string limit_sessions(const MemoryWatch::State& state, std::uint64_t own) {
    const std::uint64_t bytes =
        state.others_came
            ? governor_.growth_left(*state.pressure, model_.weight_capacity(), state.growth, own)
            : budget::Pressure::unlimited;
    if (options_.limit_growth) options_.limit_growth(bytes);
    if (options_.session == nullptr) return {};
    Session<Model>& session = *options_.session;
    const bool was_limited = session.limited();
    session.limit(bytes == budget::Pressure::unlimited ? model_.n_ctx()
                                                       : session.tokens().size() + tokens_in(bytes));
    if (session.limited() == was_limited) return {};
    return join(was_limited ? "the context has again " : "the context ends at ",
                session.tokens().size() + session.remaining(), " tokens");
  }
  /// Whole tiles of a sequence.
  [[nodiscard]] std::uint64_t tokens_in(std::uint64_t bytes) const noexcept {
    return bytes / std::max<std::uint64_t>(tile_bytes_, 1) * format::tile_tokens;
  }

  /// Empty where caches had no memory to release.
  [[nodiscard]] std::string yield_caches() {
    const std::uint64_t before = reader_.own_bytes();
    bool freed = false;
    if (options_.session != nullptr) options_.session->trim();
    while (options_.free_memory && options_.free_memory()) freed = true;
    return freed || reader_.own_bytes() < before ? "caches release unused memory" : "";
  }
  [[nodiscard]] std::string set_chunk(std::size_t tokens) {
    const std::size_t before = model_.chunk();
    refused_ = !model_.set_chunk(tokens) || refused_;
    return model_.chunk() == before ? std::string()
                                    : join("steps of ", before, " -> ", model_.chunk(), " tokens");
  }
  [[nodiscard]] std::string resize_weights(std::uint64_t bytes) {
    const std::uint64_t before = model_.weight_capacity().resident;
    refused_ = !model_.resize_weights(bytes) || refused_;
    const std::uint64_t after = model_.weight_capacity().resident;
    return after == before
               ? std::string()
               : join("weights in memory ", budget::size_text(before), " -> ", budget::size_text(after));
  }

  Model& model_;
  GovernedOptions<Model> options_;
  std::size_t tile_bytes_;  // of keys and values
  budget::PressureReader reader_;
  Governor governor_;
  bool refused_ = false;        // a part of the decision was applied
  std::uint64_t readings_ = 0;  // of the watch, when it was read last
};

}  // namespace mica
