// SPDX-License-Identifier: Apache-2.0
//
// A verb never writes to a file that it reads, so a mistyped name cannot overwrite a model.
#pragma once

namespace mica::program {

struct Options;

/// Raises ErrorCode::usage where a file that the verb will write is one that it reads, also behind a link.
void refuse_own_input(const Options& options);

}  // namespace mica::program
