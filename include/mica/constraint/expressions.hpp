// SPDX-License-Identifier: Apache-2.0
//
// Expressions over bytes, each stored once: regular expressions with intersection and complement, and calls
// of rules, which make them context-free. An expression is used by its derivative: what may follow one more
// byte (Brzozowski 1964; for parts with calls, which have several, Antimirov 1996).
//
//   text "ab" | "ac"      after a: b | c      after ab: empty, which accepts
//
// Not here: what rules contain (rules.hpp) and the stack of their calls (recognizer.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/constraint/byte_set.hpp"
#include "mica/constraint/detail/intern_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mica::constraint {

/// An expression of an Expressions; equal ones of the same object have the same id.
enum class ExprId : std::uint32_t {
  none,   ///< accepts no text
  empty,  ///< accepts the text without bytes
  any,    ///< accepts all texts
};
/// A rule, whose body a Rules object knows.
enum class RuleId : std::uint32_t {};
namespace detail {
class FarCounts;
}

/// A text, and what follows it.
struct Branch {
  std::string text;             // of bytes
  ExprId then = ExprId::empty;  // after the text
};

/// A call at the beginning of an expression, and what follows it.
struct Call {
  RuleId rule;
  ExprId then;
};

/// Holds expressions. Memory grows with the number of different ones, up to a limit: then the functions that
/// return one raise ErrorCode::limit. One thread at a time.
class Expressions {
 public:
  static constexpr std::uint32_t unlimited = 0xFFFF'FFFFU;  // as the maximum of repeat()

  /// max_bytes: of all memory that it holds.
  explicit Expressions(std::size_t max_bytes = std::size_t{64} << 20);

  /// One byte of the set.
  [[nodiscard]] ExprId set(const ByteSet& bytes);
  /// Exactly this text.
  [[nodiscard]] ExprId literal(std::string_view text);
  /// One of the texts, then what follows it. Texts may be equal, or beginnings of others. Cost: a sort.
  [[nodiscard]] ExprId table(std::vector<Branch> branches);
  /// a, then b; all in this order.
  [[nodiscard]] ExprId cat(ExprId a, ExprId b);
  [[nodiscard]] ExprId cat(std::span<const ExprId> parts);
  [[nodiscard]] ExprId cat(std::initializer_list<ExprId> parts) {
    return cat(std::span(parts.begin(), parts.size()));
  }
  /// One of them.
  [[nodiscard]] ExprId alt(std::vector<ExprId> parts);
  [[nodiscard]] ExprId alt(ExprId a, ExprId b) { return alt(std::vector{a, b}); }
  [[nodiscard]] ExprId optional(ExprId a) { return alt(a, ExprId::empty); }
  /// Texts that all of them accept. No part has calls.
  [[nodiscard]] ExprId both(std::vector<ExprId> parts);
  [[nodiscard]] ExprId both(ExprId a, ExprId b) { return both(std::vector{a, b}); }
  /// Texts that it does not accept. It has no calls.
  [[nodiscard]] ExprId complement(ExprId a);
  /// a, [min, max] times.
  [[nodiscard]] ExprId repeat(ExprId a, std::uint32_t min, std::uint32_t max = unlimited);
  [[nodiscard]] ExprId call(RuleId rule);
  /// Decimal digits, perhaps with a '.', whose value is a multiple of `divisor` / 10^`decimals`. Other
  /// properties of a number, such as a digit before the '.', are for an intersection. 0 < divisor < 2^31.
  [[nodiscard]] ExprId multiple_of(std::uint32_t divisor, std::uint32_t decimals);

  /// Whether it accepts the empty text without a call.
  [[nodiscard]] bool nullable(ExprId e) const noexcept { return has(e, nullable_flag); }
  /// Whether a call is somewhere in it, at its beginning; whether a byte may be its first.
  [[nodiscard]] bool has_calls(ExprId e) const noexcept { return has(e, calls_flag); }
  [[nodiscard]] bool begins_with_call(ExprId e) const noexcept { return has(e, head_call_flag); }
  [[nodiscard]] bool begins_with_byte(ExprId e) const noexcept { return has(e, head_byte_flag); }

