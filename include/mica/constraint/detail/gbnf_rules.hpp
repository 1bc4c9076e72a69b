// SPDX-License-Identifier: Apache-2.0
//
// The rules of a context-free grammar as trees, and the language that they describe. A rule without recursion
// becomes an expression at each place where it is used, if it is small; other rules are called.
//
//   digits ::= [0-9] digits | [0-9]        an expression: [0-9]* [0-9]
//   value  ::= "[" value "]" | digits      a rule, which calls itself
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/constraint/detail/pattern_reader.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/rules.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::constraint::detail {

/// Collects rules, then makes a language of them.
class GbnfRules {
 public:
  using NodeId = std::uint32_t;
  using RuleIndex = std::uint32_t;
  static constexpr NodeId none = 0, empty = 1;  // no text; the text without bytes

  explicit GbnfRules(std::size_t max_bytes) : expressions_(std::make_unique<Expressions>(max_bytes)) {
    expression(ExprId::none);
    expression(ExprId::empty);
  }

  [[nodiscard]] Expressions& expressions() noexcept { return *expressions_; }
  NodeId expression(ExprId e) { return add({.kind = Kind::expression, .e = e}); }
  NodeId literal(std::string text) {
    return text.empty() ? empty : add({.kind = Kind::literal, .text = std::move(text)});
  }
  NodeId reference(RuleIndex rule) { return add({.kind = Kind::reference, .rule = rule}); }
  NodeId cat(std::vector<NodeId> parts);
  NodeId alt(std::vector<NodeId> parts);
  NodeId repeat(NodeId part, std::uint32_t min, std::uint32_t max);
  /// A new rule, whose body follows.
  RuleIndex declare(std::string name) {
    rules_.push_back({.name = std::move(name)});
    return static_cast<RuleIndex>(rules_.size() - 1);
  }
  void define(RuleIndex rule, NodeId body) { rules_[rule].body = body; }

  /// The texts of a rule; called once. Raises ErrorCode::usage if it has none, ErrorCode::unsupported for
  /// rules that begin with each other, and ErrorCode::limit.
  [[nodiscard]] Language language(RuleIndex root);

 private:
  static constexpr std::uint32_t max_size = 500, max_depth = 64;  // of a rule that is not called
  static constexpr std::uint32_t max_expanded = 200'000;          // nodes of all that are not called

  enum class Kind : std::uint8_t { expression, literal, reference, cat, alt, repeat };
  struct Node {
    Kind kind;
    ExprId e = ExprId::none;
    RuleIndex rule = 0;
    std::uint32_t min = 0, max = 0;  // times
    std::vector<NodeId> parts = {};
    std::string text = {};
  };
  /// An expression, with the nodes and the nesting of its tree.
  struct Made {
    ExprId e;
    std::uint32_t size = 1, depth = 0;
  };
  struct Rule {
    std::string name;
    NodeId body = none;
    bool made = false, called = false;
    Made expression = {ExprId::none};
  };
  struct Split {
    NodeId recursive, other;
  };
  enum class Property : std::uint8_t { ends, nullable };  // accepts a text; accepts the one without bytes

  NodeId add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  [[nodiscard]] Split split(NodeId node, RuleIndex rule, bool left);
  void resolve_recursion(RuleIndex rule);
  [[nodiscard]] std::vector<bool> holds(Property property) const;
  void add_first_rules(NodeId node, std::vector<RuleIndex>& out) const;
  void add_rules(NodeId node, std::vector<RuleIndex>& out) const;
  template <class Next, class Back, class Done>
  void visit(std::span<const RuleIndex> roots, Next&& next, Back&& back, Done&& done) const;
  void refuse_left_recursion(std::span<const RuleIndex> rules) const;
  [[nodiscard]] Made make(NodeId node);
  [[nodiscard]] Made make_reference(RuleIndex rule);
  [[nodiscard]] Made make_alt(NodeId node);

  std::unique_ptr<Expressions> expressions_;
  std::vector<Node> nodes_;
  std::vector<Rule> rules_;
  std::vector<bool> ends_, nullable_;  // of each node
  std::uint32_t expanded_ = 0;
};

inline GbnfRules::NodeId GbnfRules::cat(std::vector<NodeId> parts) {
  std::erase(parts, empty);
  if (parts.empty()) return empty;
  return parts.size() == 1 ? parts[0] : add({.kind = Kind::cat, .parts = std::move(parts)});
}

inline GbnfRules::NodeId GbnfRules::alt(std::vector<NodeId> parts) {
  std::erase(parts, none);
  if (parts.empty()) return none;
  return parts.size() == 1 ? parts[0] : add({.kind = Kind::alt, .parts = std::move(parts)});
}

inline GbnfRules::NodeId GbnfRules::repeat(NodeId part, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || part == empty || (part == none && min == 0)) return empty;
  if (part == none || (min == 1 && max == 1)) return part;
  return add({.kind = Kind::repeat, .min = min, .max = max, .parts = {part}});
}

