// SPDX-License-Identifier: Apache-2.0
//
// Weights of which a part is resident, packed, and the others are read through a ring, layer by layer, while
// the layer before is computed. A model may be many times larger than memory: it then runs at the speed of
// the disk. Read weights are freed with their layer, and are never in the page cache.
//
//   step      | embedding | layer 0 | layer 1 | layer 2 | ... | output          |
//             | rows      | stays   | read    | stays   |     | read in slices  |
//
// An output matrix that is larger than a layer, and does not stay, passes in slices of the size of a layer.
// Rows of the embedding are mapped. Experts are read when a token chooses them, and cached
// (expert_cache.hpp). In a packed directory streamed weights are packed too, and each unit's checksums are
// compared when it is read first. The resident units may change between two steps (resize), and another
// thread may free them at any moment, except those that a step uses at that moment (yield).
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/map.hpp"
#include "mica/paging/checked.hpp"
#include "mica/paging/concept.hpp"
#include "mica/paging/detail/read_ring.hpp"
#include "mica/paging/detail/residency.hpp"
#include "mica/paging/expert_cache.hpp"
#include "mica/paging/resident.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace mica::paging {

/// Threads: as paging/concept.hpp says; yield() and capacity() from any thread.
template <mica::Allocator A = alloc::Huge, Layout layout = Layout::packed>
class Streamed {
  using Block = Resident<A, layout>;

 public:
  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Streamed<B, layout>;
  static constexpr std::string_view name = "streamed";
  static constexpr bool packs = Block::packs;
  /// Temporary bytes of resize() while it reads, unless sixteen rows of a matrix are larger than
  /// Block::panels_bytes.
  static constexpr std::size_t reading_bytes = Block::bounce_bytes + Block::panels_bytes;

