// SPDX-License-Identifier: Apache-2.0
//
// A packed folder holds what its source holds, lies as it is read, and is finished by the next run wherever
// one ended.

#include "archetype/own_format_file.hpp"
#include "mica/base/rng.hpp"
#include "mica/block/lists.hpp"
#include "mica/gguf/fingerprint.hpp"
#include "pack/packed_folder.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <vector>
#include <sys/resource.h>

namespace mica::test::pack_test {
namespace {

namespace fs = std::filesystem;

/// Ends the work of a packer.
struct Enough {};

std::vector<std::byte> plain(const gguf::Document& document, const gguf::TensorInfo& tensor, std::uint64_t at,
                             std::size_t n) {
  std::vector<std::byte> out(n);
  gguf::read_plain(document, tensor, at, out);
  return out;
}

TEST_CASE("a packed model gives back every byte of its source, in any piece, and has its fingerprint") {
  for (const auto& [name, bytes] : packable_models()) {
    const auto& the_name = name;
    CAPTURE(the_name);
    const PackedModel model(bytes);
    static_cast<void>(model.pack());
    const gguf::Document packed = gguf::open(model.packed);
    CHECK(packed.packed());
    CHECK(packed.path() == model.packed);
    CHECK(packed.tensors().size() == model.source.tensors().size());
    CHECK(packed.metadata().size() == model.source.metadata().size());
    CHECK(gguf::fingerprint(packed) == gguf::fingerprint(model.source));
    CounterRng rng(3);
    for (const gguf::TensorInfo& tensor : model.source.tensors()) {
      CAPTURE(tensor.name);
      const gguf::TensorInfo& other = packed.tensor(tensor.name);
      const auto whole = plain(model.source, tensor, 0, static_cast<std::size_t>(tensor.bytes));
      CHECK(plain(packed, other, 0, whole.size()) == whole);
      for (int i = 0; i < 20; ++i) {
        const std::size_t at = rng.next() % whole.size(), n = 1 + rng.next() % (whole.size() - at);
        const auto piece = plain(packed, other, at, n);
        CHECK(std::memcmp(piece.data(), whole.data() + at, n) == 0);
      }
    }
  }
}

TEST_CASE("a format of the user's own lies packed, and gives back every byte") {
  constexpr format::Table table = format::table<archetype::FormatsAndOwn>();
  constexpr tensor::FindPacking find = tensor::packing_in<archetype::FormatsAndOwn>;
  const TemporaryFolder folder;
  const TinyModel tiny(blocks_of(format::F32::id));
  const gguf::Document source = gguf::open(in_own_format(tiny, folder), table);
  pack::Plan plan = pack::make_plan<arch::All, archetype::FormatsAndOwn>(source);
  static_cast<void>(pack::pack(source, plan, folder.path("packed"), alloc::Aligned()));
  const gguf::Document packed = gguf::open(folder.path("packed"), table);
  CHECK(packed.tensor("blk.0.attn_q.weight").packed);
  CHECK(gguf::fingerprint(packed, find) == gguf::fingerprint(source));
  for (const gguf::TensorInfo& tensor : source.tensors()) {
    std::vector<std::byte> before(static_cast<std::size_t>(tensor.bytes)), after(before.size());
    source.read(tensor, before);
    gguf::read_plain(packed, packed.tensor(tensor.name), 0, after, find);
    CHECK(after == before);
  }
  CHECK(mentions(refusal([&] { return gguf::open(folder.path("packed")); }), "type 0x4F574E01 is not known"));
}

TEST_CASE("what is used together lies together, and is packed where a pager packs it") {
  for (const auto& [name, bytes] : packable_models()) {
    const auto& the_name = name;
    CAPTURE(the_name);
    const PackedModel model(bytes);
    static_cast<void>(model.pack());
    const gguf::Document packed = gguf::open(model.packed);
    const arch::Config config = arch::AnyOf<arch::All>::config(packed);
    const model::Weights<format::All, block::All> weights(packed, config), before(model.source, config);
    struct Range {
      std::uint32_t source = 0;
      std::uint64_t begin = UINT64_MAX, end = 0, bytes = 0;
      std::size_t tensors = 0;
    };
    std::vector<Range> units(weights.units());
    REQUIRE(weights.extents().size() == before.extents().size());
    for (std::size_t i = 0; i < weights.extents().size(); ++i) {
      const paging::Extent& e = weights.extents()[i];
      CHECK(e.packed == tensor::can_pack<format::All>(e.format, before.extents()[i].rows));
      CHECK(e.checked);
      Range& range = units[e.unit];
      range = {e.source, std::min(range.begin, e.offset), std::max(range.end, e.offset + e.bytes),
               range.bytes + e.bytes, range.tensors + 1};
    }
    for (const Range& range : units) {
      CHECK(range.begin % 4096 == 0);
      CHECK(range.end - range.begin < range.bytes + 64 * range.tensors);  // one stretch, nothing else in it
    }
    for (const gguf::Source& source : packed.sources().subspan(1)) CHECK(source.size() % 4096 == 0);
  }
}

TEST_CASE("a run that ends early leaves no model, and the next one keeps what was finished") {
  const PackedModel model(packable_models().at("experts"));
  static_cast<void>(model.pack());
  const auto whole = model.everything();
  std::uint64_t all = 0;
  for (const auto& tensor : model.source.tensors()) all += tensor.bytes;
  std::size_t kept = 0;
  for (std::uint64_t stop = 0; stop < all; stop += all / 17) {
    CAPTURE(stop);
    fs::remove_all(model.packed);
    std::uint64_t done = 0;
    const auto end_early = [&](std::uint64_t bytes) {
      if ((done += bytes) > stop) throw Enough();
    };
    CHECK_THROWS_AS(static_cast<void>(model.pack(end_early)), Enough);
    const Error error = refusal([&] { return gguf::open(model.packed); });
    CHECK(mentions(error, "packing was not finished"));
    const pack::Outcome outcome = model.pack();
    CHECK((stop == 0 ? outcome.kept == 0 : outcome.kept >= kept));
    CHECK(model.everything() == whole);
    kept = outcome.kept;
  }
  CHECK(kept >= 8);
}

TEST_CASE("what stands is not written again, and what is damaged is") {
  const PackedModel model(packable_models().at("dense"));
  CHECK(model.pack().kept == 0);
  const auto whole = model.everything();
  const auto time = fs::last_write_time(model.in("layer-001.bin"));
  CHECK(model.pack().kept == 4);
  flip(model.in("layer-000.bin"), 1234, 1);
  CHECK(model.pack().kept == 3);
  fs::remove(model.in("head.bin"));
  CHECK(model.pack().kept == 3);
  fs::resize_file(model.in("embedding.bin"), 1);
  CHECK(model.pack().kept == 3);
  CHECK(fs::last_write_time(model.in("layer-001.bin")) == time);
  flip(model.in("manifest.gguf"), 100, 1);
  CHECK(model.pack().kept == 0);
  CHECK(model.everything() == whole);
  model.verify();
}

TEST_CASE("a folder of something else is refused and left alone") {
  const PackedModel model(packable_models().at("dense")), other(packable_models().at("odd"));
  fs::create_directory(model.packed);
  { std::ofstream(model.in("thesis.txt")) << "words"; }
  Error error = refusal([&] { return model.pack(); });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "thesis.txt", "empty"));
  CHECK(model.everything().size() == 1);
  static_cast<void>(other.pack());
  pack::Plan plan = pack::make_plan(model.source);
  error = refusal([&] { return pack::pack(model.source, plan, other.packed, alloc::Aligned()); });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "another file"));
  other.verify();
  error = refusal([&] { return pack::pack(model.source, plan, model.file, alloc::Aligned()); });
  CHECK(mentions(error, "is what is read"));
  error = refusal([&] { return pack::pack(model.source, plan, model.folder.path("a/b"), alloc::Aligned()); });
  CHECK(error.code() == ErrorCode::file);
}

