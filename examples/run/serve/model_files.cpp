// SPDX-License-Identifier: Apache-2.0
#include "model_files.hpp"

#include "mica/base/assert.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace mica::program {
namespace {

namespace fs = std::filesystem;

/// "model-00001-of-00003" without the number; 0: it has none, or that is 1; else its number is not the first.
std::pair<std::string, bool> without_shard(const std::string& stem) {
  constexpr std::size_t digits = 5, width = 1 + digits + 4 + digits;  // "-00001-of-00003"
  if (stem.size() <= width) return {stem, true};
  const std::string_view end = std::string_view(stem).substr(stem.size() - width);
  const auto is_number = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool is_shard = end[0] == '-' && is_number(end.substr(1, digits)) &&
                        end.substr(1 + digits, 4) == "-of-" && is_number(end.substr(width - digits));
  if (!is_shard) return {stem, true};
  return {stem.substr(0, stem.size() - width), end.substr(1, digits) == "00001"};
}

serve::ModelCard card_of(const std::string& path) {
  const gguf::Document document = gguf::open(path);
  serve::ModelCard card;
  fs::path name(path);
  if (!name.has_filename()) name = name.parent_path();  // of "folder/"
  card.id =
      without_shard(name.extension() == ".gguf" ? name.stem().string() : name.filename().string()).first;
  card.path = path;
  const gguf::Metadata& metadata = document.metadata();
  card.architecture = metadata.get<std::string>("general.architecture").value_or("");
  const auto type = metadata.get<std::uint32_t>("general.file_type");
  const auto recipe = type ? quantize::find_recipe(join(*type)) : std::nullopt;
  card.quantisation = recipe ? std::string(quantize::info(*recipe).name) : "mixed";
  for (const gguf::TensorInfo& tensor : document.tensors()) card.parameters += tensor.elements();
  card.file_bytes = document.file_bytes();
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (!error) {
    const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
    card.modified = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  }
  return card;
}

/// GGUF files of a folder that are no later shards, by name.
std::vector<std::string> models_of_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".gguf" && without_shard(entry.path().stem().string()).second)
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  MICA_CHECK(!paths.empty(), file, folder, ": has no GGUF file, and is no packed directory");
  return paths;
}

}  // namespace

std::vector<serve::ModelCard> model_cards(const std::vector<std::string>& words, const std::string& alias) {
  std::vector<serve::ModelCard> cards;
  for (const std::string& word : words) {
    std::error_code error;
    const bool is_folder = fs::is_directory(word, error) && !gguf::is_packed_folder(word);
    for (const std::string& path : is_folder ? models_of_folder(word) : std::vector<std::string>{word})
      cards.push_back(card_of(path));
  }
  if (!alias.empty()) cards.front().id = alias;
  for (auto card = cards.begin(); card != cards.end(); ++card) {
    const auto same =
        std::find_if(cards.begin(), card, [&](const auto& other) { return other.id == card->id; });
    MICA_CHECK(same == card, usage, same->path, " and ", card->path, " would both be the model '", card->id,
               "'; rename one, or leave one out");
  }
  return cards;
}

}  // namespace mica::program
