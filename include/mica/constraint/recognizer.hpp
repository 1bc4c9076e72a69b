// SPDX-License-Identifier: Apache-2.0
//
// Reads a text byte by byte and knows after each one whether the text can still become one of the language,
// and whether it is one. A state is a set of items; each item is an expression of what may follow, and the
// stack of the calls that wait for it. Stacks share their lower parts, and states are kept, so that a byte
// that was read before costs two loads.
//
//   state 7   { "," item* "]" , stack 3 }  { "]" , stack 3 }
//   stack 3   what follows the array: { "}" , stack 1 }
//
// The method is that of a general parser (Tomita 1985) that builds no tree; memory is linear in the number of
// different states, depth is not limited by the stack of the thread.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/constraint/detail/intern_table.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/rules.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::constraint {

/// A state of a Recognizer.
enum class StateId : std::uint32_t {
  dead,  ///< no text of the language begins like this
};

/// Limits on the work and the memory of a grammar. A text that would pass one ends with ErrorCode::limit.
struct Limits {
  std::size_t max_bytes = std::size_t{64} << 20;  // of expressions, rules, states and masks together
  std::size_t max_items = 20'000;                 // of one state: readings of the same text
  std::size_t max_new_states = 200'000;           // for one mask: the work of a step
};

/// The states of a language. Keeps a reference to the language; one thread at a time.
class Recognizer {
 public:
  /// Raises as Rules::body() does, and ErrorCode::limit.
  explicit Recognizer(Language& language, const Limits& limits = {});
  Recognizer(const Recognizer&) = delete;  // refers to the language
  Recognizer& operator=(const Recognizer&) = delete;

  [[nodiscard]] StateId start() const noexcept { return start_; }
  /// After one more byte. Raises ErrorCode::limit when a new state passes a limit.
  [[nodiscard]] StateId step(StateId state, std::uint8_t byte) {
    const State& s = states_[index(state)];
    const std::uint32_t next = targets_[s.targets + classes_[s.classes].of[byte]];
    return next != unknown ? static_cast<StateId>(next) : compute(state, byte);
  }
  /// The next byte after this one that may lead elsewhere, or 256: all bytes between lead where it does.
  [[nodiscard]] unsigned next_edge(StateId state, unsigned byte) const noexcept {
    return class_edges_[states_[index(state)].classes].at_least(byte + 1);
  }
  /// The state of other expressions: f(e) in place of each. They accept the empty text, and begin with the same
  /// calls, where these do.
  template <class F>
  [[nodiscard]] StateId mapped(StateId state, F&& f) {
    const State s = states_[index(state)];
    std::vector<Item> open(items_.begin() + s.items, items_.begin() + s.items + s.n_items);
    bool changed = false;
    for (Item& item : open) changed = std::exchange(item.e, f(item.e)) != item.e || changed;
    if (!changed) return state;
    sort(open);
    return intern_state(open, s.accepts);
  }
  /// Whether the text is one of the language.
  [[nodiscard]] bool accepts(StateId state) const noexcept { return states_[index(state)].accepts; }
  /// The byte that every longer text has next; nothing where there are several, or none.
  struct OneByte {
    bool found = false;
    std::uint8_t byte = 0;
  };
  [[nodiscard]] OneByte only_byte(StateId state);
  /// Whether a byte can follow.
  [[nodiscard]] bool can_continue(StateId state) const noexcept { return states_[index(state)].n_items > 0; }

  [[nodiscard]] std::size_t size() const noexcept { return states_.size(); }  // states
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  using StackId = std::uint32_t;
  static constexpr StackId bottom = 0;
  static constexpr std::uint32_t unknown = 0xFFFF'FFFFU;

  struct Item {
    ExprId e;
    StackId stack;  // where it returns to
    friend auto operator<=>(const Item&, const Item&) = default;
  };
  struct State {
    std::uint32_t items, n_items;  // of items_
    std::uint32_t classes;         // of classes_
    std::uint32_t targets;         // of targets_: one for each class
    bool accepts;
  };
  struct Stack {
    std::uint32_t returns, n_returns;  // of items_: what follows the call, and the stack then
  };
  struct Classes {  // of bytes that have the same next state
    std::array<std::uint8_t, 256> of;
    std::uint32_t count;
  };

