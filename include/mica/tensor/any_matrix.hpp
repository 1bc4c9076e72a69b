// SPDX-License-Identifier: Apache-2.0
//
// A weight matrix whose format was read from a file: one of a closed list, visited once per matrix product. A
// pager may have packed (tensor/detail/rows16.hpp) or rounded it (tensor/rounded.hpp).
#pragma once

#include "mica/base/visit.hpp"
#include "mica/tensor/packed12.hpp"
#include "mica/tensor/rounded.hpp"

namespace mica::tensor {

namespace detail {

template <class F>
struct PackedForm {
  using type = TypeList<>;
};
template <PackableFormat F>
requires(!is_packed<F>) struct PackedForm<F> {
  using type = TypeList<Packed<F>>;
};
template <Packable12Format F>
struct PackedForm<F> {
  using type = TypeList<Packed12<F>>;
};

template <class F>
struct RoundedForm {
  using type = TypeList<>;
};
template <RoundableFormat F>
struct RoundedForm<F> {
  using type = TypeList<Rounded<F>>;
};

/// A list, and Form<F>::type of each F.
template <class List, template <class> class Form, class Fs>
struct AndForms;
template <class List, template <class> class Form>
struct AndForms<List, Form, TypeList<>> {
  using type = List;
};
template <class List, template <class> class Form, class First, class... Rest>
struct AndForms<List, Form, TypeList<First, Rest...>>
    : AndForms<Concat<List, typename Form<First>::type>, Form, TypeList<Rest...>> {};

template <class F>
struct IsOfFiles {
  static constexpr bool value = !is_packed<F>;
};

}  // namespace detail

/// The formats of a list and their packed forms: what a matrix may be once a pager has packed some.
template <class List>
using AndPacked = typename detail::AndForms<List, detail::PackedForm, List>::type;

/// The formats of a list, their packed forms and their rounded forms.
template <class List>
using AndRounded = typename detail::AndForms<AndPacked<List>, detail::RoundedForm, List>::type;

/// The members of such lists that files may have.
template <class List>
using OfFiles = Filter<List, detail::IsOfFiles>;

/// (rows, cols) weights in one format of List; without rows: a tensor that a model does not have.
template <class List>
class AnyMatrix {
 public:
  AnyMatrix() noexcept = default;

  /// `id` must be in the list: the door that reads the file checks it. A packed matrix
  /// needs the packed form of its format there (AndPacked).
  AnyMatrix(format::Id id, const std::byte* data, std::size_t rows, std::size_t cols,
            bool packed = false) noexcept
      : id_(id), packed_(packed), data_(data), rows_(rows), cols_(cols) {}

  [[nodiscard]] format::Id id() const noexcept { return id_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }  // outputs of a product
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }  // inputs
  [[nodiscard]] bool packed() const noexcept { return packed_; }     // in panels of sixteen rows
  [[nodiscard]] bool empty() const noexcept { return rows_ == 0; }

  /// Calls `f(Matrix<F>)` with the format of this matrix.
  template <class F>
  void visit(F&& f) const {
    const bool known = visit_one_of(List{}, f);
    MICA_ASSERT(known);
    static_cast<void>(known);
  }

  /// The numbers of a row, as Matrix::decode_row() gives them.
  void decode_row(std::size_t row, float* to) const noexcept {
    visit([&](auto w) { w.decode_row(row, to); });
  }

 private:
  // Not by visit_if(), which compiles two more functions for each format.
  template <class... Fs, class F>
  [[nodiscard]] bool visit_one_of(TypeList<Fs...>, F& f) const {
    return ((Fs::id == id_ && is_packed<Fs> == packed_ &&
             (f(Matrix<Fs>(reinterpret_cast<const typename Fs::Block*>(data_), rows_, cols_)), true)) ||
            ...);
  }

  format::Id id_ = {};
  bool packed_ = false;
  const std::byte* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

}  // namespace mica::tensor
