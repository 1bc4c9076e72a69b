// SPDX-License-Identifier: Apache-2.0
//
// Lesson 6: several answers at once.
//
//   06_batch [MODEL.gguf]
//
// Writing a token reads every weight once, whether for one text or for eight: texts that step together cost
// little more than one. Here beginnings wait in a queue; three at a time write, and when one is done the next
// takes its place, in the middle of what the others are doing. Each has a sampler of its own, and gets the
// text that it would get alone.

#include "mica/runtime/batch.hpp"
#include "mica/runtime/complete.hpp"

#include <cstdio>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

namespace {

/// One text under way: what the batch refers to.
struct Story {
  std::string beginning;
  mica::Session<mica::AnyModel> session;
  mica::sample::Standard<> sampler;
  std::size_t id = 0;
  std::string text = {};
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a model\n", path.c_str()), 0;
  std::vector<std::string> queue = {"The old dragon", "A little mouse", "Tom and his dog", "In the dark wood",
                                    "Once upon a time"};
  constexpr std::size_t at_once = 3;

  // A row of logits for each sequence: the head is read once for all of them, as every other weight is.
  auto model = mica::open(path, {.n_ctx = 256, .logits_rows = at_once});
  mica::Batch batch(model.transformer(), model.tokenizer());
  std::list<Story> stories;

  const auto begin = [&] {
    Story& story =
        stories.emplace_back(Story{queue.back(), model.session(),
                                   mica::sample::Standard<>({.seed = queue.size()}, model.config().n_vocab)});
    queue.pop_back();
    story.id = batch.add(story.session, story.sampler, mica::prompt_ids(model.tokenizer(), story.beginning),
                         {.max_tokens = 40}, [&story](std::string_view piece) {
                           story.text += piece;
                           return true;
                         });
  };

  do {
    while (stories.size() < at_once && !queue.empty()) begin();
    batch.step();
    stories.remove_if([&](const Story& story) {
      if (!batch.over(story.id)) return false;
      const mica::GenerateResult result = batch.remove(story.id);
      std::printf("%s%s\n-- %zu tokens\n\n", story.beginning.c_str(), story.text.c_str(),
                  result.tokens.size());
      return true;
    });
  } while (!stories.empty());
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
