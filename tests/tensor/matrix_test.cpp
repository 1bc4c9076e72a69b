// SPDX-License-Identifier: Apache-2.0

#include "mica/tensor/matrix.hpp"

#include "mica/format/lists.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace mica::test::matrix_test {

TEST_CASE("rows of a matrix follow each other without gaps") {
  std::vector<format::Q8_0::Block> blocks(3 * 2);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].d = to_half(1.0f);
    for (std::int8_t& code : blocks[i].code) code = static_cast<std::int8_t>(i);
  }
  const tensor::Matrix<format::Q8_0> w(blocks.data(), 3, 64);
  CHECK(w.blocks_per_row() == 2);
  CHECK(w.row(2) == blocks.data() + 4);
  std::vector<float> values(64 + 1, -1.0f);
  w.decode_row(1, values.data());
  for (std::size_t i = 0; i < 64; ++i) CHECK(values[i] == (i < 32 ? 2.0f : 3.0f));
  CHECK(values[64] == -1.0f);
}

TEST_CASE("a matrix of numbers decodes rows of any width") {
  const std::array<float, 6> numbers = {1, 2, 3, 4, 5, 6};
  const tensor::Matrix<format::F32> w(numbers.data(), 2, 3);
  float row[3];
  w.decode_row(1, row);
  CHECK(row[0] == 4);
  CHECK(row[2] == 6);
}

TEST_CASE("a matrix of any format is visited as what it is") {
  const std::vector<std::byte> bytes(4096);
  const auto check = [&](format::Id id, std::string_view name) {
    const tensor::AnyMatrix<format::All> any(id, bytes.data(), 2, 256);
    CHECK(any.id() == id);
    CHECK_FALSE(any.empty());
    std::string_view seen;
    std::size_t rows = 0, cols = 0;
    bool same = false;
    any.visit([&](auto w) {
      seen = decltype(w)::Format::name, rows = w.rows(), cols = w.cols();
      const auto block = w.block(0, 0);
      same = std::memcmp(&block, bytes.data(), sizeof(block)) == 0;
    });
    CHECK(seen == name);
    CHECK(rows == 2);
    CHECK(cols == 256);
    CHECK(same);
  };
  format::All::for_each([&](auto type) { check(decltype(type)::type::id, decltype(type)::type::name); });
}

TEST_CASE("a matrix that a model does not have is empty") {
  const tensor::AnyMatrix<format::All> none;
  CHECK(none.empty());
  CHECK(none.rows() == 0);
  CHECK(none.cols() == 0);
}

}  // namespace mica::test::matrix_test
