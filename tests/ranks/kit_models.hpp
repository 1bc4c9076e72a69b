// SPDX-License-Identifier: Apache-2.0
//
// All models of the conformance kit, one after the other.
#pragma once

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/gguf/reader.hpp"
#include "shared.hpp"

#include <filesystem>
#include <string_view>

namespace mica::test {

/// Calls f(document, config) for each; a failed check in it names the file. Without the kit it says so by
/// `name`, and answers false.
template <class F>
bool for_each_kit_model(std::string_view name, F&& f) {
  const auto models = shared_dir(name, "conformance/models");
  if (!models) return false;
  for (const auto& file : std::filesystem::directory_iterator(*models)) {
    if (file.path().extension() != ".gguf") continue;
    CAPTURE(file.path().filename().string());
    const gguf::Document document = gguf::open(file.path().string());
    f(document, arch::AnyOf<arch::All>::config(document));
  }
  return true;
}

}  // namespace mica::test
