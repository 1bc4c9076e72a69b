// SPDX-License-Identifier: Apache-2.0
//
// Opening, planning, running, saving, packing, quantising, converting, spilling, indexing and searching, while
// one call of the system fails, or all from one on. docs/reliability.md has the table of what was counted.

#include "convert/hf_folder.hpp"
#include "faults/survive.hpp"
#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kv/spilled.hpp"
#include "mica/plan/plan.hpp"
#include "mica/runtime/open.hpp"
#include "mica_tools/convert/conversion.hpp"
#include "mica_tools/quantize/quantize.hpp"
#include "mica_tools/search/nearest.hpp"
#include "model/run_model.hpp"
#include "pack/packed_folder.hpp"
#include "runtime/talking_model.hpp"
#include "search/fake_index.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mica::test::faults_test {
namespace {

namespace fs = std::filesystem;
using namespace faults;

std::string bytes_of(std::span<const float> row) {
  std::string out(row.size_bytes(), '\0');
  std::memcpy(out.data(), row.data(), row.size_bytes());
  return out;
}

Recipe small() {
  Recipe recipe = talking(blocks_of(format::Q8_0::id));
  recipe.layers = 2;
  return recipe;
}

Recipe one_layer() {
  Recipe recipe = blocks_of(format::Q8_0::id);
  recipe.layers = 1;
  return recipe;
}

/// Keeps the last message of a library, which says why a step failed.
struct LastError {
  std::string text;
  [[nodiscard]] LogSink sink() {
    return {[](void* context, LogLevel level, std::string_view message) {
              if (level == LogLevel::error) static_cast<LastError*>(context)->text = message;
            },
            this};
  }
};

/// Reads tokens. What failed in it is an error with the reason that was logged.
std::string logits_after(Session<AnyModel>& session, std::span<const text::TokenId> ids,
                         const LastError& last) try {
  const model::StepStatus status = session.feed(ids);
  if (status == model::StepStatus::no_memory) throw std::bad_alloc();
  if (status != model::StepStatus::ok) raise(ErrorCode::failed, model::text(status));
  return bytes_of(session.logits());
} catch (const Error& error) {
  throw Error(error.code(), error.message() + "\n" + last.text);
}

/// A model in a file, and the logits of a text by a new Model each time.
struct Opening {
  TemporaryFolder folder;
  std::string path = folder.file("model.gguf", TinyModel(small()).bytes());
  std::vector<text::TokenId> ids = random_ids(20, 258);
  LastError last;
  std::string logits;
  std::size_t threads = 1;

  Work work(std::string_view name, paging::Choice weights) {
    return {.name = name,
            .run =
                [this, weights] {
                  logits.clear();
                  OpenOptions options{.n_ctx = 64, .chunk = 8, .threads = threads};
                  options.choice.weights = weights;
                  if (weights == paging::Choice::streamed) options.choice.weights_bytes = 1;  // the minimum
                  options.log = last.sink();
                  Model model = mica::open(path, options);
                  auto session = model.session();
                  logits = logits_after(session, ids, last);
                },
            .result = [this] { return logits; },
            .mentions = "model.gguf"};
  }
};

/// A session that is saved again and again over the file of an older, shorter one.
struct Saving {
  TemporaryFolder folder;
  std::string path = folder.file("model.gguf", TinyModel(small()).bytes());
  std::string saved = folder.path("saved.session");
  Model model = mica::open(path, {.n_ctx = 64, .chunk = 8, .threads = 1});
  std::vector<text::TokenId> ids = random_ids(30, 258);
  std::string shorter, longer;
  Session<AnyModel> session = model.session();
  LastError last;
  std::string logits;

  Saving() {
    REQUIRE(session.feed(std::span(ids).first(10)) == model::StepStatus::ok);
    session.save(saved);
    shorter = contents(saved);
    REQUIRE(session.feed(std::span(ids).subspan(10)) == model::StepStatus::ok);
    session.save(saved);
    longer = contents(saved);
  }
  /// Saves over the older one.
  Work saving() {
    return {.name = "save",
            .run = [this] { session.save(saved); },
            .result = [this] { return contents(saved); },
            .inspect =
                [this] {
                  const std::string now = contents(saved);
                  CHECK((now == shorter || now == longer));
                  std::ofstream(saved, std::ios::binary) << shorter;
                },
            .mentions = folder.path("")};
  }
  Work restoring() {
    return {.name = "restore",
            .run =
                [this] {
                  logits.clear();
                  Session<AnyModel> opened = model.open_session(saved);
                  logits = logits_after(opened, std::span(ids).first(5), last);
                },
            .result = [this] { return logits; },
            .mentions = folder.path("")};
  }
};

/// A file that is written from another one, whole or not at all.
struct Written {
  TemporaryFolder folder;
  std::string out = folder.path("out.gguf");
  std::string whole;

