// SPDX-License-Identifier: Apache-2.0
//
// Weights of which a part stays in memory, packed, and the rest passes through a ring, layer by layer, read while the layer before
// is computed with. A model may be many times larger than memory: it then runs at the speed of the disk. What was read
// leaves memory with its layer, and never was in the page cache.
//
//   step      | embedding | layer 0 | layer 1 | layer 2 | ... | head |
//             | rows      | stays   | read    | stays   |     | read |
//
// Rows of the embedding are mapped: the system reads what is touched. Experts are read when a token chooses them, and stay while there
// is room (expert_cache.hpp). Of a packed directory also what passes is packed, and each group's checksums are looked at when it comes first.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/map.hpp"
#include "mica/paging/checked.hpp"
#include "mica/paging/concept.hpp"
#include "mica/paging/expert_cache.hpp"
#include "mica/paging/read_ring.hpp"
#include "mica/paging/residency.hpp"
#include "mica/paging/resident.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace mica::paging {

template <mica::Allocator A = alloc::Huge, class Layout = tensor::Rows16>
class Streamed {
 public:
  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Streamed<B, Layout>;
  static constexpr std::string_view name = "streamed";
  static constexpr bool packs = Resident<A, Layout>::packs;

  Streamed(const Table& table, A allocator, LogSink log) : Streamed(table, allocator, log, 0) {}
  [[nodiscard]] bool acquire(std::size_t group) noexcept;
  void release(std::size_t group) noexcept;
  void prefetch(std::size_t group) noexcept {
    if (group <= head_) return read_ahead();
    if (experts_) experts_->begin(group - head_ - 1, groups_[group].stretches);
  }
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return data_[tensor]; }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept {
    if (kept_at_[tensor] != nowhere) return kept_->packed(kept_at_[tensor]);
    return packs && extents_[tensor].packed;
  }

  // Required by StreamingPager
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept { return residency_.streamed_bytes; }
  [[nodiscard]] Reads reads() const noexcept {
    return (ring_ ? ring_->reads() : Reads()) + (experts_ ? experts_->reads() : Reads());
  }

  // Specific to Streamed
  /// bytes: for what stays, the ring and experts together. Too few are taken as the least that works: room for the largest group, and
  /// for the experts of a layer.
  /// The table's tensors and document, and the sink's context, outlive the pager: damage is named when it is found.
  Streamed(const Table& table, A allocator, LogSink log, std::uint64_t bytes);
  [[nodiscard]] const Residency& residency() const noexcept { return residency_; }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// A tensor of a group that is read, and where it begins in it.
  struct Part {
    std::size_t tensor;
    std::size_t at;
  };
  struct Group {
    std::vector<Stretch> stretches;
    std::vector<Part> parts;
    std::size_t bytes = 0;
    bool used = false;
    bool intact = false;  // checksums were looked at
  };

  /// A tensor of which a step touches some rows where they are mapped.
  struct Rows {
    const io::File* file;
    Extent tensor;
  };

  void find_groups(const Table& table);
  void add_stretches(const Table& table, Group& group, std::vector<std::size_t> tensors);
  [[nodiscard]] std::uint64_t make_experts(const Table& table, A allocator, LogSink log, std::uint64_t bytes);
  void keep(const Table& table, A allocator, LogSink log);
  void check_mapped(const Table& table, A allocator, LogSink log) const;
  void map(const Table& table, LogSink log);
  [[nodiscard]] bool check(Group& group, const std::byte* at) noexcept;
  void read_ahead() noexcept;
  void forget_rows() noexcept;
  /// Whether the group passes through the ring: as the step's input group 0 does not.
  [[nodiscard]] bool streams(std::size_t group) const noexcept {
    return group < place_.size() && place_[group] != nowhere && !residency_.stays[place_[group]];
  }

  const gguf::Document& document_;
  std::span<const Extent> extents_;
  LogSink log_;
  std::size_t head_ = 0;            // the group
  bool head_used_ = false;          // group 0 is then the head's matrix
  std::vector<Group> groups_;       // by group
  std::vector<std::size_t> order_;  // groups that each step uses as a whole, in its order
  std::vector<std::size_t> place_;  // by group: in order_
  std::vector<std::size_t>
      always_;           // tensors that stay in any case: the norm of a head that is the embedding
  Residency residency_;  // by place
  std::optional<Resident<A, Layout>> kept_;
  std::vector<std::size_t> kept_at_;      // by tensor: its number there
  std::vector<const std::byte*> data_;    // by tensor
  std::vector<const std::byte*> mapped_;  // by tensor
  std::vector<io::Mapping> mappings_;     // by source
  std::vector<Rows> rows_;
  std::optional<ReadRing<A>> ring_;
  std::optional<ExpertCache<A>> experts_;
  std::size_t next_ = 0;  // place of the group to be read next
};

