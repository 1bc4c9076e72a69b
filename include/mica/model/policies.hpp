// SPDX-License-Identifier: Apache-2.0
//
// The axes of a Transformer: their defaults, and the With... types that change one axis each, in any order.
//
//   using MyModel = mica::Transformer<mica::arch::Llama,
//                                     mica::WithKv<mica::kv::Contiguous<>>,
//                                     mica::WithKvElement<mica::format::Q8_0>>;
//
// A new axis is: an alias in DefaultPolicies, a With..., one assert in BasicTransformer, a page in docs/policies.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/exec/inline.hpp"
#include "mica/format/lists.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kv/eviction.hpp"
#include "mica/kv/segmented.hpp"
#include "mica/model/observer.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/tensor/any_matrix.hpp"

namespace mica {

/// What a Transformer is made of unless somebody says otherwise.
struct DefaultPolicies {
  using Weights = format::All;         // the formats that its weights may have
  using KvElement = format::F16;       // how keys and values are kept
  using KvStorage = kv::Segmented<>;   // where they lie
  using Eviction = kv::KeepAll;        // which of them a full cache forgets
  using Allocator = alloc::Huge;       // where bytes come from
  using Pager = paging::Mapped<>;      // how weights come into memory
  using Kernels = kernel::Highway;     // who computes
  using Executor = exec::Inline;       // on which threads
  using Observer = model::Unobserved;  // who looks on
};

namespace detail {
/// Marks the types that may follow the family in a Transformer's argument list.
struct PolicyTag {};
}  // namespace detail

/// The formats that weights may have: one format, or a TypeList of them.
template <class List>
struct WithWeights : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Weights = List;
  };
};

template <WeightFormat F>
struct WithWeights<F> : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Weights = TypeList<F>;
  };
};

/// One element for keys and values, or kv::Fixed<Key, Value>, or kv::AnyElements<>.
template <class E>
struct WithKvElement : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using KvElement = E;
  };
};

template <class S>
struct WithKv : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using KvStorage = S;
  };
};

template <class E>
struct WithEviction : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Eviction = E;
  };
};

template <class A>
struct WithAllocator : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Allocator = A;
  };
};

template <class P>
struct WithPager : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Pager = P;
  };
};

template <class K>
struct WithKernels : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Kernels = K;
  };
};

template <class X>
struct WithExecutor : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Executor = X;
  };
};

template <class O>
struct WithObserver : detail::PolicyTag {
  template <class Base>
  struct Apply : Base {
    using Observer = O;
  };
};

namespace detail {

template <class T>
inline constexpr bool is_policy = std::is_base_of_v<PolicyTag, T>;

/// The defaults, changed by each policy in turn; a later one wins.
template <class Set, class... With>
struct ApplyPolicies {
  using type = Set;
};
template <class Set, class First, class... Rest>
requires is_policy<First>
struct ApplyPolicies<Set, First, Rest...> : ApplyPolicies<typename First::template Apply<Set>, Rest...> {
};

/// A format that products can be computed with: an integer one must come apart.
template <class F>
concept ComputableFormat = WeightFormat<F> &&(F::arithmetic == format::Arithmetic::real || IntegerFormat<F>);

template <class List>
inline constexpr bool are_formats = false;
template <class... F>
inline constexpr bool are_formats<TypeList<F...>> = (ComputableFormat<F> && ...);

/// What a matrix of the model may be: in the formats of its file, and packed where the pager packs.
template <class List, class Pager>
struct FormatsInMemoryOf {
  using type = List;
};
template <class List, class Pager>
requires(Pager::packs) struct FormatsInMemoryOf<List, Pager> {
  using type = tensor::AndPacked<List>;
};
template <class List, class Pager>
using FormatsInMemory = typename FormatsInMemoryOf<List, Pager>::type;

/// A policy over the allocator of the model; the policy as it is when that cannot be, which an assert says better.
template <class P, class A>
struct Rebound {
  using type = P;
};
template <class P, class A>
requires requires { typename P::template Rebind<A>; }
struct Rebound<P, A> {
  using type = typename P::template Rebind<A>;
};

}  // namespace detail

/// The policies that a list of With... types gives.
template <class... With>
using PolicySet = typename detail::ApplyPolicies<DefaultPolicies, With...>::type;

}  // namespace mica
