// SPDX-License-Identifier: Apache-2.0
//
// An importance matrix: for each matrix of a model, the mean squares of the inputs of its columns on some
// text. It has sums and counts, so that more text can be added. Files: importance_file.hpp.
#pragma once

#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mica::quantize {

/// Sums and counts of one matrix; of a stack of experts, one after the other.
struct ImportanceEntry {
  std::vector<float> sums;    // of squares, (experts, columns)
  std::vector<float> counts;  // rows that were summed, (experts); or one number for all of them

  /// The mean squares of an expert's columns. An expert without rows has 1 for every column. Raises
  /// ErrorCode::file, naming the tensor, when there are not `columns` numbers for each of `experts`.
  [[nodiscard]] std::vector<float> means(std::string_view name, std::size_t expert, std::size_t experts,
                                         std::size_t columns) const {
    const bool fits = sums.size() % experts == 0 && sums.size() / experts == columns &&
                      (counts.size() == experts || counts.size() == 1);
    MICA_CHECK(fits, file, "importance of '", escaped(name), "' has ", sums.size(), " sums and ",
               counts.size(), " counts; the tensor has ", columns, " columns of ", experts,
               " matrices: it is of another model");
    const float count = counts[counts.size() == 1 ? 0 : expert];
    std::vector<float> means(columns, 1.0F);
    for (std::size_t i = 0; count > 0 && i < columns; ++i) means[i] = sums[expert * columns + i] / count;
    return means;
  }
};

/// The entries of all matrices by tensor name, and the texts of the collection.
struct Importance {
  std::map<std::string, ImportanceEntry, std::less<>> entries;
  std::vector<std::string> datasets;
  std::uint32_t chunk_count = 0;
  std::uint32_t chunk_size = 0;  // tokens

  /// Null for a tensor without an entry.
  [[nodiscard]] const ImportanceEntry* find(std::string_view name) const {
    const auto at = entries.find(name);
    return at == entries.end() ? nullptr : &at->second;
  }
};

}  // namespace mica::quantize
