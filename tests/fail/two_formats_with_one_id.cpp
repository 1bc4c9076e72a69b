// SPDX-License-Identifier: Apache-2.0
//
// expect: two formats of WithWeights<...> have the same id or the same name

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine : mica::format::F16 {
#ifdef MICA_FAIL
  static constexpr std::string_view name = "MINE";
#else
  static constexpr mica::format::Id id{0x4D494E45};
  static constexpr std::string_view name = "MINE";
#endif
};

using Formats = mica::Append<mica::format::All, Mine>;
static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithWeights<Formats>>) > 0);
