// SPDX-License-Identifier: Apache-2.0
//
// The closed list of families.
#pragma once

#include "mica/arch/bert.hpp"
#include "mica/arch/gemma.hpp"
#include "mica/arch/gemma3n.hpp"
#include "mica/arch/gemma4.hpp"
#include "mica/arch/gemma_embedding.hpp"
#include "mica/arch/gpt_oss.hpp"
#include "mica/arch/llama.hpp"
#include "mica/arch/qwen.hpp"
#include "mica/arch/qwen_delta_net.hpp"
#include "mica/base/type_list.hpp"

namespace mica::arch {

/// The families of open(); a shorter list is a smaller program.
using All = TypeList<Llama, Llama4, Mistral3, Granite, Phi3, Qwen2, Qwen2Moe, Qwen3, Qwen3Moe, Qwen3Next,
                     Qwen35, Qwen35Moe, Gemma, Gemma2, Gemma3, Gemma3n, Gemma4, GptOss, Bert, NomicBert,
                     JinaBertV2, ModernBert, GemmaEmbedding>;

}  // namespace mica::arch