template <mica::Allocator A, class L>
Streamed<A, L>::Streamed(const Table& table, A allocator, LogSink log, std::uint64_t bytes)
    : document_(table.document),
      extents_(table.tensors),
      log_(log),
      kept_at_(table.tensors.size(), nowhere),
      data_(table.tensors.size()),
      mapped_(table.tensors.size()) {
  find_groups(table);
  std::vector<std::uint64_t> sizes;
  for (const std::size_t group : order_) sizes.push_back(groups_[group].bytes);
  residency_ = choose_residency(
      sizes, make_experts(table, alloc::for_account(allocator, budget::Account::weights), log, bytes));
  keep(table, alloc::for_account(allocator, budget::Account::weights), log);
  check_mapped(table, alloc::for_account(allocator, budget::Account::io_buffers), log);
  if (residency_.streamed_bytes > 0) {
    ring_.emplace(alloc::for_account(allocator, budget::Account::io_buffers),
                  static_cast<std::size_t>(residency_.ring_bytes), table.document.sources(), log);
  }
  if constexpr (!A::dry) map(table, log);
}

/// What a step uses as a whole: layers, then the head, whose matrix may be that of the embedding. Of a model in memory, nothing.
template <mica::Allocator A, class L>
void Streamed<A, L>::find_groups(const Table& table) {
  head_ = table.head_group();
  groups_.resize(table.groups);
  place_.assign(head_ + 1, nowhere);
  if (table.document.sources().front().file() == nullptr) return;
  std::vector<std::vector<std::size_t>> tensors(table.groups);
  for (std::size_t i = 0; i < table.tensors.size(); ++i) tensors[table.tensors[i].group].push_back(i);
  const auto rows = [&](std::size_t tensor) { return table.tensors[tensor].rows; };
  const bool tied =
      std::none_of(tensors[head_].begin(), tensors[head_].end(), [&](auto t) { return rows(t) != 0; });
  if (tied) {  // of the embedding's tensors the one with the most rows
    auto& all = tensors[0];
    if (!all.empty())
      all = {*std::max_element(all.begin(), all.end(), [&](auto a, auto b) { return rows(a) < rows(b); })};
    always_ = std::move(tensors[head_]);
  }
  for (std::size_t group = 1; group < head_; ++group) order_.push_back(group);
  order_.push_back(tied ? 0 : head_);
  for (std::size_t place = 0; place < order_.size(); ++place) {
    place_[order_[place]] = place;
    add_stretches(table, groups_[order_[place]], std::move(tensors[order_[place]]));
  }
  for (std::size_t expert = head_ + 1; expert < table.groups; ++expert) {
    add_stretches(table, groups_[expert], std::move(tensors[expert]));
  }
}

/// Places for experts: those of a layer at least, and where all layers and the head fit beside them, what is left. Answers the bytes for these.
template <mica::Allocator A, class L>
std::uint64_t Streamed<A, L>::make_experts(const Table& table, A allocator, LogSink log,
                                           std::uint64_t bytes) {
  std::size_t place_bytes = 0;
  std::uint64_t others = 0;
  for (std::size_t group = head_ + 1; group < groups_.size(); ++group) {
    place_bytes = std::max(place_bytes, groups_[group].bytes);
  }
  if (place_bytes == 0) return bytes;
  for (const std::size_t group : order_) others += groups_[group].bytes;
  const std::size_t experts = groups_.size() - head_ - 1,
                    least = table.experts == 0 ? experts : table.experts;
  const std::uint64_t room = bytes - std::min(bytes, others);
  const auto places = static_cast<std::size_t>(std::clamp<std::uint64_t>(room / place_bytes, least, experts));
  experts_.emplace(allocator, experts, place_bytes, places, table.document.sources(), log);
  return bytes - std::min<std::uint64_t>(bytes, places * place_bytes);
}

/// Tensors that lie close together are read together.
template <mica::Allocator A, class L>
void Streamed<A, L>::add_stretches(const Table& table, Group& group, std::vector<std::size_t> tensors) {
  constexpr std::size_t block = GroupReader::alignment;
  constexpr std::size_t gap = 16 * block;  // cheaper to read than a request more
  const auto& extents = table.tensors;
  std::sort(tensors.begin(), tensors.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(extents[a].source, extents[a].offset) < std::pair(extents[b].source, extents[b].offset);
  });
  for (const std::size_t tensor : tensors) {
    const Extent& e = extents[tensor];
    const std::uint64_t begin = e.offset / block * block,
                        end = round_up<std::uint64_t>(e.offset + e.bytes, block);
    Stretch* last = group.stretches.empty() ? nullptr : &group.stretches.back();
    if (last == nullptr || last->source != e.source || begin > last->offset + last->bytes + gap) {
      last = &group.stretches.emplace_back(Stretch{e.source, begin, 0});
    }
    const std::size_t before = group.bytes - last->bytes;  // of the stretches before it
    last->bytes = std::max(last->bytes, static_cast<std::size_t>(end - last->offset));
    group.bytes = before + last->bytes;
    group.parts.push_back({tensor, before + static_cast<std::size_t>(e.offset - last->offset)});
  }
}

