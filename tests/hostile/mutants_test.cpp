// SPDX-License-Identifier: Apache-2.0
//
// Changed copies of valid files through mica::open() and some tokens: refused by an error, or run to finite
// logits or an error that says that they are not. A process of its own runs them, and is begun anew behind a
// mutant that ends it or takes too long.

#include "hostile/mutant.hpp"
#include "io/temporary_folder.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica/runtime/open.hpp"
#include "mica_tools/chat/chat_template.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mica::test::mutants_test {
namespace {

constexpr auto longest = std::chrono::seconds(60);  // of one mutant, under a sanitizer too

/// What the process has done, in memory that both share.
struct Progress {
  std::atomic<std::size_t> begun{0}, refused{0}, not_finite{0}, ran{0};
};
class SharedProgress {
 public:
  SharedProgress()
      : at_(::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(at_ != MAP_FAILED);
    new (at_) Progress;
  }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress() { ::munmap(at_, sizeof(Progress)); }
  Progress* operator->() const { return static_cast<Progress*>(at_); }

 private:
  void* at_;
};

/// The valid files: of the kit, and the one of the tree.
std::vector<std::string> fixtures() {
  std::vector<std::string> paths = {MICA_SOURCE "/examples/models/fairy.gguf"};
  if (const auto kit = shared_dir("mutants of the kit's files", "conformance")) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*kit)) {
      if (entry.path().extension() == ".gguf") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin() + 1, paths.end());
  return paths;
}

/// A folder with a mutant and, where it is a part of a split model, with copies of the other parts.
class MutantFolder {
 public:
  MutantFolder(const std::filesystem::path& of, std::span<const std::byte> bytes)
      : path_(folder_.file(of.filename().string(), bytes)) {
    if (of.filename().string().find("-of-") == std::string::npos) return;
    for (const auto& entry : std::filesystem::directory_iterator(of.parent_path())) {
      if (entry.path() != of && entry.path().extension() == ".gguf")
        std::filesystem::copy_file(entry.path(), folder_.path(entry.path().filename().string()));
    }
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

void abort_unless_finite(std::span<const float> x) {
  if (!std::all_of(x.begin(), x.end(), [](float each) { return std::isfinite(each); })) std::abort();
}

/// Ends the process where a number is not finite and no status said so.
model::StepStatus run(Model& model, std::span<const text::TokenId> ids) {
  if (model.config().pooling != arch::Pooling::none) {
    Embedder<AnyModel> embedder(model.transformer());
    std::vector<float> row(embedder.width());
    const auto status = embedder.embed(ids.first(std::min(ids.size(), embedder.max_tokens())), row);
    if (status == model::StepStatus::ok) abort_unless_finite(row);
    return status;
  }
  auto session = model.session();
  model::StepStatus status = session.feed(ids.first(std::min<std::size_t>(ids.size(), 8)));
  for (int i = 0; i < 3 && status == model::StepStatus::ok; ++i) {
    const auto logits = session.logits();
    abort_unless_finite(logits);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    status = session.feed(std::array{static_cast<text::TokenId>(best)});
  }
  return status;
}

void try_one(const std::string& path, Progress& progress) {
  try {
    OpenOptions options;
    options.n_ctx = 32;
    options.chunk = 8;
    options.threads = 1;
    options.memory_bytes = std::uint64_t{256} << 20;
    auto model = open(path, options);
    static_cast<void>(ChatTemplate(model.document().metadata(), model.tokenizer().vocabulary()).note());
    std::vector<text::TokenId> ids = model.tokenizer().encode("Once upon a time");
    if (ids.empty()) ids.push_back(0);
    (run(model, ids) == model::StepStatus::ok ? progress.ran : progress.not_finite) += 1;
  } catch (const Error& error) {
    if (error.message().empty()) std::abort();
    progress.refused += 1;
  } catch (const std::bad_alloc&) {
    progress.refused += 1;
  }
}

/// The process: mutants begin, begin + 1, ...; it ends after the last one.
[[noreturn]] void work(const std::vector<std::string>& paths, std::size_t count,
                       Progress& progress) noexcept {
  std::vector<std::string> valid(paths.size());
  for (std::size_t k = progress.begun; k < count; ++k) {
    progress.begun = k + 1;
    const std::filesystem::path of(paths[k % paths.size()]);
    std::string& bytes = valid[k % paths.size()];
    if (bytes.empty()) bytes = contents(of.string());
    try_one(MutantFolder(of, Mutant(std::as_bytes(std::span(bytes)), k).bytes()).path(), progress);
  }
  ::_exit(0);
}

TEST_CASE("mutants of every valid file are refused or run") {
  const char* const wanted = std::getenv("MICA_TEST_MUTANTS");
  std::size_t count = 300;
  if (wanted != nullptr) {
    const std::string_view text = wanted;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count == 0)
      FAIL("MICA_TEST_MUTANTS: found '", text, "', needed is a number above 0");
  }
  if (wanted != nullptr) ::alarm(0);  // as long as it takes
  const std::vector<std::string> paths = fixtures();
  const SharedProgress progress;
  while (progress->begun < count) {
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) work(paths, count, *progress.operator->());
    int status = 0;
    std::size_t seen = 0;
    auto since = std::chrono::steady_clock::now();
    while (::waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (const std::size_t now = progress->begun; now != seen) {
        seen = now;
        since = std::chrono::steady_clock::now();
      }
      if (std::chrono::steady_clock::now() - since > longest) ::kill(child, SIGKILL);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    const std::size_t found = progress->begun - 1;
    FAIL_CHECK("mutant ", found, " of ", paths[found % paths.size()], " ended with wait status ", status);
  }
  std::printf("%zu mutants of %zu files: %zu refused, %zu ran, %zu stopped with a status that says why\n",
              count, paths.size(), progress->refused.load(), progress->ran.load(),
              progress->not_finite.load());
  if (count < 100) return;  // all of few may be refused
  CHECK(progress->refused > 0);
  CHECK(progress->ran > 0);
}

}  // namespace
}  // namespace mica::test::mutants_test
