// SPDX-License-Identifier: Apache-2.0
//
// The rates of a machine with the kernels that will run: products with weights of each format, attention over
// keys and values of each element, operations on rows (fit/row_probe.hpp), and the time of a parallel run
// without work. It takes some seconds; the numbers are valid for this machine and these
// kernels (fit/speed.hpp). On a machine that is slow or busy there are fewer repetitions, so that the time
// stays bounded.
//
// All memory has one byte, 0x11. In every format, packed or not, that is the same small finite number in all
// places, so one block of memory serves all formats, and results can be checked: all rows of a product are
// equal, and equal to the specification.
//
//   one token     | rows of a matrix larger than caches                       |  bytes a second
//   4 to 17 tokens| a quarter of them    |                                        multiply-adds a second
//   64, 512 tokens| 4,096 rows |                                                  multiply-adds a second
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/rng.hpp"
#include "mica/block/detail/attend.hpp"
#include "mica/block/linear.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/elements.hpp"
#include "mica_tools/encode/encode.hpp"
#include "mica_tools/fit/row_probe.hpp"
#include "mica_tools/fit/speed.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <sys/mman.h>

namespace mica::fit {

/// Measures with an executor that has the workers of later runs. Not thread-safe.
template <Executor E, Kernels K = kernel::Highway>
class MachineProbe {
 public:
  using Formats = format::Encodable;                                       // that are measured
  using Elements = format::AllKv;                                          // that are measured
  static constexpr std::size_t cols = 4096;                                // of all matrices
  static constexpr std::size_t many = 512;                                 // tokens of a prompt's step
  static constexpr std::size_t min_bytes = cols * cols * sizeof(float);    // of memory
  static constexpr std::size_t head_dim = 128, group = 4, context = 2048;  // of attention; group: of heads

  /// Takes `bytes` of memory: four times the last cache gives the rates of models. The executor outlives the
  /// probe. Raises ErrorCode::usage for less than min_bytes and budget when memory is missing.
  MachineProbe(E& executor, std::size_t bytes) : executor_(executor), scratch_(executor.workers()) {
    MICA_CHECK(bytes >= min_bytes, usage, "measuring a machine needs ", min_bytes,
               " bytes of memory at least; ", bytes, " were given");
    take_memory(bytes, true);
  }

  /// Numbers of tokens, and of rows of queries, that are measured beside the two that all rates have.
  /// Kernels of integer formats change their way above 16 tokens (kernel/highway/packed-inl.hpp).
  static constexpr std::array<std::size_t, 4> more_tokens = {4, 16, 17, 64};
  static constexpr std::array<std::size_t, 2> more_rows = {1, 16};
  static constexpr std::size_t packable_formats = [] {
    std::size_t count = 0;
    Formats::for_each([&](auto type) { count += PackableFormat<typename decltype(type)::type> ? 1 : 0; });
    return count;
  }();
  static constexpr std::size_t pieces_of_format = 2 + more_tokens.size();
  static constexpr std::size_t pieces = pieces_of_format * (Formats::size + packable_formats) +
                                        (3 + more_rows.size()) * Elements::size + RowProbe<E, K>::pieces +
                                        1;  // of measure()

  /// The number of pieces of measure() with these parts; null: with all.
  [[nodiscard]] static std::size_t pieces_of(const plan::SpeedParts* only) {
    if (only == nullptr) return pieces;
    std::size_t all = RowProbe<E, K>::pieces + 1;
    Formats::for_each([&](auto type) {
      using F = typename decltype(type)::type;
      const bool in_file = only->as_in_file && PackableFormat<F>;
      if (only->formats.contains(F::id)) all += pieces_of_format * (in_file ? 2 : 1);
    });
    Elements::for_each([&](auto type) {
      if (only->elements.contains(decltype(type)::type::name)) all += 3 + more_rows.size();
    });
    return all;
  }