  [[nodiscard]] static std::uint32_t index(StateId state) noexcept {
    return static_cast<std::uint32_t>(state);
  }
  [[nodiscard]] StateId compute(StateId state, std::uint8_t byte);
  [[nodiscard]] StateId close(std::vector<Item>& kernel);
  void enter_calls();
  [[nodiscard]] StateId intern_state(std::vector<Item>& items, bool accepts);
  [[nodiscard]] StackId intern_stack(std::vector<Item>& returns);
  [[nodiscard]] std::uint32_t intern_classes(const ByteSet& edges);
  [[nodiscard]] ExprId body(RuleId rule);
  [[nodiscard]] std::span<const Item> items(std::uint32_t begin, std::uint32_t n) const noexcept {
    return std::span(items_).subspan(begin, n);
  }
  [[nodiscard]] static std::uint64_t hash(std::span<const Item> items, std::uint64_t seed) noexcept;
  [[nodiscard]] static bool same(std::span<const Item> a, std::span<const Item> b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  static void sort(std::vector<Item>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  }

  Language& language_;
  Expressions& expressions_;
  Limits limits_;
  std::vector<Item> items_;
  std::vector<State> states_;
  std::vector<Stack> stacks_;
  std::vector<Classes> classes_;
  std::vector<std::uint32_t> targets_;
  detail::InternTable state_table_, stack_table_, kernel_table_, class_table_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> kernels_;  // of items_: begin, size
  std::vector<StateId> kernel_states_;
  std::vector<ByteSet> class_edges_;
  std::unordered_map<RuleId, ExprId> bodies_;
  StateId start_ = StateId::dead;

  // Of one call of close(), kept for their memory.
  struct Waiting {
    RuleId rule;
    Item then;
  };
  std::vector<Item> round_, next_round_, open_;
  std::vector<Waiting> waiting_;
  std::vector<ExprId> parts_;
  std::vector<Call> calls_;
};

inline Recognizer::Recognizer(Language& language, const Limits& limits)
    : language_(language), expressions_(*language.expressions), limits_(limits) {
  stacks_.push_back({0, 0});  // the bottom
  std::vector<Item> nothing;
  static_cast<void>(intern_state(nothing, false));  // StateId::dead
  std::vector<Item> kernel;
  if (language.start != ExprId::none) kernel.push_back({language.start, bottom});
  start_ = close(kernel);
}

inline std::size_t Recognizer::bytes() const noexcept {
  return expressions_.bytes() + language_.rules->bytes() + items_.capacity() * sizeof(Item) +
         states_.capacity() * sizeof(State) + stacks_.capacity() * sizeof(Stack) +
         classes_.capacity() * sizeof(Classes) + targets_.capacity() * 4 + state_table_.bytes() +
         stack_table_.bytes() + kernel_table_.bytes() + kernels_.capacity() * 12 + bodies_.size() * 32;
}

inline std::uint64_t Recognizer::hash(std::span<const Item> items, std::uint64_t seed) noexcept {
  for (const Item& item : items)
    seed = detail::mix(seed, std::uint64_t{static_cast<std::uint32_t>(item.e)} << 32 | item.stack);
  return seed;
}

inline ExprId Recognizer::body(RuleId rule) {
  const auto known = bodies_.find(rule);
  if (known != bodies_.end()) return known->second;
  const ExprId made = language_.rules->body(rule, expressions_);
  bodies_.emplace(rule, made);
  return made;
}

inline StateId Recognizer::compute(StateId state, std::uint8_t byte) {
  const State s = states_[index(state)];
  std::vector<Item> kernel;
  for (std::uint32_t i = 0; i < s.n_items; ++i) {
    const Item item = items_[s.items + i];
    parts_.clear();
    expressions_.derive(item.e, byte, parts_);
    for (const ExprId part : parts_) kernel.push_back({part, item.stack});
  }
  const StateId next = close(kernel);
  targets_[s.targets + classes_[s.classes].of[byte]] = index(next);
  return next;
}

/// The state of these items and of all that they reach without a byte: returns from rules that may end here,
/// and bodies of rules that may be called here.
inline StateId Recognizer::close(std::vector<Item>& kernel) {
  if (kernel.empty()) return StateId::dead;
  sort(kernel);
  const auto equal = [&](std::uint32_t id) {
    return same(items(kernels_[id].first, kernels_[id].second), kernel);
  };
  bool added = false;
  const std::uint32_t id = kernel_table_.find_or_add(hash(kernel, 1), equal, [&] {
    added = true;
    kernels_.emplace_back(static_cast<std::uint32_t>(items_.size()),
                          static_cast<std::uint32_t>(kernel.size()));
    items_.insert(items_.end(), kernel.begin(), kernel.end());
    kernel_states_.push_back(StateId::dead);
    return static_cast<std::uint32_t>(kernels_.size() - 1);
  });
  if (!added) return kernel_states_[id];
  bool accepts = false;
  open_.clear();
  round_ = kernel;
  std::vector<Item> seen;  // of all rounds, sorted
  while (!round_.empty()) {
    waiting_.clear();
    next_round_.clear();
    for (const Item item : round_) {
      if (expressions_.begins_with_byte(item.e)) open_.push_back(item);
      if (expressions_.nullable(item.e)) {
        if (item.stack == bottom) accepts = true;
        const Stack stack = stacks_[item.stack];
        for (const Item& then : items(stack.returns, stack.n_returns)) next_round_.push_back(then);
      }
      if (!expressions_.begins_with_call(item.e)) continue;
      calls_.clear();
      expressions_.calls(item.e, calls_);
      for (const Call& call : calls_) waiting_.push_back({call.rule, {call.then, item.stack}});
    }
    enter_calls();
    const std::size_t middle = seen.size();
    seen.insert(seen.end(), round_.begin(), round_.end());
    std::inplace_merge(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(middle), seen.end());
    MICA_CHECK(seen.size() <= limits_.max_items, limit, "a text has more than ", limits_.max_items,
               " readings in this grammar: a rule calls itself before any byte, or the grammar is ambiguous");
    sort(next_round_);
    round_.clear();
    std::set_difference(next_round_.begin(), next_round_.end(), seen.begin(), seen.end(),
                        std::back_inserter(round_));
  }
  sort(open_);
  return kernel_states_[id] = intern_state(open_, accepts);
}

/// Adds the bodies of the called rules to the next round. Calls of one rule share a stack.
inline void Recognizer::enter_calls() {
  std::sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return std::pair(a.rule, a.then) < std::pair(b.rule, b.then);
  });
  std::vector<Item> returns;
  for (std::size_t i = 0, end = 0; i < waiting_.size(); i = end) {
    const RuleId rule = waiting_[i].rule;
    const ExprId entered = body(rule);
    returns.clear();
    for (end = i; end < waiting_.size() && waiting_[end].rule == rule; ++end) {
      const Item& then = waiting_[end].then;
      if (then.e == ExprId::empty) {  // nothing follows the call: no stack is needed
        next_round_.push_back({entered, then.stack});
      } else {
        returns.push_back(then);
      }
    }
    if (!returns.empty()) next_round_.push_back({entered, intern_stack(returns)});
  }
}