  /// run: writes `out`.
  Work work(std::string_view name, std::function<void()> run, const std::string& mentions) {
    run();
    whole = contents(out);
    return {.name = name,
            .run = std::move(run),
            .result = [this] { return contents(out); },
            .inspect =
                [this] {
                  if (fs::exists(out)) CHECK(contents(out) == whole);
                  fs::remove(out);
                },
            .mentions = mentions};
  }
};

struct Quantising : Written {
  std::string from = folder.file("model.gguf", TinyModel(Recipe{.layers = 1}).bytes());
  exec::Inline executor;

  Work work() {
    return Written::work(
        "quantize",
        [this] {
          const gguf::Document document = gguf::open(from);
          const quantize::Job job(document, {.recipe = quantize::Recipe::Q8_0});
          quantize::quantize(job, out, executor);
        },
        ".gguf");
  }
};

struct Converting : Written {
  HfFolder checkpoint;
  std::string from;

  Work work() {
    fill_small_llama(checkpoint);
    from = checkpoint.write();
    return Written::work(
        "convert", [this] { convert::Conversion::open(from).write(out); }, "/");
  }
};

/// A folder that is packed from nothing, each time.
struct Packing {
  PackedModel model{TinyModel(one_layer()).bytes()};
  std::map<std::string, std::string> whole;

  Work work() {
    static_cast<void>(model.pack());
    model.verify();
    whole = model.everything();
    return {.name = "pack",
            .run = [this] { static_cast<void>(model.pack()); },
            .result =
                [this] {
                  std::string all;
                  for (const auto& [name, bytes] : model.everything()) all += name + bytes;
                  return all;
                },
            .inspect = [this] { inspect(); },
            .mentions = model.folder.path("")};
  }

 private:
  /// Each file that has its name is whole, and a folder without all files is no model.
  void inspect() {
    bool all = true;
    if (fs::exists(model.packed)) {
      const auto now = model.everything();
      for (const auto& [name, bytes] : whole) {
        const auto found = now.find(name);
        all = all && found != now.end();
        if (found != now.end()) CHECK(found->second == bytes);
      }
      if (!all) CHECK_THROWS_AS(static_cast<void>(gguf::open(model.packed)), Error);
    }
    fs::remove_all(model.packed);
  }
};

/// Keys and values of which the most are in a file.
struct Spilling {
  using Spills = Transformer<arch::Llama, WithKv<kv::Spilled<>>, WithExecutor<exec::Inline>>;
  TemporaryFolder folder;
  TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Spills model{tiny.document(), executor, {.n_ctx = 300, .chunk = 32, .logits_rows = 1, .log = {}}};
  std::vector<text::TokenId> ids = random_ids(250, 67);
  std::string logits;

  Work work() {
    return {.name = "spill",
            .run =
                [this] {
                  logits.clear();
                  auto cache = model.make_cache(
                      [&](auto allocator, std::span<const kv::LayerShape> layers, std::size_t n_ctx) {
                        return Spills::Storage(allocator, layers, n_ctx, 64, folder.path(""));
                      });
                  for (std::size_t done = 0; done < ids.size(); done += 25) {
                    const auto status = model.step(cache, std::span(ids).subspan(done, 25));
                    if (status != model::StepStatus::ok)
                      raise(ErrorCode::failed, folder.path(""), ": ", model::text(status));
                  }
                  const std::size_t last = 24;
                  logits = bytes_of(model.logits(std::span(&last, 1))[0]);
                },
            .result = [this] { return logits; },
            .mentions = folder.path("")};
  }
};

/// A folder of texts and its index, which is brought up to date after one text has changed.
struct Indexing {
  TemporaryFolder texts, folder;
  std::string index = folder.path("index"), former, whole;
  std::string scores;

  Indexing() {
    for (int i = 0; i < 6; ++i)
      texts.file("text" + std::to_string(i),
                 "an owl sat here\n\nand " + std::to_string(i) + " cats ate it\n");
    FakeModel model;
    REQUIRE(update(texts.path(""), index, model));
    former = contents(index);
    texts.file("text3", std::string_view("the new text is about ice and fire\n"));
    write();
    whole = contents(index);
  }
  Work updating() {
    return {.name = "update an index",
            .run = [this] { write(); },
            .result = [this] { return contents(index); },
            .inspect =
                [this] {
                  const std::string now = contents(index);
                  CHECK((now == former || now == whole));
                  std::ofstream(index, std::ios::binary) << former;
                },
            .mentions = "/"};
  }
  Work searching() {
    return {.name = "search an index",
            .run =
                [this] {
                  scores.clear();
                  const search::IndexReader opened(index);
                  scores = bytes_of(
                      search::similarities<kernel::Scalar>(opened, std::vector{1.f, 0.f, 2.f, 0.f, 1.f}));
                },
            .result = [this] { return scores; },
            .mentions = "index"};
  }

