// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic sampling{"sampling", "how the next token is chosen",
                                R"(The model gives each token of its vocabulary a probability. A sampler
chooses one of them. mica run --help lists all flags, in the group Sampling.

  --temp 0            always the most likely token: the same answer each time
  --temp 0.7          below 1: likely tokens become more likely
  --top-k 40          only the 40 most likely tokens
  --top-p 0.95        only the most likely, which together have 95 %
  --min-p 0.05        only those at least 5 % as likely as the most likely one
  --repeat-penalty 1.1    recent tokens become less likely
  --dry-multiplier 0.8    what would repeat the text becomes less likely (DRY)
  --xtc-probability 0.5   now and then without the most likely tokens (XTC)
  --mirostat 2        keeps the surprise of tokens near --mirostat-ent
  -l TOKEN-inf        never this token; -l TOKEN+2 makes it more likely
  --seed 42           the same answer each time, also with --temp 0.7

Biases and penalties come first, then the filters, the temperature, the draw.
--samplers changes the order.

The end of an answer:

  -n 100              at most 100 tokens
  -r TEXT             ends when the answer contains TEXT; may be repeated
  --ignore-eos        the model does not end its answer by itself
  --grammar GBNF      the answer is a text of a grammar, and ends where it does

The same seed gives the same answer on any number of threads, with any storage
and pager, with and without drafts, and after a restart. In a chat,
/set temp 0.5 changes an option from the next answer on.
)"};

}  // namespace mica::program::topic
