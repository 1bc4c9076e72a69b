// SPDX-License-Identifier: Apache-2.0
//
// The optional backends run whole models: logits by kernel::Xsimd are the bits of the specification, those by
// kernel::Eigen are as near to it as docs/policies/kernels.md promises. A room of its own, because its flags
// choose an instruction set.

#include "mica/arch/llama.hpp"
#include "mica/kernel/scalar.hpp"
#include "model/run_model.hpp"
#include "shared.hpp"
#ifdef MICA_HAS_EIGEN
#include "mica/gguf/reader.hpp"
#include "mica/kernel/eigen.hpp"
#endif
#ifdef MICA_HAS_XSIMD
#include "mica/kernel/xsimd.hpp"
#endif

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace mica::test::whole_model_test {
namespace {

using Specified =
    Transformer<arch::Llama, WithWeights<TypeList<format::F32, format::Q8_0>>,
                WithBlocks<TypeList<block::Attention, block::DenseFeedForward>>, WithKernels<kernel::Scalar>>;

/// A model file, and how far the page lets the logits of Eigen be from those of the specification.
struct Subject {
  std::string path;
  double eigen_error;  // rms of the differences over rms of the logits
};

/// The bundled model, whose activations are rounded to eight bits, and a model of the kit in floats.
std::vector<Subject> subjects() {
  std::vector<Subject> out = {{MICA_SOURCE "/examples/models/fairy.gguf", 1e-2}};
  if (!std::filesystem::exists(out[0].path)) {
    skipped("the bundled model", "there is no " + out[0].path);
    out.clear();
  }
  const auto kit = shared_dir("a model in floats", "conformance/models/llama3-gqa.F32.gguf");
  if (kit) out.push_back({kit->string(), 1e-4});
  return out;
}

/// Logits after each of 48 tokens, read `chunk` at a time.
template <class Model>
std::vector<float> logits_of(const std::string& path, std::size_t chunk) {
  const gguf::Document document = gguf::open(path);
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = 48, .chunk = 48, .logits_rows = 48, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(48, model.config().n_vocab), chunk);
}

}  // namespace

#ifdef MICA_HAS_XSIMD
TEST_CASE("a whole model by xsimd gives the bits of the specification") {
  using Model = Specified::With<WithKernels<kernel::Xsimd>>;
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.path);
    const auto expected = logits_of<Specified>(subject.path, 48);
    CHECK(same_bits(expected, logits_of<Model>(subject.path, 48)));
    CHECK(same_bits(expected, logits_of<Model>(subject.path, 1)));
  }
}
#endif

#ifdef MICA_HAS_EIGEN
TEST_CASE("a whole model by Eigen is as near to the specification as its page says") {
  using Model = Specified::With<WithKernels<kernel::Eigen>>;
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.path);
    const auto expected = logits_of<Specified>(subject.path, 48);
    for (const std::size_t chunk : {48u, 1u}) {
      CAPTURE(chunk);
      const auto actual = logits_of<Model>(subject.path, chunk);
      REQUIRE(actual.size() == expected.size());
      double differences = 0, all = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double x = expected[i], difference = static_cast<double>(actual[i]) - x;
        differences += difference * difference;
        all += x * x;
      }
      const double error = std::sqrt(differences / all);
      CAPTURE(error);
      CHECK(error <= subject.eigen_error);
      CHECK(error > 0);  // another computation, and not the specification by another name
    }
  }
}
#endif

}  // namespace mica::test::whole_model_test
