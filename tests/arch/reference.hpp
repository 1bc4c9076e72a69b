// SPDX-License-Identifier: Apache-2.0
//
// The pieces of a model in double precision, straight from their formulas and for all positions at once. It
// shares no code with the blocks: families' tests put it together in their own way and compare logits.

#pragma once

#include "arch/family_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <vector>

namespace mica::test::reference {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // by position

inline constexpr double epsilon = 1e-5;

/// w x for rows [first, first + count) of w; without a count all.
inline Row times(const Numbers& w, const Row& x, std::size_t first = 0, std::size_t count = 0) {
  Row y(count == 0 ? w.rows : count);
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t k = 0; k < x.size(); ++k) y[r] += w.at(first + r, k) * x[k];
  }
  return y;
}

inline Row add(Row x, const Row& y, double scale = 1) {
  for (std::size_t k = 0; k < x.size(); ++k) x[k] += scale * y[k];
  return x;
}
inline Row add(Row x, const Numbers& bias) {
  for (std::size_t k = 0; k < x.size(); ++k) x[k] += static_cast<double>(bias.values[k]);
  return x;
}
inline Row scaled(Row x, double factor) {
  for (double& v : x) v *= factor;
  return x;
}

/// RMSNorm over pieces of `piece` numbers, by a weight that all of them share.
inline Row normed(Row x, const Numbers* weight = nullptr, std::size_t piece = 0) {
  if (piece == 0) piece = x.size();
  for (std::size_t first = 0; first < x.size(); first += piece) {
    double squares = 0;
    for (std::size_t k = 0; k < piece; ++k) squares += x[first + k] * x[first + k];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(piece) + epsilon);
    for (std::size_t k = 0; k < piece; ++k) {
      x[first + k] *= scale * (weight == nullptr ? 1.0 : static_cast<double>(weight->values[k]));
    }
  }
  return x;
}
inline Row normed(const Row& x, const Numbers& weight, std::size_t piece = 0) {
  return normed(x, &weight, piece);
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

inline double exact_gelu(double x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2); }

/// LayerNorm; the bias may be null.
inline Row layer_normed(Row x, const Numbers& weight, const Numbers* bias) {
  double mean = 0, squares = 0;
  const auto n = static_cast<double>(x.size());
  for (const double v : x) mean += v / n;
  for (const double v : x) squares += (v - mean) * (v - mean) / n;
  for (std::size_t k = 0; k < x.size(); ++k) {
    x[k] = (x[k] - mean) / std::sqrt(squares + epsilon) * static_cast<double>(weight.values[k]);
    if (bias != nullptr) x[k] += static_cast<double>(bias->values[k]);
  }
  return x;
}
/// By the tensors of a name, "blk.0.attn_output_norm"; without a bias where the file has none.
inline Row layer_normed(const FamilyFile& file, Row x, const std::string& name) {
  const bool has_bias = file.has(name + ".bias");
  return layer_normed(std::move(x), file[name + ".weight"], has_bias ? &file[name + ".bias"] : nullptr);
}

/// act(gate) * up.
template <class Act>
Row gated(Row gate, const Row& up, Act act) {
  for (std::size_t k = 0; k < gate.size(); ++k) gate[k] = act(gate[k]) * up[k];
  return gate;
}

/// The dense block of layer i.
template <class Act>
Row feed_forward(const FamilyFile& file, std::size_t i, const Row& x, Act act) {
  const Row hidden = gated(times(file.layer(i, "ffn_gate"), x), times(file.layer(i, "ffn_up"), x), act);
  return times(file.layer(i, "ffn_down"), hidden);
}

/// Attention of one layer.
struct Attention {
  std::size_t heads, kv_heads, head_dim;
  double scale;            // of scores
  bool halves = true;      // what rotates together: numbers dims / 2 apart, or neighbours
  std::size_t dims = 0;    // that rotate; 0: none
  double base = 10000;     // of the angles
  std::size_t window = 0;  // 0: everything is seen
  bool v_norm = false;
  bool both_ways = false;           // tokens behind are seen too
  std::vector<double> slopes = {};  // of heads: what a score loses for each token of distance
  std::function<bool(std::size_t, std::size_t)> sees =
      {};  // of position and token: whether it is not hidden; empty: none is
  std::function<void(std::size_t, std::size_t, double)> query_scores =
      {};  // gets position, token and its share, of each head
};

inline void rotate(Row& x, std::size_t position, const Attention& a) {
  for (std::size_t head = 0; head < x.size(); head += a.head_dim) {
    for (std::size_t i = 0; i < a.dims / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(a.dims);
      const double angle = static_cast<double>(position) * std::pow(a.base, exponent);
      double& p = x[head + (a.halves ? i : 2 * i)];
      double& q = x[head + (a.halves ? i + a.dims / 2 : 2 * i + 1)];
      const double turned = p * std::cos(angle) - q * std::sin(angle);
      q = p * std::sin(angle) + q * std::cos(angle);
      p = turned;
    }
  }
}

