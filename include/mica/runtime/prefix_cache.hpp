// SPDX-License-Identifier: Apache-2.0
//
// A prefix cache: beginnings of texts with their keys and values, also of sessions that have ended. A new
// session takes over the longest one that its text begins with, in the same memory:
//
//   | system prompt, 1,024 tokens |-- | a question, 48 |-- | its answer and what followed, 320 |
//                                 \-- | another question, 32 |
//
// A node is a cache that shares its pages with the nodes around it, so a token's keys are stored once. When
// memory is needed, the least recently used leaf is removed first. A text is stored to its last token; texts
// that differ share their whole pages of 16 tokens.
#pragma once

#include "mica/runtime/session.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica {

/// For models whose caches share (kv::Paged); with others it stores nothing. The model outlives it. One
/// thread at a time.
template <StepModel Model>
class PrefixCache {
 public:
  /// max: the maximum of nodes, each with a table of n_ctx / 16 addresses beside its pages, and a recurrent
  /// state where the model has one.
  explicit PrefixCache(Model& model, std::size_t max = 256) : model_(&model), max_(max) {}
  PrefixCache(const PrefixCache&) = delete;  // nodes refer to each other
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// Stores the cached tokens of a session, with a copy of the last page if that is not full. The session
  /// continues, or ends. Returns the number of its tokens that are stored now. A session that computed stored
  /// tokens again has them twice: take() first.
  std::size_t keep(const Session<Model>& session);

  /// The number of these tokens, from the first one on, that a session could take.
  [[nodiscard]] std::size_t match(std::span<const TokenId> tokens) const { return whole(walk(tokens)); }
  /// Begins an empty session with the longest stored prefix of these tokens; returns its length, which need
  /// not be fed. Shorter than match() where a window is past it or a recurrent state is not stored there.
  /// Cost: linear in tokens and branches.
  std::size_t take(Session<Model>& session, std::span<const TokenId> tokens) {
    const Walk at = walk(tokens);
    if (at.next != nullptr && at.next->cache && whole(at) > at.node->end()) {
      const std::size_t n = session.adopt(*at.next->cache, tokens.first(whole(at)));
      if (n > at.node->end()) return touch(at.next), n;
      session.rewind(0);
    }
    for (Node* node = at.node; node != nullptr; node = node->parent) {
      if (!node->cache || session.adopt(*node->cache, tokens.first(node->end())) == 0) continue;
      touch(node);
      return session.tokens().size();
    }
    return 0;
  }

