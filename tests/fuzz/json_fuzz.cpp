// SPDX-License-Identifier: Apache-2.0
//
// Any text as JSON: refused by an error, or the same value when it was written and is read again, in both
// kinds of objects.

#include "fuzz/input.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::fuzz::json_fuzz {
namespace {

template <class Json>
bool parse_twice(std::string_view text) {
  return accepted([&] {
    const auto value = io::parse_json<Json>(text, "text");
    const std::string written = value.dump();
    const auto again = io::parse_json<Json>(written, "text that was written");
    require(again == value && again.dump() == written, "JSON that was written is read as the same value");
  });
}

int depth(const nlohmann::json& value) {
  if (!value.is_structured()) return 0;  // the library goes through a number as through a list of it
  int most = 0;
  for (const auto& each : value) most = std::max(most, depth(each));
  return most + 1;
}

void run(std::string_view text) {
  const bool sorted = parse_twice<nlohmann::json>(text);
  require(sorted == parse_twice<nlohmann::ordered_json>(text), "both kinds of objects take the same texts");
  if (sorted) require(depth(nlohmann::json::parse(text)) <= io::max_json_depth, "the depth has a limit");
}

}  // namespace

MICA_FUZZ_TARGET(json) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // namespace mica::fuzz::json_fuzz
