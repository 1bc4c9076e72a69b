// SPDX-License-Identifier: Apache-2.0
//
// A session that was saved goes on in another process as if nothing had happened: on every family, from every
// storage to every other one, with other steps, and with a text that changed.

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/exec/team.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/session.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>
#include <sys/resource.h>

#if defined(MICA_HAS_CHECKSUM)

namespace mica::test::snapshot_test {
namespace {

using model::StepStatus;
using Ids = std::vector<TokenId>;
using Hybrids = arch::AnyOf<TypeList<arch::Qwen35, arch::Qwen35Moe>>;
using Elements = kv::AnyElements<
    TypeList<format::F16, format::F32, format::BF16, format::Q8_0, format::Rotated<format::Q4_0>>>;

/// A model of a family whose storage and elements have names.
template <class Family>
using Named = Transformer<Family, WithWeights<format::F32>, WithKv<kv::AnyStorage<>>, WithKvElement<Elements>,
                          WithExecutor<exec::Team>>;

/// How one is opened.
struct Opened {
  std::size_t chunk = 64;
  std::size_t n_ctx = 700;
  kv::Choice storage = kv::Choice::segmented;
  std::string_view keys = "f16", values = "f16";
};

template <class Family>
std::unique_ptr<AnyModel> open_as(const gguf::Document& document, exec::Team& team, const Opened& how) {
  using T = Named<Family>;
  const ModelOptions options{
      .n_ctx = how.n_ctx, .chunk = how.chunk, .logits_rows = 1, .checkpoints = 2, .log = {}};
  const auto storage = [name = how.storage](auto a, std::span<const kv::LayerShape> layers, std::size_t n) {
    return kv::AnyStorage<>(a, layers, n, name);
  };
  return AnyModel::of<T>([&] {
    return T(document, team, options,
             {.elements = Elements(kv::parse_elements(how.keys), kv::parse_elements(how.values)),
              .storage = storage});
  });
}

/// The logits after these tokens.
std::vector<float> logits_after(Session<AnyModel>& session, std::span<const TokenId> ids) {
  REQUIRE(session.feed(ids) == StepStatus::ok);
  const auto row = session.logits();
  return {row.begin(), row.end()};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Prompts of several lengths, then tokens one by one, saved by one model and taken up by the other.
void go_on(AnyModel& from, AnyModel& to) {
  const TemporaryFolder folder;
  const std::string path = folder.path("session");
  const Ids next = random_ids(40, 67, 3);
  for (const std::size_t n : {1u, 16u, 77u, 400u}) {
    CAPTURE(n);
    Session<AnyModel> session(from);
    REQUIRE(session.feed(random_ids(n, 67)) == StepStatus::ok);
    for (const TokenId id : random_ids(5, 67, 2)) REQUIRE(session.feed({&id, 1}) == StepStatus::ok);
    session.save(path);
    auto opened = Session<AnyModel>::open(to, path);
    CHECK(opened.cached() == 0);
    CHECK(std::equal(opened.tokens().begin(), opened.tokens().end(), session.tokens().begin(),
                     session.tokens().end()));
    CHECK(same_bits(logits_after(opened, next), logits_after(session, next)));
    CHECK(opened.cached() == n + 45);
  }
}

template <class Family>
void go_on_everywhere(const gguf::Document& document, std::string_view keys = "f16",
                      std::string_view values = "f16") {
  exec::Team team(2);
  constexpr kv::Choice storages[] = {kv::Choice::segmented, kv::Choice::contiguous, kv::Choice::reserved,
                                     kv::Choice::paged,     kv::Choice::spilled,    kv::Choice::segmented};
  for (std::size_t i = 0; i + 1 < std::size(storages); ++i) {
    CAPTURE(storages[i]);
    auto from = open_as<Family>(document, team, {.storage = storages[i], .keys = keys, .values = values});
    auto to = open_as<Family>(document, team,
                              {.chunk = 23, .storage = storages[i + 1], .keys = keys, .values = values});
    go_on(*from, *to);
  }
}

/// A text that is the same up to some token, on a session that was opened; and going back afterwards.
template <class Family>
void change_text(const gguf::Document& document, kv::Choice storage = kv::Choice::segmented) {
  const TemporaryFolder folder;
  const std::string path = folder.path("session");
  exec::Team team(1);
  auto model = open_as<Family>(document, team, {.chunk = 50, .storage = storage});
  auto long_steps = open_as<Family>(document, team, {.chunk = 300, .storage = storage});
  const Ids ids = random_ids(310, 67), other = random_ids(30, 67, 9);
  {
    Session<AnyModel> session(*model);
    REQUIRE(session.feed(ids) == StepStatus::ok);
    session.save(path);
  }
  for (AnyModel* resumes : {model.get(), long_steps.get()}) {
    for (const std::size_t kept : {309u, 300u, 299u, 250u, 130u, 16u, 1u, 0u}) {
      CAPTURE(kept);
      auto opened = Session<AnyModel>::open(*resumes, path);
      opened.rewind(kept);
      Session<AnyModel> fresh(*resumes);
      REQUIRE(fresh.feed(std::span(ids).first(kept)) == StepStatus::ok);
      CHECK(same_bits(logits_after(opened, other), logits_after(fresh, other)));
      for (const std::size_t back : {kept + 1, kept, kept / 2}) {
        CAPTURE(back);
        opened.rewind(back);
        fresh.rewind(back);
        CHECK(same_bits(logits_after(opened, other), logits_after(fresh, other)));
      }
    }
  }
}

/// A dense model and the file of a session of it.
struct Saved {
  Saved() {
    Session<AnyModel> session(model);
    REQUIRE(session.feed(random_ids(90, 67)) == StepStatus::ok);
    session.save(path, {.sampler = sample::SamplerState{5, 17, {3, 1, 4}},
                        .next = {6},
                        .text = "a note",
                        .first_prompt = 83});
  }
  [[nodiscard]] Session<AnyModel> open() { return Session<AnyModel>::open(model, path); }
  /// The text of the error that opening the file and taking a token ends with.
  [[nodiscard]] std::string refusal() {
    const TokenId id = 1;
    const Error error = test::refusal([&] { return open().feed({&id, 1}); });
    CHECK(error.code() == ErrorCode::file);
    return error.message();
  }
  [[nodiscard]] std::unique_ptr<AnyModel> model_with(const Opened& how) {
    return open_as<arch::Llama>(tiny.document(), team, how);
  }

  TinyModel tiny{Recipe{}};
  exec::Team team{1};
  std::unique_ptr<AnyModel> made = model_with({});
  AnyModel& model = *made;
  TemporaryFolder folder;
  std::string path = folder.path("session");
};

/// The same session whose file names its elements by bare names.
void write_with_names(const std::string& path, const std::string& to, const std::string& name) {
  const kv::SnapshotReader in(path);
  kv::SnapshotInfo info = in.info();
  info.keys = info.values = name;
  kv::SnapshotWriter out(to, info);
  std::vector<std::byte> bytes;
  for (std::size_t layer = 0; layer < info.layers.size(); ++layer) {
    for (std::size_t page = 0; page < out.layout().pages(); ++page) {
      auto block = in.page(layer, page);
      bytes.resize(out.layout().page(layer, page).bytes);
      block.read(bytes);
      block.check();
      out.write(bytes);
      out.end_block();
    }
  }
  out.commit();
}

}  // namespace

TEST_CASE("a saved session goes on in another process, from every storage in every other one") {
  const TinyModel dense{Recipe{}}, windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}}, experts(with_experts());
  go_on_everywhere<arch::Llama>(dense.document());
  go_on_everywhere<Windowed<20>>(windows.document());
  go_on_everywhere<Hybrids>(hybrid.document());
  go_on_everywhere<Hybrids>(experts.document());
}

