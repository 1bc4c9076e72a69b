// SPDX-License-Identifier: Apache-2.0
//
// Counts that a token cannot reach. Where 200 more characters may be written, or 40 more words, a short token
// is allowed as if there were no count, and all such places have one mask.
//
//   ([^ ]+ +){0,37}[^ ]+ , at most 211 characters        for 16 bytes:   ([^ ]+ +)*[^ ]+
#pragma once

#include "mica/constraint/expressions.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::constraint::detail {

/// Expressions without far counts, of an Expressions object that outlives it.
class FarCounts {
 public:
  explicit FarCounts(Expressions& expressions) : x_(expressions) {}

  /// An expression with the same texts of n bytes or fewer, and the same beginnings of this size. Expressions
  /// that differ in far counts alone lead to one.
  [[nodiscard]] ExprId without(ExprId e, std::uint32_t n);

 private:
  using Kind = Expressions::Kind;
  static constexpr std::uint32_t unlimited = Expressions::unlimited;
  static constexpr std::size_t max_pairs = 400, max_parts = 64;
  static constexpr std::uint32_t max_rest = 64;

  [[nodiscard]] bool is_plain(ExprId e) const {
    return !x_.has_calls(e) && !x_.has(e, Expressions::logic_flag);
  }
  [[nodiscard]] ExprId find(ExprId e, std::uint32_t n);
  [[nodiscard]] ExprId of_chain(ExprId e, std::uint32_t n);
  [[nodiscard]] ExprId of_repeat(ExprId e, std::uint32_t n);
  [[nodiscard]] ExprId of_both(ExprId e, std::uint32_t n);
  [[nodiscard]] std::uint32_t rest(ExprId e);
  [[nodiscard]] std::uint32_t shortest(ExprId e);
  [[nodiscard]] bool within(ExprId a, ExprId b);

  Expressions& x_;
  std::unordered_map<std::uint64_t, ExprId> found_;  // by expression and n
  std::unordered_map<std::uint64_t, bool> within_;   // by both
  std::unordered_map<ExprId, std::uint32_t> rest_;
  std::vector<std::uint32_t> shortest_;  // of each node, unlimited: not known
};

inline ExprId FarCounts::without(ExprId e, std::uint32_t n) {
  const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(e)} << 32 | n;
  const auto known = found_.find(key);
  if (known != found_.end()) return known->second;
  const ExprId out = find(e, n);
  found_.emplace(key, out);
  found_.emplace(std::uint64_t{static_cast<std::uint32_t>(out)} << 32 | n, out);  // once is enough
  return out;
}

inline ExprId FarCounts::find(ExprId e, std::uint32_t n) {
  const Expressions::Node node = x_.node(e);
  switch (node.kind) {
    case Kind::cat:
      return of_chain(e, n);
    case Kind::repeat:
      return x_.has_calls(e) ? e : of_repeat(e, n);
    case Kind::both:
      return node.b == 2 ? of_both(e, n) : e;
    case Kind::alt: {
      if (node.b > max_parts) return e;
      std::vector<ExprId> parts;
      for (std::uint32_t i = 0; i < node.b; ++i) parts.push_back(static_cast<ExprId>(x_.lists_[node.a + i]));
      for (ExprId& part : parts) part = without(part, n);
      return x_.alt(std::move(parts));
    }
    default:
      return e;
  }
}

/// Parts that follow n bytes or more stay as they are.
inline ExprId FarCounts::of_chain(ExprId e, std::uint32_t n) {
  std::vector<ExprId> heads;
  std::uint32_t left = n;
  while (x_.node(e).kind == Kind::cat && heads.size() < max_parts) {
    const auto head = static_cast<ExprId>(x_.node(e).a);
    if (x_.has_calls(head)) break;
    heads.push_back(without(head, n));
    e = static_cast<ExprId>(x_.node(e).b);
    const std::uint32_t least = shortest(head);
    if (least >= left) break;
    left -= least;
  }
  if (x_.node(e).kind != Kind::cat && !x_.has_calls(e)) e = without(e, n);
  for (std::size_t i = heads.size(); i > 0; --i) e = x_.cat(heads[i - 1], e);
  return e;
}

/// n bytes have fewer than n / shortest + 1 whole repetitions, and begin one more at most.
inline ExprId FarCounts::of_repeat(ExprId e, std::uint32_t n) {
  const Expressions::Node node = x_.node(e);
  const auto inner = static_cast<ExprId>(node.a);
  const std::uint32_t most = n / std::max<std::uint32_t>(1, shortest(inner)) + 1;
  return x_.repeat(without(inner, n), std::min(node.min, most), node.max >= most ? unlimited : node.max);
}

/// One of the two parts, where all its texts are texts of the other one too: it is, if the other one's counts
/// do not matter for n bytes and those that complete them.
inline ExprId FarCounts::of_both(ExprId e, std::uint32_t n) {
  const Expressions::Node node = x_.node(e);
  std::array<ExprId, 2> parts = {static_cast<ExprId>(x_.lists_[node.a]),
                                 static_cast<ExprId>(x_.lists_[node.a + 1])};
  for (int turn = 0; turn < 2; ++turn, std::swap(parts[0], parts[1])) {
    if (!is_plain(parts[0]) || !is_plain(parts[1])) continue;
    const std::uint32_t more = rest(parts[0]);
    if (more > max_rest) continue;
    const ExprId a = without(parts[0], n), b = without(parts[1], n + more);
    if (within(a, b)) return a;
  }
  return e;
}

