// SPDX-License-Identifier: Apache-2.0
//
// The oracle: every operation as a formula over dense float matrices, by Eigen. Weights and int8 activations
// are decoded first. It runs whole models and agrees with the specification within rounding, not bit for bit
// (docs/policies/kernels.md has the bounds): to check other kernels, and to try another formula in one line.
#pragma once

#include "mica/kernel/concept.hpp"

#include <Eigen/Core>

#include <limits>

namespace mica::kernel {

/// Kernels by Eigen, in vectors of the compiler's flags. A call decodes the rows of its slice, the keys or the
/// values that it sees into matrices of its own: bytes that no allocator policy counts. Where the system
/// refuses them, the program ends.
struct Eigen {
  static constexpr std::string_view name = "eigen";

 private:
  using Index = ::Eigen::Index;
  using Rows = ::Eigen::Matrix<float, ::Eigen::Dynamic, ::Eigen::Dynamic, ::Eigen::RowMajor>;
  using Row = ::Eigen::Array<float, 1, ::Eigen::Dynamic>;

  static auto row(std::span<const float> x) {
    return ::Eigen::Map<const Row>(x.data(), static_cast<Index>(x.size()));
  }
  static auto row(std::span<float> x) { return ::Eigen::Map<Row>(x.data(), static_cast<Index>(x.size())); }

