// SPDX-License-Identifier: Apache-2.0
//
// Pasted text, what Tab adds, what stdin adds to a prompt, and the words of progress lines, apart from the
// program.

#include "../examples/run/chat_words.hpp"
#include "../examples/run/paste.hpp"
#include "../examples/run/stdin_text.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mica::test::chat_input_test {
namespace {

using namespace std::chrono_literals;

std::string pasted(std::vector<std::string> lines) {
  std::size_t next = 1;
  return program::with_paste(lines[0], [&]() -> std::optional<std::string> {
    return next < lines.size() ? std::optional(lines[next++]) : std::nullopt;
  });
}

TEST_CASE("the lines between the marks of a paste are one text") {
  CHECK(pasted({"plain"}) == "plain");
  CHECK(pasted({"\x1b[200~one", "two", "three\x1b[201~"}) == "one\ntwo\nthree");
  CHECK(pasted({"see: \x1b[200~one", "two\x1b[201~ and more", "another line"}) == "see: one\ntwo and more");
  CHECK(pasted({"\x1b[200~a\x1b[201~-\x1b[200~b", "c\x1b[201~"}) == "a-b\nc");
  CHECK(pasted({"\x1b[200~one", "never ends"}) == "one\nnever ends");
}

TEST_CASE("pasted text keeps line breaks and tabs, and no other control character") {
  CHECK(program::cleaned_paste(std::string("a\rb\r\nc\nd\te\x1b[2J\x7F\r\r\n")) == "a\nb\nc\nd\te[2J");
  CHECK(program::cleaned_paste(std::wstring(L"\u6F22\r\x1b x\n")) == L"\u6F22\n x");
  CHECK(program::cleaned_paste(std::string("\xE6\xBC\xA2")) == "\xE6\xBC\xA2");
}

constexpr program::ChatWord words[] = {{"/save", "FILE"},
                                       {"/set", "temp top_k top_p"},
                                       {"/show", "plan stats"},
                                       {"/system", "TEXT"},
                                       {"/undo", ""}};

TEST_CASE("Tab adds what all candidates have in common, and shows them where that is nothing") {
  const auto added = [](const char* line) { return program::complete_line(line, words).added; };
  CHECK(added("/u") == "ndo");
  CHECK(added("/U") == "ndo");
  CHECK(added("/sh") == "ow ");
  CHECK(added("/show p") == "lan");
  CHECK(added("/set top") == "_");
  CHECK(added("/set te") == "mp ");
  CHECK(program::complete_line("/s", words).candidates.size() == 4);
  CHECK(program::complete_line("/set top_", words).candidates == std::vector<std::string>{"top_k", "top_p"});
  for (const char* const none : {"hello", "", "/x", "/nothing a", "/system a", "/undo a", "/show x"}) {
    CAPTURE(none);
    CHECK(added(none).empty());
    CHECK(program::complete_line(none, words).candidates.empty());
  }
}

TEST_CASE("Tab completes the names of files and folders, and not in the middle of a character") {
  const TemporaryFolder folder;
  folder.file("story.txt", "x");
  folder.file("stories.md", "x");
  folder.file("b\xC3\xA4", "x");
  folder.file("b\xC3\xB6", "x");
  folder.file("wipe\x1b[2J", "x");
  std::filesystem::create_directory(folder.path("sub"));
  const auto at = [&](const char* name) {
    return program::complete_line("/save " + folder.path(name), words);
  };
  CHECK(at("sto").added == "r");
  CHECK(at("stor").candidates.size() == 2);
  CHECK(at("story").added == ".txt");
  CHECK(at("su").added == "b/");
  CHECK(at("b").added.empty());
  CHECK(at("b").candidates.size() == 2);
  CHECK(at("w").added.empty());
  CHECK(program::complete_line("/save " + folder.path("nowhere/x"), words).added.empty());
}

TEST_CASE("the text of stdin stands before the prompt, with a blank line between them") {
  CHECK(program::text_and_prompt("the text\n", "Summarise") == "the text\n\nSummarise");
  CHECK(program::text_and_prompt("  the text\r\n\n", "Summarise") == "  the text\n\nSummarise");
  CHECK(program::text_and_prompt(" \n", "Summarise") == "Summarise");
  CHECK(program::text_and_prompt("the text\n\n", "") == "the text\n\n");
}

TEST_CASE("pipes and files are read; sockets, devices and closed descriptors are not") {
  int pipe_ends[2], sockets[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const TemporaryFolder folder;
  const int file = ::open(folder.file("f", "x").c_str(), O_RDONLY), null = ::open("/dev/null", O_RDONLY);
  CHECK(program::is_piped(pipe_ends[0]));
  CHECK(program::is_piped(file));
  CHECK_FALSE(program::is_piped(sockets[0]));
  CHECK_FALSE(program::is_piped(null));
  CHECK_FALSE(program::is_piped(-1));
  CHECK(program::has_input_within(file, 0ms));
  CHECK_FALSE(program::has_input_within(pipe_ends[0], 0ms));  // open and idle
  REQUIRE(::write(pipe_ends[1], "x", 1) == 1);
  CHECK(program::has_input_within(pipe_ends[0], 0ms));
  char byte = 0;
  REQUIRE(::read(pipe_ends[0], &byte, 1) == 1);
  ::close(pipe_ends[1]);
  CHECK(program::has_input_within(pipe_ends[0], 0ms));  // its end
  for (const int fd : {pipe_ends[0], sockets[0], sockets[1], file, null}) ::close(fd);
}

}  // namespace
}  // namespace mica::test::chat_input_test
