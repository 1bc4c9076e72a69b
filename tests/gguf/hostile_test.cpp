// SPDX-License-Identifier: Apache-2.0
//
// The damaged and lying files of the conformance kit, as far as opening them goes: what index.json wants
// refused while a file is opened is refused with the words it asks for, and everything else opens or is
// refused in order.

#include "io/temporary_folder.hpp"
#include "mica/gguf/reader.hpp"
#include "shared.hpp"

#include <algorithm>

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace mica::test::hostile_test {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// What opening a file and asking for each of its tensors ends with; empty when nothing is refused.
std::string open_and_ask(const std::string& path) {
  try {
    const gguf::Document document = gguf::open(path);
    for (const gguf::TensorInfo& tensor : document.tensors()) static_cast<void>(document.tensor(tensor.name));
  } catch (const Error& error) {
    return error.message();
  }
  return {};
}

/// The text without the name of the file, which does not count as naming the fault.
std::string without(std::string text, const std::string& name) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) text.erase(at, name.size());
  return text;
}

bool mentions_any(const std::string& text, const nlohmann::json& alternatives) {
  return std::any_of(alternatives.begin(), alternatives.end(),
                     [&](const auto& word) { return text.find(lower(word)) != std::string::npos; });
}

TEST_CASE("damaged files are refused by naming the fault, and files with a right to open do") {
  const auto folder = shared_dir("damaged files", "hostile");
  if (!folder) return;
  const auto index = nlohmann::json::parse(contents((*folder / "index.json").string()));
  REQUIRE(index["cases"].size() == 35);
  for (const auto& one : index["cases"]) {
    const std::string name = one["main"];
    const std::string text = lower(without(open_and_ask((*folder / name).string()), name));
    CAPTURE(name);
    CAPTURE(text);
    const bool opening = one["stage"] == "open" || one["stage"] == "shards";
    if (one["expect"] == "load") CHECK(text.empty());
    if (one["expect"] != "reject" || !opening) continue;
    CHECK(!text.empty());
    for (const auto& group : one.value("names", nlohmann::json::array())) CHECK(mentions_any(text, group));
  }
}

}  // namespace
}  // namespace mica::test::hostile_test

#else

TEST_CASE("damaged files are refused by naming the fault, and files with a right to open do") {
  mica::test::skipped("damaged files", "nlohmann-json, which reads their index, is not installed");
}

#endif
