// SPDX-License-Identifier: Apache-2.0
//
// Whole models whose prompts follow kernel/fast8.hpp.

#include "mica/kernel/fast8.hpp"

#include "mica/arch/llama.hpp"
#include "mica/kernel/highway.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::fast8_test {
namespace {

using Plain = Transformer<arch::Llama, WithKernels<kernel::Highway>>;
using Rounding = Transformer<arch::Llama, WithKernels<kernel::Fast8<kernel::Highway>>>;

/// The logits after each of 40 tokens, in steps of up to `chunk`.
template <class Model>
std::vector<float> logits_of(const TinyModel& tiny, bool fast8, std::size_t chunk) {
  exec::Inline executor;
  ModelOptions options{.n_ctx = 40, .chunk = 40, .logits_rows = 40, .log = {}};
  options.fast8 = fast8;
  Model model(tiny.document(), executor, options);
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(40, 67), chunk);
}

/// The length of a - b as part of that of b.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(double{a[i]} - b[i], 2);
    all += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(apart / all);
}

}  // namespace

TEST_CASE(
    "fast8 rounds prompts of integers and of floats of 16 bits, a little; the policy and the option are the "
    "same") {
  for (const format::Id id : {format::Q4_K::id, format::Q8_0::id, format::F16::id, format::BF16::id}) {
    const TinyModel tiny(blocks_of(id));
    INFO("format " << id.value);
    const auto exact = logits_of<Plain>(tiny, false, 40), fast8 = logits_of<Plain>(tiny, true, 40);
    CHECK(difference(fast8, exact) > 0);
    CHECK(difference(fast8, exact) < 0.06);
    CHECK(same_bits(logits_of<Rounding>(tiny, false, 40), fast8));
  }
}

TEST_CASE("fast8 leaves F32 alone, and steps of few tokens in any format") {
  const TinyModel wide(blocks_of(format::F32::id));
  CHECK(same_bits(logits_of<Plain>(wide, true, 40), logits_of<Plain>(wide, false, 40)));
  for (const format::Id id : {format::Q4_K::id, format::F16::id}) {
    const TinyModel tiny(blocks_of(id));
    CHECK(same_bits(logits_of<Plain>(tiny, true, 16), logits_of<Plain>(tiny, false, 16)));
  }
}

}  // namespace mica::test::fast8_test
