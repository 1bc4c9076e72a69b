// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a model and the blocks that read them: each block of its Config, bound to a type of a closed
// list. Names, shapes and formats are checked here, before anything is read.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/block/concept.hpp"
#include "mica/block/layer.hpp"
#include "mica/gguf/document.hpp"
#include "mica/kernel/fast8.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::model {

/// A block of one layer: its numbers, its tensors, and where a sequence keeps what it needs.
template <class B>
struct BoundBlock {
  using Block = B;              // its type, one of the list
  typename B::Config config;    // its numbers
  typename B::Tensors tensors;  // its weights, in the pager's table
  block::Place place;           // of the state of a sequence
};

/// An arch::DenseLayer: tensors that it does not have are absent.
struct BoundDense {
  block::TensorRef weight;           // (width, width of the layer before)
  block::TensorRef bias;             // (width)
  block::TensorRef norm, norm_bias;  // (width)
  arch::Activation activation = arch::Activation::none;
};

namespace detail {

template <class Blocks>
struct AnyBlockOf;
template <class... B>
struct AnyBlockOf<TypeList<B...>> {
  using type = std::variant<BoundBlock<B>...>;
};

/// f(block) for the type that it has; false when f answers that.
template <class F, class... B>
[[nodiscard]] bool visit_block(const std::variant<BoundBlock<B>...>& any, F&& f) {
  bool answer = true;
  static_cast<void>((
      (std::holds_alternative<BoundBlock<B>>(any) && (answer = f(*std::get_if<BoundBlock<B>>(&any)), true)) ||
      ...));
  return answer;
}

template <class... B>
[[nodiscard]] std::string block_names(TypeList<B...>) {
  std::string names;
  ((names.append(names.empty() ? "" : ", ").append(B::name)), ...);
  return names;
}

}  // namespace detail

/// All tensors of a model. List: the formats it can compute with. Blocks: those that its layers may have.
/// Const members may be called from several threads.
template <class List, class Blocks>
class Weights {
 public:
  using AnyBlock = typename detail::AnyBlockOf<Blocks>::type;  // a std::variant of BoundBlock
  using Layer = std::vector<AnyBlock>;                         // in the order in which they run

  /// Raises ErrorCode::file or ErrorCode::unsupported, naming the tensor, what was found and what is needed;
  /// or the block that is not in the list; ErrorCode::usage for fewer layers than ranks that divide them.
  /// The document outlives this.
  Weights(gguf::DocumentRef document, const arch::Config& config, ranks::Division ranks = {},
          ranks::Split split = ranks::Split::rows)
      : by_layers_(split == ranks::Split::layers && ranks.size() > 1),
        all_ranks_(std::move(ranks)),
        ranks_(ranks::row_division(all_ranks_, split)),
        stage_(by_layers_ ? all_ranks_.own(config.layers.size()) : ranks::all_of(config.layers.size())),
        binder_(document, config.width, config.layers.size() + 2, block::KnownFormats::of<List>(), ranks_) {
    namespace names = arch::tensor_names;
    const std::size_t layers = config.layers.size();
    if (by_layers_) check_stages(config);
    const ranks::Part vocabulary = ranks::outputs(ranks_, config.n_vocab);
    const bool tied = !config.encodes && !config.mtp && !binder_.has(names::output);
    if (!config.mtp && (stage_.first == 0 || (tied && last_stage())))
      token_embd_ = binder_.matrix(names::token_embd, vocabulary, config.width);
    begin_ = bind(config.begin, 0);
    for (std::size_t i = 0; i < layers; ++i) {
      binder_.enter(names::layer_plain(config.first_layer + i, ""), i + 1);
      layers_.push_back(bind(config.layers[i], i));
    }
    if (by_layers_) check_state();
    binder_.enter("", layers);
    end_ = bind(config.end, layers);
    binder_.enter("", layers + 1);
    if (config.encodes) {
      binder_.keep_rows(token_embd_);
      if (config.output_norm) {
        output_norm_ = binder_.norm(names::output_norm);
        output_norm_bias_ = binder_.norm_if_there(names::output_norm_bias);
      }
    } else if (config.mtp) {
      const std::string own = names::layer(config.first_layer, names::mtp_norm);
      output_norm_ = binder_.norm(binder_.has(own) ? own : names::output_norm);
    } else {
      if (last_stage()) {
        output_norm_ = binder_.norm(names::output_norm);
        output_ = tied ? token_embd_ : binder_.matrix(names::output, vocabulary, config.width);
      }
      // A model that embeds may round what products read (set_rounded()), and looks up rows of this one.
      const bool embeds = config.pooling != arch::Pooling::none && token_embd_.present() &&
                          !extents()[token_embd_.index].packed;
      if (!output_.present() || !tied || embeds) binder_.keep_rows(token_embd_);
    }
    bind_dense(config);
    binder_.check_layout();
  }