/// softmax(q k) v of one position.
inline Row attend(const Attention& a, const Row& q, const Rows& k, const Rows& v, std::size_t position) {
  const std::size_t d = a.head_dim;
  const std::size_t first = a.window == 0 || position < a.window ? 0 : position + 1 - a.window;
  const std::size_t reach = a.window == 0 ? k.size() : a.window,
                    last = std::min(k.size(), position + reach) - 1;
  const std::size_t end = a.both_ways ? last : position;
  Row out(a.heads * d);
  for (std::size_t h = 0; h < a.heads; ++h) {
    const std::size_t kv = h / (a.heads / a.kv_heads) * d;
    double sum = 0;
    std::vector<double> weights(end + 1);
    for (std::size_t t = first; t <= end; ++t) {
      if (a.sees && !a.sees(position, t)) continue;
      double score = 0;
      for (std::size_t c = 0; c < d; ++c) score += q[h * d + c] * k[t][kv + c];
      const double distance = std::fabs(static_cast<double>(t) - static_cast<double>(position));
      const double penalty = a.slopes.empty() ? 0 : a.slopes[h] * distance;
      const double weight = weights[t] = std::exp(score * a.scale - penalty);
      sum += weight;
      for (std::size_t c = 0; c < d; ++c) out[h * d + c] += weight * v[t][kv + c];
    }
    for (std::size_t c = 0; c < d; ++c) out[h * d + c] /= sum;
    for (std::size_t t = first; a.query_scores && t <= end; ++t)
      a.query_scores(position, t, weights[t] / sum);
  }
  return out;
}

/// Keys and values of a layer, for all positions.
struct Kept {
  Rows k, v;
};

inline Row with_bias(const FamilyFile& file, std::size_t i, const std::string& part, Row x) {
  const std::string name = arch::tensor_names::layer_bias(i, part);
  return file.has(name) ? add(std::move(x), file[name]) : x;
}

/// What layer i keeps of x, which is normed. Values are the keys where the file has none.
inline Kept keep(const FamilyFile& file, std::size_t i, const Attention& a, const Rows& x) {
  const std::string norm = arch::tensor_names::layer(i, "attn_k_norm");
  Kept kept;
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row k = with_bias(file, i, "attn_k", times(file.layer(i, "attn_k"), x[t]));
    const bool own = file.has(arch::tensor_names::layer(i, "attn_v"));
    Row v = own ? with_bias(file, i, "attn_v", times(file.layer(i, "attn_v"), x[t])) : k;
    if (file.has(norm)) k = normed(k, file[norm], a.head_dim);
    rotate(k, t, a);
    kept.k.push_back(std::move(k));
    kept.v.push_back(a.v_norm ? normed(std::move(v), nullptr, a.head_dim) : std::move(v));
  }
  return kept;
}

/// What attention of layer i makes of x, which is normed. growth(position): a factor of the query.
template <class Growth>
Rows attention(const FamilyFile& file, std::size_t i, const Attention& a, const Rows& x, const Kept& kept,
               Growth growth) {
  const std::string norm = arch::tensor_names::layer(i, "attn_q_norm");
  Rows out;
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row q = with_bias(file, i, "attn_q", times(file.layer(i, "attn_q"), x[t]));
    if (file.has(norm)) q = normed(q, file[norm], a.head_dim);
    rotate(q, t, a);
    q = scaled(q, growth(t));
    const Row seen = attend(a, q, kept.k, kept.v, t);
    out.push_back(with_bias(file, i, "attn_output", times(file.layer(i, "attn_output"), seen)));
  }
  return out;
}
inline Rows attention(const FamilyFile& file, std::size_t i, const Attention& a, const Rows& x) {
  return attention(file, i, a, x, keep(file, i, a, x), [](std::size_t) { return 1.0; });
}

inline Rows normed_rows(const Rows& x, const Numbers& weight) {
  Rows out;
  for (const Row& row : x) out.push_back(normed(row, weight));
  return out;
}

/// The rows of the embedding, times `scale`.
inline Rows embedded(const FamilyFile& file, std::span<const text::TokenId> ids, double scale = 1) {
  const Numbers& table = file["token_embd.weight"];
  Rows out;
  for (const text::TokenId id : ids) {
    Row row(table.cols);
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = scale * table.at(id, k);
    out.push_back(std::move(row));
  }
  return out;
}

/// The head, which is the embedding where the file has none.
inline Rows logits(const FamilyFile& file, const Rows& x, double scale = 1, double softcap = 0) {
  const bool own = file.has("output.weight");
  Rows out;
  for (const Row& row : x) {
    Row y = scaled(
        times(file[own ? "output.weight" : "token_embd.weight"], normed(row, file["output_norm.weight"])),
        scale);
    for (double& v : y) v = softcap == 0 ? v : softcap * std::tanh(v / softcap);
    out.push_back(std::move(y));
  }
  return out;
}

/// The sum of the `used` best experts of layer i, weighted by softmax(scores); their weights sum to 1 where
/// normalized.
template <class Act>
Row experts(const FamilyFile& file, std::size_t i, const Row& x, Row scores, std::size_t used,
            bool normalized, Act act, const Numbers* factors = nullptr) {
  double sum = 0, chosen = 0;
  for (double& s : scores) sum += s = std::exp(s);
  const Numbers& up = file.layer(i, "ffn_up_exps");
  const std::size_t count = scores.size(), ff = up.rows / count, width = x.size();
  std::vector<std::size_t> order(count);
  for (std::size_t e = 0; e < count; ++e) order[e] = e;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  for (std::size_t n = 0; n < used; ++n) chosen += scores[order[n]];
  Row y(width);
  for (std::size_t n = 0; n < used; ++n) {
    const std::size_t e = order[n];
    const Row hidden =
        gated(times(file.layer(i, "ffn_gate_exps"), x, e * ff, ff), times(up, x, e * ff, ff), act);
    const double factor = factors == nullptr ? 1.0 : static_cast<double>(factors->values[e]);
    y = add(y, times(file.layer(i, "ffn_down_exps"), hidden, e * width, width),
            factor * scores[e] / (normalized ? chosen : sum));
  }
  return y;
}

}  // namespace mica::test::reference
