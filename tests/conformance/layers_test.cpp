// SPDX-License-Identifier: Apache-2.0
//
// The residual stream after each layer that the kit has, one file per architecture: which layer is wrong,
// when logits are.

#include "shared.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "conformance/run.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::layers_test {
namespace {

/// Keeps the residual stream after every layer of a step.
struct Watch {
  static constexpr bool active = true;
  void product(std::string_view, MatrixView<const float>, std::size_t) noexcept {}
  void layer(std::size_t index, MatrixView<const float> rows) noexcept {
    layers.resize(std::max(layers.size(), index + 1));
    for (std::size_t r = 0; r < rows.rows(); ++r)
      layers[index].insert(layers[index].end(), rows[r].begin(), rows[r].end());
  }

  std::vector<std::vector<float>> layers;  // (tokens, width) each
};

/// The layers of a prompt whose output the kit has, compared; answers how many.
std::size_t compare_layers(const Kit& kit, const nlohmann::json& entry) {
  const auto& dump = entry["layers"];
  const auto floats = read_floats(kit.path(dump["file"]));
  Run<Decoded::With<WithObserver<Watch>>> run(kit, entry);
  Watch watch;
  for (const auto& wanted : entry["rows"]) {
    if (wanted["prompt"] != dump["prompt"]) continue;
    run.model(wanted).observe(&watch);
    static_cast<void>(run.prompt(wanted));
  }
  REQUIRE(watch.layers.size() == run.config().layers.size());
  std::size_t compared = 0;
  for (const auto& tensor : dump["tensors"]) {
    const std::string name = tensor["name"];
    if (!name.starts_with("l_out-")) continue;
    CAPTURE(name);
    const std::size_t rows = tensor["rows"], cols = tensor["cols"];
    const auto expected = std::span(floats).subspan(tensor["offset_floats"], rows * cols);
    CHECK(compare(watch.layers.at(std::stoul(name.substr(6))), expected, cols).max <= exact_tolerance(entry));
    ++compared;
  }
  return compared;
}

}  // namespace

TEST_CASE("the residual stream after a layer is the kit's, on exact weights") {
  const auto root = shared_dir("layers of model files", "conformance");
  if (!root) return;
  const Kit kit(*root);
  std::size_t files = 0;
  for (const auto& entry : kit.models()) {
    if (!entry.contains("layers")) continue;
    const std::string file = entry["file"];
    CAPTURE(file);
    CHECK(compare_layers(kit, entry) > 0);
    ++files;
  }
  CHECK(files == 16);
}

}  // namespace mica::test::layers_test

#else

TEST_CASE("the residual stream after a layer is the kit's, on exact weights") {
  mica::test::skipped("layers of model files",
                      "nlohmann-json, which reads the kit's index, is not installed");
}

#endif
