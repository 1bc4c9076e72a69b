// SPDX-License-Identifier: Apache-2.0
//
// Lesson 10: a conversation with streaming, thoughts set apart, and Ctrl-C.
//
//   10_chat [MODEL.gguf]
//
// mica::Chat has the messages; a session has their tokens, so that each turn feeds what is new alone. The
// template comes from the file; the bundled model has none and gets a built-in format. With a model that was
// trained for chats the answers make sense.

#include "mica/runtime/open.hpp"
#include "mica/sample/standard.hpp"
#include "mica_tools/chat/chat.hpp"
#include "mica_tools/chat/chat_template.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

std::atomic<bool> cancel{false};  // any thread or a signal may set it; the answer ends before the next step

/// Thoughts go to stderr, the answer to stdout.
bool print(mica::ChatPart part, std::string_view piece) {
  std::FILE* const to = part == mica::ChatPart::thoughts ? stderr : stdout;
  std::fprintf(to, "%.*s", static_cast<int>(piece.size()), piece.data());
  return std::fflush(to) == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a model\n", path.c_str()), 0;
  mica::OpenOptions open;
  open.n_ctx = 512;
  open.progress.report = [](void*, std::uint64_t done, std::uint64_t total) noexcept {
    std::fprintf(stderr, "\rloading: %d %%", static_cast<int>(100 * done / (total == 0 ? 1 : total)));
  };
  auto model = mica::open(path, open);
  auto session = model.session();
  const mica::ChatTemplate format(model.document().metadata(), model.tokenizer().vocabulary());
  std::fprintf(stderr, "\n%s\n", format.note().c_str());

  mica::Chat chat(session, model.tokenizer(), format.renderer());
  chat.set_system("You tell fairy tales.");
  mica::sample::Standard<> sampler({.temperature = 0.7f, .seed = 1}, model.config().n_vocab);
  const mica::GenerateOptions options{.max_tokens = 40, .cancel = &cancel};
  std::signal(SIGINT, [](int) { cancel = true; });

  for (const char* const question : {"Who lives in the castle?", "And then?"}) {
    std::printf("> %s\n", question);
    const auto answer = chat.say(question, sampler, options, print);
    std::printf("\n  (%zu tokens read, %zu written, %s)\n", answer.timings.prompt.tokens,
                answer.tokens.size(), std::string(name(answer.reason)).c_str());
  }
  std::printf("once more:\n");
  chat.regenerate(sampler, options, print);  // the sampler has other random numbers now
  chat.undo();                               // the last question and its answer
  std::printf("\n  (messages: %zu)\n", chat.messages().size());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