  /// The activations a format multiplies by, as floats: (n, k).
  template <WeightFormat F>
  static Rows activations(const Input& x, std::size_t n, std::size_t k) {
    Rows out(static_cast<Index>(n), static_cast<Index>(k));
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t i = 0; i < k; ++i) {
        float& value = out(static_cast<Index>(t), static_cast<Index>(i));
        if constexpr (F::arithmetic == format::Arithmetic::integer) {
          value = x.codes.row_scales(t)[i / 32] * static_cast<float>(x.codes.row_codes(t)[i]);
        } else {
          value = x.values[t][i];
        }
      }
    }
    return out;
  }

  /// What a row sees, as floats: (last - first, head_dim).
  template <class Load>
  static Rows seen(const AttentionArgs& a, const Visible& v, Load&& load) {
    Rows out(v.last - v.first, static_cast<Index>(a.head_dim));
    for (std::size_t j = v.first; j < v.last; ++j) {
      load(a.tiles[j / format::tile_tokens], j % format::tile_tokens,
           out.row(static_cast<Index>(j - v.first)).data());
    }
    return out;
  }

 public:
  // Required by Kernels
  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    if (a.first >= a.last) return;
    const std::size_t n = a.y.rows(), k = a.w.cols();
    const Rows x = activations<F>(a.x, n, k);                             // (n, k)
    Rows w(static_cast<Index>(a.last - a.first), static_cast<Index>(k));  // (slice, k)
    for (std::size_t r = a.first; r < a.last; ++r)
      a.w.decode_row(r, w.row(static_cast<Index>(r - a.first)).data());
    const Rows y = x * w.transpose();  // (n, slice)
    for (std::size_t t = 0; t < n; ++t) {
      for (std::size_t r = a.first; r < a.last; ++r) {
        a.y[t][r] = (a.add ? a.y[t][r] : 0.0f) + y(static_cast<Index>(t), static_cast<Index>(r - a.first));
      }
    }
  }

  static void quantize(const QuantizeArgs& a) noexcept {
    const std::size_t cols = a.out.cols;
    for (std::size_t r = a.first; r < a.last; ++r) {
      for (std::size_t k = 0; k < cols; k += activation_group) {
        const auto x = row(a.x[r].subspan(k, activation_group));
        const float amax = x.abs().maxCoeff();
        const bool finite = x.isFinite().all(), zero = !finite || amax < activation_floor;
        const Row codes = zero ? Row::Zero(activation_group) : Row((x * (127.0f / amax)).rint());
        ::Eigen::Map<::Eigen::Array<std::int8_t, 1, activation_group>>(a.out.codes + r * cols + k) =
            codes.cast<std::int8_t>();
        a.out.scales[(r * cols + k) / 32] = !finite ? std::numeric_limits<float>::quiet_NaN()
                                            : zero  ? 0.0f
                                                    : amax / 127.0f;
        for (std::size_t h = 0; h < 2; ++h) {
          const float sum = codes.segment<16>(static_cast<Index>(16 * h)).sum();
          a.out.sums[(r * cols + k) / 16 + h] = static_cast<std::int16_t>(sum);
        }
      }
    }
  }

  static void rms_norm(const RmsNormArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r) {
      const auto x = row(a.x[r]);
      const float scale = 1.0f / std::sqrt(x.square().mean() + a.epsilon);
      row(a.y[r]) = (x * scale).eval();
      if (a.weight != nullptr) row(a.y[r]) *= row(std::span(a.weight, a.x.cols()));
    }
  }

  static void l2_norm(const L2NormArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r) {
      const auto x = row(a.x[r]);
      row(a.y[r]) = (x * (a.scale / std::sqrt(x.matrix().squaredNorm() + a.epsilon))).eval();
    }
  }

  static void layer_norm(const LayerNormArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r) {
      const Row x = row(a.x[r]) - row(a.x[r]).mean();
      row(a.y[r]) = x / std::sqrt(x.square().mean() + a.epsilon) * row(std::span(a.weight, a.x.cols()));
      if (a.bias != nullptr) row(a.y[r]) += row(std::span(a.bias, a.x.cols()));
    }
  }

  static void rope(const RopeArgs& a) noexcept {
    const auto half = static_cast<Index>(a.dims / 2);
    const Index step = a.pairs == RopePairs::adjacent ? 2 : 1;
    const std::size_t second = a.pairs == RopePairs::adjacent ? 1 : a.dims / 2;
    using Strided = ::Eigen::Map<Row, 0, ::Eigen::InnerStride<>>;
    for (std::size_t r = a.first; r < a.last; ++r) {
      const auto cos = row(a.cos[r]), sin = row(a.sin[r]);
      for (std::size_t h = 0; h < a.x.cols(); h += a.head_dim) {
        Strided x(a.x[r].data() + h, half, ::Eigen::InnerStride<>(step));
        Strided y(a.x[r].data() + h + second, half, ::Eigen::InnerStride<>(step));
        const Row turned = x * cos - y * sin;
        y = (x * sin + y * cos).eval();
        x = turned;
      }
    }
  }

  static void gated(const GatedArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r) {
      const Row gate = row(a.gate[r]);
      const Row up = a.up.rows() == 0 ? Row(Row::Ones(gate.size())) : Row(row(a.up[r]));
      auto out = row(a.out[r]);
      switch (a.kind) {
        case Gate::silu:
          out = gate / (1.0f + (-gate).exp()) * up;
          break;
        case Gate::gelu:
          out = 0.5f * gate * (1.0f + (0.797884561f * (gate + 0.044715f * gate.cube())).tanh()) * up;
          break;
        case Gate::gelu_erf:
          out = gate.unaryExpr([](float x) { return 0.5f * x * std::erfc(-x * 0.707106781f); }) * up;
          break;
        case Gate::sigmoid:
          out = up / (1.0f + (-gate).exp());
          break;
        case Gate::clamped: {
          const Row x = gate.min(ClampedGate::limit);
          out = x / (1.0f + (-ClampedGate::slope * x).exp()) *
                (up.max(-ClampedGate::limit).min(ClampedGate::limit) + 1.0f);
        }
      }
    }
  }

  static void add(const AddArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r) row(a.y[r]) += a.scale * row(a.x[r]);
  }

  static void scale(const ScaleArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r) row(a.x[r]) *= a.factor;
  }

  static void softcap(const SoftcapArgs& a) noexcept {
    for (std::size_t r = a.first; r < a.last; ++r)
      row(a.x[r]) = (a.cap * (row(a.x[r]) / a.cap).tanh()).eval();
  }

  static void causal_conv(const CausalConvArgs& a) noexcept {
    const auto n = static_cast<Index>(a.x.rows()), taps = static_cast<Index>(a.taps);
    ::Eigen::ArrayXf in(taps - 1 + n);
    for (std::size_t c = a.first; c < a.last; ++c) {
      for (Index t = 0; t < in.size(); ++t) {
        const auto at = static_cast<std::size_t>(t);
        in[t] = t < taps - 1 ? a.state[at][c] : a.x[at - (a.taps - 1)][c];
      }
      const ::Eigen::Map<const ::Eigen::VectorXf> weight(a.weight + c * a.taps, taps);
      for (Index t = 0; t < n; ++t) {
        const float sum = weight.dot(in.segment(t, taps).matrix());
        a.y[static_cast<std::size_t>(t)][c] = sum / (1.0f + std::exp(-sum));
      }
      for (std::size_t i = 0; i + 1 < a.taps; ++i) a.state[i][c] = in[n + static_cast<Index>(i)];
    }
  }

  static void delta_rule(const DeltaRuleArgs& a) noexcept {
    using Strided = ::Eigen::Map<Rows, 0, ::Eigen::OuterStride<>>;
    const auto count = static_cast<Index>(a.last - a.first), rows = static_cast<Index>(a.state.rows());
    Strided s(a.state.data() + a.first, rows, count,
              ::Eigen::OuterStride<>(static_cast<Index>(a.state.stride())));
    for (std::size_t t = 0; t < a.q.rows(); ++t) {
      const auto q = row(a.q[t]).matrix(), k = row(a.k[t]).matrix();  // (1, k_dim)
      s *= a.decay[t * a.decay_stride];
      const auto v = row(a.v[t].subspan(a.first, a.last - a.first)).matrix();
      const Rows u = a.beta[t * a.decay_stride] * (v - k * s);  // (1, columns)
      s += k.transpose() * u;
      row(a.out[t].subspan(a.first, a.last - a.first)) = (q * s).array();
    }
  }

  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      const Visible v = a.visible[r];
      if (v.empty()) continue;
      const Rows keys = seen(a, v, [&](const std::byte* tile, std::size_t slot, float* out) {
        E::load_key(tile, slot, a.head_dim, out);
      });
      const auto scores = keys * row(a.q[r]).matrix().transpose();  // (tokens)
      row(a.p[r]).segment(v.first, v.last - v.first) = (a.scale * scores).transpose().array();
    }
  }

  static void attention_softmax(const AttentionArgs& a) noexcept {
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      const Visible v = a.visible[r];
      if (v.empty()) continue;
      auto all = row(a.p[r]);
      auto p = all.segment(v.first, v.last - v.first);
      if (a.softcap != 0) p = (a.softcap * (p / a.softcap).tanh()).eval();
      a.max[r] = p.maxCoeff();
      p = (p - a.max[r]).exp();
      a.sum[r] = p.sum();
    }
  }

  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      const Visible v = a.visible[r];
      auto out = row(a.out[r]);
      if (!a.adds) out.setZero();
      if (v.empty()) continue;
      const Rows values = seen(a, v, [&](const std::byte* tile, std::size_t slot, float* number) {
        E::load_value(tile + a.value_offset, slot, a.head_dim, number);
      });
      const auto p = row(a.p[r]).segment(v.first, v.last - v.first);
      out += (p.matrix() * values).array();
    }
  }

  static void attention_merge(const AttentionArgs& a, const AttentionState& state) noexcept {
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      if (a.visible[r].empty()) continue;
      const float top = std::max(state.max[r], a.max[r]);
      const bool first = state.max[r] == -std::numeric_limits<float>::infinity();
      const float before = first ? 0.0f : std::exp(state.max[r] - top), now = std::exp(a.max[r] - top);
      state.max[r] = top;
      state.sum[r] = state.sum[r] * before + a.sum[r] * now;
      row(state.out[r]) = row(state.out[r]) * before + row(a.out[r]) * now;
    }
  }

  static void attention_finish(const AttentionState& state) noexcept {
    for (std::size_t r = 0; r < state.out.rows(); ++r) row(state.out[r]) /= state.sum[r];
  }
};

static_assert(Kernels<Eigen>);

}  // namespace mica::kernel
