// SPDX-License-Identifier: Apache-2.0
//
// The axes of a Transformer: their defaults, and the With... types that change one axis each, in any order.
//
//   using MyModel = mica::Transformer<mica::arch::Llama,
//                                     mica::WithKv<mica::kv::Contiguous<>>,
//                                     mica::WithKvElement<mica::format::Q8_0>>;
//
// Two lists with the same choices, in any order, are the same type. A new axis is: an alias in
// DefaultPolicies, a tag, a With..., a place in PolicySet, one assert in PolicyChecks, a page in
// docs/policies.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/arch/concept.hpp"
#include "mica/base/type_list.hpp"
#include "mica/block/concept.hpp"
#include "mica/exec/concept.hpp"
#include "mica/exec/inline.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/elements.hpp"
#include "mica/kv/eviction.hpp"
#include "mica/kv/segmented.hpp"
#include "mica/model/observer.hpp"
#include "mica/paging/concept.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/ranks/concept.hpp"
#include "mica/tensor/any_matrix.hpp"
#include "mica/tensor/packing.hpp"

#include <type_traits>

namespace mica {

/// What a Transformer is made of where no policy is named.
struct DefaultPolicies {
  using Weights = format::All;         // the formats that its weights may have
  using KvElement = format::F16;       // how keys and values are encoded
  using KvStorage = kv::Segmented<>;   // where they lie
  using Eviction = kv::KeepAll;        // which of them a full cache evicts
  using Blocks = block::OfFamily;      // what layers are made of; Family::Blocks, see FamilyPolicies
  using Allocator = alloc::Huge;       // where bytes come from
  using Pager = paging::Mapped<>;      // how weights come into memory
  using Kernels = kernel::Highway;     // what computes
  using Executor = exec::Inline;       // on which threads
  using Observer = model::NoObserver;  // what sees the inputs of products
  using Ranks = ranks::One;            // which processes run it together
};

/// The axes, as tags.
namespace axis {
struct Weights;
struct KvElement;
struct KvStorage;
struct Eviction;
struct Blocks;
struct Allocator;
struct Pager;
struct Kernels;
struct Executor;
struct Observer;
struct Ranks;
}  // namespace axis

namespace detail {

/// What every With... is: an axis, and the type that it gets.
template <class AxisTag, class T>
struct PolicyOf {
  using Axis = AxisTag;
  using Type = T;
};

template <class List>
struct FormatListOf {
  using type = List;
};
template <WeightFormat F>
struct FormatListOf<F> {
  using type = TypeList<F>;
};

}  // namespace detail

/// The formats that weights may have: one format, or a TypeList of them.
template <class List>
struct WithWeights : detail::PolicyOf<axis::Weights, typename detail::FormatListOf<List>::type> {};
/// One element for keys and values, or kv::Fixed<Key, Value>, or kv::AnyElements<>.
template <class E>
struct WithKvElement : detail::PolicyOf<axis::KvElement, E> {};
/// The storage of keys and values. It gets the allocator of the model.
template <class S>
struct WithKv : detail::PolicyOf<axis::KvStorage, S> {};
/// The tokens that a full cache evicts.
template <class E>
struct WithEviction : detail::PolicyOf<axis::Eviction, E> {};
/// The blocks that layers may have, a TypeList: a shorter one is a smaller program, a longer one has blocks
/// of one's own.
template <class List>
struct WithBlocks : detail::PolicyOf<axis::Blocks, List> {};
/// The source of all bytes; storage and pager use it too.
template <class A>
struct WithAllocator : detail::PolicyOf<axis::Allocator, A> {};
/// The way of weights into memory. It gets the allocator of the model.
template <class P>
struct WithPager : detail::PolicyOf<axis::Pager, P> {};
/// The code that computes.
template <class K>
struct WithKernels : detail::PolicyOf<axis::Kernels, K> {};
/// The threads; the constructor takes an object of this type.
template <class X>
struct WithExecutor : detail::PolicyOf<axis::Executor, X> {};
/// The type of the object that BasicTransformer::observe() takes.
template <class O>
struct WithObserver : detail::PolicyOf<axis::Observer, O> {};
/// The ranks that run the model together, each with some rows of its weights; Parts::ranks is an object of
/// this type.
template <class R>
struct WithRanks : detail::PolicyOf<axis::Ranks, R> {};

/// The policies of a Transformer, one place for each axis: equal choices are one type, in whatever order they
/// were made. Written by Transformer<Family, With...>, not by hand. Storage and pager are those over the
/// allocator.
template <class WeightsList, class KvElementType, class KvStorageType, class EvictionType, class BlockList,
          class AllocatorType, class PagerType, class KernelsType, class ExecutorType, class ObserverType,
          class RanksType>
struct PolicySet {
  /// The choice for each axis. docs/policies has the concept of each.
  using Weights = WeightsList;
  using KvElement = KvElementType;
  using KvStorage = KvStorageType;
  using Eviction = EvictionType;
  using Blocks = BlockList;
  using Allocator = AllocatorType;
  using Pager = PagerType;
  using Kernels = KernelsType;
  using Executor = ExecutorType;
  using Observer = ObserverType;
  using Ranks = RanksType;
};

namespace detail {

template <class T>
concept Policy = requires {
  typename T::Axis;
  requires std::is_base_of_v<PolicyOf<typename T::Axis, typename T::Type>, T>;
};

template <class AxisTag, class T>
inline constexpr bool changes = false;
template <class AxisTag, Policy T>
inline constexpr bool changes<AxisTag, T> = std::is_same_v<typename T::Axis, AxisTag>;

/// The type that the policies name for an axis, or the default.
template <class AxisTag, class Default, class... With>
struct ChosenType {
  using type = Default;
};
template <class AxisTag, class Default, class First, class... Rest>
struct ChosenType<AxisTag, Default, First, Rest...> : ChosenType<AxisTag, Default, Rest...> {};
template <class AxisTag, class Default, class First, class... Rest>
requires changes<AxisTag, First>
struct ChosenType<AxisTag, Default, First, Rest...> {
  using type = typename First::Type;
};

template <class AxisTag, class... With>
inline constexpr int times_named = (changes<AxisTag, With> + ... + 0);
template <class... With>
concept EachAxisOnce = ((times_named<typename With::Axis, With...> == 1) && ...);

/// A policy over the allocator of the model; as it is where that cannot be, which PolicyChecks then says.
template <class P, class A>
struct Rebound {
  using type = P;
};
template <class P, class A>
requires requires { typename P::template Rebind<A>; }
struct Rebound<P, A> {
  using type = typename P::template Rebind<A>;
};

/// The policies of Base, changed by those that are named.
template <class Base, class... With>
struct ChangedPolicies {
  template <class AxisTag, class Default>
  using Chosen = typename ChosenType<AxisTag, Default, With...>::type;
  using Allocator = Chosen<axis::Allocator, typename Base::Allocator>;
  using type =
      PolicySet<Chosen<axis::Weights, typename Base::Weights>,
                kv::ElementsOf<Chosen<axis::KvElement, typename Base::KvElement>>,
                typename Rebound<Chosen<axis::KvStorage, typename Base::KvStorage>, Allocator>::type,
                Chosen<axis::Eviction, typename Base::Eviction>, Chosen<axis::Blocks, typename Base::Blocks>,
                Allocator, typename Rebound<Chosen<axis::Pager, typename Base::Pager>, Allocator>::type,
                Chosen<axis::Kernels, typename Base::Kernels>,
                Chosen<axis::Executor, typename Base::Executor>,
                Chosen<axis::Observer, typename Base::Observer>, Chosen<axis::Ranks, typename Base::Ranks>>;
};

/// A format that products can be computed with: an integer one must be unpackable into codes.
template <class F>
concept ComputableFormat = WeightFormat<F> &&(F::arithmetic == format::Arithmetic::real || IntegerFormat<F>);

template <class List>
struct AreFormats : std::false_type {};
template <ComputableFormat... F>
struct AreFormats<TypeList<F...>> : std::true_type {};
template <class List>
concept Formats = AreFormats<List>::value;

template <class List>
struct AreBlocks : std::false_type {};
template <Block... B>
struct AreBlocks<TypeList<B...>> : std::true_type {};
template <class List>
concept Blocks = AreBlocks<List>::value;

// One sentence for each axis whose policy does not satisfy its concept; the compiler adds the member that is
// missing.
template <class F>
struct CheckFormat {
  static_assert(
      WeightFormat<F>,
      "mica::Transformer: WithWeights<...> needs formats: one mica::WeightFormat or a mica::TypeList of "
      "them; those with integer arithmetic must be a mica::IntegerFormat (format/concept.hpp)");
};
template <WeightFormat F>
requires(F::arithmetic == format::Arithmetic::integer) struct CheckFormat<F> {
  static_assert(
      IntegerFormat<F>,
      "mica::Transformer: WithWeights<...> needs formats: one mica::WeightFormat or a mica::TypeList of "
      "them; those with integer arithmetic must be a mica::IntegerFormat (format/concept.hpp)");
};
template <class List>
struct CheckEachFormat : CheckFormat<List> {};
template <class... F>
struct CheckEachFormat<TypeList<F...>>
    : std::integral_constant<std::size_t, (sizeof(CheckFormat<F>) + ... + 0)> {};
template <class List>
struct CheckWeights : CheckEachFormat<List> {};
template <Formats List>
struct CheckWeights<List> {
  static_assert(format::are_distinct<List>,
                "mica::Transformer: two formats of WithWeights<...> have the same id or the same name; each "
                "format needs its own (docs/policies/weights.md)");
};
template <class B>
struct CheckBlock {
  static_assert(
      Block<B>,
      "mica::Transformer: WithBlocks<...> needs a mica::TypeList of mica::Block (block/concept.hpp)");
};
template <class List>
struct CheckBlocks : CheckBlock<List> {};
template <class... B>
struct CheckBlocks<TypeList<B...>> : CheckBlock<B>... {};
/// Storage and pager; over an allocator that is none they are not checked.
template <class S, class P, class A>
struct CheckMemory {};
template <class S, class P, Allocator A>
struct CheckMemory<S, P, A> {
  static_assert(KvStorageFor<S, A>,
                "mica::Transformer: WithKv<...> needs a mica::KvStorage (kv/concept.hpp)");
  static_assert(PagerFor<P, A>, "mica::Transformer: WithPager<...> needs a mica::Pager (paging/concept.hpp)");
};

template <class Family, class P>
struct CheckEach : CheckWeights<typename P::Weights>,
                   CheckBlocks<typename P::Blocks>,
                   CheckMemory<typename P::KvStorage, typename P::Pager, typename P::Allocator> {
  static_assert(
      Arch<Family>,
      "mica::Transformer: the first argument must be a family such as mica::arch::Llama (arch/concept.hpp)");
  static_assert(KvElements<typename P::KvElement>,
                "mica::Transformer: WithKvElement<...> needs a mica::KvElement (format/concept.hpp)");
  static_assert(Eviction<typename P::Eviction>,
                "mica::Transformer: WithEviction<...> needs a mica::Eviction (kv/eviction.hpp)");
  static_assert(Allocator<typename P::Allocator>,
                "mica::Transformer: WithAllocator<...> needs a mica::Allocator (alloc/concept.hpp)");
  static_assert(Kernels<typename P::Kernels>,
                "mica::Transformer: WithKernels<...> needs mica::Kernels (kernel/concept.hpp)");
  static_assert(Executor<typename P::Executor>,
                "mica::Transformer: WithExecutor<...> needs a mica::Executor (exec/concept.hpp)");
  static_assert(Observer<typename P::Observer>,
                "mica::Transformer: WithObserver<...> needs a mica::Observer (model/observer.hpp)");
  static_assert(Ranks<typename P::Ranks>,
                "mica::Transformer: WithRanks<...> needs mica::Ranks (ranks/concept.hpp)");
};

/// Instantiated for a list of policies that cannot be composed, to say why.
template <class Family, class Base, class... With>
struct PolicyErrors : CheckEach<Family, typename ChangedPolicies<Base, With...>::type> {
  static_assert(
      EachAxisOnce<With...>,
      "mica::Transformer: an axis is named twice; keep one With... of each kind (model/policies.hpp)");
};
template <class Family, class Base, class... With>
requires(!(Policy<With> && ...)) struct PolicyErrors<Family, Base, With...> {
  static_assert(
      Arch<Family>,
      "mica::Transformer: the first argument must be a family such as mica::arch::Llama (arch/concept.hpp)");
  static_assert(!Arch<Family> || (Policy<With> && ...),
                "mica::Transformer: after the family only mica::With... policies may follow: WithWeights, "
                "WithKvElement, WithKv, WithEviction, WithBlocks, WithAllocator, WithPager, WithKernels, "
                "WithExecutor, WithObserver, WithRanks (model/policies.hpp)");
};

template <class P>
concept GoodPolicies = Formats<typename P::Weights> && format::are_distinct<typename P::Weights> &&
    Allocator<typename P::Allocator> && KvElements<typename P::KvElement> &&
    KvStorageFor<typename P::KvStorage, typename P::Allocator> && Eviction<typename P::Eviction> &&
    Blocks<typename P::Blocks> && PagerFor<typename P::Pager, typename P::Allocator> &&
    Kernels<typename P::Kernels> && Executor<typename P::Executor> && Observer<typename P::Observer> &&
    Ranks<typename P::Ranks>;

/// The formats that matrices have in memory: those of the file, with a pager that packs also their packed
/// forms, and their rounded forms if the kernels read these.
template <class P, class List = typename P::Weights>
using FormatsInMemory =
    std::conditional_t<!P::Pager::packs, List,
                       std::conditional_t<kernel::reads_rounded<typename P::Kernels>,
                                          tensor::AndRounded<List>, tensor::AndPacked<List>>>;

/// What a pager that packs is given for the formats of the file; rounds: it rounds too (kernel/fast8.hpp).
template <class P>
[[nodiscard]] constexpr tensor::FindPacking find_packing([[maybe_unused]] bool rounds) noexcept {
  using List = typename P::Weights;
  if constexpr (!P::Pager::packs) {
    return nullptr;
  } else {
    if constexpr (kernel::reads_rounded<typename P::Kernels>) {
      if (rounds) return kernel::rounding_in<List>;
    }
    return tensor::packing_in<List>;
  }
}

}  // namespace detail

template <class Family, class Policies>
class BasicTransformer;
struct ModelOptions;

namespace detail {

/// Never returns: it does not compile.
template <class Executor, class Other>
[[noreturn]] Executor& executor_of_the_policy(Other&) noexcept {
  static_assert(std::is_base_of_v<Executor, Other>,
                "mica::Transformer: the executor is of another type than the policy; name its type: "
                "WithExecutor<...>, as in WithExecutor<mica::exec::Team> (docs/policies/executor.md)");
  for (;;) {
  }
}

/// What a wrong policy leaves behind. It is made like a model, so that the sentence about the policy is the
/// only error of a file that makes one.
struct NoTransformer {
  template <class Document, class Executor>
  NoTransformer(const Document&, Executor&) {}
  template <class Document, class Executor, class... Parts>
  NoTransformer(const Document&, Executor&, const ModelOptions&, const Parts&...) {}
};

template <class Family, class Base, class... With>
struct TransformerOf : PolicyErrors<Family, Base, With...> {
  using type = NoTransformer;
};
template <class Family, class Base, class... With>
requires(
    Arch<Family> && (Policy<With> && ...) && EachAxisOnce<With...> &&
    GoodPolicies<typename ChangedPolicies<Base, With...>::type>) struct TransformerOf<Family, Base, With...> {
  using type = BasicTransformer<Family, typename ChangedPolicies<Base, With...>::type>;
};

/// The defaults of a family: where no WithBlocks<...> is named, its blocks are Family::Blocks.
template <class Family>
struct FamilyPolicies : DefaultPolicies {
  using Blocks = TypeList<>;
};
template <Arch Family>
struct FamilyPolicies<Family> : DefaultPolicies {
  using Blocks = typename Family::Blocks;
};

}  // namespace detail

/// A model of one family with its policies, in any order: Transformer<arch::Llama, WithKv<...>,
/// WithKvElement<...>>. Two of them with equal choices are one type.
template <class Family, class... With>
using Transformer = typename detail::TransformerOf<Family, detail::FamilyPolicies<Family>, With...>::type;

}  // namespace mica