TEST_CASE("a folder with a link is refused, and what the link points to is left alone") {
  const PackedModel model(packable_models().at("dense"));
  static_cast<void>(model.pack());
  const std::string notes = model.folder.file("notes.txt", "my notes");
  for (const char* const name : {"layer-000.bin", "embedding.bin", "manifest.gguf"}) {
    CAPTURE(name);
    const std::string before = contents(model.in(name));
    fs::remove(model.in(name));
    fs::create_symlink(notes, model.in(name));
    const Error error = refusal([&] { return model.pack(); });
    CHECK(error.code() == ErrorCode::usage);
    CHECK(mentions(error, name, "holds a link"));
    CHECK(contents(notes) == "my notes");
    fs::remove(model.in(name));
    std::ofstream(model.in(name), std::ios::binary) << before;
  }
  CHECK(model.pack().kept == 4);
}

TEST_CASE("leftovers of a run that was killed go, and a source that changed begins anew") {
  const PackedModel model(packable_models().at("dense"));
  fs::create_directory(model.packed);
  { std::ofstream(model.in(".layer-000.bin.77-0.part")) << "half"; }
  static_cast<void>(model.pack());
  CHECK_FALSE(fs::exists(model.in(".layer-000.bin.77-0.part")));
  fs::last_write_time(model.file, fs::last_write_time(model.file) + std::chrono::seconds(5));
  const gguf::Document touched = gguf::open(model.file);
  pack::Plan plan = pack::make_plan(touched);
  const Error error = refusal([&] { return pack::pack(touched, plan, model.packed, alloc::Aligned()); });
  CHECK(mentions(error, "before it changed"));
  fs::remove_all(model.packed);
  const auto change = [&](std::uint64_t) {
    fs::last_write_time(model.file, fs::last_write_time(model.file) + std::chrono::seconds(5));
  };
  const Error meanwhile =
      refusal([&] { return pack::pack(touched, plan, model.packed, alloc::Aligned(), change); });
  CHECK(mentions(meanwhile, "changed while in use"));
  CHECK_FALSE(fs::exists(model.in("manifest.gguf")));
}