  /// The layers of this rank, where ranks divide them: it runs these alone. The first rank has the embedding,
  /// the last one the output matrix.
  [[nodiscard]] const ranks::Part& stage() const noexcept { return stage_; }
  [[nodiscard]] bool last_stage() const noexcept { return stage_.end() == stage_.all; }

  /// The embedding, (n_vocab, width). A head for multi-token prediction has none, and no output matrix: it
  /// uses those of its trunk.
  [[nodiscard]] const block::TensorRef& token_embd() const noexcept { return token_embd_; }
  /// Blocks that run once before the layers, those of layer i, and those that run once after them.
  [[nodiscard]] const Layer& begin() const noexcept { return begin_; }
  [[nodiscard]] const Layer& layer(std::size_t i) const noexcept { return layers_[i]; }
  [[nodiscard]] const Layer& end() const noexcept { return end_; }
  /// The weights of the norm before the output matrix, (width). A model that encodes may have none, and has
  /// no output matrix.
  [[nodiscard]] const block::TensorRef& output_norm() const noexcept { return output_norm_; }
  [[nodiscard]] const block::TensorRef& output_norm_bias() const noexcept { return output_norm_bias_; }
  /// The output matrix, (n_vocab, width); the embedding itself when they are tied.
  [[nodiscard]] const block::TensorRef& output() const noexcept { return output_; }
  /// The layers that pooled rows go through.
  [[nodiscard]] const std::vector<BoundDense>& dense() const noexcept { return dense_; }
  /// The first block of that type in layer i; null: the layer has none.
  template <class B>
  [[nodiscard]] const BoundBlock<B>* find(std::size_t i) const noexcept {
    for (const AnyBlock& any : layers_[i]) {
      if (const auto* const found = std::get_if<BoundBlock<B>>(&any)) return found;
    }
    return nullptr;
  }

  /// The state of a sequence for all blocks.
  [[nodiscard]] const block::StatePlan& state() const noexcept { return state_; }
  /// The scratch that the blocks need in a step.
  [[nodiscard]] block::ScratchNeeds scratch(const block::StepSizes& sizes) const {
    block::ScratchNeeds needs;
    const auto plan = [&](const Layer& layer) {
      for (const AnyBlock& any : layer) {
        static_cast<void>(detail::visit_block(any, [&]<class B>(const BoundBlock<B>& b) {
          block::Scratch scratch(sizes, needs);
          static_cast<void>(B::buffers(scratch, b.config));
          return true;
        }));
      }
    };
    plan(begin_);
    for (const Layer& layer : layers_) plan(layer);
    plan(end_);
    return needs;
  }

