// SPDX-License-Identifier: Apache-2.0
//
// The state of a sequence for the blocks of a model: keys and values, and floats of recurrent states. The
// blocks plan it in their order, which determines the place of each.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/block/attention_config.hpp"
#include "mica/ranks/division.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace mica::block {

/// Keys and values that one block stores, and that others may read.
struct KvPlan {
  std::size_t layer = 0;        // of the model, which has the block that stores them
  std::size_t last_reader = 0;  // the last layer that reads them
  std::size_t kv_heads = 0;     // heads of keys, and of values, that this rank has
  std::size_t head_dim = 0;     // numbers of a head
  bool seen_whole = true;       // all blocks that read them see every token
  bool has_window = true;       // none of them sees every token
  std::size_t reach = 0;        // the widest of those that do not
  bool passes = false;          // each step overwrites them: StatePlan::pass_kv()
  ranks::Part divided = {};     // these heads, where each rank has some; all == 0: all ranks have all of them

  /// Tokens at the end that are read; 0: all.
  [[nodiscard]] std::size_t window() const noexcept { return has_window ? reach : 0; }
};

/// The place of a sequence's state for a block.
struct Place {
  std::size_t kv = none;   // the number of the KvPlan that it reads
  std::size_t reader = 0;  // its number among the blocks that read keys and values
  std::size_t floats = 0;  // where its floats begin
};

class StatePlan {
 public:
  // For blocks

  /// The block stores keys and values.
  /// divided: its heads, where each rank has some.
  void store_kv(std::size_t kv_heads, std::size_t head_dim, ranks::Part divided = {}) {
    kv_.push_back({.layer = layer_, .kv_heads = kv_heads, .head_dim = head_dim, .divided = divided});
  }
  /// The block stores keys and values that no later step and no other block reads, and reads them itself: all
  /// such blocks of one shape share a place.
  void pass_kv(std::size_t kv_heads, std::size_t head_dim) {
    place_.kv = 0;
    while (place_.kv < kv_.size() && !(kv_[place_.kv].passes && kv_[place_.kv].kv_heads == kv_heads &&
                                       kv_[place_.kv].head_dim == head_dim)) {
      ++place_.kv;
    }
    if (place_.kv == kv_.size())
      kv_.push_back(
          {.layer = layer_, .kv_heads = kv_heads, .head_dim = head_dim, .has_window = false, .passes = true});
    place_.reader = readers_.size();
    readers_.push_back(place_.kv);
  }
  /// It reads those of a layer; none: those that it stores.
  void read_kv(std::size_t source, Reach reach, std::size_t reach_tokens) {
    const std::size_t wanted = source == none ? layer_ : source;
    std::size_t end = kv_.size();
    while (end != 0 && kv_[end - 1].layer != wanted) --end;
    MICA_CHECK(end != 0, usage, "layer ", layer_, " reads keys and values of layer ", wanted,
               ", which stores none before it");
    KvPlan& found = kv_[end - 1];
    (reach == Reach::all ? found.has_window : found.seen_whole) = false;
    found.reach = std::max(found.reach, reach_tokens);
    found.last_reader = layer_;
    place_.kv = end - 1;
    place_.reader = readers_.size();
    readers_.push_back(place_.kv);
  }
  /// It keeps n floats, zeros at first. copies: it copies them to Step::draft_floats() before drafts; without
  /// that a model has no drafts.
  void keep_floats(std::size_t n, bool copies = false) noexcept {
    floats_ += n;
    copies_ = copies_ && copies;
  }

  // For models

  /// The place of the next block: plan() calls the functions above.
  template <class F>
  Place place(std::size_t layer, F&& plan) {
    layer_ = layer;
    place_ = {.floats = floats_};
    plan(*this);
    return place_;
  }
  /// In the order of the storage.
  [[nodiscard]] const std::vector<KvPlan>& kv() const noexcept { return kv_; }
  /// The number of what each block reads, in their order.
  [[nodiscard]] std::span<const std::size_t> readers() const noexcept {
    return {readers_.data(), readers_.size()};
  }
  [[nodiscard]] std::size_t floats() const noexcept { return floats_; }  // of all blocks that keep some
  [[nodiscard]] bool copies_floats() const noexcept { return copies_; }  // all of these, before drafts

 private:
  std::size_t layer_ = 0;
  Place place_ = {};
  std::vector<KvPlan> kv_ = {};
  std::vector<std::size_t> readers_ = {};
  std::size_t floats_ = 0;
  bool copies_ = true;
};

}  // namespace mica::block
