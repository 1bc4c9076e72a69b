// SPDX-License-Identifier: Apache-2.0
//
// One step: it runs the layers, and has the members that blocks use. These are the residual stream, the
// tensors as matrices and vectors, the state of each sequence, and the operations that several blocks need.
//
//   embeddings -> begin -> [ block, block, ... ] x layers -> end -> hidden (n, width)
#pragma once

#include "mica/arch/config.hpp"
#include "mica/base/token_id.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"
#include "mica/block/scratch.hpp"
#include "mica/model/detail/activations.hpp"
#include "mica/model/detail/exchange.hpp"
#include "mica/model/detail/kv_layout.hpp"
#include "mica/model/observer.hpp"
#include "mica/model/sequence_step.hpp"
#include "mica/model/weights.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace mica::model {

/// The rows of one sequence in a step.
struct Rows {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t drafts = 0;  // the last ones of them
};

/// The angles of a rope at the positions of a step.
struct Angles {
  MatrixView<float> cos, sin;  // (n, pairs)
  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
};

/// Model: a BasicTransformer, for its types. first_row: of the step, where the rows of these parts begin. It
/// refers to the members of the model and owns nothing.
template <class Model>
class Step {
 public:
  using Formats = typename Model::Formats;
  using ModelWeights = Weights<Formats, typename Model::Blocks>;
  using Kernels = typename Model::Kernels;
  using Executor = typename Model::Executor;
  using Pager = typename Model::Pager;
  using Storage = typename Model::Storage;
  using KvLayout = typename Model::KvLayout;
  using Observer = typename Model::Observer;
  using Ranks = typename Model::Ranks;
  using Exchange = model::Exchange<Ranks, typename Model::Allocator>;
  using Matrix = tensor::AnyMatrix<Formats>;
  using Product = block::Product<Formats>;
  using View = MatrixView<float>;
  using SequenceStep = model::SequenceStep<typename Model::Cache>;

  static constexpr bool observed = Observer::active;

  Step(const arch::Config& config, const ModelWeights& weights, Pager& pager, Executor& executor,
       Activations<typename Model::Allocator>& activations, KvLayout& kv, Exchange& exchange,
       Observer* observer, std::span<const SequenceStep> parts, std::size_t first_row) noexcept
      : config_(config),
        weights_(weights),
        pager_(pager),
        executor_(executor),
        a_(activations),
        kv_(kv),
        exchange_(exchange),
        observer_(observer),
        sequences_(parts),
        n_(rows_before(parts, parts.size())),
        residual_(activations.residual(first_row + n_).rows(first_row, n_)) {}

  // For models

  /// Embeddings of rows [first, last) into the residual stream. False: a rank is gone.
  [[nodiscard]] bool embed(std::size_t first, std::size_t last) noexcept {
    const block::TensorRef& all = weights_.token_embd();
    const ranks::Part own = ranks::outputs(exchange_.row_division(), config_.n_vocab);
    if (all.present()) {  // else mtp_input() has them
      for (std::size_t t = first; t < last; ++t) {
        const std::size_t row = token_of(t) - own.first;
        if (Ranks::one || row < own.count) matrix(all).decode_row(row, residual_[t].data());
      }
    }
    if constexpr (Ranks::one)
      return true;
    else
      return exchange_.rows(residual_.rows(first, last - first), ranks::output_unit(config_.n_vocab),
                            config_.n_vocab, [&](std::size_t row) { return token_of(first + row); });
  }
  /// What is before the layers, of embedded rows. False when a block could not read something.
  [[nodiscard]] bool begin() noexcept {
    if (config_.embedding_scale != 1) scale(residual_, config_.embedding_scale);
    return run(weights_.begin());
  }
  /// Layer i, whose unit is acquired. False when a block could not read an expert, or keys and values.
  [[nodiscard]] bool run_layer(std::size_t i) noexcept {
    if (!run(weights_.layer(i))) return false;
    if constexpr (observed) {
      if (observer_ != nullptr) observer_->layer(i, residual_);
    }
    return i + 1 != config_.layers.size() || run(weights_.end());
  }

  // The step

