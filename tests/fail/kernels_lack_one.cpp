// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithKernels<...> needs mica::Kernels (kernel/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"

struct Mine : mica::kernel::Scalar {
#ifdef MICA_FAIL
  static void rms_norm() noexcept {}  // hides the one that takes arguments
#endif
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithKernels<Mine>>) > 0);
