// SPDX-License-Identifier: Apache-2.0
//
// Lesson 8: a text that continues after a restart.
//
//   08_sessions [MODEL.gguf]
//
// A session can be saved to a file: its tokens, their keys and values, and the state of the sampler. Another
// process opens the file and continues with the same bits, without running the text again. Here "the other
// process" is a second function of this program, which shares nothing with the first one but the name of the
// file.

#include "mica/runtime/complete.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t tokens = 24;  // of each half

bool print(std::string_view piece) {
  std::printf("%.*s", static_cast<int>(piece.size()), piece.data());
  return true;
}

/// Begins a text and saves it unfinished.
void begin(mica::Model& model, const std::string& file) {
  auto session = model.session();
  mica::sample::Standard<> sampler({.seed = 3}, model.config().n_vocab);
  const auto prompt = mica::prompt_ids(model.tokenizer(), "Once upon a time");
  print("Once upon a time");
  const auto part =
      mica::generate(session, model.tokenizer(), sampler, prompt, {.max_tokens = tokens}, print);
  // The last token was sampled and not fed to the session: it belongs to the note.
  session.save(file, {.sampler = sampler.save(), .next = {part.tokens.back()}});
}

/// Continues it.
void go_on(mica::Model& model, const std::string& file) {
  mica::SessionNote note;
  auto session = model.open_session(file, &note);
  mica::sample::Standard<> sampler({}, model.config().n_vocab);
  sampler.restore(*note.sampler);
  std::printf("\n-- %zu tokens, and nothing was computed yet --\n", session.tokens().size());
  mica::generate(session, model.tokenizer(), sampler, note.next, {.max_tokens = tokens}, print);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a model\n", path.c_str()), 0;
  if (!mica::io::Checksum::available()) return std::printf("saved sessions need xxHash\n"), 0;
  const std::string file = (std::filesystem::temp_directory_path() / "mica-lesson-8.session").string();
  {
    auto model = mica::open(path);
    begin(model, file);
  }
  auto model = mica::open(path);
  go_on(model, file);
  std::filesystem::remove(file);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