  /// Bytes at which the derivative may change, in rising order of bytes: in [b, next edge) it is the same.
  [[nodiscard]] const ByteSet& edges(ExprId e);
  /// Adds the expressions that may follow `byte`; calls at the beginning are left to calls(). None of them is
  /// ExprId::none or without a text.
  void derive(ExprId e, std::uint8_t byte, std::vector<ExprId>& out);
  /// The derivative of an expression without calls. May be one that accepts no text, where it has
  /// intersections: accepts_some() tells.
  [[nodiscard]] ExprId derivative(ExprId e, std::uint8_t byte);
  /// Adds the calls at the beginning.
  void calls(ExprId e, std::vector<Call>& out);
  /// Whether an expression without calls accepts a text. With intersections and complements this is a search
  /// over derivatives; its result is kept. Raises ErrorCode::limit for a search over too many.
  [[nodiscard]] bool accepts_some(ExprId e);
  /// Whether an expression without calls accepts exactly this text.
  [[nodiscard]] bool accepts(ExprId e, std::string_view text) {
    for (const char c : text) e = derivative(e, static_cast<std::uint8_t>(c));
    return nullable(e);
  }

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  friend class detail::FarCounts;  // which reads expressions
  enum class Kind : std::uint8_t {
    none,
    empty,
    any,
    set,
    table,
    cat,
    alt,
    both,
    complement,
    repeat,
    call,
    multiple
  };
  static constexpr std::uint8_t nullable_flag = 1, calls_flag = 2, head_call_flag = 4, head_byte_flag = 8;
  static constexpr std::uint8_t logic_flag = 16;  // intersections or complements: may accept nothing
  static constexpr std::uint8_t accepts_none_known = 1, accepts_some_known = 2;
  static constexpr std::uint32_t before_point = 0xFFFF'FFFFU;  // as `max` of Kind::multiple
  static constexpr std::size_t max_search = 50'000;            // expressions in all calls of accepts_some()
  static constexpr std::size_t max_search_parts = 4'000'000;   // that their derivatives are made of: the work
  static constexpr std::size_t max_parts = 20'000;             // of an alternation: the work for one byte

  /// What the numbers are:
  ///   set         a: of sets_
  ///   table       [a, b): of branches_; min: bytes of their texts that are behind
  ///   cat         a, then b
  ///   alt, both   [a, a + b): of lists_, rising
  ///   complement  a
  ///   repeat      a; min, max: times
  ///   call        a: the rule
  ///   multiple    a: divisor; b: remainder; min: decimals; max: digits after the point
  struct Node {
    Kind kind;
    std::uint8_t flags;
    std::uint32_t a, b, min, max;
  };
  struct StoredBranch {
    std::uint32_t begin, size;  // of texts_
    ExprId then;
  };

  [[nodiscard]] static std::uint32_t index(ExprId e) noexcept { return static_cast<std::uint32_t>(e); }
  [[nodiscard]] const Node& node(ExprId e) const noexcept { return nodes_[index(e)]; }
  [[nodiscard]] bool has(ExprId e, std::uint8_t flag) const noexcept { return (node(e).flags & flag) != 0; }
  [[nodiscard]] std::span<const std::uint32_t> list(const Node& n) const noexcept {
    return std::span(lists_).subspan(n.a, n.b);
  }
  ExprId intern(Node n);
  ExprId intern_list(Kind kind, std::uint8_t flags, const std::vector<ExprId>& parts);
  void flatten(Kind kind, std::vector<ExprId>& parts) const;
  void join_sets(std::vector<ExprId>& parts);
  std::uint32_t add(const Node& n);