TEST_CASE("a saved session goes on with elements of blocks and of two kinds") {
  const TinyModel dense(blocks_of(format::F32::id));
  go_on_everywhere<arch::Llama>(dense.document(), "q8_0", "q8_0");
  go_on_everywhere<arch::Llama>(dense.document(), "bf16", "q4_0");
  go_on_everywhere<arch::Llama>(dense.document(), "kivi2", "f16:q8_0");
  go_on_everywhere<arch::Llama>(dense.document(), "kvarn4", "q8_0:kvarn3");
}

TEST_CASE("a text that changed keeps what is common, and a session that was opened goes back") {
  const TinyModel dense{Recipe{}}, windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}};
  change_text<arch::Llama>(dense.document());
  change_text<Windowed<20>>(windows.document());
  change_text<Windowed<20>>(windows.document(), kv::Choice::paged);
  change_text<Hybrids>(hybrid.document());
}

TEST_CASE("what a common beginning leaves unread stays unread, and nothing is computed twice") {
  const TinyHybrid tiny{HybridRecipe{}};
  exec::Team team(1);
  auto model = open_as<Hybrids>(tiny.document(), team, {});
  const TemporaryFolder folder;
  Session<AnyModel> session(*model);
  REQUIRE(session.feed(random_ids(200, 67)) == StepStatus::ok);
  session.save(folder.path("session"));
  auto opened = Session<AnyModel>::open(*model, folder.path("session"));
  opened.rewind(195);
  const TokenId id = 1;
  REQUIRE(opened.feed({&id, 1}) == StepStatus::ok);
  CHECK(opened.cached() == 196);
  opened.rewind(192);  // the copy after three chunks, which the file had
  CHECK(opened.cached() == 192);
}

