// SPDX-License-Identifier: Apache-2.0
//
// The room arch: the families.
#pragma once

#include "mica/arch/any_of.hpp"
#include "mica/arch/bert.hpp"
#include "mica/arch/concept.hpp"
#include "mica/arch/config.hpp"
#include "mica/arch/gemma.hpp"
#include "mica/arch/gemma3n.hpp"
#include "mica/arch/gemma4.hpp"
#include "mica/arch/gemma_embedding.hpp"
#include "mica/arch/gpt_oss.hpp"
#include "mica/arch/key_reader.hpp"
#include "mica/arch/lists.hpp"
#include "mica/arch/llama.hpp"
#include "mica/arch/mtp.hpp"
#include "mica/arch/pooling.hpp"
#include "mica/arch/qwen.hpp"
#include "mica/arch/qwen_delta_net.hpp"
#include "mica/arch/read_encoder.hpp"
#include "mica/arch/read_experts.hpp"
#include "mica/arch/read_keys.hpp"
#include "mica/arch/read_pooling.hpp"
#include "mica/arch/tensor_names.hpp"
