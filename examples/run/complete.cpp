// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"
#include "console.hpp"
#include "load.hpp"
#include "verbs.hpp"

namespace mica::program {

int complete(const Options& options) {
  Model model = open_model(options);
  auto session = model.session();
  Answerer answerer(options, model);
  const auto ids = model.tokenizer().encode(prompt_of(options).value_or(""), {.add_special = true, .parse_special = true});
  return answerer.answer(session, ids);
}

}  // namespace mica::program