  /// Measures the machine. Each piece is run `rounds` times after one that warms up, and the median counts. Once
  /// `long_seconds` have passed, each piece is run once. cancel: read between runs; later figures are then
  /// missing. on_piece(done): called after each piece. only: these formats and elements, beside operations on
  /// rows and the parallel run; null: all. Raises ErrorCode::failed when a product differs from the
  /// specification.
  [[nodiscard]] plan::MachineSpeed measure(std::size_t rounds = 3, const std::atomic<bool>* cancel = nullptr,
                                           double long_seconds = 20,
                                           const std::function<void(std::size_t done)>& on_piece = {},
                                           const plan::SpeedParts* only = nullptr) {
    run_ = {cancel, &on_piece, Clock::now(), long_seconds};
    plan::MachineSpeed speed;
    speed.basis = "measured";
    Formats::for_each([&](auto type) {
      using F = typename decltype(type)::type;
      if (!run_.continues() || (only != nullptr && !only->formats.contains(F::id))) return;
      speed.formats[F::id] = measure_weights(weights<F>(true), rounds);
    });
    if (run_.continues()) speed.rows = measure_rows(rounds);
    if (run_.continues()) speed.run_seconds = measure_run(rounds);
    Elements::for_each([&](auto type) {
      using Element = typename decltype(type)::type;
      if (!run_.continues() || (only != nullptr && !only->elements.contains(Element::name))) return;
      speed.elements[std::string(Element::name)] = measure_element<Element>(rounds);
    });
    if (only != nullptr && !only->as_in_file) return with_limits(std::move(speed));
    if (run_.continues()) take_memory(memory_.size(), false);
    Formats::for_each([&](auto type) {
      using F = typename decltype(type)::type;
      if constexpr (PackableFormat<F>) {
        if (run_.continues() && (only == nullptr || only->formats.contains(F::id)))
          speed.files[F::id] = measure_weights(weights<F>(false), rounds);
      }
    });
    return with_limits(std::move(speed));
  }

 private:
  /// With read_bytes and dot_macs, the maxima of all formats.
  [[nodiscard]] static plan::MachineSpeed with_limits(plan::MachineSpeed speed) {
    for (const auto& [id, found] : speed.formats) {
      speed.read_bytes = std::max(speed.read_bytes, found.decode_bytes);
      speed.dot_macs = std::max(speed.dot_macs, found.prefill_macs);
    }
    return speed;
  }

  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  /// One call of measure().
  struct Run {
    const std::atomic<bool>* cancel = nullptr;
    const std::function<void(std::size_t)>* on_piece = nullptr;
    Clock::time_point start = {};
    double long_seconds = 0;
    std::size_t done = 0;  // pieces

    [[nodiscard]] bool continues() const noexcept {
      return cancel == nullptr || !cancel->load(std::memory_order_relaxed);
    }
  };
  /// huge: pages as resident weights have them; otherwise small ones, as files in the page cache have them:
  /// a core then needs more entries of its TLB, which costs products of one token up to a quarter.
  void take_memory(std::size_t bytes, bool huge) {
    memory_ = {};
    auto memory = alloc::Buffer<std::byte, alloc::Huge>::make({}, bytes);
    MICA_CHECK(memory, budget, "measuring a machine needs ", bytes, " bytes of memory, which there are not");
    memory_ = std::move(*memory);
#ifdef MADV_NOHUGEPAGE
    if (!huge) ::madvise(memory_.data(), bytes, MADV_NOHUGEPAGE);
#endif
    constexpr std::size_t piece = std::size_t{2} << 20;
    executor_.run(ceil_div(bytes, piece), [&](std::size_t task, std::size_t) noexcept {
      std::memset(memory_.data() + task * piece, 0x11, std::min(piece, bytes - task * piece));
    });
  }
  using List = tensor::AndPacked<Formats>;
  static constexpr std::size_t rows_at_once = 8192;  // of one product, as in a layer

  /// Seconds of work(): the median of some runs after one that warms up, or of one run if it is late.
  template <class F>
  [[nodiscard]] double time(std::size_t rounds, F&& work) {
    const auto is_late = [&] { return seconds_since(run_.start) > run_.long_seconds || !run_.continues(); };
    if (!is_late()) work();
    std::vector<double> seconds;
    do {
      const auto start = Clock::now();
      work();
      seconds.push_back(seconds_since(start));
    } while (seconds.size() < rounds && !is_late());
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    if (run_.on_piece != nullptr && *run_.on_piece) (*run_.on_piece)(++run_.done);
    return seconds[seconds.size() / 2];
  }

  /// A format of weights, packed as resident weights are, or as in a file.
  struct Weights {
    format::Id id;
    std::string_view name;
    std::size_t row_bytes;
    bool packed, quantized;  // quantized: integer formats multiply quantized tokens
  };
  template <class F>
  [[nodiscard]] static Weights weights(bool packed) noexcept {
    return {F::id, F::name, cols / F::block_size * sizeof(typename F::Block), packed && PackableFormat<F>,
            F::arithmetic == format::Arithmetic::integer};
  }
  /// Rows of the memory.
  [[nodiscard]] tensor::AnyMatrix<List> matrix(const Weights& w, std::size_t first,
                                               std::size_t rows) const noexcept {
    return {w.id, memory_.data() + first * w.row_bytes, rows, cols, w.packed};
  }

