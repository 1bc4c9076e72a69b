// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic tiers{"tiers", "the columns of mica fit: mode, level, tier, quality",
                             R"(mode: where the weights are. The first three are modes of other engines.
  GPU           in the memory of graphics cards, or in shared memory
  MoE offload   on the cards, but for experts that a token does not need
  CPU+GPU       in main memory, and as many as fit on the cards
  CPU           in main memory: mica run
  CPU streamed  on the disk, and as many as fit in main memory
level: how well the model fits
  Perfect       on the card, with headroom and the recommended memory
  Good          with headroom: a fifth of the needed memory remains
  Marginal      it fits; the best level of CPU streamed and of a halved context
  Too tight     it fits in no mode
tier: the order of the rows
  quick         Good or Perfect, with the speed and the context of --use
                (general: 5 tokens a second, 4096 tokens); best quality first
  limited       in memory, but slower, fuller or with less context
  streamed      weights are read from the disk for each token
  too tight     the least missing memory is first
quality: the weights, in billions, that a model of January 2025 would need to
be as good. It grows with the number of weights and the date of publication,
and falls with fewer bits per weight.

Other columns: weights in billions; the type that stores them; context in
tokens; memory, and the part of the available memory; tokens a second.

  mica fit -n 5                  the best five models of this machine
  mica fit --ram 16G --vram 8G   another machine
  mica fit NAME --explain        the arithmetic of one model
)"};

}  // namespace mica::program::topic