/// A node as "the rule, then `recursive`, or else `other`"; from the right: "`recursive`, then the rule".
inline GbnfRules::Split GbnfRules::split(NodeId node, RuleIndex rule, bool left) {
  const Node n = nodes_[node];  // a copy: the vector grows
  if (n.kind == Kind::reference && n.rule == rule) return {empty, none};
  if (n.kind == Kind::repeat && n.min == 0 && n.max == 1) {
    const Split inner = split(n.parts[0], rule, left);
    if (inner.recursive != none) return {inner.recursive, alt({inner.other, empty})};
  } else if (n.kind == Kind::cat) {
    const std::size_t at = left ? 0 : n.parts.size() - 1;
    const Split inner = split(n.parts[at], rule, left);
    if (inner.recursive == none) return {none, node};
    std::vector<NodeId> recursive = n.parts, other = n.parts;
    recursive[at] = inner.recursive;
    other[at] = inner.other;
    return {cat(std::move(recursive)), inner.other == none ? none : cat(std::move(other))};
  } else if (n.kind == Kind::alt) {
    std::vector<NodeId> recursive, other;
    for (const NodeId part : n.parts) {
      const Split inner = split(part, rule, left);
      recursive.push_back(inner.recursive);
      other.push_back(inner.other);
    }
    const NodeId joined = alt(std::move(recursive));
    if (joined != none) return {joined, alt(std::move(other))};
  }
  return {none, node};
}

/// a ::= a x | y is y x*, and a ::= x a | y is x* y.
inline void GbnfRules::resolve_recursion(RuleIndex rule) {
  for (const bool left : {true, false}) {
    const auto [recursive, other] = split(rules_[rule].body, rule, left);
    if (recursive == none) continue;
    const NodeId repeated = repeat(recursive, 0, Expressions::unlimited);
    rules_[rule].body = other == none ? none : left ? cat({other, repeated}) : cat({repeated, other});
  }
}

/// The nodes that have a property: the smallest set in which each one has it for a reason.
inline std::vector<bool> GbnfRules::holds(Property property) const {
  std::vector<std::vector<NodeId>> users(nodes_.size());
  std::vector<std::size_t> missing(nodes_.size(), 1);  // parts that must have it and do not yet
  std::vector<bool> out(nodes_.size());
  std::vector<NodeId> open;
  const auto add_node = [&](NodeId node) {
    if (!out[node]) open.push_back(node);
    out[node] = true;
  };
  for (NodeId i = 0; i < nodes_.size(); ++i) {
    const Node& n = nodes_[i];
    if (n.kind == Kind::reference) users[rules_[n.rule].body].push_back(i);
    if (n.kind == Kind::cat) missing[i] = n.parts.size();
    for (const NodeId part : n.parts) users[part].push_back(i);
    const bool ends = property == Property::ends;
    if ((n.kind == Kind::literal && ends) || (n.kind == Kind::repeat && n.min == 0) ||
        (n.kind == Kind::expression && (ends ? n.e != ExprId::none : expressions_->nullable(n.e))))
      add_node(i);
  }
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const NodeId user : users[node]) {
      if (missing[user] > 0 && --missing[user] == 0) add_node(user);
    }
  }
  return out;
}

/// Adds the rules that a text of the node may begin with.
inline void GbnfRules::add_first_rules(NodeId node, std::vector<RuleIndex>& out) const {
  const Node& n = nodes_[node];
  if (!ends_[node]) return;
  if (n.kind == Kind::reference) out.push_back(n.rule);
  for (const NodeId part : n.parts) {
    add_first_rules(part, out);
    if (n.kind == Kind::cat && !nullable_[part]) break;
  }
}

/// Adds all rules of the node.
inline void GbnfRules::add_rules(NodeId node, std::vector<RuleIndex>& out) const {
  const Node& n = nodes_[node];
  if (!ends_[node]) return;
  if (n.kind == Kind::reference) out.push_back(n.rule);
  for (const NodeId part : n.parts) add_rules(part, out);
}

/// Visits rules and those that next() adds for each. Calls done(rule) after all that the rule needs, and
/// back(path, rule) where the last rule of the path needs one that is in the path. A path may be too long for
/// recursion.
template <class Next, class Back, class Done>
void GbnfRules::visit(std::span<const RuleIndex> roots, Next&& next, Back&& back, Done&& done) const {
  struct Open {
    RuleIndex rule;
    std::vector<RuleIndex> targets;
  };
  enum class Progress : std::uint8_t { unseen, open, finished };
  std::vector<Progress> progress(rules_.size());
  std::vector<Open> path;
  const auto enter = [&](RuleIndex rule) {
    progress[rule] = Progress::open;
    path.push_back({rule, {}});
    next(rules_[rule].body, path.back().targets);
  };
  for (const RuleIndex root : roots) {
    if (progress[root] == Progress::unseen) enter(root);
    while (!path.empty()) {
      const RuleIndex rule = path.back().rule;
      if (path.back().targets.empty()) {
        progress[rule] = Progress::finished;
        path.pop_back();
        done(rule);
        continue;
      }
      const RuleIndex target = path.back().targets.back();
      path.back().targets.pop_back();
      if (progress[target] == Progress::unseen)
        enter(target);
      else if (progress[target] == Progress::open)
        back(path, target);
    }
  }
}

