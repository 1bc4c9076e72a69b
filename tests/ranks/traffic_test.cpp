// SPDX-License-Identifier: Apache-2.0
//
// What ranks exchange for a token is what the arithmetic says, in bytes and in exchanges.

#include "mica_tools/fit/traffic.hpp"

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/kv/elements.hpp"
#include "mica/model/transformer.hpp"
#include "mica/ranks/threads.hpp"
#include "mica/runtime/concept.hpp"
#include "mica_tools/fit/work.hpp"
#include "model/run_model.hpp"
#include "ranks/kit_models.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace mica::test::traffic_test {
namespace {

/// Counts the exchanges of a rank, and the bytes of all parts.
class CountingLink {
 public:
  CountingLink(ranks::Threads& threads, std::size_t rank) noexcept : link_(threads, rank) {}
  // Required by RankLink
  [[nodiscard]] std::size_t rank() const noexcept { return link_.rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return link_.size(); }
  [[nodiscard]] bool exchange(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept {
    counted.bytes += static_cast<double>(ends.back());
    counted.exchanges += 1;
    return link_.exchange(all, ends);
  }
  /// A part of the next exchange.
  [[nodiscard]] bool begin(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept {
    counted.bytes += static_cast<double>(ends.back());
    return link_.exchange(all, ends);
  }
  [[nodiscard]] bool send(std::size_t to, std::span<const std::byte> bytes) noexcept {
    return link_.send(to, bytes);
  }
  [[nodiscard]] bool receive(std::size_t from, std::span<std::byte> bytes) noexcept {
    return link_.receive(from, bytes);
  }
  void leave() noexcept { link_.leave(); }

  plan::Traffic counted;

 private:
  ranks::Threads::Link link_;
};

/// Of the second token of a text on two ranks, which looks at the best logits; 0: at all.
plan::Traffic counted(const gguf::Document& document, std::size_t best) {
  using Model = Transformer<arch::AnyOf<arch::All>, WithKvElement<kv::AnyElements<>>,
                            WithRanks<ranks::Several<CountingLink>>>;
  ranks::Threads meeting(2);
  plan::Traffic out;
  const auto run = [&](std::size_t rank) {
    CountingLink link(meeting, rank);
    exec::Inline executor;
    typename Model::Parts parts;
    parts.ranks = ranks::Several<CountingLink>(link);
    Model model(document, executor, {.n_ctx = 64}, parts);
    auto cache = model.make_cache();
    static_cast<void>(feed(model, cache, std::vector<text::TokenId>{1}, 1));
    link.counted = {};
    const text::TokenId token = 2;
    CHECK(model.step(cache, std::span(&token, 1)) == model::StepStatus::ok);
    const std::size_t row = 0;
    CHECK(logits_of(model, std::span(&row, 1), best).rows() == 1);
    if (rank == 0) out = link.counted;
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return out;
}

}  // namespace

TEST_CASE("the traffic of a token is what two ranks exchange, for every family of the conformance kit") {
  std::size_t files = 0;
  const auto check = [&](const gguf::Document& document, const arch::Config& config) {
    bool quantized = false, floats = false;  // matrices of layers
    for (const gguf::TensorInfo& tensor : document.tensors()) {
      if (!tensor.name.starts_with("blk.") || !plan::detail::is_product(tensor)) continue;
      const bool router = tensor.name.find("ffn_gate_inp") != tensor.name.npos;
      if (router || plan::detail::is_decoded(tensor.name)) continue;
      (plan::detail::is_integer(tensor.format.id) ? quantized : floats) = true;
    }
    if (quantized && floats) return;  // codes for some products, floats for others
    ++files;
    for (const std::size_t best : {0, 2}) {
      const plan::Traffic expected = plan::traffic_of(config, quantized, {best, 2}),
                          found = counted(document, best);
      CHECK(found.exchanges == expected.exchanges);
      CHECK(found.bytes == expected.bytes);
    }
  };
  if (!for_each_kit_model("traffic of every family", check)) return;
  CHECK(files > 10);
}

}  // namespace mica::test::traffic_test
