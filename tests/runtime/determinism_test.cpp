// SPDX-License-Identifier: Apache-2.0
//
// The bits of an answer do not depend on how it was computed: settings that are drawn at random. 400 of them;
// MICA_TEST_SETTINGS in the environment is another number.

#include "io/temporary_folder.hpp"
#include "mica/base/rng.hpp"
#include "mica/exec/inline.hpp"
#include "mica/runtime/open.hpp"
#include "mica/runtime/shared_step.hpp"
#include "mica_tools/synth/synthetic_model.hpp"
#include "model/run_model.hpp"
#include "quantize/small_shapes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include <unistd.h>

namespace mica::test::determinism_test {
namespace {

constexpr std::size_t n_prompt = 40, n_answer = 12, n_ctx = 64;

/// What changes numbers: the model and the elements of keys and values.
struct Numbers {
  std::size_t file = 0;
  kv::Element key = kv::Element::f16, value = kv::Element::f16;
  friend auto operator<=>(const Numbers&, const Numbers&) = default;
};

/// What does not.
struct Setting {
  std::size_t threads = 1, chunk = 64;
  paging::Choice weights = paging::Choice::mapped;
  std::uint64_t weights_bytes = 0;
  kv::Choice kv = kv::Choice::contiguous;
  std::size_t others = 0;     // texts in the same steps
  std::size_t forgotten = 0;  // tokens of the prompt that are taken back once, and read again
  bool is_saved = false;      // after the prompt the session goes to a file and comes back
};

template <class T, std::size_t N>
T drawn(CounterRng& rng, const std::array<T, N>& from) {
  return from[rng.next() % N];
}

class Files {
 public:
  Files() {
    using R = quantize::Recipe;
    for (const std::string_view arch : {"llama", "gemma3", "gemma4", "qwen3", "qwen35", "phi3"})
      add(small_shape(arch), R::Q8_0);
    for (const std::string_view arch : {"qwen3moe", "gpt-oss", "qwen35moe"})
      add(small_mixture(arch), R::Q8_0);
    add(small_shape("gemma3"), R::F16);
    add(small_shape("llama"), R::Q4_K_M);
  }
  [[nodiscard]] std::size_t size() const { return paths_.size(); }
  [[nodiscard]] const std::string& operator[](std::size_t i) const { return paths_[i]; }
  [[nodiscard]] std::string session() const { return folder_.path("session"); }

 private:
  void add(const arch::Shape& shape, quantize::Recipe recipe) {
    exec::Inline executor;
    paths_.push_back(folder_.path(std::to_string(paths_.size()) + ".gguf"));
    quantize::SyntheticModel(shape, recipe).write(paths_.back(), executor);
  }