  [[nodiscard]] std::size_t rows() const noexcept { return n_; }  // tokens of all parts
  [[nodiscard]] std::size_t width() const noexcept { return config_.width; }
  [[nodiscard]] float epsilon() const noexcept { return config_.norm_epsilon; }
  [[nodiscard]] const arch::Config& config() const noexcept { return config_; }
  [[nodiscard]] Executor& executor() noexcept { return executor_; }
  [[nodiscard]] View residual() const noexcept { return residual_; }  // (n, width)
  /// The output of the last norm(); a block behind another one reads its input here.
  [[nodiscard]] View input() noexcept { return a_.input(n_); }  // (n, width)

  /// What a head for multi-token prediction reads, (n, 2 * width).
  [[nodiscard]] View mtp_input() noexcept { return a_.mtp_input(n_); }

  // Tensors

  [[nodiscard]] Pager& pager() noexcept { return pager_; }
  [[nodiscard]] Matrix matrix(const block::TensorRef& ref) const noexcept {
    if (!ref.present()) return {};
    return weights_.matrix(ref, pager_.data(ref.index), pager_.packed(ref.index));
  }
  [[nodiscard]] const float* vector(const block::TensorRef& ref) const noexcept {
    if (!ref.present()) return nullptr;
    return reinterpret_cast<const float*>(pager_.data(ref.index) + ref.byte_offset());
  }

  // Sequences

  [[nodiscard]] std::span<const SequenceStep> parts() const noexcept { return sequences_; }
  /// Rows of the parts before part `end`.
  [[nodiscard]] static std::size_t rows_before(std::span<const SequenceStep> parts,
                                               std::size_t end) noexcept {
    std::size_t rows = 0;
    for (const SequenceStep& part : parts.first(end)) rows += part.tokens.size();
    return rows;
  }
  [[nodiscard]] Rows rows_of(std::size_t part) const noexcept {
    return {rows_before(sequences_, part), sequences_[part].tokens.size(), sequences_[part].drafts};
  }
  [[nodiscard]] TokenId token_of(std::size_t row) const noexcept {
    const PartRow at = part_row(row);
    return at.part.tokens[at.row];
  }
  /// The number of times that a token is before a row, in its sequence step.
  [[nodiscard]] std::size_t count_before(std::size_t row, TokenId token) const noexcept {
    const PartRow at = part_row(row);
    const auto before = at.part.tokens.first(at.row);
    return static_cast<std::size_t>(std::count(before.begin(), before.end(), token));
  }
  /// The position of a row in its sequence.
  [[nodiscard]] std::size_t position_of(std::size_t row) const noexcept {
    const PartRow at = part_row(row);
    return at.part.cache->tokens + at.row;
  }
  /// The floats that a part's sequence keeps for the block that runs.
  [[nodiscard]] float* floats(std::size_t part) const noexcept {
    return sequences_[part].cache->state.data() + place_.floats;
  }
  /// Where the block copies them before the drafts of the part; null: nowhere.
  [[nodiscard]] float* draft_floats(std::size_t part) const noexcept {
    float* const copy = sequences_[part].cache->state.draft_copy();
    return sequences_[part].drafts == 0 || copy == nullptr ? nullptr : copy + place_.floats;
  }
  [[nodiscard]] const block::Place& place() const noexcept { return place_; }
  [[nodiscard]] const KvLayout& kv() const noexcept { return kv_; }
  /// What the block that runs sees of a part's keys and values.
  [[nodiscard]] typename KvLayout::View kv_view(std::size_t part) noexcept {
    return kv_.view(*sequences_[part].cache, place_.kv);
  }
  [[nodiscard]] Angles angles(std::size_t rope) noexcept {
    return {a_.cos(rope, n_), a_.sin(rope, n_), config_.ropes[rope].pairs};
  }

  // Operations

