// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include "mica/base/assert.hpp"
#include "mica/io/detail/path.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::program {

std::vector<AnyVerb> make_verbs() {
  std::vector<AnyVerb> verbs;
  for (const auto make :
       {make_run,        make_chat,    make_complete, make_inspect,   make_tokenize, make_detokenize,
        make_template,   make_logits,  make_embed,    make_rerank,    make_search,   make_bench,
        make_perplexity, make_imatrix, make_quantize, make_convert,   make_pack,     make_synth,
        make_plan,       make_fit,     make_doctor,   make_pull,      make_list,     make_show,
        make_rm,         make_serve,   make_grammar,  make_completion})
    verbs.push_back(make());
  return verbs;
}

Verb* find_verb(const std::vector<AnyVerb>& verbs, std::string_view name) noexcept {
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [&](const AnyVerb& verb) { return verb->about.name == name; });
  return found == verbs.end() ? nullptr : found->get();
}

Flags Verb::flags() {
  Flags flags;
  declare(flags);
  OutputOptions::add_to(flags);
  flags.toggle("--print-config", print_config, "show all options with their values, and end");
  flags.text("--config", config, "FILE",
             "read options from this file instead of mica/config.toml below $XDG_CONFIG_HOME");
  flags.toggle("-h,--help", help, "this text, and end");
  return flags;
}

void Verb::add_model(Flags& flags) {
  flags.group("Model");
  flags.model("-m,--model", model_path, "FILE",
              "GGUF file, of a sharded model any shard; or a packed directory; or a model by name, as "
              "hf.co/ORG/REPO:QUANT or qwen2.5-0.5b, which is downloaded where it is not here; for inspect, "
              "plan, tokenize, detokenize and template also a URL");
  if (needs == Needs::local) return;
  flags.text("-hf,-hfr,--hf-repo", hf_repo, "REPO", "a model of huggingface.co: ORG/REPO or ORG/REPO:QUANT");
  flags.text("-hff,--hf-file", hf_file, "FILE", "with --hf-repo or hf.co/ORG/REPO: this file of it");
  flags.toggle("--offline", offline, "ask no hub; models by name are those that are here (HF_HUB_OFFLINE)");
}

void Verb::refuse_own_input(const std::string& output, std::vector<std::string> inputs) const {
  std::error_code error;
  if (output.empty() || !std::filesystem::is_regular_file(output, error)) return;
  inputs.push_back(model_path);
  // Of a folder too, but for GGUF files, which convert makes and does not read.
  const auto add = [&](int, std::string_view name) {
    if (std::filesystem::path(name).extension() != ".gguf") inputs.push_back(join(model_path, "/", name));
    return true;
  };
  if (!model_path.empty()) io::detail::for_each_beside(model_path + "/", add);
  for (const std::string& input : inputs) {
    const bool same = !input.empty() && std::filesystem::equivalent(input, output, error);
    MICA_CHECK(!same, usage, output, ": mica ", about.name,
               " reads this file, so it cannot write to it; choose another output name");
  }
}

}  // namespace mica::program
