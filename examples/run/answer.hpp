// SPDX-License-Identifier: Apache-2.0
//
// One generation on the console: text as it comes, or JSON; then the timings; and why it stopped as an exit code.
#pragma once

#include "options.hpp"

#include "mica/runtime/generate.hpp"
#include "mica/runtime/open.hpp"

#include <span>
#include <string>

namespace mica::program {

class Answerer {
 public:
  /// Options and model outlive the answerer.
  Answerer(const Options& options, Model& model);

  /// Feeds the prompt, prints the answer, and returns the exit code.
  int answer(Session<AnyModel>& session, std::span<const text::TokenId> prompt);

  /// The text of the last answer.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const GenerateResult& result() const noexcept { return result_; }

 private:
  void show(std::string_view piece);
  void show_end();
  [[nodiscard]] std::string timings_line() const;
  [[nodiscard]] std::string json_object() const;

  const Options& options_;
  Model& model_;
  sample::Sampler<> sampler_;
  GenerateOptions generate_;
  GenerateResult result_;
  std::string text_;
};

}  // namespace mica::program
