// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic streaming{
    "streaming", "models that are larger than memory",
    R"(With --weights streamed, weights that fit stay in memory, and the others are
read from the disk in every step, while the previous layer computes. mica
chooses this by itself when a model does not fit in the budget.

  mica run model.gguf --memory 4GiB "..."
  mica plan model.gguf --memory 4GiB --probe    measures the disk, and says how
                                                many tokens a second it allows
  mica run model.gguf --memory 4GiB --stats "..."   bytes read, and time waited

The disk is the limit: an NVMe disk of 3 GB/s and 6 GB of weights that are not
resident give one token in two seconds. What helps:

  more memory        with each GiB more, one GiB less is read for every token
  mica pack          a folder with rows in the order in which they are used;
                     it streams faster and has checksums
  mixtures           a model with experts reads only those of a token
  --draft FILE       a small model of the same vocabulary predicts tokens, and
                     one pass over the disk checks several
  --draft-answers    the model of --draft answers a chat by itself, and /exact
                     asks the large one
  a smaller format   Q4_K_M has about half of the bytes of Q8_0

With one sequence the prompt is read in chunks of -b tokens, and each chunk
reads the weights once, so a larger -b reads long prompts faster.
)"};

}  // namespace mica::program::topic
