// SPDX-License-Identifier: Apache-2.0
//
// A folder of GGUF files in place of a model: the one that mica fit ranks first for the memory that is free.
#pragma once

#include "mica/gguf/document.hpp"
#include "verb.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace mica::program {

/// use(document) for each model of a folder, by name; of a sharded one with its first shard. A note says of
/// each error why its file is left out. Raises ErrorCode::file for a folder without GGUF files.
void for_each_model_of(const Verb& verb, const std::string& folder,
                       const std::function<void(gguf::Document)>& use);

/// Whether a path is a folder, and neither a packed model nor a folder of safetensors alone.
[[nodiscard]] bool is_model_folder(const std::string& path);

/// The path of the best file, with a note that says why. budget: bytes of memory; n_ctx: tokens, 0: those of
/// mica fit. Where none fits as it is, that of the file that needs least. Raises ErrorCode::file for a folder
/// without a model. Cost: a plan for each file.
[[nodiscard]] std::string best_of_folder(const Verb& verb, const std::string& folder, std::uint64_t budget,
                                         std::size_t n_ctx);

}  // namespace mica::program