  [[nodiscard]] ExprId in_table(std::uint32_t begin, std::uint32_t end, std::uint32_t depth);
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> branches_with(const Node& n, std::uint8_t byte) const;
  [[nodiscard]] std::uint8_t byte_at(std::uint32_t branch, std::uint32_t depth) const noexcept {
    return static_cast<std::uint8_t>(texts_[branches_[branch].begin + depth]);
  }
  [[nodiscard]] ExprId remaining(const Node& n, std::uint8_t byte);
  [[nodiscard]] ExprId find_derivative(ExprId e, std::uint8_t byte);
  /// derivative() as work of a search. Raises ErrorCode::limit where searches have worked enough.
  [[nodiscard]] ExprId searched_derivative(ExprId e, std::uint8_t byte);
  [[nodiscard]] ByteSet find_edges(ExprId e);
  [[nodiscard]] bool is_multiple(const Node& n) const noexcept;
  [[nodiscard]] static bool has_no_gaps(const Node& inner, std::uint32_t min, std::uint32_t max);
  [[nodiscard]] ExprId repeat_less(const Node& n);
  void add_part(ExprId e, std::vector<ExprId>& out) {
    if (accepts_some(e)) out.push_back(e);
  }

  std::size_t max_bytes_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> lists_;
  std::vector<ByteSet> sets_;
  std::vector<StoredBranch> branches_;
  std::string texts_;
  detail::InternTable table_;
  std::unordered_map<std::string, ExprId> literals_;
  std::vector<std::uint32_t> edges_;  // of each node: in edge_sets_, 0: not known
  std::vector<ByteSet> edge_sets_ = {{}};
  detail::InternTable edge_table_;
  std::vector<std::uint8_t> known_;  // of each node: accepts_some
  std::size_t searched_ = 0, searched_parts_ = 0;
  std::size_t parts_ = 0;  // of the alternations and intersections of which derivatives were found
  // Derivatives of late, by expression and byte; a new one replaces the one at its place.
  std::vector<std::pair<std::uint64_t, ExprId>> derivatives_ =
      std::vector<std::pair<std::uint64_t, ExprId>>(4096);
};

inline Expressions::Expressions(std::size_t max_bytes) : max_bytes_(max_bytes) {
  intern({Kind::none, 0, 0, 0, 0, 0});
  intern({Kind::empty, nullable_flag, 0, 0, 0, 0});
  intern({Kind::any, static_cast<std::uint8_t>(nullable_flag | head_byte_flag), 0, 0, 0, 0});
}

inline std::size_t Expressions::bytes() const noexcept {
  return nodes_.capacity() * (sizeof(Node) + 9) + lists_.capacity() * 4 +
         (sets_.capacity() + edge_sets_.capacity() * 2) * sizeof(ByteSet) +
         branches_.capacity() * sizeof(StoredBranch) + texts_.capacity() + table_.bytes() +
         literals_.size() * 64;
}

