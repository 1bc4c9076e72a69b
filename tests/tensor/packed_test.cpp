// SPDX-License-Identifier: Apache-2.0

#include "mica/tensor/packed.hpp"

#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <tuple>
#include <vector>

namespace mica::test::packed_test {
namespace {

template <class F>
using MaybePackable = std::conditional_t<PackableFormat<F>, std::tuple<F>, std::tuple<>>;
template <class... Fs>
auto packable(TypeList<Fs...>) -> decltype(std::tuple_cat(std::declval<MaybePackable<Fs>>()...));
using Packable = decltype(packable(format::All()));

/// (rows, blocks) random bytes in the layout of a file, and packed.
template <class F>
struct Both {
  std::vector<typename F::Block> file;
  std::vector<std::byte> bytes;
  std::size_t rows, blocks;

  Both(std::size_t n_rows, std::size_t n_blocks)
      : file(n_rows * n_blocks), bytes(file.size() * sizeof(file[0])), rows(n_rows), blocks(n_blocks) {
    CounterRng rng(11);
    auto* const at = reinterpret_cast<unsigned char*>(file.data());
    for (std::size_t i = 0; i < bytes.size(); ++i) at[i] = static_cast<unsigned char>(rng.next());
    tensor::pack(tensor::Matrix<F>(file.data(), rows, cols()), bytes.data());
  }
  [[nodiscard]] const typename F::Block* packed() const {
    return reinterpret_cast<const typename F::Block*>(bytes.data());
  }
  [[nodiscard]] std::size_t cols() const { return blocks * F::block_size; }
};

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("packed rows give every block back, bit for bit, and take as many bytes", F,
                          give_back) {
  for (const std::size_t rows : {1u, 15u, 16u, 17u, 32u, 35u}) {
    for (const std::size_t blocks : {1u, 2u, 3u, 7u, 8u, 9u, 19u}) {
      const Both<F> both(rows, blocks);
      const tensor::Matrix<tensor::Packed<F>> packed(both.packed(), rows, both.cols());
      std::size_t wrong = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t b = 0; b < blocks; ++b) {
          const auto block = packed.block(r, b);
          wrong += std::memcmp(&block, &both.file[r * blocks + b], sizeof(block)) != 0 ? 1 : 0;
        }
      }
      CHECK(wrong == 0);
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(give_back, Packable);

TEST_CASE("a word of codes lies beside the same word of the fifteen other rows") {
  const Both<format::Q4_K> both(16, 2);
  for (std::size_t b = 0; b < 2; ++b) {
    const auto place = tensor::Rows16::place<format::Q4_K>(2, b);
    CHECK(place.codes == b * 16 * 144);
    CHECK(place.scales == b * 16 * 144 + 16 * 128);
    for (std::size_t w = 0; w < 32; ++w) {
      for (std::size_t r = 0; r < 16; ++r) {
        CHECK(std::memcmp(both.bytes.data() + place.codes + w * 64 + r * 4,
                          both.file[r * 2 + b].nibbles + 4 * w, 4) == 0);
      }
    }
  }
}

TEST_CASE("short blocks share a stretch of whole cache lines, and only the last one of a panel is shorter") {
  using tensor::Rows16;
  CHECK(Rows16::stretch<format::Q8_0>() == 8);
  CHECK(Rows16::stretch<format::Q4_K>() == 1);
  CHECK(Rows16::stretch<format::Q6_K>() == 2);
  CHECK(Rows16::place<format::Q8_0>(11, 9).codes == 8 * 16 * 34 + 16 * 32);
  CHECK(Rows16::place<format::Q8_0>(11, 9).scales == 8 * 16 * 34 + 3 * 16 * 32 + 16 * 2);
}

TEST_CASE("rows of a packed matrix decode to the numbers of the file's") {
  const Both<format::Q4_0> both(21, 3);
  const tensor::AnyMatrix<tensor::AndPacked<format::All>> packed(format::Q4_0::id, both.bytes.data(), 21,
                                                                 both.cols(), true);
  std::vector<float> actual(both.cols()), expected(both.cols());
  CHECK(packed.packed());
  packed.visit([&](auto w) {
    CHECK(tensor::is_packed<typename decltype(w)::Format>);
    w.decode_row(5, actual.data());
    tensor::Matrix<format::Q4_0>(both.file.data(), 21, both.cols()).decode_row(5, expected.data());
    CHECK(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)) == 0);
    w.decode_row(20, actual.data());
    tensor::Matrix<format::Q4_0>(both.file.data(), 21, both.cols()).decode_row(20, expected.data());
    CHECK(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)) == 0);
  });
}

}  // namespace mica::test::packed_test
