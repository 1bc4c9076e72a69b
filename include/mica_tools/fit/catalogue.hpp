// SPDX-License-Identifier: Apache-2.0
//
// The models that `mica fit` ranks: shapes of mica_tools/synth/shapes.hpp with the licence and the place of
// the published configuration. A model whose shape is another's is an alias.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica_tools/quantize/recipe.hpp"
#include "mica_tools/synth/shapes.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace mica::fit {

/// A row of the catalogue.
struct Row {
  std::string_view shape;                          // of arch::shapes
  std::string_view licence;                        // the name that the publisher uses
  std::string_view source;                         // folder with the published config.json
  std::optional<quantize::Recipe> published = {};  // in quantised form: more bits would gain nothing
};

/// Another name of a shape.
struct Alias {
  std::string_view name;   // in lower case
  std::string_view shape;  // of a row
};

/// The rows, each shape once.
// clang-format off
inline constexpr Row catalogue[] = {
    {"tinyllama",         "Apache-2.0",   "https://huggingface.co/TinyLlama/TinyLlama-1.1B-Chat-v1.0"},
    {"llama2-7b",         "Llama 2",      "https://huggingface.co/meta-llama/Llama-2-7b-hf"},
    {"llama2-13b",        "Llama 2",      "https://huggingface.co/meta-llama/Llama-2-13b-hf"},
    {"llama-1b",          "Llama 3.2",    "https://huggingface.co/meta-llama/Llama-3.2-1B"},
    {"llama-3b",          "Llama 3.2",    "https://huggingface.co/meta-llama/Llama-3.2-3B"},
    {"llama-8b",          "Llama 3.1",    "https://huggingface.co/meta-llama/Llama-3.1-8B"},
    {"llama-70b",         "Llama 3.1",    "https://huggingface.co/meta-llama/Llama-3.1-70B"},
    {"mistral-7b",        "Apache-2.0",   "https://huggingface.co/mistralai/Mistral-7B-v0.3"},
    {"mistral-nemo",      "Apache-2.0",   "https://huggingface.co/mistralai/Mistral-Nemo-Base-2407"},
    {"mistral-small",     "Apache-2.0",   "https://huggingface.co/mistralai/Mistral-Small-24B-Base-2501"},
    {"mixtral-8x7b",      "Apache-2.0",   "https://huggingface.co/mistralai/Mixtral-8x7B-v0.1"},
    {"mixtral-8x22b",     "Apache-2.0",   "https://huggingface.co/mistralai/Mixtral-8x22B-v0.1"},
    {"phi3-mini",         "MIT",          "https://huggingface.co/microsoft/Phi-3-mini-4k-instruct"},
    {"phi3-medium",       "MIT",          "https://huggingface.co/microsoft/Phi-3-medium-4k-instruct"},
    {"phi4",              "MIT",          "https://huggingface.co/microsoft/phi-4"},
    {"qwen2-0.5b",        "Apache-2.0",   "https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct"},
    {"qwen2-1.5b",        "Apache-2.0",   "https://huggingface.co/Qwen/Qwen2.5-1.5B-Instruct"},
    {"qwen2-3b",          "Qwen Research", "https://huggingface.co/Qwen/Qwen2.5-3B-Instruct"},
    {"qwen2-7b",          "Apache-2.0",   "https://huggingface.co/Qwen/Qwen2.5-7B-Instruct"},
    {"qwen2-14b",         "Apache-2.0",   "https://huggingface.co/Qwen/Qwen2.5-14B-Instruct"},
    {"qwen2-32b",         "Apache-2.0",   "https://huggingface.co/Qwen/Qwen2.5-32B-Instruct"},
    {"qwen2-72b",         "Qwen",         "https://huggingface.co/Qwen/Qwen2.5-72B-Instruct"},
    {"qwen3-0.6b",        "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-0.6B"},
    {"qwen3-1.7b",        "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-1.7B"},
    {"qwen3-4b",          "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-4B"},
    {"qwen3-8b",          "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-8B"},
    {"qwen3-14b",         "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-14B"},
    {"qwen3-32b",         "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-32B"},
    {"qwen3-30b-a3b",     "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-30B-A3B"},
    {"qwen3-235b-a22b",   "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3-235B-A22B"},
    {"gemma2-2b",         "Gemma",        "https://huggingface.co/google/gemma-2-2b"},
    {"gemma2-9b",         "Gemma",        "https://huggingface.co/google/gemma-2-9b"},
    {"gemma2-27b",        "Gemma",        "https://huggingface.co/google/gemma-2-27b"},
    {"gemma3-1b",         "Gemma",        "https://huggingface.co/google/gemma-3-1b-it"},
    {"gemma3-4b",         "Gemma",        "https://huggingface.co/google/gemma-3-4b-it"},
    {"gemma3-12b",        "Gemma",        "https://huggingface.co/google/gemma-3-12b-it"},
    {"gemma3-27b",        "Gemma",        "https://huggingface.co/google/gemma-3-27b-it"},
    {"gemma4-e2b",        "Apache-2.0",   "https://huggingface.co/google/gemma-4-E2B-it"},
    {"gemma4-e4b",        "Apache-2.0",   "https://huggingface.co/google/gemma-4-E4B-it"},
    {"gemma4-26b-a4b",    "Apache-2.0",   "https://huggingface.co/google/gemma-4-26B-A4B-it"},
    {"gemma4-31b",        "Apache-2.0",   "https://huggingface.co/google/gemma-4-31B-it"},
    {"qwen3.5-0.8b",      "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3.5-0.8B"},
    {"qwen3.5-4b",        "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3.5-4B"},
    {"qwen3.5-9b",        "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3.5-9B"},
    {"qwen3.5-27b",       "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3.5-27B"},
    {"qwen3.5-35b-a3b",   "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3.5-35B-A3B"},
    {"qwen3.5-397b-a17b", "Apache-2.0",   "https://huggingface.co/Qwen/Qwen3.5-397B-A17B"},
    {"gpt-oss-20b",       "Apache-2.0",   "https://huggingface.co/openai/gpt-oss-20b", quantize::Recipe::MXFP4_MOE},
    {"gpt-oss-120b",      "Apache-2.0",   "https://huggingface.co/openai/gpt-oss-120b", quantize::Recipe::MXFP4_MOE},
};

