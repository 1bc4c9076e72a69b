// SPDX-License-Identifier: Apache-2.0
//
// The models that `mica fit` ranks, and that `mica run` and `mica pull` know by a short name: one table. A
// row has a published model, its shape (mica_tools/synth/shapes.hpp), and the repository of its GGUF files. If
// a publisher has a base model and an instruction-tuned one, the row has the latter. The name of a shape
// means the first model of that shape.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica_tools/quantize/recipe.hpp"
#include "mica_tools/synth/shapes.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::fit {

/// A month of publication.
struct Month {
  int year = 2025;  // four digits
  int month = 1;    // 1 to 12

  /// Months from `other` to this one; negative if this one is earlier.
  [[nodiscard]] constexpr int since(Month other) const noexcept {
    return (year - other.year) * 12 + month - other.month;
  }
};

/// The purpose that a publisher gives to a model.
enum class MadeFor : std::uint8_t {
  everything,
  thinking,   // everything; it can think before it answers
  coding,     // programs
  reasoning,  // problems; it thinks before every answer
};

[[nodiscard]] constexpr std::string_view name(MadeFor purpose) noexcept {
  constexpr std::array<std::string_view, 4> names = {"everything", "thinking", "coding", "reasoning"};
  return names[static_cast<std::size_t>(purpose)];
}

/// A row of the catalogue.
struct Row {
  std::string_view name;                        // in lower case
  std::string_view shape;                       // of arch::shapes
  Month published;                              // of the weights
  MadeFor made_for;                             // by its publisher
  std::string_view licence;                     // the name that the publisher uses
  std::string_view source;                      // "ORG/REPO" with the published config.json
  std::string_view gguf;                        // "ORG/REPO" with GGUF files; empty: none is known
  std::optional<quantize::Recipe> recipe = {};  // of models that are published in quantised form
  std::size_t n_ctx_train = 0;                  // 0: that of the shape

  /// "Qwen3-8B".
  [[nodiscard]] constexpr std::string_view title() const noexcept {
    return source.substr(source.find('/') + 1);
  }
};

