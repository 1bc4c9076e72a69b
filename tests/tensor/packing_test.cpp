// SPDX-License-Identifier: Apache-2.0

#include "mica/tensor/packing.hpp"

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace mica::test {

TEST_CASE("rows of every format that can be packed come back as they were") {
  std::size_t formats = 0;
  format::All::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    CHECK(tensor::can_pack(F::id, 16) == PackableFormat<F>);
    CHECK_FALSE(tensor::can_pack(F::id, 15));
    if constexpr (PackableFormat<F>) {
      ++formats;
      for (const std::size_t rows : {16u, 17u, 48u, 61u}) {
        const std::size_t cols = 3 * F::block_size;
        std::vector<std::byte> plain(rows * 3 * sizeof(typename F::Block)), packed(plain.size()),
            again(plain.size());
        CounterRng rng(rows);
        for (std::byte& b : plain) b = static_cast<std::byte>(rng.next());
        tensor::pack_rows(F::id, plain, cols, packed.data());
        CHECK(packed != plain);
        tensor::unpack_rows(F::id, packed, cols, again.data());
        CHECK(again == plain);
      }
    }
  });
  CHECK(formats > 10);
}

}  // namespace mica::test