inline Recognizer::StackId Recognizer::intern_stack(std::vector<Item>& returns) {
  sort(returns);
  const auto equal = [&](std::uint32_t id) {
    return same(items(stacks_[id].returns, stacks_[id].n_returns), returns);
  };
  return stack_table_.find_or_add(hash(returns, 2), equal, [&] {
    stacks_.push_back(
        {static_cast<std::uint32_t>(items_.size()), static_cast<std::uint32_t>(returns.size())});
    items_.insert(items_.end(), returns.begin(), returns.end());
    return static_cast<std::uint32_t>(stacks_.size() - 1);
  });
}

inline StateId Recognizer::intern_state(std::vector<Item>& open, bool accepts) {
  const auto equal = [&](std::uint32_t id) {
    const State& s = states_[id];
    return s.accepts == accepts && same(items(s.items, s.n_items), open);
  };
  return static_cast<StateId>(state_table_.find_or_add(hash(open, accepts ? 4 : 3), equal, [&] {
    MICA_CHECK(states_.size() % 256 != 0 || bytes() <= limits_.max_bytes, limit, "a grammar has grown to ",
               bytes(), " bytes, allowed are ", limits_.max_bytes,
               ": its text counts too far, or has too many readings");
    ByteSet edges;
    for (const Item& item : open) edges |= expressions_.edges(item.e);
    State s = {static_cast<std::uint32_t>(items_.size()), static_cast<std::uint32_t>(open.size()),
               intern_classes(edges), static_cast<std::uint32_t>(targets_.size()), accepts};
    items_.insert(items_.end(), open.begin(), open.end());
    targets_.resize(targets_.size() + classes_[s.classes].count, open.empty() ? 0 : unknown);
    states_.push_back(s);
    return static_cast<std::uint32_t>(states_.size() - 1);
  }));
}

inline std::uint32_t Recognizer::intern_classes(const ByteSet& edges) {
  const auto equal = [&](std::uint32_t id) { return class_edges_[id] == edges; };
  return class_table_.find_or_add(detail::hash_of(edges), equal, [&] {
    Classes classes{};
    std::uint32_t current = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (byte > 0 && edges.contains(static_cast<std::uint8_t>(byte))) ++current;
      classes.of[byte] = static_cast<std::uint8_t>(current);
    }
    classes.count = current + 1;
    classes_.push_back(classes);
    class_edges_.push_back(edges);
    return static_cast<std::uint32_t>(classes_.size() - 1);
  });
}

inline Recognizer::OneByte Recognizer::only_byte(StateId state) {
  OneByte out;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (step(state, static_cast<std::uint8_t>(byte)) == StateId::dead) continue;
    if (out.found) return {};
    out = {true, static_cast<std::uint8_t>(byte)};
  }
  return out;
}

}  // namespace mica::constraint
