// SPDX-License-Identifier: Apache-2.0
//
// The change of a tensor's numbers in a conversion: rows and columns in another order, a transposition, a
// function of each value. Everything a family does to a tensor is one of these, so that a family is a table.
#pragma once

#include "mica_tools/convert/config.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

/// The rows (or columns) that are taken, and their order.
enum class Order : std::uint8_t {
  all,              ///< in their order
  q_pairs,          ///< halves of a head interleaved, for rotation of adjacent pairs; query heads
  k_pairs,          ///< the same for key heads
  first_half,       ///< of a fused matrix
  second_half,      ///< of a fused matrix
  even,             ///< of an interleaved matrix
  odd,              ///< of an interleaved matrix
  value_heads,      ///< delta net: from grouped by key head to key head = value head mod key heads
  qkv_value_heads,  ///< the same behind queries and keys
  grouped_qkv,      ///< delta net: q, k, v out of (q, k, v, z) for each key head
  grouped_z,        ///< the z of it
  behind_padding,   ///< of learned positions: all behind row pad_token_id, which belongs to padding
};

/// The function of each value.
enum class Function : std::uint8_t { same, plus_one, negative_exp };

struct Change {
  Order rows = Order::all;             ///< those that the file gets, in its order
  Order columns = Order::all;          ///< the same for columns
  Function function = Function::same;  ///< after the order of both
  bool transposed = false;             ///< before rows and columns are counted
  bool padded = false;                 ///< rows of zeros up to the vocabulary
};

namespace detail {

using Indices = std::vector<std::uint32_t>;

[[nodiscard]] inline Indices pairs(std::uint64_t n, std::uint64_t heads) {
  const std::uint64_t dim = n / heads;
  Indices out;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t within = i % dim;
    out.push_back(static_cast<std::uint32_t>(i - within + within % 2 * (dim / 2) + within / 2));
  }
  return out;
}

[[nodiscard]] inline Indices every(std::uint64_t first, std::uint64_t last, std::uint64_t step) {
  Indices out;
  for (std::uint64_t i = first; i < last; i += step) out.push_back(static_cast<std::uint32_t>(i));
  return out;
}

/// The head counts of a delta net.
struct DeltaHeads {
  std::uint64_t keys, values, key_dim, value_dim;

  explicit DeltaHeads(const Config& config)
      : keys(config.count("linear_num_key_heads")),
        values(config.count("linear_num_value_heads")),
        key_dim(config.count("linear_key_head_dim")),
        value_dim(config.count("linear_value_head_dim")) {
    MICA_CHECK(keys > 0 && values > 0 && values % keys == 0 && key_dim > 0 && value_dim > 0 &&
                   values < 65536 && key_dim < 65536 && value_dim < 65536,
               file, config.path(), ": ", values, " linear value heads of ", value_dim, ", ", keys,
               " key heads of ", key_dim, "; value heads must be a multiple of key heads");
  }
  [[nodiscard]] std::uint64_t per_key() const noexcept { return values / keys; }
};

/// n elements from `first` on belong to the value heads.
[[nodiscard]] inline Indices value_heads(std::uint64_t first, std::uint64_t n, const DeltaHeads& heads) {
  const std::uint64_t dim = n / heads.values;
  Indices out = every(0, first, 1);
  for (std::uint64_t r = 0; r < heads.per_key(); ++r) {
    for (std::uint64_t k = 0; k < heads.keys; ++k) {
      const std::uint64_t head = first + (k * heads.per_key() + r) * dim;
      for (std::uint64_t i = 0; i < dim; ++i) out.push_back(static_cast<std::uint32_t>(head + i));
    }
  }
  return out;
}