  /// The pager's table: by TensorRef::index.
  [[nodiscard]] std::span<const paging::Extent> extents() const noexcept { return binder_.extents(); }
  /// Units of the pager: embedding, layers, output matrix, experts.
  [[nodiscard]] std::size_t units() const noexcept { return binder_.units(); }
  /// Units of experts, by the unit of their layer.
  [[nodiscard]] const std::vector<block::ExpertUnits>& expert_units() const noexcept {
    return binder_.expert_units();
  }
  /// Experts of one layer; 0: none has any.
  [[nodiscard]] std::size_t largest_mixture() const noexcept {
    std::size_t max = 0;
    for (const block::ExpertUnits& experts : expert_units()) max = std::max(max, experts.count);
    return max;
  }
  /// Bytes of all tensors, as they lie in the file.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const paging::Extent& extent : extents()) sum += extent.bytes;
    return sum;
  }
  /// The document that it was made of.
  [[nodiscard]] const gguf::Document& document() const noexcept { return binder_.document(); }
  /// Refuses a pager that does not know tensors of a packed directory as packed. served(i): what it says of
  /// tensor i of the table. Raises ErrorCode::unsupported.
  void check_served(const auto& served) const {
    for (std::size_t i = 0; i < extents().size(); ++i) {
      MICA_CHECK(!extents()[i].packed || served(i), unsupported, document().path(), ": tensor '",
                 escaped(name(i)),
                 "' lies packed, and this pager serves rows of files alone; use paging::AnyPager, Resident, "
                 "Streamed, or Mapped with paging::Layout::packed");
    }
  }
  /// The name of a tensor of the table.
  [[nodiscard]] std::string_view name(std::size_t index) const noexcept { return binder_.name(index); }
  /// Says that the pager has rounded the rows that it packed while it read them (kernel/fast8.hpp).
  void set_rounded() noexcept { rounded_ = true; }
  /// The tensor as a matrix at the address that its pager gives. packed: its rows are packed there.
  [[nodiscard]] tensor::AnyMatrix<List> matrix(const block::TensorRef& ref, const std::byte* data,
                                               bool packed) const noexcept {
    const bool packed12 = packed && tensor::is_packable12<List>(ref.format.id);
    const std::size_t offset = packed12 ? tensor::packed12_bytes(ref.first_row, ref.cols) : ref.byte_offset();
    const bool rounded = rounded_ && packed && !extents()[ref.index].packed;
    const format::Id id = rounded ? kernel::rounded_id<List>(ref.format.id, ref.cols) : ref.format.id;
    return {id, data + offset, ref.rows, ref.cols, packed};
  }

 private:
  [[nodiscard]] Layer bind(const block::Layer& layer, std::size_t i) {
    Layer bound;
    for (const block::Layer::Entry& entry : layer.blocks()) {
      const bool known = visit_if(
          Blocks{}, [&](auto type) { return entry.config<typename decltype(type)::type>() != nullptr; },
          [&](auto type) {
            using B = typename decltype(type)::type;
            const typename B::Config& all = *entry.config<B>();
            const typename B::Config config = own<B>(all, ranks_);
            // A rank has all keys and values of its layers, and a place for none of the others.
            const block::Place place = state_.place(i, [&](block::StatePlan& state) {
              B::plan(state, by_layers_ ? own<B>(all, owner_of(i)) : config);
            });
            if (!by_layers_ || (i >= stage_.first && i < stage_.end()))
              bound.push_back(BoundBlock<B>{config, B::bind(binder_, config), place});
          });
      MICA_CHECK(known, unsupported, document().path(), ": layer ", i, " has the block '", entry.name(),
                 "', and this Transformer is made of ", detail::block_names(Blocks{}),
                 "; name it in WithBlocks<...>, or in the Blocks of the family");
    }
    return bound;
  }

  template <class B>
  [[nodiscard]] static typename B::Config own(const typename B::Config& all, const ranks::Division& ranks) {
    if constexpr (std::derived_from<B, block::Divided>) return B::own(all, ranks);
    return all;
  }
  [[nodiscard]] ranks::Division owner_of(std::size_t layer) const {
    return all_ranks_.all_to(all_ranks_.owner(stage_.all, layer));
  }
  /// What ranks with some layers each cannot run.
  void check_stages(const arch::Config& config) const {
    MICA_CHECK(config.begin.blocks().empty() && config.end.blocks().empty() && !config.encodes && !config.mtp,
               unsupported, document().path(), ": ", config.arch,
               " has more between its layers than one row for a token, so that ranks cannot divide them; let "
               "them divide rows");
    for (std::size_t r = 0; r < all_ranks_.size(); ++r)
      MICA_CHECK(all_ranks_.part(stage_.all, r).count != 0, usage, document().path(), ": rank ", r, " of ",
                 all_ranks_.size(), " has none of the ", stage_.all,
                 " layers; take fewer ranks, or give it a larger share");
  }
  void check_state() const {
    for (const block::KvPlan& kv : state_.kv()) {
      const std::size_t owner = all_ranks_.owner(stage_.all, kv.layer);
      MICA_CHECK(kv.divided.all != 0 && all_ranks_.owner(stage_.all, kv.last_reader) == owner, unsupported,
                 document().path(), ": layer ", kv.last_reader, " reads keys and values of layer ", kv.layer,
                 ", which another rank has; let ranks divide rows, or give them other shares");
    }
  }

  /// In the unit of the output matrix.
  void bind_dense(const arch::Config& config) {
    std::size_t width = config.width;
    for (const arch::DenseLayer& layer : config.dense) {
      BoundDense bound;
      bound.activation = layer.activation;
      bound.weight = binder_.matrix(join(layer.name, ".weight"), layer.width, width);
      width = layer.width;
      const auto vector = [&](const std::string& part) {
        return binder_.has(part) ? binder_.vector(part, width) : block::TensorRef();
      };
      bound.bias = vector(join(layer.name, ".bias"));
      if (!layer.norm.empty()) bound.norm = binder_.vector(join(layer.norm, ".weight"), width);
      if (!layer.norm.empty()) bound.norm_bias = vector(join(layer.norm, ".bias"));
      dense_.push_back(bound);
    }
  }

  bool by_layers_;
  bool rounded_ = false;
  ranks::Division all_ranks_;
  ranks::Division ranks_;  // that divide rows
  ranks::Part stage_;
  block::TensorBinder binder_;
  block::StatePlan state_;
  block::TensorRef token_embd_;
  Layer begin_;
  std::vector<Layer> layers_;
  Layer end_;
  block::TensorRef output_norm_;
  block::TensorRef output_norm_bias_;
  block::TensorRef output_;
  std::vector<BoundDense> dense_;
};

}  // namespace mica::model
