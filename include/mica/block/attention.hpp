// SPDX-License-Identifier: Apache-2.0
//
// The block of attention: queries, keys and values of the normed residual stream, attention over the keys and
// values of the sequence (block/detail/attend.hpp), and the output. The keys and values are those of this
// layer or of an earlier one.
#pragma once

#include "mica/block/concept.hpp"
#include "mica/block/detail/attend.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace mica::block {

struct Attention : Divided {
  // Required by Block
  static constexpr std::string_view name = "attention";
  using Config = AttentionConfig;
  /// Fused tensors are cut into rows.
  struct Tensors {
    TensorRef norm, norm_bias;                      // (width)
    TensorRef q, k, v;                              // (heads * q_stride, width), (kv_width, width) x 2
    TensorRef output;                               // (width, q_width)
    TensorRef q_bias, k_bias, v_bias, output_bias;  // one number per row
    TensorRef q_norm, k_norm;                       // (head_dim)
    TensorRef sinks;                                // (heads)
    TensorRef post_norm;                            // (width)
  };
  struct Buffers {
    MatrixView<float> queries;       // (n, heads * q_stride)
    MatrixView<float> keys, values;  // (n, kv_width)
    MatrixView<float> attended;      // (n, q_width)
    MatrixView<float> workers;       // (workers, AttentionScratch::floats)
    MatrixView<float> gathered;      // (n, all_q_width), of all ranks; empty: the layer is not divided
  };
  [[nodiscard]] static Config own(const Config& c, const ranks::Division& ranks) { return c.own(ranks); }
  [[nodiscard]] static Tensors bind(TensorBinder& files, const Config& c) {
    const ranks::Part heads = c.kv_part(), q = heads.times(c.group() * c.q_stride()),
                      kv = heads.times(c.head_dim);
    const std::size_t width = files.width(), all = q.all + 2 * kv.all;
    Tensors t;
    if (c.pre_norm) {
      t.norm = files.norm("attn_norm.weight");
      t.norm_bias = files.norm_if_there("attn_norm.bias");
    }
    if (c.stores_kv() && !files.has("attn_q.weight") && files.has("attn_qkv.weight")) {
      t.q = files.matrix("attn_qkv.weight", all, width, 0, q);
      t.k = files.matrix("attn_qkv.weight", all, width, q.all, kv);
      t.v = files.matrix("attn_qkv.weight", all, width, q.all + kv.all, kv);
    } else {
      t.q = files.matrix("attn_q.weight", q, width);
      if (c.stores_kv()) {
        t.k = files.matrix("attn_k.weight", kv, width);
        if (!c.v_from_k) t.v = files.matrix("attn_v.weight", kv, width);
      }
    }
    t.output = files.matrix("attn_output.weight", c.divided.all == 0 ? ranks::all_of(width) : files.outputs(),
                            c.all_q_width());
    bind_biases(files, c, t);
    if (c.head_norm == HeadNorm::weighted) {
      t.q_norm = files.vector("attn_q_norm.weight", c.head_dim);
      if (c.stores_kv()) t.k_norm = files.vector("attn_k_norm.weight", c.head_dim);
    }
    if (c.sinks) t.sinks = files.vector("attn_sinks.weight", heads.times(c.group()));
    if (c.post_norm) t.post_norm = files.norm("post_attention_norm.weight");
    return t;
  }
  [[nodiscard]] static Buffers buffers(Scratch& scratch, const Config& c) noexcept {
    scratch.input(c.all_q_width());
    scratch.branch(c.post_norm);
    Buffers b;
    b.queries = scratch.rows(c.heads * c.q_stride());
    if (c.stores_kv()) {
      b.keys = scratch.rows(c.kv_width());
      b.values = scratch.rows(c.kv_width());
    }
    b.attended = scratch.rows(c.q_width());
    b.workers = scratch.rows(scratch.sizes().workers, AttentionScratch::floats(c.group(), c.head_dim));
    if (c.divided.all != 0) b.gathered = scratch.exchanged(c.all_q_width());
    return b;
  }
  static void plan(StatePlan& state, const Config& c) {
    if (c.bidirectional) return state.pass_kv(c.kv_heads, c.head_dim);
    if (c.stores_kv()) state.store_kv(c.kv_heads, c.head_dim, c.divided);
    state.read_kv(c.kv_source, c.reach, c.reach_tokens);
  }
  template <class Step>
  [[nodiscard]] static bool run(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    if (!fetch(step)) return false;
    project_heads(step, c, t, b);
    if (c.kv_heads != 0) attend(step, c, t, b);  // a rank may have none
    if (c.divided.all == 0) {
      step.add_product(b.attended, t.output, t.post_norm, step.vector(t.output_bias), c.second_codes);
      return true;
    }
    const DividedRows rows{b.attended, c.group() * c.head_dim, b.gathered};
    return step.add_divided(rows, t.output, t.post_norm, step.vector(t.output_bias));
  }