  /// Removes the least recently used leaf, and with it the pages without another owner; false: there is none.
  bool drop_one() noexcept {
    auto min = nodes_.end();
    for (auto at = nodes_.begin(); at != nodes_.end(); ++at) {
      if ((*at)->children.empty() && (min == nodes_.end() || (*at)->used < (*min)->used)) min = at;
    }
    if (min == nodes_.end()) return false;
    std::erase((*min)->parent->children, min->get());
    nodes_.erase(min);
    return true;
  }
  /// Removes all nodes; sessions keep the pages that they use.
  void clear() noexcept {
    while (drop_one()) {
    }
  }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }  // nodes
  /// Calls f(tokens, cache) for each stored text that no longer one begins with, the least recently used first,
  /// while it returns true. f may not change the prefix cache. A session takes such a text by
  /// Session::adopt(cache, tokens).
  template <class F>
  void for_each_text(F&& f) const;

 private:
  using Cache = typename Model::Cache;

  /// Some tokens after those of its parent.
  struct Node {
    Node* parent = nullptr;
    std::size_t begin = 0;
    std::vector<TokenId> tokens = {};
    std::optional<Cache> cache = {};  // of all tokens up to end(); none where memory was missing
    std::vector<Node*> children = {};
    std::uint64_t used = 0;

    [[nodiscard]] std::size_t end() const noexcept { return begin + tokens.size(); }
  };
  /// The longest match of a text in the tree.
  struct Walk {
    Node* node;          // the last node of which all tokens match
    Node* next;          // a child of which the first tokens match; null: none
    std::size_t common;  // tokens in all
  };

  [[nodiscard]] Walk walk(std::span<const TokenId> tokens) const {
    Walk at{root_.get(), nullptr, 0};
    while (at.next == nullptr) {
      std::size_t max = 0;
      for (Node* child : at.node->children) {
        const auto rest = tokens.subspan(at.node->end());
        const auto divided =
            std::mismatch(child->tokens.begin(), child->tokens.end(), rest.begin(), rest.end()).first;
        const auto n = static_cast<std::size_t>(divided - child->tokens.begin());
        if (n > max) at.next = child;
        max = std::max(max, n);
      }
      at.common = at.node->end() + max;
      if (max == 0 || max < at.next->tokens.size()) break;
      at.node = std::exchange(at.next, nullptr);
    }
    return at;
  }

  /// Tokens that caches share without copying a page, or end with.
  [[nodiscard]] std::size_t whole(const Walk& walk) const {
    const std::size_t down = walk.common / format::tile_tokens * format::tile_tokens;
    return model_->config().recurrent() ? walk.common : std::max(down, walk.node->end());
  }
  /// Whether all matching tokens can be taken without a change.
  [[nodiscard]] bool known(const Walk& at) const {
    if (at.next == nullptr) return at.node->cache.has_value();
    return at.next->cache && cache_of(*at.next->cache, at.common).has_value();
  }
  /// A cache that begins as another one; none without memory, or where the windows of that are past it.
  [[nodiscard]] std::optional<Cache> cache_of(const Cache& other, std::size_t count) const {
    try {
      Cache cache = model_->make_cache();
      if (cache.adopt(other, count) == count) return cache;
    } catch (const Error&) {  // no memory for a recurrent state
    }
    return std::nullopt;
  }
  Node* add(Node* parent, std::span<const TokenId> tokens, std::optional<Cache> cache) {
    nodes_.push_back(std::make_unique<Node>(
        Node{parent, parent->end(), {tokens.begin(), tokens.end()}, std::move(cache), {}, clock_}));
    parent->children.push_back(nodes_.back().get());
    return nodes_.back().get();
  }
  /// Splits a node, `at` tokens from the beginning of the text; returns the first part.
  Node* split(Node* node, std::size_t at) {
    auto cache = node->cache ? cache_of(*node->cache, at) : std::nullopt;
    const std::size_t first = at - node->begin;
    Node* const before = add(node->parent, std::span(node->tokens).first(first), std::move(cache));
    before->used = node->used;
    before->children.push_back(node);
    std::erase(node->parent->children, node);
    node->parent = before;
    node->begin = at;
    node->tokens.erase(node->tokens.begin(), node->tokens.begin() + static_cast<std::ptrdiff_t>(first));
    return before;
  }

  void touch(Node* node) noexcept {
    ++clock_;
    for (; node != nullptr; node = node->parent) node->used = clock_;
  }

  Model* model_;
  std::size_t max_;
  std::uint64_t clock_ = 0;
  std::unique_ptr<Node> root_ = std::make_unique<Node>();  // no tokens, no cache
  std::vector<std::unique_ptr<Node>> nodes_;               // all others
};

template <StepModel Model>
template <class F>
void PrefixCache<Model>::for_each_text(F&& f) const {
  std::vector<const Node*> leaves;
  for (const auto& node : nodes_) {
    if (node->children.empty() && node->cache) leaves.push_back(node.get());
  }
  std::sort(leaves.begin(), leaves.end(), [](const Node* a, const Node* b) { return a->used < b->used; });
  for (const Node* const leaf : leaves) {
    std::vector<TokenId> tokens(leaf->end());
    for (const Node* node = leaf; node->parent != nullptr; node = node->parent)
      std::copy(node->tokens.begin(), node->tokens.end(),
                tokens.begin() + static_cast<std::ptrdiff_t>(node->begin));
    if (!f(std::span<const TokenId>(tokens), *leaf->cache)) return;
  }
}

template <StepModel Model>
std::size_t PrefixCache<Model>::keep(const Session<Model>& session) {
  const std::size_t end = session.cached();
  const auto tokens = session.tokens().first(end);
  if (end == 0) return 0;
  Walk at = walk(tokens);
  touch(at.next != nullptr ? at.next : at.node);
  if (at.common == end && known(at)) return end;
  auto cache = cache_of(session.cache(), end);
  if (!cache) return whole(at);
  while (nodes_.size() + 2 > std::max<std::size_t>(max_, 2)) {
    static_cast<void>(drop_one());
    at = walk(tokens);  // some of it may be gone
  }
  const std::size_t parts = at.common == end ? end : at.common / format::tile_tokens * format::tile_tokens;
  Node* const parent = at.next != nullptr && parts > at.node->end() ? split(at.next, parts) : at.node;
  if (parent->end() == end) {
    parent->cache = std::move(cache);
  } else {
    touch(add(parent, tokens.subspan(parent->end()), std::move(cache)));
  }
  return end;
}

}  // namespace mica
