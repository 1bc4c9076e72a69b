// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithObserver<...> needs a mica::Observer (model/observer.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine {
  static constexpr bool active = true;
  void product(std::string_view, mica::MatrixView<const float>, std::size_t) noexcept {}
#ifdef MICA_FAIL
  void layer(std::size_t, mica::MatrixView<const float>) {}  // may throw inside a step
#else
  void layer(std::size_t, mica::MatrixView<const float>) noexcept {}
#endif
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithObserver<Mine>>) > 0);
