// SPDX-License-Identifier: Apache-2.0
//
// What ranks exchange in a step: columns of rows, each rank having some, and the int8 form of such rows. Rows
// of many tokens go in batches, so that the memory for them is bounded.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/finite.hpp"
#include "mica/block/norm.hpp"
#include "mica/block/scratch.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/ranks/concept.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace mica::model {

/// Of one rank alone: nothing is exchanged.
template <Ranks R, Allocator A>
class Exchange {
 public:
  Exchange(R ranks, const block::StepSizes& /*sizes*/, std::size_t /*widest*/, A /*allocator*/)
      : ranks_(std::move(ranks)) {}
  [[nodiscard]] const ranks::Division& division() const noexcept { return ranks_.division(); }
  [[nodiscard]] const ranks::Division& row_division() const noexcept { return ranks_.division(); }
  [[nodiscard]] static constexpr bool by_layers() noexcept { return false; }
  [[nodiscard]] static constexpr bool lost() noexcept { return false; }
  [[nodiscard]] static constexpr std::uint8_t largest(std::uint8_t own) noexcept { return own; }
  static constexpr void leave() noexcept {}

 private:
  R ranks_;
};

/// The ranks of a model and memory for what they exchange. Functions that answer bool: false, a rank is gone.
template <Ranks R, Allocator A>
requires(!R::one) class Exchange<R, A> {
 public:
  using View = MatrixView<float>;

  /// widest: numbers of the widest rows. Raises ErrorCode::budget when the allocator refuses.
  Exchange(R ranks, const block::StepSizes& sizes, std::size_t widest, A allocator)
      : ranks_(std::move(ranks)),
        row_division_(ranks::row_division(ranks_.division(), ranks_.split())),
        batch_(ranks_.division().size() == 1 ? 0
               : row_division_.size() == 1   ? 1
                                             : std::min(sizes.chunk, max_batch)),
        widest_(round_up(widest, kernel::activation_group)),
        ends_(ranks_.division().size()),
        staging_(take(message_bytes() + batch_ * widest_ / 16 * sizeof(std::int16_t),
                      allocator.book_as(budget::Account::activations))) {}

  /// All ranks, and how they divide rows.
  [[nodiscard]] const ranks::Division& division() const noexcept { return ranks_.division(); }
  [[nodiscard]] const ranks::Division& row_division() const noexcept { return row_division_; }
  [[nodiscard]] bool by_layers() const noexcept { return row_division_.size() != ends_.size(); }
  /// Whether a rank was gone, or this one has left.
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  /// This rank cannot go on: exchanges of all end.
  void leave() noexcept {
    if (ends_.size() == 1) return;
    lost_ = true;
    ranks_.leave();
  }
  /// The largest number of those of all ranks; this one's where a rank is gone.
  [[nodiscard]] std::uint8_t largest(std::uint8_t own) noexcept {
    if (ends_.size() == 1) return own;
    for (std::size_t r = 0; r < ends_.size(); ++r) ends_[r] = r + 1;
    const std::span message(staging_.data(), ends_.size());
    message[division().rank()] = std::byte{own};
    if (!exchange(message)) return own;
    return static_cast<std::uint8_t>(*std::max_element(message.begin(), message.end()));
  }

  /// A message of equal units, of which this rank has some; all get all.
  [[nodiscard]] bool units(std::span<std::byte> message, const ranks::Part& own) noexcept {
    if (by_layers()) {
      const std::size_t owner = who(own.count != 0);
      for (std::size_t r = 0; r < ends_.size(); ++r) ends_[r] = r < owner ? 0 : message.size();
    } else {
      const std::size_t each = message.size() / own.all;
      for (std::size_t r = 0; r < ends_.size(); ++r) ends_[r] = division().part(own.all, r).end() * each;
    }
    return exchange(message);
  }
  /// Bytes for the next rank, and those of the one before.
  [[nodiscard]] bool pass_on(std::span<const std::byte> bytes) noexcept {
    return in_parts(bytes, [&](auto part) { return ranks_.send(division().rank() + 1, part); });
  }
  [[nodiscard]] bool take_on(std::span<std::byte> bytes) noexcept {
    return in_parts(bytes, [&](auto part) { return ranks_.receive(division().rank() - 1, part); });
  }
  /// A message that rank 0 has, and all get.
  [[nodiscard]] bool of_first(std::span<std::byte> message) noexcept {
    ends_.assign(ends_.size(), message.size());
    return exchange(message);
  }

  /// Columns of y in units of `unit`: each rank has computed those of its part, and gets the others.
  [[nodiscard]] bool columns(View y, std::size_t unit) noexcept {
    if (row_division_.size() == 1) return true;
    if (y.rows() == 1) return one_row(y[0], unit);
    for (std::size_t done = 0; done < y.rows(); done += batch_) {
      if (!columns_of_batch(y.rows(done, std::min(batch_, y.rows() - done)), unit)) return false;
    }
    return true;
  }

  /// The same, and computes them: compute(first, count) is for columns of this rank's part, counted within
  /// it. Of one row, three quarters are on their way while the rest is computed.
  template <class Compute>
  [[nodiscard]] bool outputs(View y, std::size_t unit, Compute&& compute) noexcept {
    const std::size_t own = row_division_.rank();
    const ranks::Part mine = part(y.cols(), unit, own);
    if (row_division_.size() == 1 || y.rows() != 1 || unit == 1) {
      compute(std::size_t{0}, mine.count);
      return columns(y, unit);
    }
    MICA_ASSERT(y.cols() <= widest_);
    const auto piece = [&](std::size_t r, bool last) {
      const ranks::Part all = part(y.cols(), unit, r);
      const std::size_t sooner = all.count / unit * 3 / 4 * unit;
      return last ? ranks::Part{all.first + sooner, all.count - sooner, all.all}
                  : ranks::Part{all.first, sooner, all.all};
    };
    const auto numbers = [&](const ranks::Part& columns) {
      return std::as_writable_bytes(y[0].subspan(columns.first, columns.count));
    };
    std::byte* message = staging_.data();
    for (const bool last : {false, true}) {
      std::size_t end = 0;
      for (std::size_t r = 0; r < ends_.size(); ++r) {
        const ranks::Part columns = piece(r, last);
        if (r == own) {
          compute(columns.first - mine.first, columns.count);
          std::memcpy(message + end, numbers(columns).data(), numbers(columns).size());
        }
        ends_[r] = end += columns.count * sizeof(float);
      }
      if (!(last ? exchange({message, end}) : begin({message, end}))) return false;
      message += end;
    }
    message = staging_.data();
    for (const bool last : {false, true}) {
      for (std::size_t r = 0; r < ends_.size(); ++r) {
        const auto to = numbers(piece(r, last));
        if (r != own) std::memcpy(to.data(), message, to.size());
        message += to.size();
      }
    }
    return true;
  }

  /// Logits in units of `unit`. Each rank has its part of them; where ranks divide layers, the last one has
  /// all. Afterwards a rank has its own numbers, the `count` best of each other rank, and the lowest float in
  /// place of the rest. A part with numbers that are not finite sends one of them. All numbers are exchanged
  /// where that costs less.
  [[nodiscard]] bool best(std::span<float> row, std::size_t unit, std::size_t count) noexcept {
    const std::size_t size = ends_.size();
    if (size == 1) return true;
    if (count >= row.size() / 2 / size || size * count * sizeof(Candidate) > message_bytes())
      return one_row(row, unit);
    for (std::size_t r = 0, end = 0; r < size; ++r)
      ends_[r] = end += std::min(count, part(row.size(), unit, r).count) * sizeof(Candidate);
    const auto candidates_of = [&](std::size_t r) {
      return std::span(reinterpret_cast<Candidate*>(begin_of(r)),
                       std::min(count, part(row.size(), unit, r).count));
    };
    const ranks::Part own = part(row.size(), unit, division().rank());
    choose(row.subspan(own.first, own.count), own.first, candidates_of(division().rank()));
    if (!exchange({staging_.data(), ends_.back()})) return false;
    for (std::size_t r = 0; r < size; ++r) {
      if (r == division().rank()) continue;
      const ranks::Part columns = part(row.size(), unit, r);
      const auto numbers = row.subspan(columns.first, columns.count);
      std::fill(numbers.begin(), numbers.end(), std::numeric_limits<float>::lowest());
      for (const Candidate& each : candidates_of(r)) {
        if (each.column - columns.first < columns.count) row[each.column] = each.number;
      }
    }
    return true;
  }

  /// Rows of y, at most 64: that of item(i), of `items` in units, was computed by the rank that has the item.
  template <class Item>
  [[nodiscard]] bool rows(View y, std::size_t unit, std::size_t items, Item&& item) noexcept {
    if (row_division_.size() == 1) return true;
    const std::size_t bytes = y.cols() * sizeof(float);
    MICA_ASSERT(y.rows() <= batch_);
    const auto each_row = [&](std::size_t rank, auto&& f) {
      const ranks::Part own = part(items, unit, rank);
      for (std::size_t i = 0; i < y.rows(); ++i) {
        if (item(i) >= own.first && item(i) < own.end()) f(y[i].data());
      }
    };
    std::size_t end = 0;
    for (std::size_t r = 0; r < ends_.size(); ++r) {
      each_row(r, [&](float*) { end += bytes; });
      ends_[r] = end;
    }
    std::byte* at = begin_of(division().rank());
    each_row(division().rank(), [&](const float* row) {
      std::memcpy(at, row, bytes);
      at += bytes;
    });
    if (!exchange({staging_.data(), end})) return false;
    for (std::size_t r = 0; r < ends_.size(); ++r) {
      at = begin_of(r);
      each_row(r, [&](float* row) {
        std::memcpy(row, at, bytes);
        at += bytes;
      });
    }
    return true;
  }

  /// Whether the codes of rows of units can be made by the ranks one by one: no scale is shared between
  /// units.
  [[nodiscard]] static bool divides_codes(const kernel::QuantizedRows& codes, std::size_t unit) noexcept {
    return unit % kernel::scale_group(codes) == 0;
  }
  /// The codes of rows of which each rank has the part `own`; divides_codes(). `all` may have room for more.
  template <Kernels K, Executor E>
  [[nodiscard]] bool codes(E& executor, MatrixView<const float> own, std::size_t unit,
                           const kernel::QuantizedRows& all) noexcept {
    for (std::size_t done = 0; done < own.rows(); done += batch_) {
      const std::size_t n = std::min(batch_, own.rows() - done);
      const Batch batch{*this, all, unit, done, n};
      batch.template quantize<K>(executor, own);
      if (!exchange({staging_.data(), ends_.back()})) return false;
      batch.put(executor);
    }
    return true;
  }

 private:
  static constexpr std::size_t max_batch = 64;
  static constexpr std::size_t max_passed = std::size_t{1} << 28;  // bytes of a message

  /// A number of a row, on its way.
  struct Candidate {
    std::uint32_t column;
    float number;
    /// The larger number first; of equal ones, the first.
    friend bool operator<(const Candidate& a, const Candidate& b) noexcept {
      return a.number > b.number || (a.number == b.number && a.column < b.column);
    }
  };
  /// The best of consecutive numbers, the first of which is in column `first`, in any order.
  static void choose(std::span<const float> numbers, std::size_t first, std::span<Candidate> best) noexcept {
    if (best.empty()) return;
    const auto candidate = [&](std::size_t i) {
      return Candidate{static_cast<std::uint32_t>(first + i), numbers[i]};
    };
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = candidate(i);
    if (!all_finite(numbers)) {
      const auto found =
          std::find_if_not(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
      best[0] = candidate(static_cast<std::size_t>(found - numbers.begin()));
      return;
    }
    std::make_heap(best.begin(), best.end());  // the worst of the best on top
    for (std::size_t i = best.size(); (i = skip_below(numbers, i, best[0].number)) < numbers.size(); ++i) {
      if (!(numbers[i] > best[0].number)) continue;
      std::pop_heap(best.begin(), best.end());
      best.back() = candidate(i);
      std::push_heap(best.begin(), best.end());
    }
  }

  /// Rows [first, first + n) of codes on their way. A part of the message: the codes of a rank, then its
  /// scales.
  struct Batch {
    Exchange& of;
    const kernel::QuantizedRows& all;
    std::size_t unit, first, n;

    Batch(Exchange& exchange, const kernel::QuantizedRows& codes, std::size_t columns, std::size_t row,
          std::size_t rows) noexcept
        : of(exchange), all(codes), unit(columns), first(row), n(rows) {
      std::size_t end = 0;
      for (std::size_t r = 0; r < of.ends_.size(); ++r) {
        const std::size_t cols = of.part(all.cols, unit, r).count;
        of.ends_[r] = end += n * (cols + cols / kernel::activation_group * sizeof(float));
      }
    }
    template <Kernels K, Executor E>
    void quantize(E& executor, MatrixView<const float> own) const noexcept {
      if (own.cols() == 0) return;
      std::byte* const at = of.begin_of(of.division().rank());
      kernel::QuantizedRows out{
          reinterpret_cast<std::int8_t*>(at), reinterpret_cast<float*>(at + n * own.cols()),
          reinterpret_cast<std::int16_t*>(of.staging_.data() + of.message_bytes()), n, own.cols()};
      out.fast8_from = kernel::fast8_from_of_parts(all);
      const auto rows = own.rows(first, n);
      executor.run(n, [&](std::size_t row, std::size_t) noexcept {
        K::quantize(kernel::QuantizeArgs{rows, out, row, row + 1});
      });
    }
    template <Executor E>
    void put(E& executor) const noexcept {
      executor.run(n, [&](std::size_t row, std::size_t) noexcept {
        std::int8_t* const codes = all.codes + (first + row) * all.cols;
        float* const scales = all.scales + (first + row) * (all.cols / kernel::activation_group);
        for (std::size_t r = 0; r < of.ends_.size(); ++r) {
          const ranks::Part part = of.part(all.cols, unit, r);
          if (part.count == 0) continue;
          const std::size_t groups = part.count / kernel::activation_group;
          const std::byte* const at = of.begin_of(r);
          std::memcpy(codes + part.first, at + row * part.count, part.count);
          std::memcpy(scales + part.first / kernel::activation_group,
                      at + n * part.count + row * groups * sizeof(float), groups * sizeof(float));
        }
        std::int16_t* const sums = all.sums + (first + row) * (all.cols / 16);
        for (std::size_t i = 0; i < all.cols / 16; ++i) {
          std::int16_t sum = 0;
          for (std::size_t k = 0; k < 16; ++k) sum = static_cast<std::int16_t>(sum + codes[16 * i + k]);
          sums[i] = sum;
        }
      });
    }
  };

  /// pass(part) for each message that the bytes need.
  template <class Byte, class Pass>
  [[nodiscard]] bool in_parts(std::span<Byte> bytes, Pass&& pass) noexcept {
    while (!bytes.empty() && !lost_) {
      const auto part = bytes.first(std::min(bytes.size(), max_passed));
      lost_ = !pass(part);
      bytes = bytes.subspan(part.size());
    }
    return !lost_;
  }
  /// Of the largest message. One rank sends none.
  [[nodiscard]] std::size_t message_bytes() const noexcept {
    return std::max(batch_ * widest_ * sizeof(float), batch_ == 0 ? 0 : ends_.size());
  }
  [[nodiscard]] static alloc::Buffer<std::byte, A> take(std::size_t bytes, A allocator) {
    auto buffer = alloc::Buffer<std::byte, A>::make(allocator, bytes);
    MICA_CHECK(buffer, budget, "exchange of ranks: ", bytes, " bytes ", alloc::refused(allocator, bytes),
               "; use a smaller chunk");
    return std::move(*buffer);
  }
  [[nodiscard]] bool exchange(std::span<std::byte> message) noexcept {
    lost_ = lost_ || !ranks_.exchange(message, ends_);
    return !lost_;
  }
  [[nodiscard]] bool begin(std::span<std::byte> message) noexcept {
    lost_ = lost_ || !ranks_.begin(message, ends_);
    return !lost_;
  }
  /// Where the part of a rank begins in the message.
  [[nodiscard]] std::byte* begin_of(std::size_t rank) noexcept {
    return staging_.data() + (rank == 0 ? 0 : ends_[rank - 1]);
  }
  /// Columns of a rank, of `cols` in units.
  [[nodiscard]] ranks::Part part(std::size_t cols, std::size_t unit, std::size_t rank) const noexcept {
    if (by_layers()) return {0, rank + 1 == ends_.size() ? cols : 0, cols};
    return row_division_.part(cols / unit, rank).times(unit);
  }
  /// The rank for which `here` is true.
  [[nodiscard]] std::size_t who(bool here) noexcept {
    return largest(here ? static_cast<std::uint8_t>(division().rank()) : std::uint8_t{0});
  }
  /// A row of which each rank has its part.
  [[nodiscard]] bool one_row(std::span<float> y, std::size_t unit) noexcept {
    for (std::size_t r = 0; r < ends_.size(); ++r) {
      const ranks::Part columns = part(y.size(), unit, r);
      ends_[r] = std::max(r == 0 ? 0 : ends_[r - 1], columns.end() * sizeof(float));
    }
    return exchange(std::as_writable_bytes(y));
  }
  [[nodiscard]] bool columns_of_batch(View y, std::size_t unit) noexcept {
    const std::size_t n = y.rows(), size = ends_.size();
    MICA_ASSERT(n * y.cols() * sizeof(float) <= staging_.size());
    std::size_t end = 0;
    for (std::size_t r = 0; r < size; ++r)
      ends_[r] = end += n * part(y.cols(), unit, r).count * sizeof(float);
    // A part of the message is (n, columns of the rank).
    const auto each_row = [&](std::size_t rank, auto&& copy) {
      const ranks::Part columns = part(y.cols(), unit, rank);
      const std::size_t bytes = columns.count * sizeof(float);
      std::byte* const at = begin_of(rank);
      for (std::size_t row = 0; row < n && bytes != 0; ++row)
        copy(at + row * bytes, y.data() + row * y.stride() + columns.first, bytes);
    };
    const std::size_t own = division().rank();
    each_row(own, [](std::byte* staged, const float* row, std::size_t b) { std::memcpy(staged, row, b); });
    if (!exchange({staging_.data(), end})) return false;
    for (std::size_t r = 0; r < size; ++r) {
      if (r == own) continue;
      each_row(r, [](const std::byte* staged, float* row, std::size_t b) { std::memcpy(row, staged, b); });
    }
    return true;
  }

  R ranks_;
  ranks::Division row_division_;
  std::size_t batch_;                    // rows of a message at most
  std::size_t widest_;                   // numbers of a row at most
  std::vector<std::size_t> ends_;        // of parts of a message, by rank
  alloc::Buffer<std::byte, A> staging_;  // a message, then sums of codes
  bool lost_ = false;
};

}  // namespace mica::model
