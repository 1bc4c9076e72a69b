// SPDX-License-Identifier: Apache-2.0
//
// Binds the tensors of blocks to a file: finds them by name, checks formats and shapes, and gives each a
// place in the pager's table. All checks are here, before weights are read, so that a step needs none.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/document.hpp"
#include "mica/paging/concept.hpp"
#include "mica/ranks/division.hpp"
#include "mica/tensor/any_matrix.hpp"
#include "mica/tensor/packing.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::block {

/// One tensor of a model, or some rows of one: its number in the pager's table, its format, its shape.
struct TensorRef {
  std::uint32_t index = 0;    // in the pager's table
  format::Info format = {};   // in the file
  std::size_t rows = 0;       // 0: the model does not have it
  std::size_t cols = 0;       // values of a row
  std::size_t first_row = 0;  // of the tensor in the table

  [[nodiscard]] bool present() const noexcept { return rows != 0; }  // in the model
  /// Where these rows begin in the tensor.
  [[nodiscard]] std::size_t byte_offset() const noexcept { return first_row * format.row_bytes(cols); }
  /// Rows [first, first + count) of these.
  [[nodiscard]] TensorRef slice(std::size_t first, std::size_t count) const noexcept {
    return {index, format, count, cols, first_row + first};
  }
};

/// A tensor with a matrix for each expert. Each has a number of its own in the table, one after the other.
struct ExpertsRef {
  TensorRef first;  // (rows, cols) of expert 0

  /// The matrix of one expert.
  [[nodiscard]] TensorRef expert(std::size_t e) const noexcept {
    TensorRef ref = first;
    ref.index += static_cast<std::uint32_t>(e);
    return ref;
  }
};

/// The formats that matrices may have.
struct KnownFormats {
  bool (*contain)(format::Id);                                // whether the list has the format
  bool (*can_pack)(format::Id, std::uint64_t rows) noexcept;  // tensor::can_pack of the list
  std::string (*names)();                                     // "Q4_K Q6_K ...", for messages

  /// The formats of a list that files may have.
  template <class All>
  [[nodiscard]] static KnownFormats of() noexcept {
    using List = tensor::OfFiles<All>;
    return {[](format::Id id) { return visit_id<List>(id, [](auto) {}); }, tensor::can_pack<List>,
            [] { return format::names<List>(); }};
  }
};

/// The units of the pager that hold the experts of one layer.
struct ExpertUnits {
  std::size_t layer_unit = 0;  // of the other tensors of the layer
  std::size_t first = 0;       // of expert 0; the others follow
  std::size_t count = 0;       // of experts
};

/// The table of a model's tensors while it grows. Names are parts of a layer, "attn_q.weight", where a layer
/// is bound. Everything raises ErrorCode::file or ErrorCode::unsupported, naming the tensor, what was found
/// and what is needed.
class TensorBinder {
 public:
  /// width: of the model. units: of the pager's table, without experts. ranks: among which rows of matrices
  /// are divided. The document outlives this.
  TensorBinder(gguf::DocumentRef document, std::size_t width, std::size_t units, KnownFormats formats,
               ranks::Division ranks = {})
      : document_(document), width_(width), units_(units), formats_(formats), ranks_(std::move(ranks)) {}

  /// From now on names begin with `prefix`, and tensors belong to a unit of the pager.
  void enter(std::string prefix, std::size_t unit) {
    prefix_ = std::move(prefix);
    unit_ = unit;
  }