inline std::uint32_t Expressions::add(const Node& n) {
  MICA_CHECK(nodes_.size() % 1024 != 0 || bytes() <= max_bytes_, limit, "a grammar has grown to ", bytes(),
             " bytes of expressions, allowed are ", max_bytes_,
             ": make it smaller, or bound its repetitions");
  nodes_.push_back(n);
  edges_.push_back(0);
  known_.push_back(0);
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

inline ExprId Expressions::intern(Node n) {
  const std::uint64_t hash =
      detail::mix(detail::mix(static_cast<std::uint64_t>(n.kind), std::uint64_t{n.a} << 32 | n.b),
                  std::uint64_t{n.min} << 32 | n.max);
  const auto equal = [&](std::uint32_t id) {
    const Node& other = nodes_[id];
    return other.kind == n.kind && other.a == n.a && other.b == n.b && other.min == n.min &&
           other.max == n.max;
  };
  return static_cast<ExprId>(table_.find_or_add(hash, equal, [&] { return add(n); }));
}

inline ExprId Expressions::intern_list(Kind kind, std::uint8_t flags, const std::vector<ExprId>& parts) {
  std::uint64_t hash = static_cast<std::uint64_t>(kind) + 100;
  for (const ExprId part : parts) hash = detail::mix(hash, index(part));
  const auto equal = [&](std::uint32_t id) {
    if (nodes_[id].kind != kind || nodes_[id].b != parts.size()) return false;
    const auto other = list(nodes_[id]);
    return std::equal(parts.begin(), parts.end(), other.begin(),
                      [](ExprId a, std::uint32_t b) { return index(a) == b; });
  };
  return static_cast<ExprId>(table_.find_or_add(hash, equal, [&] {
    MICA_CHECK(parts.size() <= max_parts, limit, "a pattern has more than ", max_parts,
               " readings of a text: make it smaller, or its nested repetitions fewer");
    const auto begin = static_cast<std::uint32_t>(lists_.size());
    for (const ExprId part : parts) lists_.push_back(index(part));
    return add({kind, flags, begin, static_cast<std::uint32_t>(parts.size()), 0, 0});
  }));
}

inline ExprId Expressions::set(const ByteSet& bytes) {
  if (bytes.empty()) return ExprId::none;
  const auto equal = [&](std::uint32_t id) {
    return nodes_[id].kind == Kind::set && sets_[nodes_[id].a] == bytes;
  };
  return static_cast<ExprId>(table_.find_or_add(detail::hash_of(bytes), equal, [&] {
    sets_.push_back(bytes);
    return add({Kind::set, head_byte_flag, static_cast<std::uint32_t>(sets_.size() - 1), 0, 0, 0});
  }));
}

inline ExprId Expressions::literal(std::string_view text) {
  if (text.empty()) return ExprId::empty;
  if (text.size() == 1) {
    const auto byte = static_cast<std::uint8_t>(text[0]);
    return set(ByteSet(byte, byte));
  }
  const auto known = literals_.find(std::string(text));
  if (known != literals_.end()) return known->second;
  const ExprId made = table({{std::string(text), ExprId::empty}});
  literals_.emplace(text, made);
  return made;
}

inline ExprId Expressions::table(std::vector<Branch> branches) {
  std::erase_if(branches, [](const Branch& branch) { return branch.then == ExprId::none; });
  std::sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
    return std::pair(std::string_view(a.text), a.then) < std::pair(std::string_view(b.text), b.then);
  });
  const auto begin = static_cast<std::uint32_t>(branches_.size());
  for (const Branch& branch : branches) {
    branches_.push_back({static_cast<std::uint32_t>(texts_.size()),
                         static_cast<std::uint32_t>(branch.text.size()), branch.then});
    texts_ += branch.text;
  }
  return in_table(begin, static_cast<std::uint32_t>(branches_.size()), 0);
}

/// The branches [begin, end), after `depth` bytes of their texts. Those that have no more are first.
inline ExprId Expressions::in_table(std::uint32_t begin, std::uint32_t end, std::uint32_t depth) {
  std::vector<ExprId> parts;
  for (; begin < end && branches_[begin].size == depth; ++begin) parts.push_back(branches_[begin].then);
  if (begin < end) {
    std::uint8_t flags = head_byte_flag;
    for (std::uint32_t i = begin; i < end; ++i)
      flags = static_cast<std::uint8_t>(flags | (node(branches_[i].then).flags & (calls_flag | logic_flag)));
    parts.push_back(intern({Kind::table, flags, begin, end, depth, 0}));
  }
  return alt(std::move(parts));
}

inline std::pair<std::uint32_t, std::uint32_t> Expressions::branches_with(const Node& n,
                                                                          std::uint8_t byte) const {
  const auto first = std::partition_point(
      branches_.begin() + n.a, branches_.begin() + n.b,
      [&](const auto& b) { return static_cast<std::uint8_t>(texts_[b.begin + n.min]) < byte; });
  const auto last = std::partition_point(first, branches_.begin() + n.b, [&](const auto& b) {
    return static_cast<std::uint8_t>(texts_[b.begin + n.min]) == byte;
  });
  return {static_cast<std::uint32_t>(first - branches_.begin()),
          static_cast<std::uint32_t>(last - branches_.begin())};
}

inline ExprId Expressions::cat(ExprId a, ExprId b) {
  if (a == ExprId::none || b == ExprId::none) return ExprId::none;
  if (a == ExprId::empty) return b;
  if (b == ExprId::empty) return a;
  if (node(a).kind == Kind::cat) {  // to the right, so that the head is no cat
    std::vector<ExprId> heads;
    for (; node(a).kind == Kind::cat; a = static_cast<ExprId>(node(a).b))
      heads.push_back(static_cast<ExprId>(node(a).a));
    b = cat(a, b);
    for (std::size_t i = heads.size(); i > 0; --i) b = cat(heads[i - 1], b);
    return b;
  }
  const std::uint8_t head = node(a).flags, tail = node(b).flags;
  std::uint8_t flags =
      static_cast<std::uint8_t>((head & tail & nullable_flag) | ((head | tail) & (calls_flag | logic_flag)) |
                                (head & (head_call_flag | head_byte_flag)));
  if ((head & nullable_flag) != 0) flags |= tail & (head_call_flag | head_byte_flag);
  return intern({Kind::cat, flags, index(a), index(b), 0, 0});
}

