// SPDX-License-Identifier: Apache-2.0
//
// Logits of the conformance kit's Llama files, within the tolerances of its README, and its greedy answers.

#include "shared.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "conformance/kit.hpp"
#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"
#include "model/run_model.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <set>

namespace mica::test {
namespace {

using Model = Transformer<arch::Llama, WithKvElement<kv::AnyElements<>>>;

/// The files that this library can open: two models, in formats of its list.
std::vector<nlohmann::json> llama_files(const Kit& kit) {
  std::set<std::string> known;
  format::All::for_each([&](auto type) { known.emplace(decltype(type)::type::name); });
  std::vector<nlohmann::json> out;
  for (const auto& model : kit.models()) {
    const std::string file = model["file"];
    if (!file.starts_with("models/llama-mha-spm.") && !file.starts_with("models/llama3-gqa.")) continue;
    const auto& types = model["tensor_types"];
    const bool all = std::all_of(types.items().begin(), types.items().end(), [&](const auto& type) {
      return known.contains(types.is_array() ? type.value().template get<std::string>() : type.key());
    });
    if (all) out.push_back(model);
  }
  return out;
}

/// A file of the kit, opened with one element for keys and values.
class Run {
 public:
  Run(const Kit& kit, const nlohmann::json& entry, std::string_view element)
      : kit_(kit),
        entry_(entry),
        document_(gguf::open(kit.path(entry["file"]))),
        model_(document_, executor_, {.n_ctx = 512, .chunk = 512, .logits_rows = 512, .log = {}}, {},
               {element, element}) {}

  /// Logits after every token of every prompt, in the kit's order, fed in chunks; (tokens, n_vocab).
  [[nodiscard]] std::vector<float> all(std::size_t chunk) {
    std::vector<float> out;
    for (const auto& wanted : entry_["rows"]) {
      auto cache = model_.make_cache();
      const auto logits = feed(model_, cache, kit_.ids(entry_, wanted["prompt"]), chunk);
      out.insert(out.end(), logits.begin(), logits.end());
    }
    return out;
  }

  /// Of all rows those that the kit has.
  [[nodiscard]] std::vector<float> chosen(std::span<const float> all) const {
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

  /// Leading greedy tokens that equal the kit's, of those that are a fair test, over all prompts.
  struct Greedy {
    std::size_t equal = 0;
    std::size_t safe = 0;
  };
  [[nodiscard]] Greedy greedy() {
    Greedy out;
    for (const auto& [prompt, expected] : entry_["greedy"].items()) {
      const std::vector<text::TokenId> tokens = expected["ids"];
      const std::size_t safe = expected["safe_steps"];
      auto cache = model_.make_cache();
      std::size_t equal = 0;
      text::TokenId next = last_choice(cache, kit_.ids(entry_, prompt));
      while (equal < safe && next == tokens[equal]) {
        ++equal;
        next = last_choice(cache, {next});
      }
      out.equal += equal;
      out.safe += safe;
    }
    return out;
  }

  [[nodiscard]] std::size_t n_vocab() const { return model_.config().n_vocab; }

 private:
  [[nodiscard]] text::TokenId last_choice(Model::Cache& cache, const std::vector<text::TokenId>& ids) {
    REQUIRE(model_.step(cache, ids) == model::StepStatus::ok);
    const std::vector<std::size_t> last = {ids.size() - 1};
    const auto row = model_.logits(last)[0];
    return static_cast<text::TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  }

  const Kit& kit_;
  const nlohmann::json& entry_;
  exec::Inline executor_;
  gguf::Document document_;
  Model model_;
};

void print(const std::string& file, const char* what, const Figures& f, const char* beside,
           const Figures& other) {
  std::printf("  %-30s %-22s max %9.2e  rms %9.2e  kl %9.2e  | %s: rms %9.2e  kl %9.2e\n", file.c_str() + 7,
              what, f.max, f.rms, f.mean_kl, beside, other.rms, other.mean_kl);
}

}  // namespace

TEST_CASE("logits of Llama files are as near to the exact ones as the kit asks") {
  const auto root = shared_dir("logits of Llama files", "conformance");
  if (!root) return;
  const Kit kit(*root);
  std::set<std::string> seen;
  for (const auto& entry : llama_files(kit)) {
    const std::string file = entry["file"], format = entry["format"];
    CAPTURE(file);
    seen.insert(format);
    Run run(kit, entry, "F32");
    const auto all = run.all(512);
    CHECK(same_bits(all, run.all(1)));
    const auto prefill = run.chosen(all);
    const auto exact = kit.logits(entry, "exact_logits");
    const Figures ours = compare(prefill, exact, run.n_vocab());
    const auto [equal, safe] = run.greedy();
    if (format == "F32" || format == "F16" || format == "BF16") {
      const Figures beside = compare(prefill, kit.logits(entry, "f64_logits"), run.n_vocab());
      print(file, "against exact", ours, "against f64", beside);
      CHECK(ours.max <= 5e-4);
      CHECK(beside.max <= 5e-4);
      CHECK(equal == safe);
    } else {
      const Figures theirs = figures(entry["llamacpp_error"]);
      print(file, "against exact", ours, "llama.cpp", theirs);
      CHECK(ours.rms <= 1.1 * theirs.rms);
      CHECK(ours.mean_kl <= 1.1 * theirs.mean_kl);
      const auto rows = kit.logits(entry, "llamacpp_logits");
      if (!rows.empty())
        print(file, "llama.cpp, same rows", compare(rows, exact, run.n_vocab()), "all rows", theirs);
    }
    std::printf("  %-30s greedy: %zu of %zu\n", file.c_str() + 7, equal, safe);
  }
  for (const auto* format : {"F32", "F16", "Q8_0", "Q4_0", "Q4_K_M", "Q6_K"}) {
    CAPTURE(format);
    CHECK(seen.contains(format));
  }
}

TEST_CASE("keys and values in F16 and Q8_0 lose no more than the kit's figures for them") {
  const auto root = shared_dir("KV elements on exact weights", "conformance");
  if (!root) return;
  const Kit kit(*root);
  std::size_t files = 0;
  for (const auto& entry : llama_files(kit)) {
    if (!entry.contains("kv_error_on_exact_weights")) continue;
    ++files;
    const std::string file = entry["file"];
    CAPTURE(file);
    const auto exact = Run(kit, entry, "F32").all(512);  // as near to exact as the case above says
    for (const std::string element : {"F16", "Q8_0"}) {
      CAPTURE(element);
      const char* const key = element == "F16" ? "f16_flash" : "q8_0_flash";
      Run run(kit, entry, element);
      const auto logits = run.all(512);
      CHECK(same_bits(logits, run.all(1)));
      const Figures ours = compare(logits, exact, run.n_vocab());
      const Figures theirs = figures(entry["kv_error_on_exact_weights"][key]);
      print(file, element.c_str(), ours, key, theirs);
      CHECK(ours.rms <= theirs.rms);
      CHECK(ours.mean_kl <= theirs.mean_kl);
    }
  }
  CHECK(files == 2);
}

}  // namespace mica::test

#else

TEST_CASE("logits of Llama files are as near to the exact ones as the kit asks") {
  mica::test::skipped("logits of Llama files",
                      "nlohmann-json, which reads the kit's index, is not installed");
}

#endif
