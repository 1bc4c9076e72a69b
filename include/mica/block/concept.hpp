// SPDX-License-Identifier: Apache-2.0
//
// The concept of blocks. A layer is a short list of blocks on a residual stream; a block is a type with its
// parameters, tensors, scratch, state of a sequence, and computation:
//
//   template <class Step>
//   static bool run(Step&, const Config&, const Tensors&, const Buffers&) noexcept;
//
// run(): residual += block(norm(residual)). It returns false when a read failed, and then the step ends.
// model/detail/step.hpp has the members of a Step.
#pragma once

#include "mica/block/scratch.hpp"
#include "mica/block/state_plan.hpp"
#include "mica/block/tensor_binder.hpp"

#include <concepts>
#include <string_view>

namespace mica {

/// A block. run() is a template over steps, so it is not checked here.
// clang-format off
template <class B>
concept Block = requires {
  typename B::Config;   // numbers of one layer, filled by the family; copyable
  typename B::Tensors;  // places in the pager's table
  typename B::Buffers;  // views of its scratch
} && std::copy_constructible<typename B::Config> &&
    requires(const typename B::Config& c, block::TensorBinder& files, block::Scratch& scratch,
             block::StatePlan& state) {
  { B::name } -> std::convertible_to<std::string_view>;
  { B::bind(files, c) } -> std::same_as<typename B::Tensors>;       // checks names and shapes
  { B::buffers(scratch, c) } -> std::same_as<typename B::Buffers>;  // plans scratch, and cuts it
  { B::plan(state, c) } -> std::same_as<void>;                      // what a sequence keeps
};
// clang-format on

namespace block {

/// Stands for the blocks of a model's family, which are the default. Never defined: the family's own list
/// takes its place (FamilyPolicies of model/policies.hpp).
struct OfFamily;

/// For blocks without a state of a sequence.
struct Stateless {
  static void plan(StatePlan&, const auto&) noexcept {}  // keeps nothing of a sequence
};

/// For blocks whose rows ranks divide. own(config, ranks) says what one rank has of a layer; bind(),
/// buffers(), plan() and run() get that. Every rank has the whole of other blocks, and computes the same.
struct Divided {};

/// For blocks that need no scratch of their own.
struct Unbuffered {
  struct Buffers {};
  [[nodiscard]] static Buffers buffers(Scratch&, const auto&) noexcept { return {}; }  // requests nothing
};

}  // namespace block
}  // namespace mica