/// The rows. Several may have the same shape; the first of them is the model that the name of the shape
/// means.
// clang-format off
inline constexpr auto catalogue = [] {
  using enum MadeFor;
  return std::array{
      Row{"tinyllama", "tinyllama", {2023, 12}, everything, "Apache-2.0",
          "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF"},
      Row{"smollm2-360m", "smollm2-360m", {2024, 11}, everything, "Apache-2.0",
          "HuggingFaceTB/SmolLM2-360M-Instruct", "bartowski/SmolLM2-360M-Instruct-GGUF"},
      Row{"smollm2-1.7b", "smollm2-1.7b", {2024, 11}, everything, "Apache-2.0",
          "HuggingFaceTB/SmolLM2-1.7B-Instruct", "bartowski/SmolLM2-1.7B-Instruct-GGUF"},
      Row{"llama2-7b", "llama2-7b", {2023, 7}, everything, "Llama 2",
          "meta-llama/Llama-2-7b-chat-hf", "TheBloke/Llama-2-7B-Chat-GGUF"},
      Row{"llama2-13b", "llama2-13b", {2023, 7}, everything, "Llama 2",
          "meta-llama/Llama-2-13b-chat-hf", "TheBloke/Llama-2-13B-chat-GGUF"},
      Row{"llama-3.2-1b", "llama-1b", {2024, 9}, everything, "Llama 3.2",
          "meta-llama/Llama-3.2-1B-Instruct", "bartowski/Llama-3.2-1B-Instruct-GGUF"},
      Row{"llama-3.2-3b", "llama-3b", {2024, 9}, everything, "Llama 3.2",
          "meta-llama/Llama-3.2-3B-Instruct", "bartowski/Llama-3.2-3B-Instruct-GGUF"},
      Row{"llama-3.1-8b", "llama-8b", {2024, 7}, everything, "Llama 3.1",
          "meta-llama/Llama-3.1-8B-Instruct", "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF"},
      Row{"llama-3.1-70b", "llama-70b", {2024, 7}, everything, "Llama 3.1",
          "meta-llama/Llama-3.1-70B-Instruct", "bartowski/Meta-Llama-3.1-70B-Instruct-GGUF"},
      Row{"llama-3.3-70b", "llama-70b", {2024, 12}, everything, "Llama 3.3",
          "meta-llama/Llama-3.3-70B-Instruct", "bartowski/Llama-3.3-70B-Instruct-GGUF"},
      Row{"mistral-7b", "mistral-7b", {2024, 5}, everything, "Apache-2.0",
          "mistralai/Mistral-7B-Instruct-v0.3", "bartowski/Mistral-7B-Instruct-v0.3-GGUF"},
      Row{"mistral-nemo", "mistral-nemo", {2024, 7}, everything, "Apache-2.0",
          "mistralai/Mistral-Nemo-Instruct-2407", "bartowski/Mistral-Nemo-Instruct-2407-GGUF"},
      Row{"mistral-small", "mistral-small", {2025, 1}, everything, "Apache-2.0",
          "mistralai/Mistral-Small-24B-Instruct-2501", "bartowski/Mistral-Small-24B-Instruct-2501-GGUF"},
      Row{"devstral-small", "mistral-small", {2025, 7}, coding, "Apache-2.0",
          "mistralai/Devstral-Small-2507", "bartowski/mistralai_Devstral-Small-2507-GGUF", {}, 131072},
      Row{"mixtral-8x7b", "mixtral-8x7b", {2023, 12}, everything, "Apache-2.0",
          "mistralai/Mixtral-8x7B-Instruct-v0.1", "TheBloke/Mixtral-8x7B-Instruct-v0.1-GGUF"},
      Row{"mixtral-8x22b", "mixtral-8x22b", {2024, 4}, everything, "Apache-2.0",
          "mistralai/Mixtral-8x22B-Instruct-v0.1", "MaziyarPanahi/Mixtral-8x22B-Instruct-v0.1-GGUF"},
      Row{"phi3-mini", "phi3-mini", {2024, 4}, everything, "MIT",
          "microsoft/Phi-3-mini-4k-instruct", "bartowski/Phi-3-mini-4k-instruct-GGUF"},
      Row{"phi3-medium", "phi3-medium", {2024, 5}, everything, "MIT",
          "microsoft/Phi-3-medium-4k-instruct", "bartowski/Phi-3-medium-4k-instruct-GGUF"},
      Row{"phi4", "phi4", {2024, 12}, everything, "MIT",
          "microsoft/phi-4", "bartowski/phi-4-GGUF"},
      Row{"qwen2.5-0.5b", "qwen2-0.5b", {2024, 9}, everything, "Apache-2.0",
          "Qwen/Qwen2.5-0.5B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct-GGUF"},
      Row{"qwen2.5-1.5b", "qwen2-1.5b", {2024, 9}, everything, "Apache-2.0",
          "Qwen/Qwen2.5-1.5B-Instruct", "Qwen/Qwen2.5-1.5B-Instruct-GGUF"},
      Row{"qwen2.5-3b", "qwen2-3b", {2024, 9}, everything, "Qwen Research",
          "Qwen/Qwen2.5-3B-Instruct", "Qwen/Qwen2.5-3B-Instruct-GGUF"},
      Row{"qwen2.5-7b", "qwen2-7b", {2024, 9}, everything, "Apache-2.0",
          "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct-GGUF"},
      Row{"qwen2.5-14b", "qwen2-14b", {2024, 9}, everything, "Apache-2.0",
          "Qwen/Qwen2.5-14B-Instruct", "Qwen/Qwen2.5-14B-Instruct-GGUF"},
      Row{"qwen2.5-32b", "qwen2-32b", {2024, 9}, everything, "Apache-2.0",
          "Qwen/Qwen2.5-32B-Instruct", "Qwen/Qwen2.5-32B-Instruct-GGUF"},
      Row{"qwen2.5-72b", "qwen2-72b", {2024, 9}, everything, "Qwen",
          "Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-72B-Instruct-GGUF"},
      Row{"qwen2.5-coder-0.5b", "qwen2-0.5b", {2024, 11}, coding, "Apache-2.0",
          "Qwen/Qwen2.5-Coder-0.5B-Instruct", "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF"},
      Row{"qwen2.5-coder-1.5b", "qwen2-1.5b", {2024, 9}, coding, "Apache-2.0",
          "Qwen/Qwen2.5-Coder-1.5B-Instruct", "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"},
      Row{"qwen2.5-coder-3b", "qwen2-3b", {2024, 11}, coding, "Qwen Research",
          "Qwen/Qwen2.5-Coder-3B-Instruct", "Qwen/Qwen2.5-Coder-3B-Instruct-GGUF"},
      Row{"qwen2.5-coder-7b", "qwen2-7b", {2024, 9}, coding, "Apache-2.0",
          "Qwen/Qwen2.5-Coder-7B-Instruct", "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF"},
      Row{"qwen2.5-coder-14b", "qwen2-14b", {2024, 11}, coding, "Apache-2.0",
          "Qwen/Qwen2.5-Coder-14B-Instruct", "Qwen/Qwen2.5-Coder-14B-Instruct-GGUF"},
      Row{"qwen2.5-coder-32b", "qwen2-32b", {2024, 11}, coding, "Apache-2.0",
          "Qwen/Qwen2.5-Coder-32B-Instruct", "Qwen/Qwen2.5-Coder-32B-Instruct-GGUF"},
      Row{"qwen3-0.6b", "qwen3-0.6b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-0.6B", "bartowski/Qwen_Qwen3-0.6B-GGUF"},
      Row{"qwen3-1.7b", "qwen3-1.7b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-1.7B", "bartowski/Qwen_Qwen3-1.7B-GGUF"},
      Row{"qwen3-4b", "qwen3-4b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-4B", "bartowski/Qwen_Qwen3-4B-GGUF"},
      Row{"qwen3-8b", "qwen3-8b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-8B", "bartowski/Qwen_Qwen3-8B-GGUF"},
      Row{"qwen3-14b", "qwen3-14b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-14B", "bartowski/Qwen_Qwen3-14B-GGUF"},
      Row{"qwen3-32b", "qwen3-32b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-32B", "bartowski/Qwen_Qwen3-32B-GGUF"},
      Row{"qwen3-30b-a3b", "qwen3-30b-a3b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-30B-A3B", "bartowski/Qwen_Qwen3-30B-A3B-GGUF"},
      Row{"qwen3-coder-30b-a3b", "qwen3-30b-a3b", {2025, 7}, coding, "Apache-2.0",
          "Qwen/Qwen3-Coder-30B-A3B-Instruct", "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", {}, 262144},
      Row{"qwen3-235b-a22b", "qwen3-235b-a22b", {2025, 4}, thinking, "Apache-2.0",
          "Qwen/Qwen3-235B-A22B", "bartowski/Qwen_Qwen3-235B-A22B-GGUF"},
      Row{"qwen3.5-0.8b", "qwen3.5-0.8b", {2026, 3}, thinking, "Apache-2.0",
          "Qwen/Qwen3.5-0.8B", "bartowski/Qwen_Qwen3.5-0.8B-GGUF"},
      Row{"qwen3.5-4b", "qwen3.5-4b", {2026, 3}, thinking, "Apache-2.0",
          "Qwen/Qwen3.5-4B", "bartowski/Qwen_Qwen3.5-4B-GGUF"},
      Row{"qwen3.5-9b", "qwen3.5-9b", {2026, 3}, thinking, "Apache-2.0",
          "Qwen/Qwen3.5-9B", "bartowski/Qwen_Qwen3.5-9B-GGUF"},
      Row{"qwen3.5-27b", "qwen3.5-27b", {2026, 2}, thinking, "Apache-2.0",
          "Qwen/Qwen3.5-27B", "bartowski/Qwen_Qwen3.5-27B-GGUF"},
      Row{"qwen3.5-35b-a3b", "qwen3.5-35b-a3b", {2026, 2}, thinking, "Apache-2.0",
          "Qwen/Qwen3.5-35B-A3B", "bartowski/Qwen_Qwen3.5-35B-A3B-GGUF"},
      Row{"qwen3.5-397b-a17b", "qwen3.5-397b-a17b", {2026, 2}, thinking, "Apache-2.0",
          "Qwen/Qwen3.5-397B-A17B", "bartowski/Qwen_Qwen3.5-397B-A17B-GGUF"},
      Row{"gemma2-2b", "gemma2-2b", {2024, 7}, everything, "Gemma",
          "google/gemma-2-2b-it", "bartowski/gemma-2-2b-it-GGUF"},
      Row{"gemma2-9b", "gemma2-9b", {2024, 6}, everything, "Gemma",
          "google/gemma-2-9b-it", "bartowski/gemma-2-9b-it-GGUF"},
      Row{"gemma2-27b", "gemma2-27b", {2024, 6}, everything, "Gemma",
          "google/gemma-2-27b-it", "bartowski/gemma-2-27b-it-GGUF"},
      Row{"gemma3-1b", "gemma3-1b", {2025, 3}, everything, "Gemma",
          "google/gemma-3-1b-it", "bartowski/google_gemma-3-1b-it-GGUF"},
      Row{"gemma3-4b", "gemma3-4b", {2025, 3}, everything, "Gemma",
          "google/gemma-3-4b-it", "bartowski/google_gemma-3-4b-it-GGUF"},
      Row{"gemma3-12b", "gemma3-12b", {2025, 3}, everything, "Gemma",
          "google/gemma-3-12b-it", "bartowski/google_gemma-3-12b-it-GGUF"},
      Row{"gemma3-27b", "gemma3-27b", {2025, 3}, everything, "Gemma",
          "google/gemma-3-27b-it", "bartowski/google_gemma-3-27b-it-GGUF"},
      Row{"gemma4-e2b", "gemma4-e2b", {2026, 4}, thinking, "Apache-2.0",
          "google/gemma-4-E2B-it", "bartowski/google_gemma-4-E2B-it-GGUF"},
      Row{"gemma4-e4b", "gemma4-e4b", {2026, 4}, thinking, "Apache-2.0",
          "google/gemma-4-E4B-it", "bartowski/google_gemma-4-E4B-it-GGUF"},
      Row{"gemma4-26b-a4b", "gemma4-26b-a4b", {2026, 4}, thinking, "Apache-2.0",
          "google/gemma-4-26B-A4B-it", "bartowski/google_gemma-4-26B-A4B-it-GGUF"},
      Row{"gemma4-31b", "gemma4-31b", {2026, 4}, thinking, "Apache-2.0",
          "google/gemma-4-31B-it", "bartowski/google_gemma-4-31B-it-GGUF"},
      Row{"gpt-oss-20b", "gpt-oss-20b", {2025, 8}, thinking, "Apache-2.0",
          "openai/gpt-oss-20b", "ggml-org/gpt-oss-20b-GGUF", quantize::Recipe::MXFP4_MOE},
      Row{"gpt-oss-120b", "gpt-oss-120b", {2025, 8}, thinking, "Apache-2.0",
          "openai/gpt-oss-120b", "ggml-org/gpt-oss-120b-GGUF", quantize::Recipe::MXFP4_MOE},
      Row{"deepseek-r1-distill-qwen-1.5b", "qwen2-1.5b", {2025, 1}, reasoning, "MIT",
          "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
          "bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF", {}, 131072},
      Row{"deepseek-r1-distill-qwen-7b", "qwen2-7b", {2025, 1}, reasoning, "MIT",
          "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
          "bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF", {}, 131072},
      Row{"deepseek-r1-distill-qwen-14b", "qwen2-14b", {2025, 1}, reasoning, "MIT",
          "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
          "bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF", {}, 131072},
      Row{"deepseek-r1-distill-qwen-32b", "qwen2-32b", {2025, 1}, reasoning, "MIT",
          "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
          "bartowski/DeepSeek-R1-Distill-Qwen-32B-GGUF", {}, 131072},
      Row{"deepseek-r1-distill-llama-8b", "llama-8b", {2025, 1}, reasoning, "MIT",
          "deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "bartowski/DeepSeek-R1-Distill-Llama-8B-GGUF"},
      Row{"deepseek-r1-distill-llama-70b", "llama-70b", {2025, 1}, reasoning, "MIT",
          "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "bartowski/DeepSeek-R1-Distill-Llama-70B-GGUF"},
  };
}();
// clang-format on

/// The row of that name, or the first of that shape; null when there is none.
[[nodiscard]] constexpr const Row* find_row(std::string_view name) noexcept {
  for (const Row& row : catalogue) {
    if (row.name == name) return &row;
  }
  for (const Row& row : catalogue) {
    if (row.shape == name) return &row;
  }
  return nullptr;
}

/// The name of the catalogue that is nearest to a wrong one; empty when none is near.
[[nodiscard]] inline std::optional<std::string> near_row(std::string_view name) {
  io::NearName near{std::string(name)};
  for (const Row& row : catalogue) near.offer(row.name);
  for (const Row& row : catalogue) near.offer(row.shape);
  return near.best();
}

/// "tinyllama smollm2-360m ...", for messages.
[[nodiscard]] inline std::string row_names() {
  std::string names;
  for (const Row& row : catalogue) names += join(names.empty() ? "" : " ", row.name);
  return names;
}

/// The row of that name or shape. Raises ErrorCode::file with the nearest name.
[[nodiscard]] inline const Row& row_of(std::string_view name) {
  if (const Row* const row = find_row(name)) return *row;
  const auto near = near_row(name);
  raise(ErrorCode::file, "no file, and no model of the catalogue: '", escaped(name), "'",
        near ? join("; did you mean ", *near, "?") : ".", " mica list --known shows the names");
}

}  // namespace mica::fit