  [[nodiscard]] std::size_t width() const noexcept { return width_; }  // of the model
  /// As the file has it; null: it has none of that name.
  [[nodiscard]] const gguf::TensorInfo* find(std::string_view part) const {
    return document_.find(join(prefix_, part));
  }
  [[nodiscard]] bool has(std::string_view part) const { return find(part) != nullptr; }
  /// A matrix that products read.
  [[nodiscard]] TensorRef matrix(std::string_view part, std::size_t rows, std::size_t cols) {
    const std::size_t bound = extents_.size();
    const TensorRef ref = add_once(checked(part, rows, cols));
    if (ref.index == bound) let_pack(ref, rows, cols);  // one that another block reads by rows stays as it is
    return ref;
  }
  /// Of a matrix (rows, cols) those rows [first_row, first_row + part.all) that are of this rank; the others
  /// are not read.
  [[nodiscard]] TensorRef matrix(std::string_view part_name, std::size_t rows, std::size_t cols,
                                 std::size_t first_row, const ranks::Part& part) {
    if (part.whole()) return slice(matrix(part_name, rows, cols), first_row, part.all);
    const gguf::TensorInfo& tensor = checked(part_name, rows, cols);
    if (part.count == 0) return {0, tensor.format, 0, cols, 0};
    MICA_CHECK(!tensor.packed, unsupported, document_.source(tensor).path(), ": tensor '", tensor.name,
               "' lies packed, and its rows are divided among ranks; use the file that was packed");
    const TensorRef ref = add(rows_of(tensor, first_row + part.first, part.count), unit_);
    names_.back() = tensor.name;
    let_pack(ref, part.count, cols);
    return ref;
  }
  [[nodiscard]] TensorRef matrix(std::string_view part_name, const ranks::Part& part, std::size_t cols) {
    return matrix(part_name, part.all, cols, 0, part);
  }
  /// Of the outputs of a product, as many as the model is wide or n, those of this rank.
  [[nodiscard]] ranks::Part outputs() const noexcept { return outputs(width_); }
  [[nodiscard]] ranks::Part outputs(std::size_t n) const noexcept { return ranks::outputs(ranks_, n); }
  /// The same, of which rows are read one by one: it stays as it lies in the file.
  [[nodiscard]] TensorRef rows(std::string_view part, std::size_t rows, std::size_t cols) {
    const TensorRef ref = matrix(part, rows, cols);
    keep_rows(ref);
    return ref;
  }
  /// Numbers of F32.
  [[nodiscard]] TensorRef vector(std::string_view part, std::size_t numbers) {
    const gguf::TensorInfo& tensor = document_.tensor(join(prefix_, part));
    MICA_CHECK(tensor.format.id == format::F32::id && tensor.elements() == numbers, file,
               document_.metadata().file(), ": tensor '", tensor.name, "' is ", tensor.format.name, " ",
               tensor.shape(), "; needed: F32 ", numbers);
    return add_once(tensor);
  }
  /// Of numbers [first, first + part.all) of F32 those of this rank.
  [[nodiscard]] TensorRef vector(std::string_view part_name, std::size_t numbers, std::size_t first,
                                 const ranks::Part& part) {
    const TensorRef ref = vector(part_name, numbers);
    return {ref.index, ref.format, part.count, 1, first + part.first};
  }
  [[nodiscard]] TensorRef vector(std::string_view part_name, const ranks::Part& part) {
    return part.whole() ? vector(part_name, part.all) : vector(part_name, part.all, 0, part);
  }
  /// A norm as wide as the model.
  [[nodiscard]] TensorRef norm(std::string_view part) { return vector(part, width_); }
  /// The same, absent if the file does not have it.
  [[nodiscard]] TensorRef norm_if_there(std::string_view part) {
    return has(part) ? norm(part) : TensorRef();
  }
  /// Rows of a fused tensor. One that is cut within a panel is not packed.
  [[nodiscard]] TensorRef slice(const TensorRef& whole, std::size_t first_row, std::size_t rows) {
    if (first_row % tensor::Rows16::rows != 0) keep_rows(whole);
    return whole.slice(first_row, rows);
  }
  /// The rows of a matrix are read one by one.
  void keep_rows(const TensorRef& ref) {
    if (ref.present()) extents_[ref.index].rows = 0;
  }
  /// Units of the pager for `count` experts; answers the first.
  [[nodiscard]] std::size_t add_experts(std::size_t count) {
    experts_.push_back({unit_, units_, count});
    units_ += count;
    return units_ - count;
  }
  /// A matrix for each expert. Each has an entry and a unit of its own: those that a token does not use need
  /// not be in memory.
  [[nodiscard]] ExpertsRef experts(std::string_view name, std::size_t count, std::size_t rows,
                                   std::size_t cols, std::size_t first_unit) {
    return experts(name, count, rows, cols, first_unit, 0, ranks::all_of(rows));
  }
  /// Of rows [first_row, first_row + part.all) of each expert those of this rank.
  [[nodiscard]] ExpertsRef experts(std::string_view name, std::size_t count, std::size_t rows,
                                   std::size_t cols, std::size_t first_unit, std::size_t first_row,
                                   const ranks::Part& part) {
    const gguf::TensorInfo& whole = checked(name, count * rows, cols);
    const std::string& path = document_.source(whole).path();
    MICA_CHECK(whole.parts == 1 || whole.parts == count, file, path, ": tensor '", whole.name, "' lies in ",
               whole.parts, " parts; there are ", count, " experts; pack the model again");
    MICA_CHECK(whole.parts == count || !whole.packed, file, path, ": tensor '", whole.name,
               "' lies packed as one; ", count, " parts are needed; pack the model again");
    const bool divided = part.count != rows;
    MICA_CHECK(!divided || !whole.packed, unsupported, path, ": tensor '", whole.name,
               "' lies packed, and its rows are divided among ranks; use the file that was packed");
    ExpertsRef ref;
    if (part.count == 0) {
      ref.first = {0, whole.format, 0, cols, 0};
      return ref;
    }
    gguf::TensorInfo one = whole;
    one.bytes = whole.bytes / count;
    one.parts = 1;
    const std::uint64_t stride = whole.parts == 1 ? one.bytes : whole.stride;
    if (divided) {
      one.dims = {cols, rows, 1, 1};
      one = rows_of(one, first_row + part.first, part.count);
    }
    for (std::size_t e = 0; e < count; ++e, one.offset += stride) {
      one.checksums.clear();
      if (!divided && whole.parts == count && !whole.checksums.empty())
        one.checksums.push_back(whole.checksums[e]);
      const TensorRef added = add(one, first_unit + e);
      names_.back() = whole.name;
      let_pack(added, part.count, cols);
      if (e == 0) ref.first = added;
    }
    ref.first.rows = part.count;
    return ref;
  }

