// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic models{"models", "where models come from, and how they are named",
                              R"(A model is one of:

  model.gguf                   a GGUF file
  model-00001-of-00003.gguf    any shard of several; the others are beside it
  model.packed                 a folder that mica pack wrote
  https://HOST/model.gguf      a file on a server, for plan, inspect, tokenize,
                               detokenize and template: only its header is read
  hf.co/ORG/REPO               a model of Hugging Face, downloaded when needed;
                               :Q4_K_M behind it chooses the quantisation
  qwen2.5-0.5b                 a short name for one; mica list --known

It is the first word after the verb, or the value of -m. Without a model,
mica run tells a story with a small model that is part of the program.

A folder with safetensors files becomes one GGUF file:

  mica convert Qwen3-0.6B qwen3.gguf             as published
  mica quantize qwen3.gguf qwen3-q4.gguf Q4_K_M  in about a third of the bytes

Before a download:

  mica fit -n 1                the best model for this machine, and its command
  mica plan https://HOST/model.gguf --memory 6GiB

mica inspect model.gguf shows what is in a file, also of families that mica
does not run. Such a model is refused (exit code 5), and the message names its
family.
)"};

}  // namespace mica::program::topic