  TemporaryFolder folder_;
  std::vector<std::string> paths_;
};

Setting draw_setting(CounterRng& rng) {
  using W = paging::Choice;
  using K = kv::Choice;
  Setting s;
  s.threads = 1 + rng.next() % 4;
  s.chunk = drawn<std::size_t>(rng, std::array<std::size_t, 6>{1, 3, 8, 16, 33, 64});
  s.weights = drawn(rng, std::array{W::mapped, W::mapped_populated, W::resident, W::streamed, W::streamed});
  s.weights_bytes = rng.next() % 2;  // of streamed weights: as many as there are, or the fewest
  s.kv = drawn(rng,
               std::array{K::segmented, K::contiguous, K::reserved, K::paged, K::spilled, K::spilled_paged});
  s.others = drawn<std::size_t>(rng, std::array<std::size_t, 4>{0, 0, 1, 3});
  s.forgotten = drawn<std::size_t>(rng, std::array<std::size_t, 3>{0, 0, 1 + rng.next() % (n_prompt - 1)});
  s.is_saved = rng.next() % 3 == 0;
  return s;
}

/// The position of the largest logit.
text::TokenId best(std::span<const float> row) {
  return static_cast<text::TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
}

/// The logits of each token of the answer, which is the most likely one.
std::vector<float> answer(const std::string& path, const Numbers& numbers, const Setting& s,
                          const std::string& saved) {
  OpenOptions options{.n_ctx = n_ctx, .chunk = s.chunk, .threads = s.threads};
  options.sequences = {.count = 1 + s.others};
  options.choice.weights = s.weights;
  options.choice.weights_bytes = s.weights_bytes;
  options.choice.kv = s.kv;
  options.choice.cache_type_k = numbers.key;
  options.choice.cache_type_v = numbers.value;
  Model model = mica::open(path, options);
  std::vector<Session<AnyModel>> sessions;
  std::vector<std::vector<text::TokenId>> texts;
  for (std::size_t i = 0; i <= s.others; ++i) {
    sessions.push_back(model.session());
    texts.push_back(random_ids(n_prompt, 300, i + 1));
  }
  SharedStep<AnyModel> step(model.transformer());
  // The text that is looked at stands last in each step, and has what the others leave of it.
  const auto feed_all = [&](std::span<const text::TokenId> ids) {
    while (!ids.empty()) {
      std::vector<SharedStep<AnyModel>::Feed> feeds;
      std::size_t room = model.transformer().chunk();
      for (std::size_t i = 1; i < sessions.size() && room > 1; ++i) {
        const std::size_t at = sessions[i].tokens().size();
        const std::size_t n = std::min({texts[i].size() - std::min(at, texts[i].size()), room - 1, i + 1});
        if (n > 0) feeds.push_back({&sessions[i], std::span(texts[i]).subspan(at, n)});
        room -= n;
      }
      const std::size_t n = std::min(room, ids.size());
      feeds.push_back({&sessions[0], ids.first(n)});
      REQUIRE(step.step(feeds).status == model::StepStatus::ok);
      ids = ids.subspan(n);
    }
  };
  feed_all(texts[0]);
  if (s.forgotten > 0) {
    sessions[0].rewind(n_prompt - s.forgotten);
    feed_all(std::span(texts[0]).last(s.forgotten));
  }
  if (s.is_saved) {
    sessions[0].save(saved);
    sessions[0] = model.open_session(saved);
    sessions[0].rewind(n_prompt - 1);
    feed_all(std::span(texts[0]).last(1));
  }
  std::vector<float> all;
  for (std::size_t i = 0; i < n_answer; ++i) {
    const auto row = sessions[0].logits();
    all.insert(all.end(), row.begin(), row.end());
    const text::TokenId next[] = {best(row)};
    feed_all(next);
  }
  return all;
}

std::size_t settings() {
  const char* const chosen = std::getenv("MICA_TEST_SETTINGS");
  return chosen != nullptr ? std::strtoul(chosen, nullptr, 10) : 400;
}

}  // namespace

TEST_CASE("an answer has the same bits by any threads, steps, storages and pagers, alone and beside others") {
  const Files files;
  using E = kv::Element;
  std::map<Numbers, std::vector<float>> expected;
  for (std::size_t i = 0; i < settings(); ++i) {
    ::alarm(300);  // for this setting
    CounterRng rng(i);
    const Numbers numbers{rng.next() % files.size(),
                          drawn(rng, std::array{E::f16, E::f16, E::q8_0, E::f32, E::q4_0}),
                          drawn(rng, std::array{E::f16, E::f16, E::q8_0, E::f32, E::q4_0})};
    const auto [found, is_new] = expected.try_emplace(numbers);
    if (is_new) found->second = answer(files[numbers.file], numbers, {}, files.session());
    const Setting s = draw_setting(rng);
    CAPTURE(i);
    CAPTURE(numbers.file);
    CAPTURE(numbers.key);
    CAPTURE(numbers.value);
    CAPTURE(s.threads);
    CAPTURE(s.chunk);
    CAPTURE(s.weights);
    CAPTURE(s.kv);
    CAPTURE(s.others);
    CAPTURE(s.forgotten);
    CAPTURE(s.is_saved);
    CHECK(same_bits(answer(files[numbers.file], numbers, s, files.session()), found->second));
  }
}

}  // namespace mica::test::determinism_test