/// A bound of the bytes that complete a beginning of a text, of each one those of the shortest end.
inline std::uint32_t FarCounts::rest(ExprId e) {
  const auto known = rest_.find(e);
  if (known != rest_.end()) return known->second;
  const Expressions::Node node = x_.node(e);
  const auto a = static_cast<ExprId>(node.a), b = static_cast<ExprId>(node.b);
  std::uint64_t out = 0;
  switch (node.kind) {
    case Kind::set:
      out = 1;
      break;
    case Kind::cat:
      out = std::max<std::uint64_t>(std::uint64_t{rest(a)} + shortest(b), rest(b));
      break;
    case Kind::repeat:
      out = rest(a) + std::uint64_t{node.min} * shortest(a);
      break;
    case Kind::alt:
      for (std::uint32_t i = 0; i < node.b; ++i)
        out = std::max<std::uint64_t>(out, rest(static_cast<ExprId>(x_.lists_[node.a + i])));
      break;
    case Kind::table:
      for (std::uint32_t i = node.a; i < node.b; ++i) {
        const auto branch = x_.branches_[i];
        out = std::max<std::uint64_t>(
            {out, std::uint64_t{branch.size} - node.min + shortest(branch.then), rest(branch.then)});
      }
      break;
    case Kind::empty:
    case Kind::any:
      break;
    default:
      out = unlimited;
  }
  return rest_[e] = static_cast<std::uint32_t>(std::min<std::uint64_t>(out, unlimited));
}

/// Whether it is certain that all texts of a are texts of b, by the pairs of their derivatives.
inline bool FarCounts::within(ExprId a, ExprId b) {
  if (!is_plain(a) || !is_plain(b)) return false;
  const auto key = [](ExprId p, ExprId q) {
    return std::uint64_t{static_cast<std::uint32_t>(p)} << 32 | static_cast<std::uint32_t>(q);
  };
  const auto known = within_.find(key(a, b));
  if (known != within_.end()) return known->second;
  std::vector<std::pair<ExprId, ExprId>> found = {{a, b}};
  bool all = !x_.nullable(a) || x_.nullable(b);
  for (std::size_t i = 0; i < found.size() && all; ++i) {
    const auto [p, q] = found[i];
    ByteSet borders = x_.edges(p);
    borders |= x_.edges(q);
    for (unsigned byte = 0; byte < 256 && all; byte = borders.at_least(byte + 1)) {
      const ExprId next = x_.derivative(p, static_cast<std::uint8_t>(byte));
      if (next == ExprId::none) continue;
      const std::pair pair(next, x_.derivative(q, static_cast<std::uint8_t>(byte)));
      const auto other = within_.find(key(pair.first, pair.second));
      if (other != within_.end() && other->second) continue;
      if (std::find(found.begin(), found.end(), pair) == found.end()) found.push_back(pair);
      all = pair.second != ExprId::none && (!x_.nullable(next) || x_.nullable(pair.second)) &&
            found.size() <= max_pairs;
    }
  }
  if (!all) return within_[key(a, b)] = false;
  for (const auto& [p, q] : found) within_[key(p, q)] = true;
  return true;
}

/// A lower bound of the bytes of an accepted text; of an expression without calls.
inline std::uint32_t FarCounts::shortest(ExprId e) {
  if (x_.nullable(e)) return 0;
  const auto place = [](ExprId at) { return static_cast<std::size_t>(at); };
  shortest_.resize(x_.nodes_.size(), unlimited);
  if (shortest_[place(e)] != unlimited) return shortest_[place(e)];
  const Expressions::Node n = x_.node(e);
  std::uint64_t out = 1;
  switch (n.kind) {
    case Kind::cat:
      out = 0;
      for (ExprId at = e;; at = static_cast<ExprId>(x_.node(at).b)) {
        const bool more = x_.node(at).kind == Kind::cat && shortest_[place(at)] == unlimited;
        out += shortest(more ? static_cast<ExprId>(x_.node(at).a) : at);
        if (!more) break;
      }
      break;
    case Kind::repeat:
      out = std::uint64_t{n.min} * shortest(static_cast<ExprId>(n.a));
      break;
    case Kind::table:
      out = unlimited;
      for (std::uint32_t i = n.a; i < n.b; ++i)
        out = std::min<std::uint64_t>(out, x_.branches_[i].size - n.min + shortest(x_.branches_[i].then));
      break;
    case Kind::alt:
      out = unlimited;
      for (const std::uint32_t part : x_.list(n))
        out = std::min<std::uint64_t>(out, shortest(static_cast<ExprId>(part)));
      break;
    case Kind::both:
      for (const std::uint32_t part : x_.list(n))
        out = std::max<std::uint64_t>(out, shortest(static_cast<ExprId>(part)));
      break;
    default:
      break;
  }
  return shortest_[place(e)] = static_cast<std::uint32_t>(std::min<std::uint64_t>(out, unlimited - 1));
}

}  // namespace mica::constraint::detail