inline ExprId Expressions::cat(std::span<const ExprId> parts) {
  ExprId out = ExprId::empty;
  for (std::size_t i = parts.size(); i > 0; --i) out = cat(parts[i - 1], out);
  return out;
}

/// Replaces parts of the same kind by their parts; sorts, and removes equal ones.
inline void Expressions::flatten(Kind kind, std::vector<ExprId>& parts) const {
  const std::size_t n = parts.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (node(parts[i]).kind != kind) continue;
    const auto inner = list(node(parts[i]));
    parts[i] = static_cast<ExprId>(inner[0]);
    for (const std::uint32_t part : inner.subspan(1)) parts.push_back(static_cast<ExprId>(part));
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
}

/// Several sets become one.
inline void Expressions::join_sets(std::vector<ExprId>& parts) {
  const auto is_set = [&](ExprId e) { return node(e).kind == Kind::set; };
  if (std::count_if(parts.begin(), parts.end(), is_set) < 2) return;
  ByteSet joined;
  for (const ExprId part : parts) {
    if (is_set(part)) joined |= sets_[node(part).a];
  }
  std::erase_if(parts, is_set);
  parts.push_back(set(joined));
  std::sort(parts.begin(), parts.end());
}

inline ExprId Expressions::alt(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  flatten(Kind::alt, parts);
  join_sets(parts);
  std::erase(parts, ExprId::none);
  if (parts.empty()) return ExprId::none;
  if (std::binary_search(parts.begin(), parts.end(), ExprId::any)) return ExprId::any;
  const auto others_nullable = [&] {
    return std::any_of(parts.begin(), parts.end(),
                       [&](ExprId e) { return e != ExprId::empty && nullable(e); });
  };
  if (parts[0] == ExprId::empty && parts.size() > 1 && others_nullable()) parts.erase(parts.begin());
  if (parts.size() == 1) return parts[0];
  std::uint8_t flags = 0;
  for (const ExprId part : parts) flags |= node(part).flags;
  return intern_list(Kind::alt, flags, parts);
}

inline ExprId Expressions::both(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  flatten(Kind::both, parts);
  std::erase(parts, ExprId::any);
  if (parts.empty()) return ExprId::any;
  if (parts[0] == ExprId::none) return ExprId::none;
  const bool all_nullable = std::all_of(parts.begin(), parts.end(), [&](ExprId e) { return nullable(e); });
  if (parts[0] == ExprId::empty) return all_nullable ? ExprId::empty : ExprId::none;
  if (parts.size() == 1) return parts[0];
  if (parts.size() == 2 && node(parts[0]).kind == Kind::set && node(parts[1]).kind == Kind::set) {
    ByteSet common;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const auto b = static_cast<std::uint8_t>(byte);
      if (sets_[node(parts[0]).a].contains(b) && sets_[node(parts[1]).a].contains(b)) common.insert(b);
    }
    return set(common);
  }
  std::uint8_t flags = logic_flag | head_byte_flag;
  for ([[maybe_unused]] const ExprId part : parts) MICA_ASSERT(!has_calls(part));
  if (all_nullable) flags |= nullable_flag;
  return intern_list(Kind::both, flags, parts);
}

inline ExprId Expressions::complement(ExprId a) {
  MICA_ASSERT(!has_calls(a));
  if (a == ExprId::none) return ExprId::any;
  if (a == ExprId::any) return ExprId::none;
  if (node(a).kind == Kind::complement) return static_cast<ExprId>(node(a).a);
  const std::uint8_t flags = logic_flag | head_byte_flag | (nullable(a) ? 0 : nullable_flag);
  return intern({Kind::complement, flags, index(a), 0, 0, 0});
}