inline void GbnfRules::refuse_left_recursion(std::span<const RuleIndex> rules) const {
  const auto refuse = [&](const auto& path, RuleIndex target) {
    std::string names;
    std::size_t at = path.size() - 1;
    while (path[at].rule != target) --at;
    for (; at < path.size(); ++at) names += shown(rules_[path[at].rule].name) + " -> ";
    raise(
        ErrorCode::unsupported, "the grammar has rules that may begin with each other: ", names,
        shown(rules_[target].name),
        "; only a rule that begins with itself alone, as in a ::= a x | y, is supported: write a repetition");
  };
  visit(
      rules, [&](NodeId body, auto& out) { add_first_rules(body, out); }, refuse, [](RuleIndex) {});
}

inline Language GbnfRules::language(RuleIndex root) {
  for (RuleIndex rule = 0; rule < rules_.size(); ++rule) resolve_recursion(rule);
  ends_ = holds(Property::ends);
  MICA_CHECK(ends_[rules_[root].body], usage, "the rule '", shown(rules_[root].name),
             "' of the grammar accepts no text: all its alternatives need themselves; add one that ends");
  nullable_ = holds(Property::nullable);
  std::vector<RuleIndex> order;  // of the rules that texts need, each after those that it needs
  visit(
      std::span(&root, 1), [&](NodeId body, auto& out) { add_rules(body, out); },
      [](const auto&, RuleIndex) {}, [&](RuleIndex rule) { order.push_back(rule); });
  refuse_left_recursion(std::vector(order.rbegin(), order.rend()));
  for (const RuleIndex rule : order) {
    rules_[rule].expression = make(rules_[rule].body);
    rules_[rule].made = true;
  }
  const ExprId start =
      rules_[root].called ? expressions_->call(static_cast<RuleId>(root)) : rules_[root].expression.e;
  std::vector<ExprId> bodies;
  for (const Rule& rule : rules_) bodies.push_back(rule.called ? rule.expression.e : ExprId::none);
  return {std::move(expressions_), std::make_unique<FixedRules>(std::move(bodies)), start};
}

inline GbnfRules::Made GbnfRules::make_reference(RuleIndex rule) {
  Rule& r = rules_[rule];
  if (!ends_[r.body]) return {ExprId::none};
  const Made& made = r.expression;
  if (r.made && !r.called && made.size <= max_size && made.depth <= max_depth && expanded_ < max_expanded) {
    expanded_ += made.size;
    return made;
  }
  r.called = true;
  return {expressions_->call(static_cast<RuleId>(rule))};
}

/// The expression of a node whose rules are made, or are called.
inline GbnfRules::Made GbnfRules::make(NodeId node) {
  const Node& n = nodes_[node];
  if (n.kind == Kind::expression) return {n.e};
  if (n.kind == Kind::literal) return {expressions_->literal(n.text)};
  if (n.kind == Kind::reference) return make_reference(n.rule);
  if (n.kind == Kind::alt) return make_alt(node);
  Made out{ExprId::empty};
  for (std::size_t i = n.parts.size(); i > 0; --i) {
    const Made part = make(n.parts[i - 1]);
    out = {expressions_->cat(part.e, out.e), std::min(out.size + part.size, max_size + 1),
           std::max(out.depth, part.depth + 1)};
  }
  if (n.kind == Kind::repeat) out.e = expressions_->repeat(out.e, nullable_[n.parts[0]] ? 0 : n.min, n.max);
  return out;
}

/// Texts are one table, other alternatives are beside it.
inline GbnfRules::Made GbnfRules::make_alt(NodeId node) {
  std::vector<ExprId> parts;
  std::vector<Branch> texts;
  Made out{ExprId::none};
  for (const NodeId part : nodes_[node].parts) {
    if (nodes_[part].kind == Kind::literal && nodes_[part].text.size() > 1) {
      texts.push_back({nodes_[part].text});
      continue;
    }
    const Made made = make(part);
    parts.push_back(made.e);
    out.size = std::min(out.size + made.size, max_size + 1);
    out.depth = std::max(out.depth, made.depth + 1);
  }
  if (!texts.empty()) parts.push_back(expressions_->table(std::move(texts)));
  out.e = expressions_->alt(std::move(parts));
  return out;
}

}  // namespace mica::constraint::detail