TEST_CASE("saving what was opened gives the same bytes, and so does a text that went another way before") {
  Saved saved;
  const std::string first = contents(saved.path), again = saved.folder.path("again");
  SessionNote note;
  auto opened = Session<AnyModel>::open(saved.model, saved.path, &note);
  CHECK(note.sampler == sample::SamplerState{5, 17, {3, 1, 4}});
  CHECK(note.next == Ids{6});
  CHECK(note.text == "a note");
  CHECK(note.first_prompt == 83);
  opened.save(again, note);
  CHECK(contents(again) == first);

  Session<AnyModel> detour(saved.model);
  const Ids ids = random_ids(90, 67);
  REQUIRE(detour.feed(std::span(ids).first(83)) == StepStatus::ok);
  REQUIRE(detour.feed(random_ids(40, 67, 5)) == StepStatus::ok);
  detour.rewind(83);
  REQUIRE(detour.feed(std::span(ids).subspan(83)) == StepStatus::ok);
  detour.save(again, note);
  CHECK(contents(again) == first);
}

TEST_CASE("a note of an older file has no length of the first prompt") {
  const SessionNote note{{}, {6}, "a note", 83};
  const std::string bytes = mica::detail::to_bytes(note);
  CHECK(mica::detail::note_of("new", bytes).first_prompt == 83);
  const std::string older = bytes.substr(0, bytes.size() - sizeof(note.first_prompt));
  CHECK(mica::detail::note_of("older", older).first_prompt == 0);
  CHECK(mica::detail::note_of("older", older).text == "a note");
  CHECK_THROWS_AS(static_cast<void>(mica::detail::note_of("cut", bytes.substr(0, bytes.size() - 1))), Error);
}

TEST_CASE("a byte that changed anywhere is refused by name") {
  Saved saved;
  const std::string whole = contents(saved.path);
  CounterRng rng(11);
  for (int i = 0; i < 1000; ++i) {
    std::string bytes = whole;
    const std::size_t at = rng.next() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.next() % 8));
    write_bytes(saved.path, bytes);
    CAPTURE(at);
    CHECK(saved.refusal().find(saved.path) == 0);
  }
  write_bytes(saved.path, whole);
  CHECK(saved.open().feed(random_ids(1, 67)) == StepStatus::ok);
}

TEST_CASE("what is damaged is said, and the next step runs the tokens instead") {
  Saved saved;
  std::string bytes = contents(saved.path);
  bytes[bytes.size() / 2] ^= 1;
  write_bytes(saved.path, bytes);
  CHECK(saved.refusal().find("keys and values of cache layer") != std::string::npos);
  auto opened = saved.open();
  const TokenId id = 1;
  CHECK_THROWS_AS(static_cast<void>(opened.feed({&id, 1})), Error);
  CHECK(opened.cached() == 0);
  Session<AnyModel> fresh(saved.model);
  REQUIRE(fresh.feed(random_ids(90, 67)) == StepStatus::ok);
  CHECK(same_bits(logits_after(opened, {&id, 1}), logits_after(fresh, {&id, 1})));
}

TEST_CASE("files that were cut, that grew, or are something else are refused before anything is allocated") {
  Saved saved;
  const std::string whole = contents(saved.path);
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{47}, std::size_t{48},
                                 whole.size() / 2, whole.size() - 1}) {
    CAPTURE(size);
    write_bytes(saved.path, whole.substr(0, size));
    CHECK(saved.refusal().find(saved.path) == 0);
  }
  write_bytes(saved.path, whole + "x");
  CHECK(saved.refusal().find("bytes") != std::string::npos);
  write_bytes(saved.path, std::string(whole.size(), 'x'));
  CHECK(saved.refusal().find("not a saved session") != std::string::npos);
  const std::string missing = saved.folder.path("sessiom");
  CHECK_THROWS_AS(static_cast<void>(Session<AnyModel>::open(saved.model, missing)), Error);
}

