// SPDX-License-Identifier: Apache-2.0

#include "mica/base/matrix_view.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

namespace mica::test::matrix_view_test {

TEST_CASE("rows and columns of a view are views of the same numbers") {
  std::vector<int> numbers(12);
  std::iota(numbers.begin(), numbers.end(), 0);
  const MatrixView<int> all(numbers.data(), 3, 4);
  CHECK(all[2][3] == 11);
  CHECK(all.stride() == 4);
  const auto rows = all.rows(1, 2);
  CHECK(rows.rows() == 2);
  CHECK(rows[0][0] == 4);
  const auto cols = all.cols(1, 2);
  CHECK(cols.cols() == 2);
  CHECK(cols.stride() == 4);
  CHECK(cols[2][1] == 10);
  const auto both = all.rows(1, 1).cols(3, 1);
  CHECK(both[0].size() == 1);
  both[0][0] = 100;
  CHECK(numbers[7] == 100);
  const MatrixView<const int> constant = all;
  CHECK(constant.data() == numbers.data());
}

TEST_CASE("a view of nothing has no rows") {
  const MatrixView<float> none;
  CHECK(none.rows() == 0);
  CHECK(none.data() == nullptr);
  std::vector<int> numbers(4);
  CHECK(MatrixView<int>(numbers.data(), 2, 2).rows(2, 0).rows() == 0);
  static_assert(MatrixView<float>(nullptr, 4, 4).rows(1, 2).cols(3, 1).data() == nullptr);  // of a plan
}

}  // namespace mica::test::matrix_view_test
