// SPDX-License-Identifier: Apache-2.0
//
// What a verb writes is none of the files that it reads: a name that was mistyped costs no model.
#pragma once

namespace mica::program {

struct Options;

/// Raises ErrorCode::usage where a file that the verb will write is one that it reads, also behind a link.
void check_outputs(const Options& options);

}  // namespace mica::program