/// Whether [min, max] times a repetition is its expression any number of times between two ends: k times are
/// [k * inner.min, k * inner.max], which must reach those of k + 1 times. If the first do, all do.
inline bool Expressions::has_no_gaps(const Node& inner, std::uint32_t min, std::uint32_t max) {
  if (min == max) return true;
  if (inner.max == unlimited) return min > 0 || inner.min <= 1;
  return std::uint64_t{min} * (inner.max - inner.min) + 1 >= inner.min;
}

inline ExprId Expressions::repeat(ExprId a, std::uint32_t min, std::uint32_t max) {
  MICA_ASSERT(min <= max);
  if (max == 0 || a == ExprId::empty) return ExprId::empty;
  if (a == ExprId::none) return min == 0 ? ExprId::empty : ExprId::none;
  if (a == ExprId::any || (min == 1 && max == 1)) return a;
  if (nullable(a)) min = 0;
  if (min == 0 && max == 1) return optional(a);
  const Node& inner = node(a);
  if (inner.kind == Kind::repeat && inner.min == 0 && inner.max == unlimited) return a;
  if (inner.kind == Kind::repeat && has_no_gaps(inner, min, max)) {
    const std::uint64_t most = std::uint64_t{inner.max} * max, least = std::uint64_t{inner.min} * min;
    const bool open = inner.max == unlimited || max == unlimited;
    if (open ? least < unlimited : most < unlimited)
      return repeat(static_cast<ExprId>(inner.a), static_cast<std::uint32_t>(least),
                    open ? unlimited : static_cast<std::uint32_t>(most));
  }
  std::uint8_t flags = inner.flags;
  if (min == 0) flags |= nullable_flag;
  return intern({Kind::repeat, flags, index(a), 0, min, max});
}

inline ExprId Expressions::call(RuleId rule) {
  return intern({Kind::call, calls_flag | head_call_flag, static_cast<std::uint32_t>(rule), 0, 0, 0});
}

inline ExprId Expressions::multiple_of(std::uint32_t divisor, std::uint32_t decimals) {
  MICA_ASSERT(divisor > 0 && divisor < 1U << 31);
  return intern(
      {Kind::multiple, nullable_flag | head_byte_flag | logic_flag, divisor, 0, decimals, before_point});
}

/// Whether the digits so far are a multiple: missing decimals are zeros.
inline bool Expressions::is_multiple(const Node& n) const noexcept {
  std::uint64_t value = n.b;
  for (std::uint32_t i = n.max == before_point ? 0 : n.max; i < n.min; ++i) value = value * 10 % n.a;
  return value == 0;
}

/// What follows one more byte in a table or a multiple.
inline ExprId Expressions::remaining(const Node& n, std::uint8_t byte) {
  if (n.kind == Kind::table) {
    const auto [first, last] = branches_with(n, byte);
    return first == last ? ExprId::none : in_table(first, last, n.min + 1);
  }
  Node next = n;
  if (byte == '.' && n.max == before_point && n.min > 0) {
    next.max = 0;
  } else if (byte == '.' && n.max == before_point) {  // decimals are zeros
    next.max = 0;
  } else if (byte < '0' || byte > '9') {
    return ExprId::none;
  } else if (n.max != before_point && n.max >= n.min) {
    if (byte != '0') return ExprId::none;
  } else {
    next.b = static_cast<std::uint32_t>((std::uint64_t{n.b} * 10 + (byte - '0')) % n.a);
    if (n.max != before_point) ++next.max;
  }
  next.flags =
      static_cast<std::uint8_t>(head_byte_flag | logic_flag | (is_multiple(next) ? nullable_flag : 0));
  return intern(next);
}

inline ExprId Expressions::repeat_less(const Node& n) {
  return repeat(static_cast<ExprId>(n.a), n.min == 0 ? 0 : n.min - 1,
                n.max == unlimited ? unlimited : n.max - 1);
}

inline ExprId Expressions::derivative(ExprId e, std::uint8_t byte) {
  MICA_ASSERT(!has_calls(e));
  const Kind kind = node(e).kind;
  if (kind < Kind::cat || kind == Kind::multiple) return find_derivative(e, byte);
  const std::uint64_t key = std::uint64_t{index(e)} << 8 | byte;
  const std::size_t at = detail::mix(0, key) % derivatives_.size();
  if (derivatives_[at].first == key) return derivatives_[at].second;
  const ExprId found = find_derivative(e, byte);
  derivatives_[at] = {key, found};
  return found;
}

