// SPDX-License-Identifier: Apache-2.0
//
// The verbs of the program. Each is in verbs/<name>.cpp: its help, its flags and what it does.
#pragma once

#include "verb.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

using AnyVerb = std::unique_ptr<Verb>;

AnyVerb make_run(), make_chat(), make_complete(), make_inspect(), make_tokenize(), make_detokenize(),
    make_template(), make_logits(), make_embed(), make_rerank(), make_search(), make_bench(),
    make_perplexity(), make_imatrix(), make_quantize(), make_convert(), make_pack(), make_synth(),
    make_plan(), make_fit(), make_doctor(), make_pull(), make_list(), make_show(), make_rm(), make_serve(),
    make_grammar(), make_completion();

/// All verbs in the order of help, with the defaults of their flags.
[[nodiscard]] std::vector<AnyVerb> make_verbs();

/// Null when there is none of that name.
[[nodiscard]] Verb* find_verb(const std::vector<AnyVerb>& verbs, std::string_view name) noexcept;

}  // namespace mica::program