TEST_CASE("two writers do not write to one folder") {
  const PackedModel model(packable_models().at("dense"));
  fs::create_directory(model.packed);
  {
    const io::FolderLock lock(model.packed);
    CHECK(mentions(refusal([&] { return model.pack(); }), "another process is writing there"));
  }
  static_cast<void>(model.pack());
  model.verify();
}

TEST_CASE("a full disk is an error, and with room the next run ends what it began") {
  const PackedModel model(packable_models().at("experts"));
  ::rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const std::size_t room : {std::size_t{0}, std::size_t{5000}, std::size_t{100000}}) {
    const ::rlimit small{room, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::optional<ErrorCode> code;
    try {
      static_cast<void>(model.pack());
    } catch (const Error& error) {
      code = error.code();
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK(code == ErrorCode::failed);
    CHECK_FALSE(fs::exists(model.in("manifest.gguf")));
    if (room == 0) CHECK_FALSE(fs::exists(model.packed));  // nothing was written, so no folder is left
  }
  std::signal(SIGXFSZ, handler);
  static_cast<void>(model.pack());
  model.verify();
}

TEST_CASE("a disk without room for the files is named by the folder, with both numbers") {
  const PackedModel model(packable_models().at("dense"));
  pack::Plan plan = pack::make_plan(model.source);
  plan.manifest.files.back().bytes = std::uint64_t{1} << 60;
  const Error error = refusal([&] { return pack::pack(model.source, plan, model.packed, alloc::Aligned()); });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, model.packed + ": the files that are not written yet need ", "the disk has "));
  CHECK(error.message().find("progress.gguf") == std::string::npos);
  CHECK_FALSE(fs::exists(model.packed));
}

TEST_CASE("packing takes three mebibytes, booked, and is refused without") {
  const PackedModel model(packable_models().at("dense"));
  pack::Plan plan = pack::make_plan(model.source);
  using A = alloc::Budgeted<alloc::Aligned>;
  budget::Ledger ledger, small(1 << 20);
  static_cast<void>(pack::pack(model.source, plan, model.packed, A(ledger, budget::Account::io_buffers)));
  CHECK(ledger.peak() == 3 << 20);
  CHECK(ledger.used() == 0);
  fs::remove_all(model.packed);
  const Error error = refusal(
      [&] { return pack::pack(model.source, plan, model.packed, A(small, budget::Account::io_buffers)); });
  CHECK(error.code() == ErrorCode::budget);
}

}  // namespace
}  // namespace mica::test::pack_test
