// SPDX-License-Identifier: Apache-2.0
//
// Contract: attention of a few query rows over one chunk of tiles, and the merge of chunks. A row is one
// query head of one token; all rows share the KV head. Chunks are 256 tokens at absolute positions (0..255,
// 256..511, ...), so no result depends on which rows are computed together. Four kernels, called in this
// order for each chunk:
//
//   scores   s[j] for the visible tokens j of a row
//            real elements:  c = 0;  c = fma(q[i], key[j][i], c) for i in order;  s[j] = c * scale
//            Q8_0:           the query becomes 15-bit integers: qd = max |q| / 16383,
//                            qi = round to even(q * (16383 / max |q|))
//                            s[j] = (float(exact sum of qi * code) * (qd * scale)) * key scale[j]
//                            (all zero when max |q| < 1e-30; NaN when a q is not finite)
//                            fast8: 127 replaces 16383
//            blocks:         with integer queries as for Q8_0, b being blocks of 32 dimensions:
//                            c = 0;  c = fma(float(exact sum of qi * code in b), scale[b][j], c) for b in order
//                            with minima, also for b in order:  c = fma(float(sum of qi in b), minimum[b][j], c)
//                            s[j] = c * (qd * scale)
//            KIVI:           step[i], minimum[i] of channel i of a tile: the factor of its codes, the value of
//                            code 0
//                            c = 0;  c = fma(q[i] * step[i], code, c) for i in order
//                            s[j] = (c + the sum of q[i] * minimum[i] in chain i % 16, then tree16) * scale
//   softmax  with a softcap: s[j] = softcap * tanh(s[j] * (1 / softcap)) (kernel/elementwise.hpp); then
//            m = max s[j];  p[j] = exp(s[j] - m), fast8: quick_exp (kernel/activation.hpp);
//            l = the sum of p[j] in chain j % 16, then tree16 (kernel/matmul.hpp)
//   values   o[i] = 0, or with `adds` unchanged;  o[i] = fma(p[j] * value scale[j], code or number, o[i]) for
//            visible j in order
//            (p[j] * scale[b][j] for blocks and groups of KIVI, p[j] alone for real elements)
//            Q8_0:           w[j] = p[j] * value scale[j] become integers as queries do, 32639 replacing 16383
//                            (fast8: 255):
//                            o[i] = fma(float(exact sum of wi[j] * code over all visible j), wd, o[i])
//            with minima, then:  o[i] += the sum of p[j] * minimum[b][j] in chain j % 16, then tree16
//   merge    the first chunk of a row is taken as it is; later ones, with M, L, O the state so far:
//            N = max(M, m);  a = exp(M - N);  b = exp(m - N);  L = fma(L, a, l * b);
//            O[i] = fma(O[i], a, o[i] * b)
//            and after the last chunk every O[i] is multiplied by 1 / L.
//
// Of a rotated element, scores takes the rotated query and values rotates o at its end
// (format/detail/rotation.hpp), and with `adds` at its beginning. A chunk some of whose tiles are in another
// element is two calls of scores and two of values, the second with `adds`: each row sees in a call what is
// in its element. A row that sees nothing keeps its o where `adds` is set.
#pragma once

#include "mica/base/matrix_view.hpp"
#include "mica/format/concept.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace mica::kernel {

inline constexpr std::size_t chunk_tiles = 16;                                  // of an attention chunk
inline constexpr std::size_t chunk_tokens = chunk_tiles * format::tile_tokens;  // 256

/// The widest head that the kernels take.
inline constexpr std::size_t max_head_dim = 512;

/// The largest integers of a query and of a row of weights. Each is two signed bytes, upper and lower, with a
/// step of 128 or 256, and sums of 512 products of the one or 256 of the other with bytes fit into 32 bits.
inline constexpr float query_top = 16383, weight_top = 32639;
/// With fast8 queries are int8. Weights are not negative, and are uint8.
inline constexpr float fast8_query_top = 127, fast8_weight_top = 255;

/// Tokens [first, last) of a chunk that a row sees; empty when first >= last.
struct Visible {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  [[nodiscard]] constexpr bool empty() const noexcept { return first >= last; }
};

/// One KV head, one chunk, some rows. A tile begins with the key part; the value part is at `value_offset`.
struct AttentionArgs {
  const std::byte* const* tiles = nullptr;  // (up to chunk_tiles); those that no row sees may be null
  std::size_t value_offset = 0;             // bytes
  std::size_t head_dim = 0;                 // 1 to max_head_dim
  float scale = 1;                          // of scores, before the softcap
  MatrixView<const float> q;                // (rows, head_dim)
  const Visible* visible = nullptr;         // (rows)
  MatrixView<float> p;                      // (rows, 256): scores, then probabilities
  float* max = nullptr;                     // (rows) m of this chunk
  float* sum = nullptr;                     // (rows) l of this chunk
  MatrixView<float> out;                    // (rows, head_dim) o of this chunk
  float softcap = 0;                        // soft cap of visible scores, applied before the maximum; 0: none
  bool adds = false;                        // values are added to `out`
  const std::byte* const* ahead = nullptr;  // (chunk_tiles) a hint: those read next; may be null
  bool fast8 = false;                       // over Q8_0: integers of one byte; of any element: quick_exp

  /// The largest integers of a query and of a row of weights, where keys and values are Q8_0.
  [[nodiscard]] constexpr float query_max() const noexcept { return fast8 ? fast8_query_top : query_top; }
  [[nodiscard]] constexpr float weight_max() const noexcept { return fast8 ? fast8_weight_top : weight_top; }
};

/// Keys or values of tokens that follow each other in one tile, of one KV head.
struct StoreArgs {
  std::byte* tile = nullptr;  // the part of the tile for keys or for values
  std::size_t slot = 0;       // of the first token
  MatrixView<const float> x;  // (n, head_dim): slots [slot, slot + n), at most 16
  bool values = false;
};

/// Kernels that store element E themselves, with the bits of E: they have
/// `template <class E> static void store(const StoreArgs&) noexcept`. Others use kernel::scalar::store<E>.
// clang-format off
template <class K, class E>
concept Stores = requires(const StoreArgs& a) {
  { K::template store<E>(a) } noexcept -> std::same_as<void>;
};
// clang-format on

/// The state of rows across chunks.
struct AttentionState {
  float* max = nullptr;   // (rows) M; -infinity: no chunk yet
  float* sum = nullptr;   // (rows) L
  MatrixView<float> out;  // (rows, head_dim) O
};

}  // namespace mica::kernel
