// SPDX-License-Identifier: Apache-2.0
#include "model_files.hpp"

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/gguf/detail/shard_name.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/io/detail/path.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace mica::program {
namespace {

namespace fs = std::filesystem;

/// The name of a model's file without .gguf, and without the number of a shard.
std::string id_of(const std::string& path) {
  const auto shard = gguf::ShardName::parse(path);
  fs::path name(shard ? shard->prefix : path);
  if (!name.has_filename()) name = name.parent_path();  // of "folder/"
  return name.extension() == ".gguf" ? name.stem().string() : name.filename().string();
}

serve::ModelCard card_of(const std::string& path) {
  const gguf::Document document = gguf::open(path);
  serve::ModelCard card;
  card.id = id_of(path);
  card.path = path;
  const gguf::Metadata& metadata = document.metadata();
  card.architecture = metadata.get<std::string>("general.architecture").value_or("");
  const auto type = metadata.get<std::uint32_t>("general.file_type");
  const auto recipe = type ? quantize::find_recipe(join(*type)) : std::nullopt;
  card.quantisation = recipe ? std::string(quantize::info(*recipe).name) : "mixed";
  try {
    const arch::Config config = arch::AnyOf<arch::All>::config(document);
    card.trained_ctx = config.n_ctx_train;
    card.writes = !config.encodes;
    card.embeds = config.pooling != arch::Pooling::none && !config.ranks;
    card.ranks = config.ranks;
  } catch (const Error&) {  // said when it is loaded
  }
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
  const bool is_read = io::detail::for_each_beside(folder + "/", [&](int, std::string_view name) {
    const auto shard = gguf::ShardName::parse(std::string(name));
    if (name.size() > 5 && name.ends_with(".gguf") && (!shard || shard->number == 1))
      paths.push_back(join(folder, folder.ends_with('/') ? "" : "/", name));
    return true;
  });
  MICA_CHECK(is_read, file, folder, ": cannot be read: ", io::detail::errno_text(errno));
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