/// A part of each key head's group, one group after the other.
inline void append_part(const DeltaHeads& heads, std::uint64_t first, std::uint64_t n, Indices& out) {
  const std::uint64_t group = 2 * (heads.key_dim + heads.per_key() * heads.value_dim);
  for (std::uint64_t k = 0; k < heads.keys; ++k) {
    for (std::uint64_t i = 0; i < n; ++i) out.push_back(static_cast<std::uint32_t>(k * group + first + i));
  }
}

[[nodiscard]] inline Indices grouped(bool z, const DeltaHeads& heads) {
  const std::uint64_t values = heads.per_key() * heads.value_dim;
  Indices out;
  if (z) {
    append_part(heads, 2 * heads.key_dim + values, values, out);
  } else {
    append_part(heads, 0, heads.key_dim, out);
    append_part(heads, heads.key_dim, heads.key_dim, out);
    append_part(heads, 2 * heads.key_dim, values, out);
  }
  return out;
}

/// Raises an error with the number of rows or columns that were needed instead of n.
[[noreturn]] inline void refuse_count(std::uint64_t n, std::string_view needed, std::uint64_t wanted,
                                      const std::string& where) {
  raise(ErrorCode::file, where, ": ", n, " rows or columns; needed: ", needed, wanted);
}

/// The orders of delta nets.
[[nodiscard]] inline Indices delta_indices(Order order, std::uint64_t n, const Config& config,
                                           const std::string& where) {
  const DeltaHeads heads(config);
  const std::uint64_t keys = 2 * heads.keys * heads.key_dim;
  const std::uint64_t values = heads.values * heads.value_dim;
  if (order == Order::value_heads) {
    if (n == 0 || n % heads.values != 0) refuse_count(n, "a multiple of ", heads.values, where);
    return value_heads(0, n, heads);
  }
  const std::uint64_t wanted = keys + (order == Order::qkv_value_heads ? 1 : 2) * values;
  if (n != wanted) refuse_count(n, "", wanted, where);
  if (order == Order::qkv_value_heads) return value_heads(keys, values, heads);
  return grouped(order == Order::grouped_z, heads);
}

}  // namespace detail

/// The row of learned positions that the first token of a text has, where they are numbered from the padding
/// on.
[[nodiscard]] inline std::uint64_t first_position(const Config& config) {
  return config.has("pad_token_id") ? config.count("pad_token_id") + 1 : 0;
}

/// The source index of each target index, among n; empty for Order::all. `where` begins an error text.
/// Raises ErrorCode::file when n is not what the order needs.
[[nodiscard]] inline std::vector<std::uint32_t> indices(Order order, std::uint64_t n, const Config& config,
                                                        const Sizes& sizes, const std::string& where) {
  const auto need_multiple = [&](std::uint64_t of) {
    if (n == 0 || n % of != 0) detail::refuse_count(n, "a multiple of ", of, where);
  };
  switch (order) {
    case Order::all:
      return {};
    case Order::q_pairs:
      need_multiple(2 * sizes.heads);
      return detail::pairs(n, sizes.heads);
    case Order::k_pairs:
      need_multiple(2 * sizes.kv_heads);
      return detail::pairs(n, sizes.kv_heads);
    case Order::first_half:
    case Order::second_half:
      need_multiple(2);
      return order == Order::first_half ? detail::every(0, n / 2, 1) : detail::every(n / 2, n, 1);
    case Order::behind_padding: {
      const std::uint64_t first = first_position(config);
      if (n <= first) detail::refuse_count(n, "more than ", first, where);
      return detail::every(first, n, 1);
    }
    case Order::even:
    case Order::odd:
      need_multiple(2);
      return detail::every(order == Order::odd ? 1 : 0, n, 2);
    default:
      return detail::delta_indices(order, n, config, where);
  }
}

/// Applies a function to each of some values.
inline void apply(Function function, std::span<float> values) noexcept {
  if (function == Function::plus_one) {
    for (float& value : values) value += 1.0F;
  } else if (function == Function::negative_exp) {
    for (float& value : values) value = -std::exp(value);
  }
}

}  // namespace mica::convert
