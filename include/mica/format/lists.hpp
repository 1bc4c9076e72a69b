// SPDX-License-Identifier: Apache-2.0
//
// The closed lists: which formats the weights of a model may have, and which elements a KV cache may have. Order is the
// order in which a visit looks.
#pragma once

#include "mica/base/visit.hpp"
#include "mica/format/block_element.hpp"
#include "mica/format/element.hpp"
#include "mica/format/float.hpp"
#include "mica/format/iq1_m.hpp"
#include "mica/format/iq1_s.hpp"
#include "mica/format/iq2_s.hpp"
#include "mica/format/iq2_xs.hpp"
#include "mica/format/iq2_xxs.hpp"
#include "mica/format/iq3_s.hpp"
#include "mica/format/iq3_xxs.hpp"
#include "mica/format/iq4_nl.hpp"
#include "mica/format/iq4_xs.hpp"
#include "mica/format/kivi.hpp"
#include "mica/format/mxfp4.hpp"
#include "mica/format/nf4.hpp"
#include "mica/format/nvfp4.hpp"
#include "mica/format/q1_0.hpp"
#include "mica/format/q2_0.hpp"
#include "mica/format/q2_k.hpp"
#include "mica/format/q3_k.hpp"
#include "mica/format/q4_0.hpp"
#include "mica/format/q4_1.hpp"
#include "mica/format/q4_k.hpp"
#include "mica/format/q4_s.hpp"
#include "mica/format/q5_0.hpp"
#include "mica/format/q5_1.hpp"
#include "mica/format/q5_k.hpp"
#include "mica/format/q6_k.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/format/tq1_0.hpp"
#include "mica/format/tq2_0.hpp"

#include <string>

namespace mica::format {

/// Every weight format mica can compute with.
using All = TypeList<Q4_K, Q6_K, Q8_0, Q5_K, Q4_0, Q3_K, Q2_K, F32, F16, BF16, IQ4_XS, IQ4_NL, Q5_0, Q5_1,
                     Q4_1, MXFP4, IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS, IQ2_XXS, IQ1_M, IQ1_S, TQ1_0, TQ2_0, NVFP4,
                     Q1_0, Q2_0, NF4, F64, I8, I16, I32, I64>;

/// Every weight format mica can write (format/encode.hpp).
using Encodable = TypeList<Q4_K, Q6_K, Q8_0, Q5_K, Q4_0, Q3_K, Q2_K, F32, F16, BF16, IQ4_XS, IQ4_NL, Q5_0,
                           Q5_1, Q4_1, MXFP4, TQ1_0, TQ2_0, Q1_0, Q2_0, NF4>;

/// Every KV element. Those of four to six bits store heads rotated or as they are.
using AllKv =
    TypeList<F16, Q8_0, F32, BF16, Rotated<Q5_1>, Rotated<Q5_0>, Rotated<Q4_1>, Rotated<Q4_0>, Rotated<Q4_S>,
             Rotated<IQ4_NL>, Plain<Q5_1>, Plain<Q5_0>, Plain<Q4_1>, Plain<Q4_0>, Plain<Q4_S>, Plain<IQ4_NL>>;

/// Every element that only old tokens can have.
using TileKv = TypeList<KIVI4, KIVI2>;

/// "Q4_K Q6_K ...", for messages.
template <class List>
[[nodiscard]] std::string names() {
  std::string out;
  List::for_each([&](auto type) {
    using Format = typename decltype(type)::type;
    if constexpr (!requires { typename Format::File; }) {  // a packed form is no format of files
      if (!out.empty()) out += ' ';
      out += Format::name;
    }
  });
  return out;
}

}  // namespace mica::format
