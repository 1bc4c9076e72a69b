// SPDX-License-Identifier: Apache-2.0
//
// The weights of a Hugging Face folder: all its safetensors files, one name space.
// model.safetensors.index.json lists the files; without it they are model.safetensors alone, or all
// *.safetensors there are.
#pragma once

#include "mica/io/detail/path.hpp"
#include "mica/io/folder_file.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/safetensors.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include <unistd.h>

namespace mica::convert {

namespace detail {

inline constexpr std::size_t max_shards = 4096;

/// The files that an index names, each once.
[[nodiscard]] inline std::vector<std::string> indexed_files(const Json& weights, const std::string& index) {
  std::vector<std::string> names;
  for (const auto& [tensor, file] : weights.items()) {
    MICA_CHECK(file.is_string(), file, index, ": weight_map of '", escaped(tensor), "' is no file name");
    names.push_back(file.get<std::string>());
    const std::string& name = names.back();
    MICA_CHECK(!name.empty() && name.find('/') == name.npos && name != "..", file, index, ": file name '",
               escaped(name), "' leaves the folder");
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  MICA_CHECK(names.size() <= max_shards, limit, index, ": ", names.size(), " files; allowed: ", max_shards);
  return names;
}

/// The safetensors files of a folder without an index.
[[nodiscard]] inline std::vector<std::string> unindexed_files(const std::string& folder) {
  if (::access(join(folder, "/model.safetensors").c_str(), F_OK) == 0) return {"model.safetensors"};
  std::vector<std::string> names;
  io::detail::for_each_beside(folder + "/", [&](int, std::string_view name) {
    if (std::filesystem::path(name).extension() == ".safetensors") names.emplace_back(name);
    return names.size() <= max_shards;
  });
  MICA_CHECK(names.size() <= max_shards, limit, folder, ": more than ", max_shards, " safetensors files");
  MICA_CHECK(
      !names.empty(), file, folder,
      ": no safetensors file; weights in other containers (.bin, .pth) must be saved as safetensors first");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace detail

/// Every tensor of a folder. Thread-safe, move-only; pointers to tensors survive a move.
class Checkpoint {
 public:
  /// Opens and checks every file. Raises ErrorCode::file when a file or a tensor of the index is missing, a
  /// file is a link out of the folder, or a tensor occurs twice, and what Safetensors::open raises.
  [[nodiscard]] static Checkpoint open(const std::string& folder) {
    const std::string index = io::folder_file(folder, "model.safetensors.index.json");
    Checkpoint out;
    const auto json = read_json_if_present(index);
    if (!json) {
      for (const std::string& name : detail::unindexed_files(folder)) out.add(io::folder_file(folder, name));
      return out;
    }
    const Json* const weights = find_member(*json, "weight_map");
    MICA_CHECK(weights != nullptr && weights->is_object() && !weights->empty(), file, index,
               ": key 'weight_map' is missing or empty");
    for (const std::string& name : detail::indexed_files(*weights, index))
      out.add(io::folder_file(folder, name));
    out.check_index(*weights, index);
    return out;
  }

  /// Adds the tensors of a file in a folder below, "2_Dense", as "2_Dense.linear.weight". Raises as open().
  void add_below(const std::string& folder, const std::string& below) {
    add(io::folder_file(folder, join(below, "/model.safetensors")), join(below, "."));
  }

  /// A tensor and the file that has it.
  struct Entry {
    const Safetensors* file;   // lives in the checkpoint
    const Safetensor* tensor;  // one of file->tensors()
    /// Its values as stored, in the mapped file.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return file->bytes(*tensor); }
  };

  /// By name, in alphabetical order.
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const noexcept { return entries_; }
  /// Null when there is none.
  [[nodiscard]] const Entry* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  /// The number of safetensors files.
  [[nodiscard]] std::size_t files() const noexcept { return files_.size(); }

 private:
  void add(const std::string& path, const std::string& prefix = {}) {
    files_.push_back(std::make_unique<Safetensors>(Safetensors::open(path)));
    const Safetensors& file = *files_.back();
    for (const Safetensor& tensor : file.tensors()) {
      const auto [at, fresh] = entries_.emplace(prefix + tensor.name, Entry{&file, &tensor});
      MICA_CHECK(fresh, file, path, ": tensor '", escaped(tensor.name), "' is also in ",
                 at->second.file->path());
    }
  }
  void check_index(const Json& weights, const std::string& index) const {
    for (const auto& [name, file] : weights.items()) {
      const Entry* const found = find(name);
      const std::string where = file.get<std::string>();
      MICA_CHECK(found != nullptr && std::filesystem::path(found->file->path()).filename() == where, file,
                 index, ": tensor '", escaped(name), "' is not in ", escaped(where));
    }
  }

  std::vector<std::unique_ptr<Safetensors>> files_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace mica::convert