 private:
  /// A text that cannot be read ends it.
  void write() {
    FakeModel model;
    model.unreadable = [](const std::string& path) { raise(ErrorCode::file, "/", path, ": cannot be read"); };
    const search::IndexReader old(index);
    static_cast<void>(update(texts.path(""), index, model, &old));
  }
};

/// Memory is refused.
void lose_memory(const Work& work) {
  for (const bool for_ever : {false, true}) survive(work, {.calls = memory, .for_ever = for_ever});
}

/// Files fail and disks are full. Transfers that end early, or that signals interrupt, change nothing.
void lose_files(const Work& work) {
  for (const bool for_ever : {false, true}) survive(work, {.calls = files, .for_ever = for_ever});
  survive(work, {.calls = files, .error = EIO});
  do_without(work, {.calls = read | write, .effect = Effect::part});
  survive_unseen(work, {.calls = read | write, .error = EINTR});
}

/// What writes files finds them too large for the process, and dies in every call.
void lose_changes(const Work& work) {
  survive(work, {.calls = changes, .error = EFBIG});
  survive_kills(work);
}

void lose_all(const Work& work) {
  lose_memory(work);
  lose_files(work);
  lose_changes(work);
}

}  // namespace

TEST_CASE("a model opens and runs, or says what it lacked, whichever request for memory is refused") {
  Opening f;
  lose_memory(f.work("open and run, mapped", paging::Choice::mapped));
  lose_memory(f.work("open and run, resident", paging::Choice::resident));
  lose_memory(f.work("open and run, streamed", paging::Choice::streamed));
}

TEST_CASE("a model opens and runs, or names its file, whichever call for a file fails") {
  Opening f;
  lose_files(f.work("open and run, mapped", paging::Choice::mapped));
  lose_files(f.work("open and run, resident", paging::Choice::resident));
  lose_files(f.work("open and run, streamed", paging::Choice::streamed));
}

TEST_CASE("direct reads, queues of reads, locked memory and threads can all be denied, and reads be short") {
  Opening f;
  for (const int error : {EINVAL, ENOSYS, EPERM, EAGAIN}) {
    do_without(f.work("open and run, streamed", paging::Choice::streamed), {.calls = direct, .error = error});
    do_without(f.work("open and run, streamed", paging::Choice::streamed), {.calls = queue, .error = error});
  }
  do_without(f.work("open and run, resident", paging::Choice::resident),
             {.calls = read, .effect = Effect::sector});
  do_without(f.work("open and run, locked", paging::Choice::mapped_locked), {.calls = lock});
  f.threads = 4;
  do_without(f.work("open and run, threads", paging::Choice::mapped), {.calls = thread});
  survive_unseen(f.work("open and run, threads", paging::Choice::mapped), {.calls = thread});
}

TEST_CASE("a plan is made, or an error, whichever request for memory is refused") {
  const TinyModel tiny{small()};
  std::uint64_t peak = 0;
  plan::Question question;
  question.model = {.n_ctx = 64, .chunk = 8, .logits_rows = 1, .log = {}};
  const Work work{.name = "plan",
                  .run = [&] { peak = plan::make_plan(tiny.document(), question).peak_bytes; },
                  .result = [&] { return std::to_string(peak); }};
  lose_memory(work);
}

TEST_CASE("a saved session is the old one or the new one, whatever fails while it is saved") {
  Saving f;
  lose_all(f.saving());
}

TEST_CASE("a session that cannot be read leaves the model as it was") {
  Saving f;
  lose_memory(f.restoring());
  lose_files(f.restoring());
}

TEST_CASE("a packed folder has whole files only, and is finished by the next run, whatever fails") {
  Packing f;
  lose_all(f.work());
}

TEST_CASE("a quantised file is there whole or not at all, whatever fails") {
  Quantising f;
  lose_all(f.work());
}

// Without memory a destructor of nlohmann::json ends the process; the program says so and ends with exit code
// 4 (tests/program/refused_memory_test.cpp).
TEST_CASE("a converted file is there whole or not at all, whatever call for a file fails") {
  Converting f;
  lose_files(f.work());
  lose_changes(f.work());
}

TEST_CASE("keys and values in a file come back or the step fails, whatever fails") {
  Spilling f;
  lose_memory(f.work());
  lose_files(f.work());
}

TEST_CASE("an index of texts is the old one or the new one, whatever fails while it is brought up to date") {
  Indexing f;
  lose_all(f.updating());
}

TEST_CASE("an index is searched, or the error names it, whatever fails") {
  Indexing f;
  lose_memory(f.searching());
  lose_files(f.searching());
}

}  // namespace mica::test::faults_test