  void observe(const block::TensorRef& ref, MatrixView<const float> x,
               std::size_t expert = no_expert) noexcept {
    if constexpr (observed) {
      if (observer_ != nullptr && ref.present()) observer_->product(weights_.name(ref.index), x, expert);
    }
  }
  /// Whether all products round (kernel/fast8.hpp), those of one token too.
  [[nodiscard]] bool rounds_every_product() noexcept { return codes(width()).fast8_from == 1; }
  /// Whether products of the model's width with any of the matrices read codes.
  template <class... Matrices>
  [[nodiscard]] bool wants_codes(const Matrices&... w) noexcept {
    return block::wants_codes(codes(width()), w...);
  }
  /// Whether a product with rows of the file reads codes like these; this rank may have none of the rows.
  [[nodiscard]] bool reads_codes(const block::TensorRef& w,
                                 const kernel::QuantizedRows& like) const noexcept {
    return block::wants_codes(like, Matrix(w.format.id, nullptr, w.cols == 0 ? 0 : 1, w.cols));
  }
  /// The place for the int8 form of a product's input.
  [[nodiscard]] kernel::QuantizedRows codes(std::size_t width) noexcept { return a_.codes(n_, width); }
  /// input() = the residual stream, normed as the model does (arch::Config::norm), and its codes. The bias is
  /// of a LayerNorm.
  [[nodiscard]] kernel::Input norm(const block::TensorRef& weight, bool quantized,
                                   const block::TensorRef& bias = {}) noexcept {
    return block::norm_of_kind<Kernels>(executor_, config_.norm, residual_, vector(weight), vector(bias),
                                        epsilon(), input(), codes(width()), quantized);
  }
  /// The residual stream as it is, and its codes.
  [[nodiscard]] kernel::Input unnormed(bool quantized) noexcept {
    return block::quantize<Kernels>(executor_, residual_, codes(width()), quantized);
  }
  /// y (+)= x W^T + bias for one product of rows that are not normed; second_codes:
  /// block::InputCodes::second_codes.
  void project(View x, const block::TensorRef& w, View y, bool add, const float* bias = nullptr,
               bool second_codes = false) noexcept {
    observe(w, x);
    const Matrix m = matrix(w);
    const auto place = codes(x.cols());
    const std::array product{Product{m, y, add, bias}};
    block::quantize_and_project<Kernels>(executor_, x,
                                         block::InputCodes{place, block::wants_codes(place, m), second_codes},
                                         std::span<const Product>(product));
  }
  /// The branch that a block's output takes; finish it with join().
  [[nodiscard]] block::Branch branch(const block::TensorRef& post_norm) noexcept {
    block::Branch b{residual_, {}, vector(post_norm), epsilon(), config_.residual_scale};
    if (!b.direct()) b.scratch = a_.branch(n_);
    return b;
  }
  void join(const block::Branch& branch) noexcept { block::join_branch<Kernels>(executor_, branch); }
  /// residual += RMSNorm(x W^T + bias) * post_norm: what most blocks end with.
  void add_product(View x, const block::TensorRef& w, const block::TensorRef& post_norm,
                   const float* bias = nullptr, bool second_codes = false) noexcept {
    const block::Branch b = branch(post_norm);
    project(x, w, b.target(), b.direct(), bias, second_codes);
    join(b);
  }
  /// project() of rows that ranks have in parts, by the rows of w of this rank; all get all of y. False: a
  /// rank is gone.
  [[nodiscard]] bool project_divided(const block::DividedRows& x, const block::TensorRef& w, View y, bool add,
                                     const float* bias = nullptr) noexcept {
    const auto place = codes(x.all.cols());
    const bool quantized = reads_codes(w, place);
    if (!gather(x, place, quantized)) return false;
    return project_outputs({x.all, kernel::codes_if(quantized, place)}, w, y, add, bias);
  }
  /// The same of rows that all ranks have.
  [[nodiscard]] bool project_divided(View x, const block::TensorRef& w, View y, bool add,
                                     const float* bias = nullptr) noexcept {
    const auto place = codes(x.cols());
    return project_outputs(block::quantize<Kernels>(executor_, x, place, reads_codes(w, place)), w, y, add,
                           bias);
  }
  /// Makes the codes of all columns, or with floats the columns themselves. False: a rank is gone.
  [[nodiscard]] bool gather(const block::DividedRows& x, const kernel::QuantizedRows& place,
                            bool quantized) noexcept {
    if constexpr (!Ranks::one) {
      if (quantized && Exchange::divides_codes(place, x.unit))
        return exchange_.template codes<Kernels>(executor_, x.own, x.unit, place);
      const ranks::Part part = exchange_.row_division().own(x.all.cols() / x.unit).times(x.unit);
      executor_.run(x.all.rows(), [&](std::size_t row, std::size_t) noexcept {
        std::copy(x.own[row].begin(), x.own[row].end(), x.all[row].data() + part.first);
      });
      if (!exchange_.columns(x.all, x.unit)) return false;
      static_cast<void>(block::quantize<Kernels>(executor_, x.all, place, quantized));
    }
    return true;
  }
  /// Brings the outputs of the others. False: a rank is gone.
  [[nodiscard]] bool gather_outputs([[maybe_unused]] View y) noexcept {
    if constexpr (!Ranks::one) return exchange_.columns(y, ranks::output_unit(y.cols()));
    return true;
  }
  /// Of n outputs of a product those of this rank.
  [[nodiscard]] ranks::Part outputs(std::size_t n) const noexcept {
    if constexpr (Ranks::one)
      return ranks::all_of(n);
    else
      return ranks::outputs(exchange_.row_division(), n);
  }
  [[nodiscard]] View own_outputs(View y) const noexcept {
    const ranks::Part own = outputs(y.cols());
    return y.cols(own.first, own.count);
  }
  /// add_product() of such rows, DividedRows or a View.
  template <class Rows>
  [[nodiscard]] bool add_divided(const Rows& x, const block::TensorRef& w, const block::TensorRef& post_norm,
                                 const float* bias = nullptr) noexcept {
    const block::Branch b = branch(post_norm);
    if (!project_divided(x, w, b.target(), b.direct(), bias)) return false;
    join(b);
    return true;
  }
  void scale(View x, float factor) noexcept {
    executor_.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
      Kernels::scale(kernel::ScaleArgs{x, factor, row, row + 1});
    });
  }
  void fill_with_zeros(View x) noexcept {
    executor_.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
      std::fill(x[row].begin(), x[row].end(), 0.0f);
    });
  }

 private:
  /// A part, and one of its rows.
  struct PartRow {
    const SequenceStep& part;
    std::size_t row;
  };
  [[nodiscard]] PartRow part_row(std::size_t row) const noexcept {
    const SequenceStep* part = sequences_.data();
    for (; row >= part->tokens.size(); ++part) row -= part->tokens.size();
    return {*part, row};
  }
  [[nodiscard]] bool project_outputs(const kernel::Input& x, const block::TensorRef& w, View y, bool add,
                                     const float* bias) noexcept {
    const std::size_t own = outputs(y.cols()).first;
    const auto compute = [&](std::size_t first, std::size_t count) noexcept {
      if (count == 0) return;
      const View part = y.cols(own + first, count);
      const float* const part_bias = bias == nullptr ? nullptr : bias + own + first;
      block::project<Kernels>(executor_, x,
                              std::array{Product{matrix(w.slice(first, count)), part, add, part_bias}});
    };
    if constexpr (!Ranks::one) return exchange_.outputs(y, ranks::output_unit(y.cols()), compute);
    compute(0, y.cols());
    return true;
  }
  [[nodiscard]] bool run(const typename ModelWeights::Layer& layer) noexcept {
    for (const auto& any : layer) {
      const bool read = detail::visit_block(any, [this]<class B>(const BoundBlock<B>& b) {
        place_ = b.place;
        block::Scratch scratch = a_.scratch(n_);
        return B::run(*this, b.config, b.tensors, B::buffers(scratch, b.config));
      });
      if (!read) return false;
    }
    return true;
  }

  const arch::Config& config_;
  const ModelWeights& weights_;
  Pager& pager_;
  Executor& executor_;
  Activations<typename Model::Allocator>& a_;
  KvLayout& kv_;
  Exchange& exchange_;
  Observer* observer_;
  std::span<const SequenceStep> sequences_;
  std::size_t n_;
  View residual_;
  block::Place place_ = {};
};

}  // namespace mica::model