inline ExprId Expressions::find_derivative(ExprId e, std::uint8_t byte) {
  const Node n = node(e);  // a copy: the vector grows
  switch (n.kind) {
    case Kind::any:
      return ExprId::any;
    case Kind::set:
      return sets_[n.a].contains(byte) ? ExprId::empty : ExprId::none;
    case Kind::table:
    case Kind::multiple:
      return remaining(n, byte);
    case Kind::complement:
      return complement(derivative(static_cast<ExprId>(n.a), byte));
    case Kind::repeat:
      return cat(derivative(static_cast<ExprId>(n.a), byte), repeat_less(n));
    case Kind::cat: {
      std::vector<ExprId> parts;  // a loop over the tail: a long one would need a deep stack
      for (ExprId at = e;; at = static_cast<ExprId>(node(at).b)) {
        if (node(at).kind != Kind::cat) {
          parts.push_back(derivative(at, byte));
          break;
        }
        const auto head = static_cast<ExprId>(node(at).a), tail = static_cast<ExprId>(node(at).b);
        if (has(head, head_byte_flag)) parts.push_back(cat(derivative(head, byte), tail));
        if (!nullable(head)) break;
      }
      return alt(std::move(parts));
    }
    case Kind::alt:
    case Kind::both: {
      std::vector<ExprId> parts;
      parts.reserve(n.b);
      parts_ += n.b;
      for (std::uint32_t i = 0; i < n.b; ++i) {
        parts.push_back(derivative(static_cast<ExprId>(lists_[n.a + i]), byte));
        if (n.kind == Kind::both && parts.back() == ExprId::none) return ExprId::none;
      }
      return n.kind == Kind::alt ? alt(std::move(parts)) : both(std::move(parts));
    }
    default:
      return ExprId::none;
  }
}

inline void Expressions::derive(ExprId e, std::uint8_t byte, std::vector<ExprId>& out) {
  for (;;) {  // over the tail of a cat
    if (!has(e, head_byte_flag)) return;
    if (!has(e, calls_flag)) return add_part(derivative(e, byte), out);
    const Node n = node(e);
    const std::size_t first = out.size();
    switch (n.kind) {
      case Kind::table: {
        const ExprId next = remaining(n, byte);
        if (next != ExprId::none) out.push_back(next);
        return;
      }
      case Kind::repeat:
        derive(static_cast<ExprId>(n.a), byte, out);
        for (std::size_t i = first; i < out.size(); ++i) out[i] = cat(out[i], repeat_less(n));
        return;
      case Kind::alt:
        for (std::uint32_t i = 0; i < n.b; ++i) derive(static_cast<ExprId>(lists_[n.a + i]), byte, out);
        return;
      case Kind::cat:
        derive(static_cast<ExprId>(n.a), byte, out);
        for (std::size_t i = first; i < out.size(); ++i) out[i] = cat(out[i], static_cast<ExprId>(n.b));
        if (!nullable(static_cast<ExprId>(n.a))) return;
        e = static_cast<ExprId>(n.b);
        continue;
      default:
        return;
    }
  }
}

inline void Expressions::calls(ExprId e, std::vector<Call>& out) {
  for (;;) {
    if (!has(e, head_call_flag)) return;
    const Node n = node(e);
    const std::size_t first = out.size();
    switch (n.kind) {
      case Kind::call:
        out.push_back({static_cast<RuleId>(n.a), ExprId::empty});
        return;
      case Kind::repeat:
        calls(static_cast<ExprId>(n.a), out);
        for (std::size_t i = first; i < out.size(); ++i) out[i].then = cat(out[i].then, repeat_less(n));
        return;
      case Kind::alt:
        for (std::uint32_t i = 0; i < n.b; ++i) calls(static_cast<ExprId>(lists_[n.a + i]), out);
        return;
      case Kind::cat:
        calls(static_cast<ExprId>(n.a), out);
        for (std::size_t i = first; i < out.size(); ++i)
          out[i].then = cat(out[i].then, static_cast<ExprId>(n.b));
        if (!nullable(static_cast<ExprId>(n.a))) return;
        e = static_cast<ExprId>(n.b);
        continue;
      default:
        return;
    }
  }
}

