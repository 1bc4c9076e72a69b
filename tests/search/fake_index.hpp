// SPDX-License-Identifier: Apache-2.0
//
// A folder of texts and a model that is a rule: the tokens of a text are its words, and its embedding counts some
// letters.

#pragma once

#include "io/temporary_folder.hpp"
#include "mica_tools/search/update_index.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

inline constexpr std::size_t fake_width = 5;

inline std::vector<float> fake_rows(std::span<const std::string> texts) {
  std::vector<float> rows;
  for (const std::string& text : texts) {
    for (std::size_t i = 0; i < fake_width; ++i) {
      const char letter = "aeiou"[i];
      rows.push_back(static_cast<float>(std::count(text.begin(), text.end(), letter)));
    }
  }
  return rows;
}

inline search::IndexInfo fake_info(format::Id format = format::F32::id) {
  return {.model = 7,
          .arch = "bert",
          .pooling = "mean",
          .prefix = {},
          .passage_tokens = 4,
          .width = fake_width,
          .format = format};
}

/// The rule, and how often it was asked.
struct FakeModel {
  std::size_t texts = 0;
  std::size_t stop_after = SIZE_MAX;  // calls of proceed()
  std::function<void(const std::string& path)> unreadable = [](const std::string&) {};

  search::Updating updating() {
    return {.count =
                [](std::string_view text) {
                  return static_cast<std::size_t>(std::count(text.begin(), text.end(), ' ')) + 1;
                },
            .embed =
                [this](std::span<const std::string> these) {
                  texts += these.size();
                  return fake_rows(these);
                },
            .proceed = [this](std::uint64_t) { return stop_after-- > 0; },
            .unreadable = unreadable,
            .texts = 2};
  }
};

/// Updates the index `name` of a folder and returns whether all files are in it.
inline bool update(const std::string& folder, const std::string& path, FakeModel& model,
                   const search::IndexReader* former = nullptr, format::Id format = format::F32::id) {
  search::IndexWriter out(path, fake_info(format));
  const bool whole =
      search::IndexChanges(former, search::find_files(folder)).apply(folder, model.updating(), out);
  out.commit();
  return whole;
}

}  // namespace mica::test