 private:
  static void bind_biases(TensorBinder& files, const Config& c, Tensors& t) {
    const ranks::Part heads = c.kv_part(), q = heads.times(c.group() * c.q_stride()),
                      kv = heads.times(c.head_dim);
    if (c.qkv_bias && !files.has("attn_q.bias") && files.has("attn_qkv.bias")) {
      const std::size_t all = q.all + 2 * kv.all;
      t.q_bias = files.vector("attn_qkv.bias", all, 0, q);
      t.k_bias = files.vector("attn_qkv.bias", all, q.all, kv);
      t.v_bias = files.vector("attn_qkv.bias", all, q.all + kv.all, kv);
    } else if (c.qkv_bias) {
      t.q_bias = files.vector("attn_q.bias", q);
      t.k_bias = files.vector("attn_k.bias", kv);
      t.v_bias = files.vector("attn_v.bias", kv);
    }
    if (c.output_bias) t.output_bias = files.vector("attn_output.bias", files.width());
  }
  /// Brings keys and values that are not in memory, and announces those of the next block that reads some; of
  /// the first one at the end.
  template <class Step>
  [[nodiscard]] static bool fetch([[maybe_unused]] Step& step) noexcept {
    if constexpr (SpillingStorage<typename Step::Storage>) {
      const auto each = [&](std::size_t kv, auto&& f) {
        const std::size_t old = step.kv().old_layer(kv);
        for (const auto& part : step.parts()) {
          if (!f(part.cache->storage, kv)) return false;
          if (old != none && !f(part.cache->storage, old)) return false;
        }
        return true;
      };
      if (!each(step.place().kv, [](auto& storage, std::size_t layer) { return storage.fetch(layer); }))
        return false;
      const std::span<const std::size_t> readers = step.kv().plan().readers();
      const std::size_t next = readers[(step.place().reader + 1) % readers.size()];
      each(next, [](auto& storage, std::size_t layer) { return storage.prefetch(layer), true; });
    }
    return true;
  }
  template <class Step>
  static void attend(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    decltype(step.kv_view(0))::template attend_all<typename Step::Kernels>(
        step.executor(), step.parts().size(), step.rows(),
        [&](std::size_t part) { return context(step, c, t, b, part); },
        [&](std::size_t worker) { return b.workers[worker].data(); });
  }
  template <class Step>
  static void project_heads(Step& step, const Config& c, const Tensors& t, const Buffers& b) noexcept {
    using Kernels = typename Step::Kernels;
    using Product = typename Step::Product;
    const auto wq = step.matrix(t.q), wk = step.matrix(t.k), wv = step.matrix(t.v);
    const bool codes = step.wants_codes(wq, wk, wv);
    const auto x = c.pre_norm ? step.norm(t.norm, codes, t.norm_bias) : kernel::Input{step.residual(), {}};
    std::array<Product, 3> products{Product{wq, b.queries, false, step.vector(t.q_bias)}};
    std::size_t count = 1;
    step.observe(t.q, x.values);
    if (c.stores_kv()) {
      products[count++] = {wk, b.keys, false, step.vector(t.k_bias)};
      step.observe(t.k, x.values);
    }
    if (c.stores_kv() && !c.v_from_k) {
      products[count++] = {wv, b.values, false, step.vector(t.v_bias)};
      step.observe(t.v, x.values);
    }
    const auto all = std::span<const Product>(products).first(count);
    if (c.pre_norm)
      project<Kernels>(step.executor(), x, all);
    else
      quantize_and_project<Kernels>(step.executor(), x.values,
                                    InputCodes{step.codes(step.width()), codes, c.second_codes}, all);
    if (!c.stores_kv() || !c.v_from_k) return;
    step.executor().run(step.rows(), [&](std::size_t row, std::size_t) noexcept {
      std::copy(b.keys[row].begin(), b.keys[row].end(), b.values[row].begin());
    });
  }
  template <class Step>
  [[nodiscard]] static auto context(Step& step, const Config& c, const Tensors& t, const Buffers& b,
                                    std::size_t part) noexcept {
    const auto rows = step.rows_of(part);
    const auto own = [rows](auto all) { return all.rows() == 0 ? all : all.rows(rows.first, rows.count); };
    AttentionContext<decltype(step.kv_view(part))> context{.layer = c,
                                                           .kv = step.kv_view(part),
                                                           .epsilon = step.epsilon(),
                                                           .q = own(b.queries),
                                                           .k = own(b.keys),
                                                           .v = own(b.values),
                                                           .out = own(b.attended),
                                                           .q_norm = step.vector(t.q_norm),
                                                           .k_norm = step.vector(t.k_norm),
                                                           .sinks = step.vector(t.sinks),
                                                           .fast8 = step.rounds_every_product()};
    if (c.rotates()) {
      const auto angles = step.angles(c.rope);
      context.cos = own(angles.cos);
      context.sin = own(angles.sin);
      context.pairs = angles.pairs;
    }
    return context;
  }
};
static_assert(Block<Attention>);

}  // namespace mica::block