/// Models with the shape of another one.
inline constexpr Alias aliases[] = {
    {"llama-3.2-1b", "llama-1b"},
    {"llama-3.2-3b", "llama-3b"},
    {"llama-3.1-8b", "llama-8b"},
    {"llama-3.1-70b", "llama-70b"},
    {"llama-3.3-70b", "llama-70b"},
    {"qwen2.5-0.5b", "qwen2-0.5b"},
    {"qwen2.5-1.5b", "qwen2-1.5b"},
    {"qwen2.5-3b", "qwen2-3b"},
    {"qwen2.5-7b", "qwen2-7b"},
    {"qwen2.5-14b", "qwen2-14b"},
    {"qwen2.5-32b", "qwen2-32b"},
    {"qwen2.5-72b", "qwen2-72b"},
    {"qwen2.5-coder-14b", "qwen2-14b"},
    {"qwen2.5-coder-32b", "qwen2-32b"},
    {"deepseek-r1-distill-qwen-7b", "qwen2-7b"},
    {"deepseek-r1-distill-qwen-14b", "qwen2-14b"},
    {"deepseek-r1-distill-qwen-32b", "qwen2-32b"},
    {"deepseek-r1-distill-llama-8b", "llama-8b"},
    {"deepseek-r1-distill-llama-70b", "llama-70b"},
};
// clang-format on

/// The row of that name or alias; null when there is none.
[[nodiscard]] constexpr const Row* find_row(std::string_view name) noexcept {
  for (const Alias& alias : aliases) {
    if (alias.name == name) name = alias.shape;
  }
  for (const Row& row : catalogue) {
    if (row.shape == name) return &row;
  }
  return nullptr;
}

/// The same. Raises a usage error that suggests the nearest name.
[[nodiscard]] inline const Row& row_of(std::string_view name) {
  const Row* const row = find_row(name);
  if (row != nullptr) return *row;
  io::NearName near{std::string(name)};
  std::string known;
  for (const Row& each : catalogue) {
    near.offer(std::string(each.shape));
    known += join(known.empty() ? "" : " ", each.shape);
  }
  for (const Alias& alias : aliases) near.offer(std::string(alias.name));
  raise(ErrorCode::usage, "no file, and no model of the catalogue: '", escaped(name), "'",
        near.best() ? join("; did you mean ", *near.best(), "?") : std::string(), "  Known: ", known);
}

}  // namespace mica::fit
