// SPDX-License-Identifier: Apache-2.0

#include "mica/block/tensor_binder.hpp"

#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::tensor_binder_test {

TEST_CASE(
    "a matrix that one block reads by rows stays as it lies in the file, in whatever order it is bound") {
  const TinyModel tiny(Recipe{});
  const gguf::Document& document = tiny.document();
  const gguf::TensorInfo& gate = document.tensor("blk.0.ffn_gate.weight");
  const std::size_t rows = gate.rows(), cols = gate.width();
  for (const bool rows_first : {true, false}) {
    CAPTURE(rows_first);
    block::TensorBinder files(document, cols, 3, block::KnownFormats::of<format::All>());
    files.enter("blk.0.", 1);
    const auto a =
        rows_first ? files.rows("ffn_gate.weight", rows, cols) : files.matrix("ffn_gate.weight", rows, cols);
    const auto b =
        rows_first ? files.matrix("ffn_gate.weight", rows, cols) : files.rows("ffn_gate.weight", rows, cols);
    CHECK(a.index == b.index);
    CHECK(files.extents().size() == 1);
    CHECK(files.extents()[0].rows == 0);  // no pager packs it
  }
}

}  // namespace mica::test::tensor_binder_test