  [[nodiscard]] plan::FormatSpeed measure_weights(const Weights& w, std::size_t rounds) {
    check(w, 1);
    check(w, many);
    const std::size_t rows = memory_.size() / w.row_bytes / 64 * 64;
    const double one = time(rounds, [&] { multiply(w, 1, rows); });
    const double all = time(rounds, [&] { multiply(w, many, cols); });
    plan::FormatSpeed speed{static_cast<double>(rows * w.row_bytes) / one,
                            static_cast<double>(many * cols * cols) / all};
    for (const std::size_t tokens : more_tokens) {
      const std::size_t n = tokens < 64 ? round_up<std::size_t>(rows / 4, 64) : std::min(cols, rows);
      const double seconds = time(rounds, [&] { multiply(w, tokens, n); });
      speed.macs[tokens] = static_cast<double>(tokens * n * cols) / seconds;
    }
    return speed;
  }
  [[nodiscard]] plan::RowSpeed measure_rows(std::size_t rounds) {
    RowProbe<E, K> probe(executor_, {x_.data(), many, cols}, {y_.data(), many, cols}, codes(many),
                         {reinterpret_cast<float*>(memory_.data()), memory_.size() / sizeof(float)});
    return probe.measure([&](auto&& work) { return time(rounds, work); });
  }
  /// Seconds of a parallel run of as many tasks as small products have.
  [[nodiscard]] double measure_run(std::size_t rounds) {
    constexpr std::size_t times = 1000;
    return time(rounds,
                [&] {
                  for (std::size_t i = 0; i < times; ++i)
                    executor_.run(16 * executor_.workers(), [](std::size_t, std::size_t) noexcept {});
                }) /
           times;
  }

  /// y = x W^T with the first rows of the memory, as many of them together as fit into y.
  void multiply(const Weights& w, std::size_t tokens, std::size_t rows) noexcept {
    const MatrixView<const float> x(x_.data(), tokens, cols);
    const kernel::Input input{x, codes(tokens)};
    if (w.quantized) {
      executor_.run(tokens, [&](std::size_t t, std::size_t) noexcept {
        K::quantize(kernel::QuantizeArgs{x, codes(tokens), t, t + 1});
      });
    }
    for (std::size_t first = 0; first < rows; first += rows_at_once) {
      const std::size_t n = std::min(rows_at_once, rows - first);
      block::project<K>(executor_, input,
                        std::array{block::Product<List>{matrix(w, first, n), {y_.data(), tokens, n}}});
    }
  }

  /// The first row of a product by the specification, and all others beside it.
  void check(const Weights& w, std::size_t tokens) {
    constexpr std::size_t rows = 64;
    multiply(w, tokens, rows);
    std::vector<float> y(rows);
    matrix(w, 0, rows).visit([&](auto m) {
      using P = typename decltype(m)::Format;
      kernel::Scalar::template matmul<P>(
          kernel::MatmulArgs<P>{m, {{x_.data(), 1, cols}, codes(1)}, {y.data(), 1, rows}, 0, rows});
    });
    const bool good = std::all_of(y_.begin(), y_.begin() + static_cast<std::ptrdiff_t>(tokens * rows),
                                  [&](float found) { return found == y.front(); });
    MICA_CHECK(good, failed, w.name, ": a product of ", tokens,
               " tokens is not what the specification says; this build or this machine computes wrongly");
  }

  template <class Element>
  [[nodiscard]] plan::AttentionSpeed measure_element(std::size_t rounds) {
    constexpr std::size_t many_rows = 16 * group;
    const std::size_t head_bytes =
        context / format::tile_tokens * kv::tile_bytes(kv::Fixed<Element>(), head_dim);
    const std::size_t heads = std::min<std::size_t>(memory_.size() / head_bytes, 512),
                      few = std::min<std::size_t>(heads, 32);
    const auto run = [&](std::size_t n, std::size_t rows) {
      executor_.run(
          n, [&](std::size_t head, std::size_t worker) noexcept { attend<Element>(head, rows, worker); });
    };
    const double one = time(rounds, [&] { run(heads, group); });
    const double all = time(rounds, [&] { run(few, many_rows); });
    const auto macs = [](std::size_t n, std::size_t rows) {
      return static_cast<double>(2 * n * rows * context * head_dim);
    };
    plan::AttentionSpeed speed{static_cast<double>(heads * head_bytes) / one, macs(few, many_rows) / all};
    for (const std::size_t rows : more_rows) {
      const std::size_t n = rows < group ? heads : few;
      speed.macs[rows] = macs(n, rows) / time(rounds, [&] { run(n, rows); });
    }
    const double stored = time(rounds, [&] {
      executor_.run(heads, [&](std::size_t, std::size_t worker) noexcept { store<Element>(worker); });
    });
    speed.stored_numbers = static_cast<double>(heads * 2 * format::tile_tokens * head_dim) / stored;
    return speed;
  }

