// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"
#include "console.hpp"
#include "input.hpp"
#include "load.hpp"
#include "saved_session.hpp"
#include "verbs.hpp"

#include <optional>
#include <string>
#include <unistd.h>

namespace mica::program {

int complete(const Options& options) {
  check_session_file(options);
  std::optional<std::string> prompt = prompt_with_stdin(options);
  if (!prompt && ::isatty(STDIN_FILENO) == 0) prompt = read_text("-");
  Model model = open_model(options);
  return complete_text(options, model, prompt.value_or(""));
}

}  // namespace mica::program