template <mica::Allocator A, class L>
void Streamed<A, L>::keep(const Table& table, A allocator, LogSink log) {
  std::vector<Extent> kept;
  const auto add = [&](std::size_t tensor) {
    kept_at_[tensor] = kept.size();
    kept.push_back(table.tensors[tensor]);
  };
  for (const std::size_t tensor : always_) add(tensor);
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (!residency_.stays[place]) continue;
    for (const Part& part : groups_[order_[place]].parts) add(part.tensor);
  }
  if (kept.empty()) return;
  kept_.emplace(Table{table.document, kept, table.groups, table.head}, allocator, log);
}

/// Rows that are mapped: nobody would look at their checksums later.
template <mica::Allocator A, class L>
void Streamed<A, L>::check_mapped(const Table& table, A allocator, LogSink log) const {
  std::vector<bool> read(table.tensors.size());
  for (const Group& group : groups_) {
    for (const Part& part : group.parts) read[part.tensor] = true;
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < table.tensors.size(); ++i) {
    if (!read[i] && kept_at_[i] == nowhere) others.push_back(i);
  }
  check_extents(table, others, allocator, log);
}

/// Whether a group that was read is what was written; looks once.
template <mica::Allocator A, class L>
bool Streamed<A, L>::check(Group& group, const std::byte* at) noexcept {
  if (group.intact) return true;
  for (const Part& part : group.parts) {
    const Extent& extent = extents_[part.tensor];
    try {
      if (intact(extent, {at + part.at, static_cast<std::size_t>(extent.bytes)})) continue;
      log_(LogLevel::error, damage_text(document_, extent));
    } catch (...) {  // no memory for a text
    }
    return false;
  }
  return group.intact = true;
}

/// Where tensors are that are not kept, and not read as a whole.
template <mica::Allocator A, class L>
void Streamed<A, L>::map(const Table& table, LogSink log) {
  std::vector<std::span<const std::byte>> sources;
  for (const gguf::Source& source : table.document.sources()) {
    if (source.file() != nullptr) mappings_.emplace_back(*source.file(), io::MapAdvice::scattered, log);
    sources.push_back(source.file() != nullptr ? mappings_.back().bytes() : source.memory());
  }
  for (std::size_t i = 0; i < table.tensors.size(); ++i) {
    const Extent& tensor = table.tensors[i];
    mapped_[i] = sources[tensor.source].data() + tensor.offset;
    data_[i] = kept_at_[i] == nowhere ? mapped_[i] : kept_->data(kept_at_[i]);
    const io::File* const file = table.document.sources()[tensor.source].file();
    if (tensor.group == 0 && data_[i] == mapped_[i] && file != nullptr) rows_.push_back({file, tensor});
  }
}

template <mica::Allocator A, class L>
bool Streamed<A, L>::acquire(std::size_t group) noexcept {
  if (A::dry) return true;
  if (group > head_ && experts_) {
    const std::byte* const at = experts_->acquire(group - head_ - 1, groups_[group].stretches);
    if (at == nullptr) return false;
    if (!check(groups_[group], at)) {
      experts_->release(group - head_ - 1);
      return false;
    }
    for (const Part& part : groups_[group].parts) data_[part.tensor] = at + part.at;
    return true;
  }
  if (streams(group) && (group != 0 || head_used_)) {
    Group& g = groups_[group];
    if (!ring_->has(group)) {  // another one was expected
      for (const std::size_t other : order_) {
        if (!groups_[other].used) ring_->forget(other);
      }
      if (!ring_->begin(group, g.stretches)) return false;
      next_ = (place_[group] + 1) % order_.size();
    }
    const std::byte* const at = ring_->wait(group);
    if (at == nullptr) return false;
    if (!check(g, at)) {
      ring_->forget(group);
      return false;
    }
    for (const Part& part : g.parts) data_[part.tensor] = at + part.at;
    g.used = true;
    read_ahead();
  }
  head_used_ = head_used_ || group == head_;
  return true;
}

template <mica::Allocator A, class L>
void Streamed<A, L>::release(std::size_t group) noexcept {
  if (A::dry) return;
  if (group > head_ && experts_) return experts_->release(group - head_ - 1);
  if (group == head_) head_used_ = false;
  if (group == 0) forget_rows();
  if (!streams(group) || !groups_[group].used) return;
  groups_[group].used = false;
  ring_->forget(group);
  for (const Part& part : groups_[group].parts) data_[part.tensor] = mapped_[part.tensor];
  read_ahead();
}

/// Rows that were touched leave memory, and the page cache.
template <mica::Allocator A, class L>
void Streamed<A, L>::forget_rows() noexcept {
  for (const auto& [file, rows] : rows_) {
    mappings_[rows.source].forget(*file, static_cast<std::size_t>(rows.offset),
                                  static_cast<std::size_t>(rows.bytes));
  }
}

/// Begins to read the group that is used next, if there is room.
template <mica::Allocator A, class L>
void Streamed<A, L>::read_ahead() noexcept {
  if (A::dry || !ring_) return;
  while (!streams(order_[next_])) next_ = (next_ + 1) % order_.size();
  const std::size_t group = order_[next_];
  if (ring_->has(group) || !ring_->begin(group, groups_[group].stretches)) return;
  next_ = (next_ + 1) % order_.size();
}

static_assert(StreamingPager<Streamed<>>);

}  // namespace mica::paging
