// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/convert/tensor_bytes.hpp"

#include "convert/hf_folder.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace mica::test::tensor_bytes_test {
namespace {

/// The bytes of a matrix that is written as F32 in its own order.
std::string written(const convert::Checkpoint& checkpoint, const std::string& name) {
  const convert::Checkpoint::Entry& entry = *checkpoint.find(name);
  const std::vector<std::uint64_t>& shape = entry.tensor->shape;
  convert::TensorPlan plan;
  plan.name = plan.source = name;
  plan.stored.parts = {entry};
  plan.stored.rows = shape[0];
  plan.stored.columns = shape[1];
  plan.dims.assign(shape.rbegin(), shape.rend());
  std::string out;
  convert::write_tensor(plan, [&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return out;
}

}  // namespace

TEST_CASE("a tensor of more than a million numbers arrives whole") {
  const auto counted = [](std::uint64_t rows, std::uint64_t columns) {
    std::vector<float> values(rows * columns);
    std::iota(values.begin(), values.end(), 1.0F);
    return stored("F32", {rows, columns}, values);
  };
  const TemporaryFolder folder;
  const StoredTensors tensors = {{"whole", counted(512, 2048)}, {"rest", counted(257, 4096)}};
  write_safetensors(folder.path("model.safetensors"), tensors);
  const auto checkpoint = convert::Checkpoint::open(folder.path(""));
  for (const auto& [name, tensor] : tensors) {
    const auto& the_name = name;
    CAPTURE(the_name);
    CHECK((written(checkpoint, name) == tensor.bytes));
  }
}

TEST_CASE("the refusal of a number that is not finite names its tensor and row") {
  std::vector<float> values(3 * 4, 1.0F);
  values[9] = std::numeric_limits<float>::infinity();
  const TemporaryFolder folder;
  write_safetensors(folder.path("model.safetensors"), {{"wrong", stored("F32", {3, 4}, values)}});
  const auto checkpoint = convert::Checkpoint::open(folder.path(""));
  CHECK_THROWS_WITH_AS(static_cast<void>(written(checkpoint, "wrong")),
                       doctest::Contains("tensor 'wrong' has a number that is not finite, in row 2"), Error);
}

}  // namespace mica::test::tensor_bytes_test
