// SPDX-License-Identifier: Apache-2.0
//
// Files that other programs wrote: whatever the conformance kit holds, opens.

#include "mica/gguf/reader.hpp"
#include "shared.hpp"

namespace mica::test::conformance_test {
namespace {

TEST_CASE("every model of the conformance kit opens") {
  const auto folder = shared_dir("models of the conformance kit", "conformance");
  if (!folder) return;
  std::size_t opened = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*folder)) {
    if (entry.path().extension() != ".gguf") continue;
    CAPTURE(entry.path().string());
    const gguf::Document document = gguf::open(entry.path().string());
    CHECK(document.metadata().require<std::string_view>("general.architecture") != "");
    for (const gguf::TensorInfo& tensor : document.tensors()) CHECK(document.find(tensor.name) == &tensor);
    ++opened;
  }
  CHECK(opened > 0);
}

}  // namespace
}  // namespace mica::test::conformance_test
