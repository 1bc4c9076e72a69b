// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"
#include "input.hpp"
#include "load.hpp"
#include "verbs.hpp"

namespace mica::program {

int complete(const Options& options) {
  const std::string prompt = prompt_of(options).value_or("");
  Model model = open_model(options);
  return complete_text(options, model, prompt);
}

}  // namespace mica::program