TEST_CASE("a session of another model, of other elements or longer than the context is refused") {
  Saved saved;
  const auto refused = [&](const std::unique_ptr<AnyModel>& model) {
    return test::refusal([&] { return Session<AnyModel>::open(*model, saved.path); });
  };
  const TinyModel stranger({.seed = 2}), deeper({.layers = 3});
  for (const TinyModel* other : {&stranger, &deeper}) {
    const auto error = refused(open_as<arch::Llama>(other->document(), saved.team, {}));
    CHECK(mentions(error, saved.path, "was saved with another model of the family"));
  }
  CHECK(mentions(refused(saved.model_with({.keys = "f32"})), "keys in F16; this one has F32"));
  CHECK(mentions(refused(saved.model_with({.values = "q8_0"})), "values in F16; this one has Q8_0"));
  CHECK(mentions(refused(saved.model_with({.values = "kivi2"})), "values in F16; this one has F16:KIVI2"));
  CHECK(mentions(refused(saved.model_with({.n_ctx = 80})), "90 tokens; the capacity of the context is 80"));
  auto same = saved.model_with({.chunk = 8, .n_ctx = 95});
  CHECK(Session<AnyModel>::open(*same, saved.path).tokens().size() == 90);
}

TEST_CASE("a bare name of a block format in a file means rotated heads") {
  const TinyModel tiny{Recipe{}};
  exec::Team team(1);
  const TemporaryFolder folder;
  const std::string path = folder.path("session"), bare = folder.path("bare");
  auto rotated =
      open_as<arch::Llama>(tiny.document(), team, {.keys = "q4_0_rotated", .values = "q4_0_rotated"});
  {
    Session<AnyModel> session(*rotated);
    REQUIRE(session.feed(random_ids(90, 67)) == StepStatus::ok);
    session.save(path);
  }
  CHECK(kv::SnapshotReader(path).info().keys == "Q4_0_ROTATED");
  write_with_names(path, bare, "Q4_0");
  auto whole = Session<AnyModel>::open(*rotated, path), opened = Session<AnyModel>::open(*rotated, bare);
  const Ids next = random_ids(5, 67, 3);
  CHECK(same_bits(logits_after(opened, next), logits_after(whole, next)));
  auto other = open_as<arch::Llama>(tiny.document(), team, {.keys = "q8_0", .values = "q4_0_rotated"});
  CHECK(mentions(test::refusal([&] { return Session<AnyModel>::open(*other, bare); }),
                 "keys in Q4_0_ROTATED; this one has Q8_0"));
}

TEST_CASE("a full disk is an error, and the old file stays") {
  Saved saved;
  const std::string before = contents(saved.path);
  Session<AnyModel> session(saved.model);
  REQUIRE(session.feed(random_ids(600, 67)) == StepStatus::ok);
  ::rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const std::size_t room : {std::size_t{0}, std::size_t{40}, std::size_t{60000}}) {
    const ::rlimit small{room, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    std::optional<ErrorCode> code;
    try {
      session.save(saved.path);
    } catch (const Error& error) {
      code = error.code();
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK(code == ErrorCode::failed);
    CHECK(contents(saved.path) == before);
  }
  std::signal(SIGXFSZ, handler);
  CHECK(saved.folder.entries() == 1);
}

TEST_CASE("without memory for the tiles nothing is lost, and a second try finds them") {
  using A = alloc::Budgeted<alloc::Aligned>;
  using T = Named<arch::Llama>::With<WithAllocator<A>>;
  Saved saved;
  budget::Ledger ledger;
  const auto model = AnyModel::of<T>([&] {
    return T(saved.tiny.document(), saved.team, {.n_ctx = 700},
             {.allocator = A(ledger, budget::Account::weights)});
  });
  auto opened = Session<AnyModel>::open(*model, saved.path);
  const std::uint64_t rest = ledger.left() - 100;
  REQUIRE(ledger.book(budget::Account::process, rest));
  const TokenId id = 1;
  CHECK(opened.feed({&id, 1}) == StepStatus::no_memory);
  CHECK(opened.tokens().size() == 90);
  CHECK(opened.cached() == 0);
  ledger.release(budget::Account::process, rest);
  Session<AnyModel> fresh(saved.model);
  REQUIRE(fresh.feed(random_ids(90, 67)) == StepStatus::ok);
  CHECK(same_bits(logits_after(opened, {&id, 1}), logits_after(fresh, {&id, 1})));
}

}  // namespace mica::test::snapshot_test

#endif
