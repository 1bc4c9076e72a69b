// SPDX-License-Identifier: Apache-2.0
//
// A folder of GGUF files in place of a model: the one that mica fit ranks first for the memory that is free.
#pragma once

#include "verb.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::program {

/// GGUF files of a folder, of sharded models the first shard, by name.
[[nodiscard]] std::vector<std::string> gguf_files_of(const std::string& folder);

/// Whether a path is a folder, and no packed model.
[[nodiscard]] bool is_model_folder(const std::string& path);

/// The path of the best file, with a note that says why. budget: bytes of memory; n_ctx: tokens, 0: that of mica
/// fit. Raises ErrorCode::file for a folder without a model, and budget if none fits. Cost: a plan for each file.
[[nodiscard]] std::string best_of_folder(const Verb& verb, const std::string& folder, std::uint64_t budget,
                                         std::size_t n_ctx);

}  // namespace mica::program
