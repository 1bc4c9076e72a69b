// SPDX-License-Identifier: Apache-2.0
//
// Short names of models that are published as GGUF files, each with its repository. A name with a
// quantisation behind a colon is that quantisation.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica_tools/fit/catalogue.hpp"
#include "mica_tools/hub/name.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace mica::hub {

/// A model and its repository.
struct Published {
  std::string_view name;  // in lower case
  std::string_view repo;  // "ORG/REPO"
};

/// The names that parse_short_name() knows.
// clang-format off
inline constexpr Published published[] = {
    {"qwen2.5-0.5b",                  "Qwen/Qwen2.5-0.5B-Instruct-GGUF"},
    {"qwen2.5-1.5b",                  "Qwen/Qwen2.5-1.5B-Instruct-GGUF"},
    {"qwen2.5-3b",                    "Qwen/Qwen2.5-3B-Instruct-GGUF"},
    {"qwen2.5-7b",                    "Qwen/Qwen2.5-7B-Instruct-GGUF"},
    {"qwen2.5-14b",                   "Qwen/Qwen2.5-14B-Instruct-GGUF"},
    {"qwen2.5-32b",                   "Qwen/Qwen2.5-32B-Instruct-GGUF"},
    {"qwen2.5-72b",                   "Qwen/Qwen2.5-72B-Instruct-GGUF"},
    {"qwen2.5-coder-0.5b",            "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF"},
    {"qwen2.5-coder-1.5b",            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"},
    {"qwen2.5-coder-3b",              "Qwen/Qwen2.5-Coder-3B-Instruct-GGUF"},
    {"qwen2.5-coder-7b",              "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF"},
    {"qwen2.5-coder-14b",             "Qwen/Qwen2.5-Coder-14B-Instruct-GGUF"},
    {"qwen2.5-coder-32b",             "Qwen/Qwen2.5-Coder-32B-Instruct-GGUF"},
    {"qwen3-0.6b",                    "Qwen/Qwen3-0.6B-GGUF"},
    {"qwen3-1.7b",                    "Qwen/Qwen3-1.7B-GGUF"},
    {"qwen3-4b",                      "Qwen/Qwen3-4B-GGUF"},
    {"qwen3-8b",                      "Qwen/Qwen3-8B-GGUF"},
    {"qwen3-14b",                     "Qwen/Qwen3-14B-GGUF"},
    {"qwen3-32b",                     "Qwen/Qwen3-32B-GGUF"},
    {"qwen3-30b-a3b",                 "Qwen/Qwen3-30B-A3B-GGUF"},
    {"qwen3-235b-a22b",               "Qwen/Qwen3-235B-A22B-GGUF"},
    {"llama-3.2-1b",                  "bartowski/Llama-3.2-1B-Instruct-GGUF"},
    {"llama-3.2-3b",                  "bartowski/Llama-3.2-3B-Instruct-GGUF"},
    {"llama-3.1-8b",                  "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF"},
    {"llama-3.1-70b",                 "bartowski/Meta-Llama-3.1-70B-Instruct-GGUF"},
    {"llama-3.3-70b",                 "bartowski/Llama-3.3-70B-Instruct-GGUF"},
    {"llama2-7b",                     "TheBloke/Llama-2-7B-Chat-GGUF"},
    {"llama2-13b",                    "TheBloke/Llama-2-13B-chat-GGUF"},
    {"tinyllama",                     "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF"},
    {"smollm2-360m",                  "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF"},
    {"smollm2-1.7b",                  "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF"},
    {"mistral-7b",                    "bartowski/Mistral-7B-Instruct-v0.3-GGUF"},
    {"mistral-nemo",                  "bartowski/Mistral-Nemo-Instruct-2407-GGUF"},
    {"mistral-small",                 "bartowski/Mistral-Small-24B-Instruct-2501-GGUF"},
    {"mixtral-8x7b",                  "TheBloke/Mixtral-8x7B-Instruct-v0.1-GGUF"},
    {"phi3-mini",                     "microsoft/Phi-3-mini-4k-instruct-gguf"},
    {"phi3-medium",                   "bartowski/Phi-3-medium-4k-instruct-GGUF"},
    {"phi4",                          "bartowski/phi-4-GGUF"},
    {"gemma2-2b",                     "bartowski/gemma-2-2b-it-GGUF"},
    {"gemma2-9b",                     "bartowski/gemma-2-9b-it-GGUF"},
    {"gemma2-27b",                    "bartowski/gemma-2-27b-it-GGUF"},
    {"gemma3-1b",                     "ggml-org/gemma-3-1b-it-GGUF"},
    {"gemma3-4b",                     "ggml-org/gemma-3-4b-it-GGUF"},
    {"gemma3-12b",                    "ggml-org/gemma-3-12b-it-GGUF"},
    {"gemma3-27b",                    "ggml-org/gemma-3-27b-it-GGUF"},
    {"gpt-oss-20b",                   "ggml-org/gpt-oss-20b-GGUF"},
    {"gpt-oss-120b",                  "ggml-org/gpt-oss-120b-GGUF"},
    {"deepseek-r1-distill-qwen-1.5b", "bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF"},
    {"deepseek-r1-distill-qwen-7b",   "bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF"},
    {"deepseek-r1-distill-qwen-14b",  "bartowski/DeepSeek-R1-Distill-Qwen-14B-GGUF"},
    {"deepseek-r1-distill-qwen-32b",  "bartowski/DeepSeek-R1-Distill-Qwen-32B-GGUF"},
    {"deepseek-r1-distill-llama-8b",  "bartowski/DeepSeek-R1-Distill-Llama-8B-GGUF"},
    {"deepseek-r1-distill-llama-70b", "bartowski/DeepSeek-R1-Distill-Llama-70B-GGUF"},
};
// clang-format on

/// The model of a short name. For a name of the catalogue that is no short name: the first model of that
/// shape. Null when there is none. Requires lower case.
[[nodiscard]] constexpr const Published* find_published(std::string_view name) noexcept {
  for (const Published& each : published) {
    if (each.name == name) return &each;
  }
  const fit::Row* const row = fit::find_row(name);
  if (row == nullptr || row->shape != name) return nullptr;  // an alias names a model of its own
  for (const Published& each : published) {
    if (fit::find_row(each.name) == row) return &each;
  }
  return nullptr;
}

/// The model of a short name, with or without ":QUANT" behind it, in any case; empty for other texts.
[[nodiscard]] inline std::optional<Name> parse_short_name(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const Published* const found = find_published(remote::detail::lower(text.substr(0, colon)));
  if (found == nullptr) return std::nullopt;
  return parse_repo(join(found->repo, text.substr(colon)), text);
}

/// "; did you mean NAME?" for the most similar short name; empty if none is similar.
[[nodiscard]] inline std::string near_published(std::string_view text) {
  io::NearName near(remote::detail::lower(text.substr(0, text.find(':'))));
  for (const Published& each : published) near.offer(std::string(each.name));
  return near.best() ? join("; did you mean ", *near.best(), "?") : std::string();
}

}  // namespace mica::hub
