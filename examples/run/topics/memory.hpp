// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic memory{"memory", "budgets, and what happens when a model does not fit",
                              R"(mica plans every byte before it loads a model: weights, keys and values,
scratch. It never uses more than the budget. The budget is the smallest of

  --memory SIZE      6GiB, 800M, or 75% of the available memory
  limits             control groups, ulimit -v, available memory

  mica plan model.gguf -c 8192 --memory 6GiB           only the plan
  mica plan model.gguf --memory 6GiB --solve           what would fit

If a plan does not fit, run, chat and complete change options that no flag set,
until it fits: a shorter context, then Q8_0 keys and values, then weights that
are read from the disk in each step (mica help streaming). One line on stderr
says what was changed. If nothing helps, the run is refused with exit code 4,
and the message names the smallest budget that works.

Where memory goes:

  weights            the size of the file
  keys and values    grows with -c; mica help kv makes it smaller
  scratch            grows with -b, the tokens of one step

What swap, huge pages, limits and control groups of this machine mean for a run:
mica doctor. mica plan repeats what concerns a plan.

While run, chat, complete and serve load a model and generate, a governor
releases memory that other processes need. If nothing is left to release, a
session is saved and the program ends with code 4; a server ends its answers,
unloads its models and waits until memory is back. --governor off turns it off.
)"};

}  // namespace mica::program::topic
