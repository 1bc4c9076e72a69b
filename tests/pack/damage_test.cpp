// SPDX-License-Identifier: Apache-2.0
//
// Any byte of a packed folder that was changed is refused by the name of its file, when all is read and when
// weights are loaded.

#include "mica/base/rng.hpp"
#include "mica/block/lists.hpp"
#include "mica/paging/resident.hpp"
#include "mica/paging/streamed.hpp"
#include "pack/packed_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace mica::test::damage_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;

/// What opening a folder and reading its weights in one way says.
template <class Read>
std::optional<std::string> refused(const std::string& folder, Read&& read) {
  try {
    const gguf::Document document = gguf::open(folder);
    return read(document);
  } catch (const Error& error) {
    return error.message();
  }
}

std::optional<std::string> verify(const gguf::Document& document) {
  pack::verify(document, alloc::Aligned());
  return std::nullopt;
}

paging::Table table_of(const model::Weights<format::All, block::All>& weights, const arch::Config& config) {
  return {weights.document(),       weights.extents(),         weights.units(),
          config.layers.size() + 1, weights.largest_mixture(), tensor::packing_in<format::All>};
}

std::optional<std::string> load(const gguf::Document& document) {
  const arch::Config config = arch::AnyOf<arch::All>::config(document);
  const model::Weights<format::All, block::All> weights(document, config);
  budget::Ledger ledger;
  const paging::Resident<A> pager(table_of(weights, config), A(ledger, budget::Account::weights), {});
  return std::nullopt;
}

/// As steps do that use every expert. What is said where a unit cannot be had is the answer.
template <std::uint64_t Bytes>
std::optional<std::string> stream(const gguf::Document& document) {
  const arch::Config config = arch::AnyOf<arch::All>::config(document);
  const model::Weights<format::All, block::All> weights(document, config);
  budget::Ledger ledger;
  std::string said;
  const LogSink sink{[](void* context, LogLevel level, std::string_view text) {
                       if (level == LogLevel::error) static_cast<std::string*>(context)->append(text);
                     },
                     &said};
  paging::Streamed<A> pager(table_of(weights, config), A(ledger, budget::Account::weights), sink, Bytes);
  const std::size_t head = config.layers.size() + 1;
  for (std::size_t unit = 0; unit < weights.units(); ++unit) {
    if (!pager.acquire(unit)) return said;
    if (unit == head && weights.output().index == weights.token_embd().index) {
      if (!pager.acquire(0)) return said;
      pager.release(0);
    }
    pager.release(unit);
  }
  return std::nullopt;
}

bool names(const std::optional<std::string>& text, const std::string& part) {
  const bool found = text && text->find(part) != std::string::npos;
  if (!found) MESSAGE(text.value_or("nothing was refused"));
  return found;
}

TEST_CASE("a file of a packed folder that is a link out of it is refused by its name") {
  const PackedModel model(TinyModel(Recipe{.layers = 1}).bytes());
  static_cast<void>(model.pack());
  std::vector<std::string> names_there;
  for (const auto& [name, bytes] : model.everything()) names_there.push_back(name);
  CHECK(names_there.size() >= 4);
  for (const std::string& name : names_there) {
    CAPTURE(name);
    const std::string elsewhere = model.folder.path(name);
    std::filesystem::rename(model.in(name), elsewhere);
    std::filesystem::create_symlink(elsewhere, model.in(name));
    CHECK(names(refused(model.packed, verify), model.in(name) + ": is a link to "));
    std::filesystem::remove(model.in(name));
    std::filesystem::rename(elsewhere, model.in(name));
  }
  CHECK_FALSE(refused(model.packed, verify));
}

TEST_CASE("any byte that was changed is refused by the name of its file") {
  for (const auto& [name, bytes] : packable_models()) {
    const auto& the_name = name;
    CAPTURE(the_name);
    const PackedModel model(bytes);
    static_cast<void>(model.pack());
    std::vector<gguf::TensorInfo> tensors;
    std::vector<std::string> paths;
    {
      const gguf::Document whole = gguf::open(model.packed);
      tensors.assign(whole.tensors().begin(), whole.tensors().end());
      for (const gguf::Source& source : whole.sources()) paths.push_back(source.path());
      CHECK_FALSE(verify(whole));
      CHECK_FALSE(load(whole));
      CHECK_FALSE(stream<0>(whole));
      CHECK_FALSE(stream<(1 << 20)>(whole));
    }
    CounterRng rng(17);
    for (std::size_t i = 0; i < 30 * paths.size(); ++i) {
      const std::size_t file = i % paths.size();
      const std::string& path = paths[file];
      const std::uint64_t at = rng.next() % std::filesystem::file_size(path);
      CAPTURE(path);
      CAPTURE(at);
      const auto bits = static_cast<unsigned char>(1u << rng.next() % 8);
      flip(path, at, bits);
      CHECK(names(refused(model.packed, verify), path));
      const auto holds = [&](const gguf::TensorInfo& t) {
        const std::uint64_t behind = at - std::min(at, t.offset), part = t.parts == 1 ? 0 : behind / t.stride;
        return t.source == file && at >= t.offset && part < t.parts &&
               behind - part * t.stride < t.part_bytes();
      };
      const auto tensor = std::find_if(tensors.begin(), tensors.end(), holds);
      if (file == 0 || (tensor != tensors.end() && !path.ends_with("other.bin"))) {
        const std::string wanted = file == 0 ? path : tensor->name;
        for (const auto& said : {refused(model.packed, load), refused(model.packed, stream<0>),
                                 refused(model.packed, stream<(1 << 20)>)}) {
          CHECK(names(said, path));
          CHECK(names(said, wanted));
        }
      }
      flip(path, at, bits);
    }
    model.verify();
  }
}

}  // namespace
}  // namespace mica::test::damage_test
