// SPDX-License-Identifier: Apache-2.0
//
// Lesson 6: several answers at once.
//
//   06_batch [MODEL.gguf]
//
// A step reads every weight once, for one sequence or for eight, so a shared step costs little more than a
// step of one sequence. Here prompts wait in a queue. Three sequences run at a time; when one is finished,
// the next one takes its place while the others continue. Each has its own sampler, and its answer is the one
// that it would be alone.

#include "mica/runtime/batch.hpp"
#include "mica/runtime/complete.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

namespace {

/// The objects of one sequence, to which the batch refers.
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

  // A row of logits for each sequence: so the output matrix too is read once for all of them.
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
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
