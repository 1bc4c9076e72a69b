// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an importance matrix, of both formats: refused by an error, or finite means, and the same
// matrix when it was written and is read again.

#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica_tools/quantize/importance.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mica::fuzz::imatrix_fuzz {
namespace {

const Folder& folder() {
  static const Folder made;
  return made;
}

void run(std::string_view bytes) {
  const std::string path = folder().write("imatrix", bytes);
  quantize::Importance read;
  if (!accepted_within(bytes.size(), [&] { read = quantize::read_importance(path); })) return;
  for (const auto& named : read.entries) {
    const quantize::ImportanceEntry& entry = named.second;
    for (const float x : entry.sums) require(std::isfinite(x) && x >= 0, "sums are finite");
    const std::size_t experts = entry.counts.size();
    if (experts == 0 || entry.sums.size() % experts != 0) continue;
    accepted([&] { static_cast<void>(entry.means(named.first, 0, experts, entry.sums.size() / experts)); });
  }
  accepted([&] {
    quantize::write_importance(read, folder().path("again"));
    const quantize::Importance again = quantize::read_importance(folder().path("again"));
    require(again.entries.size() == read.entries.size(), "a matrix that was written is read again");
    for (const auto& [name, entry] : read.entries) {
      const auto* const found = again.find(name);
      require(found != nullptr && found->sums == entry.sums && found->counts == entry.counts,
              "a matrix that was written is read as the same one");
    }
  });
}

}  // namespace

MICA_FUZZ_TARGET(imatrix) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // namespace mica::fuzz::imatrix_fuzz
