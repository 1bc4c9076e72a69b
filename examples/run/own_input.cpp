// SPDX-License-Identifier: Apache-2.0
#include "own_input.hpp"

#include "mica/base/assert.hpp"
#include "options.hpp"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace mica::program {
namespace {

/// Names of files to read; those of a folder too, but for GGUF files, which convert makes and does not read.
std::vector<std::string> inputs_of(const Options& o) {
  std::vector<std::string> names = {
      o.model,         o.draft,         o.prompt_file,        o.text_file,
      o.ids_file,      o.imatrix,       o.system_prompt_file, o.chat_template_file,
      o.template_file, o.messages_file, o.tools_file,         o.fit.machine_file};
  if (o.kl_divergence) names.push_back(o.kl_base);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(o.model, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".gguf") names.push_back(entry->path().string());
  }
  return names;
}

std::vector<std::string> outputs_of(const Options& o) {
  std::vector<std::string> names = {o.output, o.svg};
  if (o.verb == "imatrix" && o.output.empty()) names.emplace_back("imatrix.gguf");
  if (!o.kl_divergence) names.push_back(o.kl_base);
  if (o.verb == "convert" && !o.words.empty()) names.push_back(o.words.front());
  return names;
}

}  // namespace

void refuse_own_input(const Options& options) {
  const std::vector<std::string> inputs = inputs_of(options);
  for (const std::string& out : outputs_of(options)) {
    std::error_code error;
    if (out.empty() || !std::filesystem::is_regular_file(out, error)) continue;
    for (const std::string& in : inputs) {
      const bool same = !in.empty() && std::filesystem::equivalent(in, out, error);
      MICA_CHECK(!same, usage, out, ": mica ", options.verb,
                 " reads this file, so it cannot write to it; choose another output name");
    }
  }
}

}  // namespace mica::program
