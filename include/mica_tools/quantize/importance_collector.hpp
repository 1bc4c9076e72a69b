// SPDX-License-Identifier: Apache-2.0
//
// Collects importance while a model reads a text: for each column of each matrix the squares of its inputs. A
// policy of a Transformer (WithObserver): it receives the inputs of products and does not depend on families.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/observer.hpp"
#include "mica_tools/quantize/importance.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::quantize {

/// Sums of squares for the matrices of a model, in double. One thread at a time. All memory is taken at the
/// beginning: eight bytes for each column of each matrix of each expert.
class ImportanceCollector {
 public:
  // Required by Observer
  static constexpr bool active = true;
  /// Rows of a tensor that is not collected are passed over. A fused matrix is observed once for each of its
  /// parts: the same rows again, before another matrix or the end of the layer, are not counted again.
  /// Requires rows as wide as the matrix, and of a stack an expert that it has.
  void product(std::string_view tensor, MatrixView<const float> rows,
               std::size_t expert = model::no_expert) noexcept {
    const auto found = sums_.find(tensor);
    if (found == sums_.end()) return;
    Sums& sums = found->second;
    const std::size_t which = expert == model::no_expert ? 0 : expert;
    MICA_ASSERT(rows.cols() == sums.columns && which < sums.counts.size());
    const Shown now{&sums, rows.data(), which};
    if (std::exchange(shown_, now) == now) return;
    double* const to = sums.squares.data() + which * sums.columns;
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      const auto row = rows[r];
      for (std::size_t i = 0; i < row.size(); ++i)
        to[i] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
    sums.counts[which] += rows.rows();
  }
  void layer(std::size_t, MatrixView<const float>) noexcept { shown_ = {}; }

  // Specific to ImportanceCollector
  /// For all matrices inside of layers, and with `head` for output.weight, or for the token embedding in its
  /// place.
  explicit ImportanceCollector(const gguf::Document& document, bool head = false) {
    const std::string_view head_name =
        document.contains("output.weight") ? "output.weight" : "token_embd.weight";
    for (const gguf::TensorInfo& tensor : document.tensors()) {
      const bool of_layer = tensor.name.starts_with("blk.") && tensor.name.ends_with(".weight");
      if (tensor.empty() || tensor.n_dims < 2 || !(of_layer || (head && tensor.name == head_name))) continue;
      const auto columns = static_cast<std::size_t>(tensor.width());
      const auto experts = static_cast<std::size_t>(tensor.dims[2]);
      sums_[tensor.name] = {columns, std::vector<double>(columns * experts),
                            std::vector<std::uint64_t>(experts)};
    }
  }

  /// The entries of the matrices that were used. The caller adds names of texts and chunks.
  [[nodiscard]] Importance importance() const {
    Importance out;
    for (const auto& [name, sums] : sums_) {
      std::uint64_t seen = 0;
      for (const std::uint64_t count : sums.counts) seen += count;
      if (seen == 0) continue;
      ImportanceEntry& entry = out.entries[name];
      for (const double square : sums.squares) entry.sums.push_back(static_cast<float>(square));
      for (const std::uint64_t count : sums.counts) entry.counts.push_back(static_cast<float>(count));
    }
    return out;
  }

 private:
  struct Sums {
    std::size_t columns = 0;
    std::vector<double> squares;        // (experts, columns)
    std::vector<std::uint64_t> counts;  // (experts)
  };

  /// The last product.
  struct Shown {
    const Sums* sums = nullptr;
    const float* rows = nullptr;
    std::size_t expert = 0;

    friend bool operator==(const Shown&, const Shown&) = default;
  };

  std::map<std::string, Sums, std::less<>> sums_;
  Shown shown_;
};

static_assert(Observer<ImportanceCollector>);

}  // namespace mica::quantize
