// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic environment{"environment", "variables and the configuration file",
                                   R"(Each flag has a variable and a name in the configuration file:

  --top-k 40        MICA_ARG_TOP_K=40        top-k = 40

A flag takes precedence over a variable, a variable over the file, and the
file over the default. mica VERB --print-config shows each value and its
source, in the form of a configuration file.

The file is mica/config.toml below $XDG_CONFIG_HOME (~/.config), or the one
that --config names:

  temp = 0.5
  [chat]
  system-prompt = "Answer in rhymes."

Other variables:

  XDG_STATE_HOME    mica/history: lines typed in a chat (~/.local/state)
  XDG_CACHE_HOME    mica/machine.json: what doctor --measure found (~/.cache)
  HF_HUB_CACHE      the folder of downloaded models (hub below HF_HOME)
  HF_HUB_OFFLINE    1: no request for a model by name, as --offline
  HF_ENDPOINT       a hub in place of huggingface.co; HF_TOKEN: its token
  NO_COLOR          no colours; CLICOLOR_FORCE=1: colours on a pipe too
  TERM=dumb         no colours and no line of progress

A variable MICA_ARG_... that no flag has is ignored with a note.
)"};

}  // namespace mica::program::topic
