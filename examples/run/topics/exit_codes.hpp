// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../topics.hpp"

namespace mica::program::topic {

inline constexpr Topic exit_codes{"exit-codes", "the numbers with which mica ends", R"(  0     done
  1     failed while running: the disk is full, a file was cut meanwhile
  2     wrong use: an unknown flag, a value that is not allowed
  3     a file is missing, unreadable, damaged or no model; a name that no
        model has
  4     the budget or the memory is too small
  5     not supported: a family, a format, a template
  6     a limit was reached: a prompt longer than the context
  129   the terminal was closed (SIGHUP)
  130   interrupted (SIGINT, SIGTERM); what was printed stays, a session is
        saved

With codes 1 to 6 there is one sentence on stderr: what was found, what is
allowed, and what to do. With --json and --jsonl each code above 0 has an
object on stdout:

  {"error":{"code":2,"type":"usage","message":"..."}}

The answer goes to stdout and everything else to stderr. A second Ctrl-C ends
the program at once; a chat ends by two in an empty line. If the reader of
stdout closes it, as head does, the exit code is 0.
)"};

}  // namespace mica::program::topic
