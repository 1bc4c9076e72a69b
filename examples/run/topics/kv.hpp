// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic kv{"kv", "keys and values: what a context costs, and how to make it smaller",
                          R"(Each token of a context leaves keys and values in memory, which later tokens
read. Their size grows with the context (-c) and with the number of layers.

  mica plan model.gguf -c 32768     shows their size as "kv"

Fewer bits for each number (the answer changes a little):

  -ctk q8_0 -ctv q8_0               half of the default F16, hardly any change
  -ctk q5_1 -ctv q4_0               keys need more bits than values
  -ctk f16:q4_0 -ctv f16:q4_0       recent tokens in F16, older ones in 4 bits;
                                    --cache-recent sets how many are recent
  -ctk kvarn4 -ctv kvarn3           old tokens in 4 bits, with less change than
                                    f16:q4_0
  -ctk kvarn3 -ctv kvarn2           old tokens in 3 bits, for long contexts

Fewer tokens (the oldest or the least used ones are evicted):

  --evict sinks:2048                the first tokens and the last ones
  --evict heavy:2048                those that got the most attention

Where they are (the answer does not change):

  --kv segmented                    grows with the text; the default
  --kv spilled                      pages go to a temporary file when the
                                    budget is used up

When a context is full, an answer ends. --on-full shift removes old tokens and
continues; --keep N says how many first tokens stay.
)"};

}  // namespace mica::program::topic
