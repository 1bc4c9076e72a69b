// SPDX-License-Identifier: Apache-2.0
//
// The models that a server offers: files, packed directories, and the GGUF files of folders.
#pragma once

#include "mica_tools/serve/served_model.hpp"

#include <string>
#include <vector>

namespace mica::program {

/// A card for each model, in the order of the words; those of a folder by name. Reads headers. Ids are names of files
/// without .gguf and without the number of a shard; `alias` is the id of the first one, unless it is empty.
/// Raises ErrorCode::usage for two models of one id, file for a word that is no model.
[[nodiscard]] std::vector<serve::ModelCard> model_cards(const std::vector<std::string>& words,
                                                        const std::string& alias);

}  // namespace mica::program
