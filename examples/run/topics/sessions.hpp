// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic sessions{"sessions", "texts that continue after a restart",
                                R"(  mica run model.gguf --session work "A question about a long text"
  mica run model.gguf --session work "Another one"

The second run does not read the text again: its keys and values are in the
file. --session is for run, chat and complete. If the file does not exist, it
is made. It is written at the end of the run, completely or not at all, also
after Ctrl-C and SIGTERM.

A file has the text, the state of the sampler, tokens that were not read yet,
and in a chat the messages: the next run continues bit for bit.

A session belongs to one model and one encoding of keys and values. With
another model the run is refused with exit code 2, and the file stays as it
is. A damaged file is refused with exit code 3. A prompt that begins as the
saved text does is read from the first difference on.

The file can be read by its owner only. Its size is that of the keys and values
of its tokens; -ctk q8_0 -ctv q8_0 halves it. Before a file is used, its
checksums are compared.

In a chat, /save FILE writes the conversation as text.
)"};

}  // namespace mica::program::topic