inline ByteSet Expressions::find_edges(ExprId e) {
  const Node n = node(e);
  ByteSet out;
  switch (n.kind) {
    case Kind::set:
      return sets_[n.a].edges();
    case Kind::table:
      for (std::uint32_t i = n.a; i < n.b; i = branches_with(n, byte_at(i, n.min)).second)
        out |= ByteSet(byte_at(i, n.min), byte_at(i, n.min)).edges();
      return out;
    case Kind::multiple:
      for (std::uint8_t digit = '0'; digit <= '9' + 1; ++digit) out.insert(digit);
      out |= ByteSet('.', '.').edges();
      return out;
    case Kind::complement:
    case Kind::repeat:
      return edges(static_cast<ExprId>(n.a));
    case Kind::cat:
      for (ExprId at = e;; at = static_cast<ExprId>(node(at).b)) {
        if (node(at).kind != Kind::cat) {
          out |= edges(at);
          return out;
        }
        const auto head = static_cast<ExprId>(node(at).a);
        out |= edges(head);
        if (!nullable(head)) return out;
      }
    case Kind::alt:
    case Kind::both:
      for (std::uint32_t i = 0; i < n.b; ++i) out |= edges(static_cast<ExprId>(lists_[n.a + i]));
      return out;
    default:
      return out;
  }
}

inline const ByteSet& Expressions::edges(ExprId e) {
  if (edges_[index(e)] == 0) {
    const ByteSet found = find_edges(e);
    const auto equal = [&](std::uint32_t i) { return edge_sets_[i] == found; };
    edges_[index(e)] = edge_table_.find_or_add(detail::hash_of(found), equal, [&] {
      edge_sets_.push_back(found);
      return static_cast<std::uint32_t>(edge_sets_.size() - 1);
    });
  }
  return edge_sets_[edges_[index(e)]];
}

inline ExprId Expressions::searched_derivative(ExprId e, std::uint8_t byte) {
  MICA_CHECK(searched_parts_ < max_search_parts, limit, "searches over the parts of ", searched_,
             " expressions, ", max_search_parts,
             " in all, did not tell whether patterns can match: simplify the patterns, or the "
             "combinations of them");
  const std::size_t before = parts_;
  const ExprId found = derivative(e, byte);
  searched_parts_ += parts_ - before;
  return found;
}

inline bool Expressions::accepts_some(ExprId e) {
  if (e == ExprId::none) return false;
  if (!has(e, logic_flag) || nullable(e)) return true;
  if (known_[index(e)] != 0) return known_[index(e)] == accepts_some_known;
  struct Found {
    ExprId e;
    std::size_t from;  // the place of the expression of which it is a derivative
  };
  std::vector<Found> found = {{e, 0}};
  std::vector<std::size_t> open = {0};  // the last one is next: a long text is found soon
  std::unordered_set<std::uint32_t> seen = {index(e)};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    MICA_CHECK(++searched_ < max_search, limit, "searches over ", max_search,
               " expressions did not tell whether patterns can match: simplify the patterns, or the "
               "combinations of them");
    const ByteSet borders = edges(found[at].e);
    const std::size_t first = found.size();
    for (unsigned byte = 0; byte < 256; byte = borders.at_least(byte + 1)) {
      const ExprId next = searched_derivative(found[at].e, static_cast<std::uint8_t>(byte));
      if (next == ExprId::none || known_[index(next)] == accepts_none_known) continue;
      if (!seen.insert(index(next)).second) continue;
      if (!has(next, logic_flag) || nullable(next) || known_[index(next)] == accepts_some_known) {
        for (std::size_t i = at;; i = found[i].from) {
          known_[index(found[i].e)] = accepts_some_known;
          if (i == 0) return true;
        }
      }
      found.push_back({next, at});
    }
    for (std::size_t i = found.size(); i > first; --i) open.push_back(i - 1);
  }
  for (const Found& each : found) known_[index(each.e)] = accepts_none_known;
  return false;
}

}  // namespace mica::constraint
