// SPDX-License-Identifier: Apache-2.0
//
// A weight format that GGUF does not have goes everywhere that those of mica go: quantised to, written, read,
// planned, run.

#include "archetype/own_format_file.hpp"
#include "io/temporary_folder.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/paging/resident.hpp"
#include "mica/plan/plan.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::own_format_test {
namespace {

using archetype::FormatsAndOwn;
using archetype::OwnFormat;
constexpr format::Table table = format::table<FormatsAndOwn>();

/// Logits of some tokens.
template <class Model>
std::vector<float> logits_of(const gguf::Document& document) {
  exec::Inline executor;
  Model model(document, executor, {.logits_rows = 20, .log = {}});
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(20, 67), 20);
}

template <class... With>
using Own = Transformer<arch::Llama, WithWeights<FormatsAndOwn>, With...>;

}  // namespace

static_assert(table.find(OwnFormat::id)->block_bytes == 34 && table.find("own")->id == OwnFormat::id);
static_assert(format::known.find(OwnFormat::id) == nullptr);
static_assert(format::table_with<FormatsAndOwn>().size() == format::known.size() + 1);
static_assert(format::table_with<format::All>().size() == format::known.size());

// A number and a name belong to one format of a list.
struct SameId : OwnFormat {
  static constexpr std::string_view name = "OTHER";
};
struct SameName : OwnFormat {
  static constexpr format::Id id{0x4F574E02};
};
static_assert(format::are_distinct<FormatsAndOwn>);
static_assert(!format::are_distinct<Append<FormatsAndOwn, SameId>>);
static_assert(!format::are_distinct<Append<FormatsAndOwn, SameName>>);

TEST_CASE("a format of the user's own is quantised to, written, and read with its table") {
  const TemporaryFolder folder;
  const TinyModel tiny(blocks_of(format::F32::id));
  const std::string path = in_own_format(tiny, folder);
  const Error unknown = refusal([&] { return gguf::open(path); });
  CHECK(unknown.code() == ErrorCode::unsupported);
  CHECK(mentions(unknown, "tensor '", "type 0x4F574E01 is not known; known: Q4_K "));
  const gguf::Document document = gguf::open(path, table);
  const gguf::TensorInfo& q = document.tensor("blk.0.attn_q.weight");
  CHECK(q.format.name == "OWN");
  CHECK(q.bytes == q.elements() / 32 * 34);
  CHECK(document.formats().find(OwnFormat::id) != nullptr);
}

TEST_CASE("a format of the user's own runs with equal bits in every kernel, mapped and packed") {
  const TemporaryFolder folder;
  const TinyModel tiny(blocks_of(format::F32::id));
  const gguf::Document document = gguf::open(in_own_format(tiny, folder), table);
  const auto expected = logits_of<Own<WithKernels<kernel::Scalar>>>(document);
  CHECK(same_bits(expected, logits_of<Own<>>(document)));
  CHECK(same_bits(expected, logits_of<Own<WithPager<paging::Resident<>>>>(document)));
  CHECK(same_bits(expected,
                  logits_of<Own<WithPager<paging::Resident<>>, WithKernels<kernel::Scalar>>>(document)));
}

TEST_CASE("a plan knows the bytes of a format of the user's own") {
  const TemporaryFolder folder;
  const TinyModel tiny(blocks_of(format::F32::id));
  const gguf::Document document = gguf::open(in_own_format(tiny, folder), table);
  const auto plan = plan::make_plan<TypeList<arch::Llama>, FormatsAndOwn>(document, {});
  CHECK(plan.weight_bytes * 3 < plan::make_plan(tiny.document(), {}).weight_bytes);
  const Error refused = refusal([&] { return plan::make_plan<TypeList<arch::Llama>>(document, {}); });
  CHECK(mentions(refused, "has type OWN; supported: Q4_K"));
}

}  // namespace mica::test::own_format_test