  /// Of a packed directory: only what products read, in whole panels, may lie packed.
  void check_layout() const {
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      const paging::Extent& extent = extents_[i];
      MICA_CHECK(!extent.packed || formats_.can_pack(extent.format, extent.rows), file,
                 document_.sources()[extent.source].path(), ": tensor '", escaped(names_[i]),
                 "' lies packed, and is read row by row; pack the model again");
    }
  }

  [[nodiscard]] const gguf::Document& document() const noexcept { return document_; }  // of the constructor
  /// The table so far; TensorRef::index counts in it.
  [[nodiscard]] std::span<const paging::Extent> extents() const noexcept {
    return {extents_.data(), extents_.size()};
  }
  /// The name of a tensor of the table.
  [[nodiscard]] std::string_view name(std::size_t index) const noexcept { return names_[index]; }
  [[nodiscard]] std::size_t units() const noexcept { return units_; }  // with those of experts
  /// Units of experts, by the unit of their layer.
  [[nodiscard]] const std::vector<ExpertUnits>& expert_units() const noexcept { return experts_; }

 private:
  /// Some rows of a matrix, as a tensor.
  [[nodiscard]] static gguf::TensorInfo rows_of(const gguf::TensorInfo& tensor, std::size_t first,
                                                std::size_t count) {
    gguf::TensorInfo part = tensor;
    const std::uint64_t row = tensor.bytes / tensor.rows();
    part.dims = {tensor.width(), count, 1, 1};
    part.offset += first * row;
    part.bytes = count * row;
    part.checksums.clear();  // that of the whole tensor
    return part;
  }
  [[nodiscard]] TensorRef add(const gguf::TensorInfo& tensor, std::size_t unit) {
    MICA_CHECK(tensor.parts == 1, file, document_.source(tensor).path(), ": tensor '", escaped(tensor.name),
               "' lies in ", tensor.parts, " parts; one is needed; pack the model again");
    paging::Extent& extent = extents_.emplace_back();
    extent = {tensor.source, static_cast<std::uint32_t>(unit), tensor.offset, tensor.bytes, tensor.format.id};
    extent.packed = tensor.packed;
    extent.checked = !tensor.checksums.empty();
    if (extent.checked) extent.checksum = tensor.checksums[0];
    names_.push_back(tensor.name);
    return {static_cast<std::uint32_t>(extents_.size() - 1), tensor.format,
            static_cast<std::size_t>(tensor.rows()), static_cast<std::size_t>(tensor.width())};
  }
  /// Two blocks of a layer may read one tensor.
  [[nodiscard]] TensorRef add_once(const gguf::TensorInfo& tensor) {
    for (std::size_t i = extents_.size(); i > 0 && extents_[i - 1].unit == unit_; --i) {
      if (names_[i - 1] != tensor.name) continue;
      return {static_cast<std::uint32_t>(i - 1), tensor.format, static_cast<std::size_t>(tensor.rows()),
              static_cast<std::size_t>(tensor.width())};
    }
    return add(tensor, unit_);
  }
  [[nodiscard]] const gguf::TensorInfo& checked(std::string_view part, std::size_t rows,
                                                std::size_t cols) const {
    const gguf::TensorInfo& tensor = document_.tensor(join(prefix_, part));
    MICA_CHECK(tensor.width() == cols && tensor.rows() == rows, file, document_.metadata().file(),
               ": tensor '", tensor.name, "' is ", tensor.shape(), "; needed: ", cols, " x ", rows);
    MICA_CHECK(formats_.contain(tensor.format.id), unsupported, document_.metadata().file(), ": tensor '",
               tensor.name, "' has type ", tensor.format.name, "; supported: ", formats_.names());
    return tensor;
  }
  /// A pager may pack the matrix.
  void let_pack(const TensorRef& ref, std::size_t rows, std::size_t cols) {
    extents_[ref.index].rows = rows;
    extents_[ref.index].cols = cols;
  }

  const gguf::Document& document_;
  std::size_t width_;
  std::size_t units_;
  KnownFormats formats_;
  ranks::Division ranks_;
  std::string prefix_ = {};
  std::size_t unit_ = 0;
  std::vector<ExpertUnits> experts_ = {};
  std::vector<paging::Extent> extents_ = {};
  std::vector<std::string_view> names_ = {};  // by extent
};

}  // namespace mica::block