  /// Encodes the keys and values of a tile, as a step does.
  template <class Element>
  void store(std::size_t worker) noexcept {
    std::byte* const tile = reinterpret_cast<std::byte*>(scratch_[worker].tile.data());
    const MatrixView<const float> x(numbers_.data(), format::tile_tokens, head_dim);
    block::store_tokens<K, Element>({tile, 0, x, false});
    block::store_tokens<K, Element>({tile + Element::key_tile_bytes(head_dim), 0, x, true});
  }

  /// One KV head over its context for some rows.
  template <class Element>
  void attend(std::size_t head, std::size_t rows, std::size_t worker) noexcept {
    const std::size_t tile_bytes = kv::tile_bytes(kv::Fixed<Element>(), head_dim);
    const std::byte* tile = memory_.data() + head * (context / format::tile_tokens) * tile_bytes;
    Scratch& s = scratch_[worker];
    std::array<const std::byte*, kernel::chunk_tiles> tiles{}, ahead{};
    const auto next = [&](auto& to) {
      for (const std::byte*& each : to) each = std::exchange(tile, tile + tile_bytes);
    };
    std::fill_n(s.total_max.begin(), rows, -std::numeric_limits<float>::infinity());
    const kernel::AttentionState state{
        s.total_max.data(), s.total_sum.data(), {s.total.data(), rows, head_dim}};
    kernel::AttentionArgs args;
    args.tiles = tiles.data();
    args.ahead = ahead.data();
    args.value_offset = Element::key_tile_bytes(head_dim);
    args.head_dim = head_dim;
    args.scale = 0.1f;
    args.q = {s.q.data(), rows, head_dim};
    args.visible = s.visible.data();
    args.p = {s.p.data(), rows, kernel::chunk_tokens};
    args.max = s.max.data();
    args.sum = s.sum.data();
    args.out = {s.out.data(), rows, head_dim};
    next(ahead);
    for (std::size_t chunk = 0; chunk < context / kernel::chunk_tokens; ++chunk) {
      tiles = ahead;
      if (chunk + 1 < context / kernel::chunk_tokens) next(ahead);
      K::template attention_scores<Element>(args);
      K::attention_softmax(args);
      K::template attention_values<Element>(args);
      K::attention_merge(args, state);
    }
    K::attention_finish(state);
  }

  [[nodiscard]] kernel::QuantizedRows codes(std::size_t tokens) noexcept {
    return {codes_.data(), scales_.data(), sums_.data(), tokens, cols};
  }

  /// n numbers that are about normal.
  [[nodiscard]] static std::vector<float> noise(std::size_t n) {
    CounterRng rng(1);
    std::vector<float> numbers(n);
    for (float& x : numbers)
      x = static_cast<float>(rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2);
    return numbers;
  }

  /// The outputs of attention of one worker.
  struct Scratch {
    std::vector<float> q = std::vector<float>(16 * group * head_dim, 0.25f), out = q, total = q;
    std::vector<float> p = std::vector<float>(16 * group * kernel::chunk_tokens);
    std::vector<float> tile =
        std::vector<float>(2 * format::tile_tokens * head_dim);  // of the widest element
    std::vector<float> max = std::vector<float>(16 * group), sum = max, total_max = max, total_sum = max;
    std::vector<kernel::Visible> visible =
        std::vector<kernel::Visible>(16 * group, {0, kernel::chunk_tokens});
  };

  E& executor_;
  Run run_;
  alloc::Buffer<std::byte, alloc::Huge> memory_;
  std::vector<float> x_ = std::vector<float>(many * cols, 0.5f);
  std::vector<std::int8_t> codes_ = std::vector<std::int8_t>(many * cols);
  std::vector<float> scales_ = std::vector<float>(many * cols / 32);
  std::vector<std::int16_t> sums_ = std::vector<std::int16_t>(many * cols / 16);
  std::vector<float> y_ = std::vector<float>(many * rows_at_once);
  std::vector<float> numbers_ =
      noise(format::tile_tokens * head_dim);  // encoders search more where numbers differ
  std::vector<Scratch> scratch_;
};

}  // namespace mica::fit
