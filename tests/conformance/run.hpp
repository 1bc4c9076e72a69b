// SPDX-License-Identifier: Apache-2.0
//
// A model file of the kit, opened as the library opens any family, and fed with the kit's prompts. Every prompt runs
// with the context that the reference had.

#pragma once

#include "conformance/decoded_kernels.hpp"
#include "conformance/kit.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"
#include "model/run_model.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// The library's arithmetic, and the same weights decoded to floats.
using Ordinary = Transformer<arch::AnyOf<arch::All>, WithKvElement<kv::AnyElements<>>>;
using Decoded = Ordinary::With<WithKernels<DecodedKernels>>;

/// Leading greedy tokens that equal the kit's, of those that are a fair test of float arithmetic, over all prompts.
struct Greedy {
  std::size_t equal = 0;
  std::size_t safe = 0;
};

template <class Model>
class Run {
 public:
  Run(const Kit& kit, const nlohmann::json& entry, kv::ElementChoice element = kv::Element::f32)
      : kit_(kit),
        entry_(entry),
        document_(gguf::open(kit.path(entry["file"]))),
        elements_(element, element) {}

  /// The model with the context of one of the index's rows.
  [[nodiscard]] Model& model(const nlohmann::json& wanted) {
    const std::size_t n_ctx = wanted["n_ctx"];
    const ModelOptions options{.n_ctx = n_ctx, .chunk = 512, .logits_rows = n_ctx, .log = {}};
    return models_
        .try_emplace(n_ctx, document_, executor_, options, typename Model::Parts{.elements = elements_})
        .first->second;
  }
  [[nodiscard]] const arch::Config& config() { return model(entry_["rows"][0]).config(); }
  [[nodiscard]] std::size_t n_vocab() { return config().n_vocab; }
  [[nodiscard]] bool has_experts() { return arch::largest_mixture(config()) != 0; }

  /// Logits after every token of one prompt, fed in chunks; (tokens, n_vocab).
  [[nodiscard]] std::vector<float> prompt(const nlohmann::json& wanted, std::size_t chunk = 512) {
    Model& model = this->model(wanted);
    auto cache = model.make_cache();
    return feed(model, cache, kit_.ids(entry_, wanted["prompt"]), std::min(chunk, model.chunk()));
  }

  /// Logits after every token of every prompt, in the kit's order, (tokens, n_vocab).
  [[nodiscard]] std::vector<float> all() {
    std::vector<float> out;
    for (const auto& wanted : entry_["rows"]) {
      const auto logits = prompt(wanted);
      out.insert(out.end(), logits.begin(), logits.end());
    }
    return out;
  }

  /// Of all rows those that the kit has.
  [[nodiscard]] std::vector<float> chosen(std::span<const float> all) {
    std::vector<float> out;
    for (const auto& wanted : entry_["rows"]) {
      for (const std::size_t position : wanted["positions"]) {
        const auto row = all.subspan(position * n_vocab(), n_vocab());
        out.insert(out.end(), row.begin(), row.end());
      }
      all = all.subspan(kit_.ids(entry_, wanted["prompt"]).size() * n_vocab());
    }
    return out;
  }

  [[nodiscard]] Greedy greedy() {
    Greedy out;
    for (const auto& wanted : entry_["rows"]) {
      const std::string prompt = wanted["prompt"];
      if (!entry_["greedy"].contains(prompt)) continue;
      const auto& expected = entry_["greedy"][prompt];
      const std::vector<text::TokenId> tokens = expected["ids"];
      const std::size_t safe = expected["safe_steps"];
      Model& model = this->model(wanted);
      auto cache = model.make_cache();
      std::size_t equal = 0;
      text::TokenId next = last_choice(model, cache, kit_.ids(entry_, prompt));
      while (equal < safe && next == tokens[equal]) {
        ++equal;
        next = last_choice(model, cache, {next});
      }
      out.equal += equal;
      out.safe += safe;
    }
    return out;
  }

 private:
  [[nodiscard]] static text::TokenId last_choice(Model& model, typename Model::Cache& cache,
                                                 const std::vector<text::TokenId>& ids) {
    REQUIRE(model.step(cache, ids) == model::StepStatus::ok);
    const std::vector<std::size_t> last = {ids.size() - 1};
    const auto row = model.logits(last)[0];
    return static_cast<text::TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  }

  const Kit& kit_;
  const nlohmann::json& entry_;
  exec::Inline executor_;
  gguf::Document document_;
  kv::AnyElements<> elements_;
  std::map<std::size_t, Model> models_;  // by n_ctx
};

}  // namespace mica::test