  Streamed(const Table& table, A allocator, LogSink log) : Streamed(table, allocator, log, 0) {}
  [[nodiscard]] bool acquire(std::size_t unit) noexcept {
    if (unit > output_ && experts_) {
      const std::byte* const at = experts_->acquire(unit - output_ - 1, units_[unit].byte_ranges);
      if (at == nullptr) return false;
      if (use(units_[unit], at)) return true;
      experts_->release(unit - output_ - 1);
      return false;
    }
    if (enter(unit) && slice_count(unit) == 1 && !read_whole(unit)) {
      leave(unit);
      return false;
    }
    output_used_ = output_used_ || unit == output_;
    return true;
  }
  void release(std::size_t unit) noexcept {
    if (unit > output_ && experts_) return experts_->release(unit - output_ - 1);
    if (unit == output_) output_used_ = false;
    if (unit == 0) drop_rows();
    if (units_[unit].whole) {
      units_[unit].whole = false;
      for (const TensorPlace& part : units_[unit].parts) data_[part.tensor] = mapped_[part.tensor];
      forget(first_pass_[place_[unit]]);
    }
    leave(unit);
  }
  void prefetch(std::size_t unit) noexcept {
    if (unit <= output_) return read_ahead();
    if (experts_) experts_->begin(unit - output_ - 1, units_[unit].byte_ranges);
  }
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return data_[tensor]; }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept { return packed_[tensor]; }

  // Required by SlicingPager
  [[nodiscard]] std::size_t slices(std::size_t unit) noexcept {
    const std::lock_guard hold(lock_);
    return streams(unit) ? slice_count(unit) : 1;
  }
  [[nodiscard]] Slice acquire_slice(std::size_t unit, std::size_t slice) noexcept {
    const std::size_t pass = first_pass_[place_[unit]] + slice;
    const std::byte* const at = read(pass);
    if (at == nullptr) return {};
    const Pass& p = passes_[pass];
    if (!check_slice(units_[unit], slice, at + p.skip)) {
      forget(pass);
      return {};
    }
    return {p.first_row, p.rows, at + p.skip};
  }
  void release_slice(std::size_t unit, std::size_t slice) noexcept {
    forget(first_pass_[place_[unit]] + slice);
  }

  // Required by StreamingPager
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept {
    const std::lock_guard hold(lock_);
    return residency_.streamed_bytes;
  }
  [[nodiscard]] Reads reads() const noexcept {
    return reads_ + (ring_ ? ring_->reads() : Reads()) + (experts_ ? experts_->reads() : Reads());
  }

  // Required by ResizablePager
  /// Not within a step; with too few bytes the minimum that works. Units that will not be resident are freed
  /// first, then the ring, then new units are read, then a ring is made that fits: memory never exceeds the
  /// larger of the old and the new capacity. False if a read failed, or yield() was called meanwhile: then
  /// less is resident than that allows.
  bool resize(std::uint64_t bytes) {
    if (order_.empty()) return false;
    const std::uint64_t yields_before = request(bytes);
    const std::size_t places = expert_places(bytes);
    const std::uint64_t left = bytes - std::min<std::uint64_t>(bytes, places * place_bytes_);
    Residency chosen = choose(left);
    if (chosen.ring_bytes < reading_bytes) {  // reading takes more than the ring that waits
      chosen = choose(left - std::min<std::uint64_t>(left, reading_bytes));
    }
    const bool same_places = !experts_ || places == experts_->places();
    if (same_places && is_now(chosen)) return true;
    bool all = !experts_ || places >= experts_->places() || set_places(places);
    if (ring_) ring_->resize(0);
    if (!chosen.rows_stay) drop(rows_set());
    for (std::size_t place = 0; place < order_.size(); ++place) {
      if (!chosen.stays[place]) drop(place);
    }
    if (!keep_chosen(chosen, yields_before)) {
      all = false;
      chosen = present();
    }
    settle(std::move(chosen), left);
    if (experts_ && places > experts_->places()) all = set_places(places) && all;
    next_ = 0;
    return all;
  }
  [[nodiscard]] WeightCapacity capacity() const noexcept {
    if (order_.empty()) return {};
    std::uint64_t all = 0;
    for (const std::uint64_t size : sizes_.bytes) all += size;
    const std::uint64_t experts = units_.size() - output_ - 1;
    const std::lock_guard hold(lock_);
    return {whole_ring_ + expert_places(0) * place_bytes_, staying_bytes() + places_ * place_bytes_,
            requested_, all + rows_bytes_ + experts * place_bytes_ + reading_bytes};
  }
  /// Frees resident units that no step uses now, one after the other, until `bytes` are free beyond the ring
  /// that the freed units need. Returns that number; it is smaller if no such unit is left. From any thread,
  /// also within a step, which reads what it misses. Takes no memory. Cost: that of giving pages back to the
  /// system.
  std::uint64_t yield(std::uint64_t bytes) noexcept {
    const std::lock_guard hold(lock_);
    if (order_.empty()) return 0;
    ++yields_;
    const std::uint64_t before = staying_bytes();
    const auto yielded = [&] { return before - std::min(before, staying_bytes()); };
    if (residency_.rows_stay && !units_[0].used) {
      drop_block(rows_set());
      residency_.rows_stay = false;
    }
    for (std::size_t i = 0; i < yield_order_.size() && yielded() < bytes; ++i) {
      const std::size_t place = yield_order_[i];
      if (!residency_.stays[place] || units_[order_[place]].used) continue;
      drop_block(place);
      residency_.stays[place] = false;
      residency_.staying_bytes -= sizes_.bytes[place];
      residency_.streamed_bytes += sizes_.bytes[place];
      residency_.ring_bytes = detail::ring_for(sizes_, residency_.stays);
    }
    return yielded();
  }

  /// Not within a step: frees the ring; the next read makes one.
  void rest() noexcept {
    if (!ring_) return;
    reads_ = reads_ + ring_->reads();
    ring_.reset();
  }

  // Specific to Streamed
  /// bytes: for resident weights, the ring and experts together. Fewer than the minimum count as the minimum:
  /// the largest unit, and the experts of a layer. The table's tensors and document, and the sink's context,
  /// outlive the pager: damage is named when it is found.
  Streamed(const Table& table, A allocator, LogSink log, std::uint64_t bytes)
      : table_(table),
        allocator_(allocator),
        log_(log),
        output_(table.output_unit()),
        units_(table.units),
        place_(output_ + 1, nowhere),
        blocks_(output_ + 3),
        resident_(table.tensors.size()),
        data_(table.tensors.size()),
        mapped_(table.tensors.size()),
        requested_(bytes) {
    for (const Extent& tensor : table.tensors) packed_.push_back(packs && tensor.packed);
    find_units();
    residency_ = choose(make_experts(bytes));
    map();
    if (table_.loading != nullptr) table_.loading->begin(kept_bytes());
    keep(always_set());
    keep_first();
    table_.loading = nullptr;  // gone after construction
    check_mapped();
    if (residency_.streamed_bytes > 0) make_ring(residency_.ring_bytes);
  }
  /// The units that are resident now.
  [[nodiscard]] const Residency& residency() const noexcept { return residency_; }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  /// Reads of fewer bytes do not use the speed of a disk.
  static constexpr std::size_t smallest_slice = std::size_t{4} << 20;

  /// A tensor of a unit that is read, and where it begins in it.
  struct TensorPlace {
    std::size_t tensor;
    std::size_t at;
  };
  struct Unit {
    std::vector<ByteRange> byte_ranges;
    std::vector<TensorPlace> parts;
    std::size_t bytes = 0;
    bool used = false;    // acquired: yield() leaves it
    bool whole = false;   // acquired, and in the ring as a whole
    bool intact = false;  // checksums were looked at
  };
  /// What is in the ring at a time: a unit, or a slice of the output matrix, whose rows begin at `skip`.
  struct Pass {
    std::size_t place = 0;
    std::vector<ByteRange> byte_ranges;
    std::size_t bytes = 0;
    std::size_t first_row = 0, rows = 0, skip = 0;
    bool used = false;  // acquired
  };

  /// What a step uses as a whole: layers, then the head, whose matrix may be that of the embedding. Of a
  /// model in memory, nothing.
  void find_units() {
    sets_.resize(2);
    if (table_.document.sources().front().in_memory()) return;
    std::vector<std::vector<std::size_t>> tensors(table_.units);
    for (std::size_t i = 0; i < table_.tensors.size(); ++i) tensors[table_.tensors[i].unit].push_back(i);
    const auto rows = [&](std::size_t tensor) { return table_.tensors[tensor].rows; };
    const bool tied =
        std::none_of(tensors[output_].begin(), tensors[output_].end(), [&](auto t) { return rows(t) != 0; });
    for (std::size_t unit = 1; unit < output_; ++unit) order_.push_back(unit);
    order_.push_back(tied ? 0 : output_);
    sets_.resize(order_.size() + 2);
    // Of the head its matrix alone passes, the one with the most rows: norms stay.
    const auto take_matrix = [&](std::vector<std::size_t>& all) {
      if (all.empty()) return;
      const auto max =
          std::max_element(all.begin(), all.end(), [&](auto a, auto b) { return rows(a) < rows(b); });
      const std::size_t matrix = *max;
      all.erase(max);
      tensors[order_.back()] = {matrix};
    };
    sets_[always_set()] = std::move(tensors[output_]);
    sets_[rows_set()] = std::move(tensors[0]);
    take_matrix(tied ? sets_[rows_set()] : sets_[always_set()]);
    for (const std::size_t tensor : sets_[rows_set()]) {
      rows_bytes_ += round_up<std::uint64_t>(table_.tensors[tensor].bytes, 64);
    }
    for (std::size_t place = 0; place < order_.size(); ++place) {
      Unit& unit = units_[order_[place]];
      place_[order_[place]] = place;
      add_ranges(unit, std::move(tensors[order_[place]]));
      sizes_.bytes.push_back(unit.bytes);
      for (const TensorPlace& part : unit.parts) sets_[place].push_back(part.tensor);
    }
    find_passes();
    whole_ring_ = detail::ring_for(sizes_, std::vector<bool>(order_.size()));
    // A unit that is much larger than others, the head as a rule, makes the ring large: it goes last.
    yield_order_ = detail::spread_order(order_.size());
    std::reverse(yield_order_.begin(), yield_order_.end());
    const std::uint64_t min = *std::min_element(sizes_.bytes.begin(), sizes_.bytes.end());
    std::stable_partition(yield_order_.begin(), yield_order_.end(),
                          [&](std::size_t place) { return sizes_.bytes[place] <= min + min / 2; });
    for (std::size_t expert = output_ + 1; expert < table_.units; ++expert) {
      add_ranges(units_[expert], std::move(tensors[expert]));
      place_bytes_ = std::max(place_bytes_, units_[expert].bytes);
    }
  }
  /// Layers pass as a whole; an output matrix that is larger than any of them, in slices of whole panels.
  void find_passes() {
    std::size_t largest = smallest_slice;
    for (std::size_t place = 0; place + 1 < order_.size(); ++place)
      largest = std::max(largest, units_[order_[place]].bytes);
    for (std::size_t place = 0; place < order_.size(); ++place) {
      first_pass_.push_back(passes_.size());
      const Unit& unit = units_[order_[place]];
      if (place + 1 == order_.size() && unit.bytes > largest && add_slices(place, unit, largest)) break;
      passes_.push_back({place, unit.byte_ranges, unit.bytes});
      sizes_.passing.push_back(unit.bytes);
    }
  }
  /// False for a matrix whose rows have no places of their own.
  [[nodiscard]] bool add_slices(std::size_t place, const Unit& unit, std::size_t max_bytes) {
    constexpr std::size_t block = UnitReader::alignment, panel = tensor::Rows16::rows;
    const Extent& e = table_.tensors[unit.parts.at(0).tensor];
    const bool packs12 = e.packed && table_.packing_of(e.format).can_pack12(e.rows, e.cols);
    if (unit.parts.size() != 1 || e.rows <= panel || e.bytes % e.rows != 0 || packs12) return false;
    const std::uint64_t row_bytes = e.bytes / e.rows;
    const std::uint64_t most = std::max<std::uint64_t>(max_bytes / row_bytes / panel * panel, panel);
    const std::uint64_t count = (e.rows + most - 1) / most;
    const std::uint64_t rows = round_up((e.rows + count - 1) / count, std::uint64_t{panel});
    if (rows >= e.rows) return false;
    std::uint64_t largest = 0;
    for (std::uint64_t first = 0; first < e.rows; first += rows) {
      const std::uint64_t n = std::min(rows, e.rows - first), at = e.offset + first * row_bytes;
      const std::uint64_t begin = at / block * block,
                          end = round_up<std::uint64_t>(at + n * row_bytes, block);
      passes_.push_back({place,
                         {ByteRange{e.source, begin, static_cast<std::size_t>(end - begin)}},
                         static_cast<std::size_t>(end - begin),
                         static_cast<std::size_t>(first),
                         static_cast<std::size_t>(n),
                         static_cast<std::size_t>(at - begin)});
      largest = std::max(largest, end - begin);
    }
    sizes_.passing.push_back(largest);
    return true;
  }
  /// The passes of a unit.
  [[nodiscard]] std::size_t slice_count(std::size_t unit) const noexcept {
    const std::size_t place = place_[unit];
    return (place + 1 < first_pass_.size() ? first_pass_[place + 1] : passes_.size()) - first_pass_[place];
  }
  /// Tensors that lie close together are read together.
  void add_ranges(Unit& unit, std::vector<std::size_t> tensors) {
    constexpr std::size_t block = UnitReader::alignment;
    constexpr std::size_t gap = 16 * block;  // cheaper to read than a request more
    const auto& extents = table_.tensors;
    std::sort(tensors.begin(), tensors.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(extents[a].source, extents[a].offset) <
             std::pair(extents[b].source, extents[b].offset);
    });
    for (const std::size_t tensor : tensors) {
      const Extent& e = extents[tensor];
      const std::uint64_t begin = e.offset / block * block,
                          end = round_up<std::uint64_t>(e.offset + e.bytes, block);
      ByteRange* last = unit.byte_ranges.empty() ? nullptr : &unit.byte_ranges.back();
      if (last == nullptr || last->source != e.source || begin > last->offset + last->bytes + gap) {
        last = &unit.byte_ranges.emplace_back(ByteRange{e.source, begin, 0});
      }
      const std::size_t before = unit.bytes - last->bytes;  // of the ranges before it
      last->bytes = std::max(last->bytes, static_cast<std::size_t>(end - last->offset));
      unit.bytes = before + last->bytes;
      unit.parts.push_back({tensor, before + static_cast<std::size_t>(e.offset - last->offset)});
    }
  }
  /// Answers the bytes for layers, head and ring.
  [[nodiscard]] std::uint64_t make_experts(std::uint64_t bytes) {
    const std::size_t places = expert_places(bytes);
    if (places == 0) return bytes;
    places_ = places;
    experts_.emplace(allocator_.book_as(budget::Account::weights), units_.size() - output_ - 1, place_bytes_,
                     places, readable<A>(table_.document), log_);
    return bytes - std::min<std::uint64_t>(bytes, places * place_bytes_);
  }
  /// Places for experts: those of a layer at least, and where all layers and the head fit beside them, those
  /// that the other bytes hold.
  [[nodiscard]] std::size_t expert_places(std::uint64_t bytes) const noexcept {
    if (place_bytes_ == 0) return 0;
    std::uint64_t others = 0;
    for (const std::uint64_t size : sizes_.bytes) others += size;
    const std::size_t experts = units_.size() - output_ - 1,
                      min = table_.experts == 0 ? experts : table_.experts;
    const std::uint64_t capacity = bytes - std::min(bytes, others);
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(capacity / place_bytes_, min, experts));
  }
  [[nodiscard]] Residency choose(std::uint64_t bytes) const {
    Residency chosen = choose_residency(sizes_, bytes);
    chosen.rows_stay = chosen.streamed_bytes == 0 && chosen.bytes() + rows_bytes_ <= bytes;
    return chosen;
  }
  void make_ring(std::uint64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (ring_) return ring_->resize(size);
    ring_.emplace(allocator_.book_as(budget::Account::io_buffers), size, readable<A>(table_.document), log_);
  }
  /// Reads a set of tensors, packed, into a block of its own, so that it can leave without the others. Raises
  /// ErrorCode::budget, file or failed as Resident does, and nothing has changed.
  void keep(std::size_t set) {
    const std::vector<std::size_t>& tensors = sets_[set];
    if (tensors.empty()) return;
    std::vector<Extent> extents;
    for (const std::size_t tensor : tensors) extents.push_back(table_.tensors[tensor]);
    Table part{table_};
    part.tensors = {extents.data(), extents.size()};
    Block read(part, allocator_, log_);
    const std::lock_guard hold(lock_);
    const Block& block = blocks_[set].emplace(std::move(read));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      data_[tensors[i]] = block.data(i);
      packed_[tensors[i]] = block.packed(i);
      resident_[tensors[i]] = true;
    }
  }
  /// Of the tensors that the constructor reads.
  [[nodiscard]] std::uint64_t kept_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      const bool kept =
          set < order_.size() ? residency_.stays[set] : set == always_set() || residency_.rows_stay;
      for (const std::size_t tensor : sets_[set]) bytes += kept ? table_.tensors[tensor].bytes : 0;
    }
    return bytes;
  }
  /// Reads what shall be resident. If others take the memory meanwhile, the units that were not read yet stay
  /// in the file, and others leave memory again.
  void keep_first() {
    try {
      for (std::size_t place = 0; place < order_.size(); ++place) {
        if (residency_.stays[place]) keep(place);
      }
      if (residency_.rows_stay) keep(rows_set());
      return;
    } catch (const Error& error) {
      const std::uint64_t lacking = table_.loading == nullptr ? 0 : table_.loading->short_by;
      if (error.code() != ErrorCode::budget || lacking == 0) throw;
      residency_ = present();
      static_cast<void>(yield(lacking + residency_.ring_bytes));  // the ring is not there yet
    }
    log_(LogLevel::warning,
         join("others took memory while weights were read: ", residency_.staying_bytes,
              " bytes of weights stay in memory, ", residency_.streamed_bytes, " are read for each step"));
  }
  void drop(std::size_t set) noexcept {
    const std::lock_guard hold(lock_);
    drop_block(set);
  }
  /// With the lock.
  void drop_block(std::size_t set) noexcept {
    if (!blocks_[set]) return;
    blocks_[set].reset();
    for (const std::size_t tensor : sets_[set]) {
      data_[tensor] = mapped_[tensor];
      packed_[tensor] = packs && table_.tensors[tensor].packed;
      resident_[tensor] = false;
    }
  }
  /// Reads the missing resident units; false at the first one that could not be read, or when yield() was
  /// called since then.
  [[nodiscard]] bool keep_chosen(const Residency& chosen, std::uint64_t yields_before) {
    const auto keep_set = [&](std::size_t set, bool stays) {
      {
        const std::lock_guard hold(lock_);
        if (yields_ != yields_before) return false;
        if (!stays || blocks_[set]) return true;
      }
      keep(set);
      return true;
    };
    try {
      for (std::size_t place = 0; place < order_.size(); ++place) {
        if (!keep_set(place, chosen.stays[place])) return false;
      }
      return keep_set(rows_set(), chosen.rows_stay);
    } catch (const Error& error) {
      log_(LogLevel::info, join("weights stay in the file: ", error.message()));
      return false;
    }
  }
  /// A ring for what does not stay; where it has no room beside what does, less stays.
  void settle(Residency chosen, std::uint64_t bytes) {
    for (std::size_t place = 0;; ++place) {
      const bool none = chosen.staying_bytes == 0;
      if (none && chosen.bytes() > bytes) chosen.ring_bytes = sizes_.largest_passing();
      set_residency(chosen);
      try {
        if (none || chosen.bytes() <= bytes) {
          if (ring_ || chosen.ring_bytes > 0) make_ring(chosen.ring_bytes);
          return;
        }
      } catch (const Error& error) {
        log_(LogLevel::warning, error.message());
        if (none) return;
      }
      drop(rows_set());
      drop(place);
      std::vector<bool> stays = chosen.stays;
      stays[place] = false;
      chosen = detail::residency_of(sizes_, std::move(stays));
    }
  }
  /// What is there of a choice: yield() may have freed units since.
  void set_residency(const Residency& chosen) {
    const std::lock_guard hold(lock_);
    Residency now = chosen;
    for (std::size_t place = 0; place < order_.size(); ++place)
      now.stays[place] = chosen.stays[place] && blocks_[place];
    if (now.stays != chosen.stays) now = detail::residency_of(sizes_, std::move(now.stays));
    now.rows_stay = chosen.rows_stay && (blocks_[rows_set()] || sets_[rows_set()].empty());
    residency_ = std::move(now);
  }
  /// What is resident, as a choice without rows.
  [[nodiscard]] Residency present() const {
    const std::lock_guard hold(lock_);
    std::vector<bool> stays(order_.size());
    for (std::size_t place = 0; place < order_.size(); ++place) stays[place] = blocks_[place].has_value();
    return detail::residency_of(sizes_, std::move(stays));
  }
  [[nodiscard]] bool is_now(const Residency& chosen) const noexcept {
    const std::lock_guard hold(lock_);
    return chosen.stays == residency_.stays && chosen.rows_stay == residency_.rows_stay &&
           chosen.ring_bytes == residency_.ring_bytes;
  }
  /// Returns the calls of yield() so far.
  [[nodiscard]] std::uint64_t request(std::uint64_t bytes) noexcept {
    const std::lock_guard hold(lock_);
    requested_ = bytes;
    return yields_;
  }
  /// With the lock: bytes of resident units, of rows that stay, and of the ring.
  [[nodiscard]] std::uint64_t staying_bytes() const noexcept {
    return residency_.bytes() + (residency_.rows_stay ? rows_bytes_ : 0);
  }
  /// Experts are dropped, and read again when they are chosen. False if there are fewer places than that.
  [[nodiscard]] bool set_places(std::size_t places) {
    for (const std::size_t n : {places, expert_places(0)}) {
      try {
        experts_->resize(n);
        const std::lock_guard hold(lock_);
        places_ = n;
        return n == places;
      } catch (const Error& error) {
        log_(LogLevel::warning, error.message());
      }
    }
    return false;
  }
  /// Rows that are mapped: their checksums are not compared later.
  void check_mapped() const {
    std::vector<bool> read(table_.tensors.size());
    for (const Unit& unit : units_) {
      for (const TensorPlace& part : unit.parts) read[part.tensor] = true;
    }
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < table_.tensors.size(); ++i) {
      if (!read[i] && !resident_[i]) others.push_back(i);
    }
    check_extents(table_, {others.data(), others.size()}, allocator_.book_as(budget::Account::io_buffers),
                  log_);
  }
  /// Where tensors are that are not kept, and not read as a whole.
  void map() {
    std::vector<std::span<const std::byte>> sources;
    for (const gguf::Source& source : readable<A>(table_.document)) {
      if (source.file() != nullptr) mappings_.emplace_back(*source.file(), io::MapAdvice::scattered, log_);
      sources.push_back(source.file() != nullptr ? mappings_.back().bytes() : source.memory());
    }
    for (std::size_t i = 0; i < table_.tensors.size() && !sources.empty(); ++i) {
      const Extent& tensor = table_.tensors[i];
      mapped_[i] = sources[tensor.source].data() + tensor.offset;
      data_[i] = mapped_[i];
      if (tensor.unit == 0 && file_of(tensor) != nullptr) rows_.push_back(i);
    }
  }
  /// From here to leave() a unit stays where it is. Returns whether it passes through the ring.
  [[nodiscard]] bool enter(std::size_t unit) noexcept {
    const std::lock_guard hold(lock_);
    units_[unit].used = true;
    return streams(unit) && (unit != 0 || output_used_);
  }
  void leave(std::size_t unit) noexcept {
    const std::lock_guard hold(lock_);
    units_[unit].used = false;
  }
  /// Brings a unit that is not sliced through the ring.
  [[nodiscard]] bool read_whole(std::size_t unit) noexcept {
    const std::size_t pass = first_pass_[place_[unit]];
    const std::byte* const at = read(pass);
    if (at == nullptr) return false;
    units_[unit].whole = use(units_[unit], at);
    if (!units_[unit].whole) forget(pass);
    return units_[unit].whole;
  }
  /// The bytes of a pass in the ring, until forget(); null where they could not be read.
  [[nodiscard]] const std::byte* read(std::size_t pass) noexcept {
    Pass& p = passes_[pass];
    if ((!ring_ || ring_->bytes() < p.bytes) && !widen_ring(p.bytes)) return nullptr;
    if (!ring_->has(pass)) {  // another one was expected
      for (std::size_t other = 0; other < passes_.size(); ++other) {
        if (!passes_[other].used) ring_->forget(other);
      }
      if (!ring_->begin(pass, p.byte_ranges)) return nullptr;
      next_ = (pass + 1) % passes_.size();
    }
    const std::byte* const at = ring_->wait(pass);
    p.used = at != nullptr;
    if (p.used) read_ahead();
    return at;
  }
  void forget(std::size_t pass) noexcept {
    passes_[pass].used = false;
    ring_->forget(pass);
    read_ahead();
  }
  /// Units left memory, and the ring is too small for the next one. Makes a ring for all units that are read
  /// from now on, or else for pass_bytes alone. If the allocator refuses a ring, more units leave memory
  /// first.
  [[nodiscard]] bool widen_ring(std::uint64_t pass_bytes) noexcept {
    for (const Pass& pass : passes_) {
      if (pass.used) return false;
    }
    std::uint64_t whole = 0;
    {
      const std::lock_guard hold(lock_);
      whole = detail::ring_for(sizes_, residency_.stays);
    }
    for (const std::uint64_t bytes : {whole, whole, pass_bytes}) {
      try {
        make_ring(bytes);
        return true;
      } catch (const Error& error) {
        log_(LogLevel::warning, error.message());
      }
      static_cast<void>(yield(bytes));
    }
    return false;
  }
  /// The tensors of a unit that was read, at their addresses; false where it is not what was written.
  [[nodiscard]] bool use(Unit& unit, const std::byte* at) noexcept {
    if (!check(unit, at)) return false;
    for (const TensorPlace& part : unit.parts) data_[part.tensor] = at + part.at;
    return true;
  }
  /// Compares checksums, once.
  [[nodiscard]] bool check(Unit& unit, const std::byte* at) noexcept {
    if (unit.intact) return true;
    for (const TensorPlace& part : unit.parts) {
      const Extent& extent = table_.tensors[part.tensor];
      try {
        if (intact(extent, {at + part.at, static_cast<std::size_t>(extent.bytes)})) continue;
        log_(LogLevel::error, damage_text(table_.document, extent));
      } catch (...) {  // no memory for a text
      }
      return false;
    }
    return unit.intact = true;
  }
  /// Compares the checksum of a sliced matrix, once its slices were read in their order.
  [[nodiscard]] bool check_slice(Unit& unit, std::size_t slice, const std::byte* at) noexcept {
    const Extent& extent = table_.tensors[unit.parts[0].tensor];
    if (unit.intact || !extent.checked) return true;
    try {
      if (slice == 0) sum_.emplace(), summed_ = 0;
      if (!sum_ || slice != summed_) return true;
      const Pass& p = passes_[first_pass_.back() + slice];
      sum_->add({at, static_cast<std::size_t>(extent.bytes / extent.rows * p.rows)});
      if (++summed_ < passes_.size() - first_pass_.back()) return true;
      const bool same = sum_->value() == extent.checksum;
      sum_.reset();
      unit.intact = same;
      if (!same) log_(LogLevel::error, damage_text(table_.document, extent));
      return same;
    } catch (...) {  // no memory for a text, or no checksums in this build
      return false;
    }
  }
  /// Begins to read what is used next, if there is room.
  void read_ahead() noexcept {
    if (!ring_) return;
    {
      const std::lock_guard hold(lock_);
      if (residency_.streamed_bytes == 0) return;
      while (residency_.stays[passes_[next_].place]) next_ = (next_ + 1) % passes_.size();
    }
    if (ring_->has(next_) || !ring_->begin(next_, passes_[next_].byte_ranges)) return;
    next_ = (next_ + 1) % passes_.size();
  }
  /// Rows that were touched leave memory, and the page cache.
  void drop_rows() noexcept {
    for (const std::size_t tensor : rows_) {
      if (resident_[tensor]) continue;
      const Extent& rows = table_.tensors[tensor];
      mappings_[rows.source].forget(*file_of(rows), static_cast<std::size_t>(rows.offset),
                                    static_cast<std::size_t>(rows.bytes));
    }
  }
  [[nodiscard]] const io::File* file_of(const Extent& tensor) const noexcept {
    return table_.document.sources()[tensor.source].file();
  }
  [[nodiscard]] std::size_t rows_set() const noexcept { return order_.size(); }
  [[nodiscard]] std::size_t always_set() const noexcept { return order_.size() + 1; }
  /// With the lock: whether the unit passes through the ring; as the step's input unit 0 does not.
  [[nodiscard]] bool streams(std::size_t unit) const noexcept {
    return unit < place_.size() && place_[unit] != nowhere && !residency_.stays[place_[unit]];
  }

  Table table_;
  A allocator_;
  LogSink log_;
  std::size_t output_;                    // the unit
  bool output_used_ = false;              // unit 0 is then the head's matrix
  std::vector<Unit> units_;               // by unit
  std::vector<std::size_t> order_;        // units that each step uses as a whole, in its order
  std::vector<std::size_t> place_;        // by unit: in order_
  UnitSizes sizes_;                       // by place
  std::vector<Pass> passes_;              // in the order of a step
  std::vector<std::size_t> first_pass_;   // by place
  std::vector<std::size_t> yield_order_;  // places, in the order in which yield() frees them
  std::uint64_t whole_ring_ = 0;          // bytes of a ring through which all of them pass
  std::size_t place_bytes_ = 0;           // of an expert
  /// Tensors of each place, then those that are read by rows, then those that stay in any case: the norm of a
  /// head that is the embedding.
  std::vector<std::vector<std::size_t>> sets_;
  std::uint64_t rows_bytes_ = 0;  // of the set of rows, which stays when all else does
  /// Guards what yield() changes while a step runs: residency_, blocks_, and what is known of tensors that
  /// are not acquired.
  mutable std::mutex lock_;
  Residency residency_;                       // by place
  std::vector<std::optional<Block>> blocks_;  // by set; those of 2 MiB and more lie on huge pages
  std::vector<std::uint8_t> resident_;        // by tensor: no bits, threads write beside each other
  std::vector<std::uint8_t> packed_;          // by tensor
  std::vector<const std::byte*> data_;        // by tensor
  std::vector<const std::byte*> mapped_;      // by tensor
  std::vector<io::Mapping> mappings_;         // by source
  std::vector<std::size_t> rows_;             // tensors of files of which a step touches some rows
  std::optional<ReadRing<A>> ring_;
  Reads reads_;  // of rings that are gone
  std::optional<ExpertCache<A>> experts_;
  std::size_t places_ = 0;           // of experts
  std::uint64_t requested_;          // bytes
  std::uint64_t yields_ = 0;         // calls of yield()
  std::size_t next_ = 0;             // the pass to be read next
  std::optional<io::Checksum> sum_;  // of the slices so far
  std::size_t summed_ = 0;           // slices in it
};

static_assert(StreamingPager<Streamed<>> && ResizablePager<Streamed<>> && SlicingPager<Streamed<>>);

}  // namespace mica::paging
