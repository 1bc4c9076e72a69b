// SPDX-License-Identifier: Apache-2.0
//
// A run that ends and another one that goes on say what one run says.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include <initializer_list>
#include <utility>
#include <sys/ioctl.h>

namespace mica::test::session_test {
namespace {

::mode_t mode_of(const std::string& path) {
  struct ::stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

/// A story that does not end by itself.
Words endless(const std::string& session) {
  return {"run", "-n", "100000", "--ignore-eos", "--on-full", "shift", "--temp", "0", "--session", session};
}

const Words sampling = {"--temp", "0.9", "--repeat-penalty", "1.3"};

std::string said(const Words& words) {
  const Ran ran = mica(words + Words{"-q"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  std::string text = ran.out;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("two runs with a session say what one run says, the sampler's numbers and penalties included") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const Words tell = Words{"run"} + sampling, with_file = tell + Words{"--session", file};
  const std::string whole = said(tell + Words{"-n", "60", "--seed", "5"});
  const std::string first = said(with_file + Words{"-n", "23", "--seed", "5"});
  const std::string second = said(with_file + Words{"-n", "36"});
  const std::string third = said(with_file + Words{"-n", "1", "--seed", "9"});
  CHECK(whole == first + second + third);
}

TEST_CASE("a prompt that changed keeps what is common, and answers as a run of its own") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const Words complete = {"run", "--temp", "0", "-n", "12", "-no-cnv"};
  static_cast<void>(said(complete + Words{"-p", "The king had a daughter", "--session", file}));
  for (const std::string prompt : {"The king had a son", "A fox", "The king had a daughter"}) {
    CAPTURE(prompt);
    CHECK(said(complete + Words{"-p", prompt, "--session", file}) == said(complete + Words{"-p", prompt}));
  }
}

TEST_CASE(
    "a prompt that is only read is gone on with as if it had been answered, without its last token being "
    "read twice") {
  const TemporaryFolder folder;
  std::vector<Words> models = {{"complete"}};
  if (const auto kit = shared_dir("a hybrid whose prompt is only read", "conformance/models"))
    models.push_back({"complete", (*kit / "qwen35.Q8_0.gguf").string()});
  for (const Words& model : models) {
    const std::string file = folder.path(join("story", model.size()));
    const Words tell = model + Words{"-c", "128", "--seed", "5"} + sampling,
                prompt = {"-p", "Once upon a time there was a king"};
    const Words read = tell + prompt + Words{"-n", "0", "--json"};
    const auto tokens_read = [&](const Words& more) {
      return number(mica(read + more + Words{"-q"}), "prompt_n");
    };
    CHECK(tokens_read({}) == tokens_read({"--session", file}) + 1);  // whose logits the next run wants
    const std::string whole = said(tell + prompt + Words{"-n", "9"});
    CHECK(said(tell + Words{"-n", "9", "--session", file}) == whole);
  }
}

TEST_CASE("a conversation goes on in the next run") {
  const TemporaryFolder folder;
  const std::string file = folder.path("chat");
  const auto talk = [&](const Words& more, const std::string& input) {
    const Words chat = {"chat", "--temp", "0", "-n", "8", "--chat-template", "chatml", "-q"};
    const Ran ran = mica(chat + more, input);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    return ran.out;
  };
  const std::string whole = talk({}, "Hello\nWho are you?\n");
  const std::string first = talk({"--session", file}, "Hello\n"),
                    second = talk({"--session", file}, "Who are you?\n");
  CHECK(first + second == whole);
}

TEST_CASE(
    "a text that takes up a session says how much of it stays, and does not take a conversation's place") {
  const TemporaryFolder folder;
  const std::string text = folder.path("text"), chat = folder.path("chat");
  const Words complete = {"complete", "-n", "3", "--temp", "0"};
  static_cast<void>(said(complete + Words{"-p", "Once upon a time there was a king", "--session", text}));
  const Ran other = mica(complete + Words{"-p", "Once upon a hill", "--session", text});
  CHECK(other.code == 0);
  CHECK(has(other.err, "text: continues after "));
  CHECK(has(other.err, " tokens, which the new text begins with; the others are dropped"));
  const Words talk = {"chat", "--chat-template", "chatml", "-n", "3", "--session", chat};
  REQUIRE(mica(talk, "Hello there\n").code == 0);
  const std::string before = contents(chat);
  for (const Words& more : {Words{"-p", "Once"}, Words{}}) {
    const Ran refused = mica(complete + more + Words{"--session", chat});
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "chat: this session file holds a conversation; continue it with mica chat"));
    CHECK(contents(chat) == before);
  }
  CHECK(has(mica(talk, "And you?\n").err, "chat: messages so far: 2"));
  const std::string story = contents(text);
  const Ran refused = mica({"chat", "--chat-template", "chatml", "-n", "3", "--session", text}, "Hello\n");
  CHECK(refused.code == 2);
  CHECK(has(refused.err,
            "text: this session file holds plain text and no conversation; continue it with mica complete"));
  CHECK(contents(text) == story);
}

TEST_CASE("a text that fills its context says how it can be continued") {
  const TemporaryFolder folder;
  const Words full = {"complete", "-c", "64",        "--ignore-eos",
                      "--temp",   "0",  "--session", folder.path("text")};
  REQUIRE(mica(full + Words{"-p", "Once upon a time"}).code == 0);
  const Ran refused = mica(full);
  CHECK(refused.code == 6);
  CHECK_MESSAGE(has(refused.err, "the saved text fills the context of 64 tokens; to continue it use -c 128,"),
                refused.err);
  CHECK(has(refused.err, ", or --on-full shift"));
  CHECK(mica(full + Words{"--on-full", "shift", "-n", "4"}).code == 0);
}

TEST_CASE("a session that cannot be taken up or written is refused before anything is said") {
  const TemporaryFolder folder;
  const Ran damaged = mica({"run", "-n", "3", "--session",
                            folder.file("text", "this is no session, it is a text of more than 48 bytes")});
  CHECK(damaged.code == 3);
  CHECK(damaged.out.empty());
  CHECK(damaged.err.find("not a saved session") != std::string::npos);
  const Ran nowhere = mica({"run", "-n", "3", "--session", folder.path("no/such/folder")});
  CHECK(nowhere.code == 3);
  CHECK(nowhere.out.empty());
  const std::string file = folder.path("f16");
  static_cast<void>(said({"run", "-n", "3", "--session", file}));
  const Ran other = mica({"run", "-n", "3", "-ctk", "q8_0", "--session", file});
  CHECK(other.code == 2);
  CHECK(other.err.find("keys in F16; this one has Q8_0") != std::string::npos);
}

TEST_CASE("a session is its owner's alone when it is new, and keeps its mode when it goes on") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story"), chat = folder.path("chat");
  const Words more = {"run", "-n", "2", "--session", file};
  static_cast<void>(said(more));
  CHECK(mode_of(file) == 0600);
  for (const ::mode_t mode : std::initializer_list<::mode_t>{0640, 0600}) {
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    static_cast<void>(said(more));
    CHECK(mode_of(file) == mode);
  }
  const Ran ran = mica({"chat", "--chat-template", "chatml", "-n", "2"}, "Hello\n/save " + chat + "\n");
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(contents(chat).starts_with("### user\n\nHello\n"));
  CHECK(mode_of(chat) == 0600);
}

TEST_CASE("a session is saved when the reader leaves, and the run ends with 0") {
  for (const char* how : {"", " --json", " --jsonl"}) {
    CAPTURE(how);
    const TemporaryFolder folder;
    const std::string file = folder.path("story");
    const auto run = [&](int tokens) {
      std::string line;
      for (const std::string& word : endless(file))
        line += (word == "100000" ? std::to_string(tokens) : word) + " ";
      return ProgramRun("/bin/sh",
                        {"-c", join("{ ", MICA_PROGRAM, " ", line, how, "; echo $? >&2; } | head -c 5")})
          .run();
    };
    const Ran left = run(std::string_view(how) == " --json" ? 20 : 100000);  // --json says all at the end
    CHECK(left.out.size() == 5);
    CHECK(left.err.ends_with("\n0\n"));
    REQUIRE(std::filesystem::exists(file));
    CHECK(has(mica({"run", "-n", "1", "--session", file}).err, "continues after"));
  }
}

TEST_CASE("a session is saved when stdout cannot be written to, and the run ends with 1") {
  if (!std::filesystem::exists("/dev/full")) return;
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const Ran full =
      ProgramRun("/bin/sh", {"-c", join(MICA_PROGRAM, " run -no-cnv -p 'The king' -n 9 --session ", file,
                                        " >/dev/full")})
          .run();
  CHECK(full.code == 1);
  CHECK(has(full.err, "stdout: writing failed"));
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a signal ends an answer and saves its session; after a hang-up the code is 129") {
  for (const auto& [number, code] :
       {std::pair(SIGINT, 130), std::pair(SIGTERM, 130), std::pair(SIGHUP, 129)}) {
    const int sent = number;
    CAPTURE(sent);
    const TemporaryFolder folder;
    const std::string file = folder.path("story");
    const Ran ran = ProgramRun(MICA_PROGRAM, endless(file)).signal_after_output(number).run();
    CHECK(ran.code == code);
    REQUIRE(std::filesystem::exists(file));
    CHECK(has(mica({"run", "-n", "1", "--session", file}).err, "continues after"));
  }
}

TEST_CASE("a terminal that closes sends more than one signal, and the session is saved all the same") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const Ran ran = ProgramRun(MICA_PROGRAM, endless(file))
                      .after_output([](::pid_t child) {
                        for (const int number : {SIGHUP, SIGHUP, SIGTERM, SIGHUP}) ::kill(child, number);
                      })
                      .run();
  CHECK(ran.code == 129);
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a conversation that waits for a question is saved when it is ended") {
  for (const auto& [number, code] : {std::pair(SIGTERM, 130), std::pair(SIGHUP, 129)}) {
    const int sent = number;
    CAPTURE(sent);
    const TemporaryFolder folder;
    const std::string file = folder.path("chat");
    const Ran ran =
        ProgramRun(MICA_PROGRAM, {"chat", "--chat-template", "chatml", "-n", "3", "--session", file})
            .input("Hello there\n")
            .keep_input_open()
            .signal_after_output(number)
            .run();
    CHECK(ran.code == code);
    REQUIRE(std::filesystem::exists(file));
    CHECK(contents(file).find("Hello there") != std::string::npos);
  }
}

TEST_CASE("a conversation whose first message got no answer is saved, and another message begins it") {
  const TemporaryFolder folder;
  const std::string file = folder.path("chat");
  const auto chat = [&](const char* n) {
    return ProgramRun(MICA_PROGRAM, {"chat", "--chat-template", "chatml", "-n", n, "--session", file})
        .input("Hello there\n")
        .run();
  };
  const Ran none = chat("0");
  CHECK(none.code == 0);
  CHECK(has(none.err, "no token was sampled"));
  REQUIRE(std::filesystem::exists(file));
  const Ran first = chat("3"), second = chat("3");
  CHECK_MESSAGE(first.code == 0, first.err);
  CHECK_FALSE(first.out.empty());
  CHECK(has(second.err, "messages so far: 2"));
}

TEST_CASE("a hang-up that is ignored from the beginning, as under nohup, ends nothing") {
  const TemporaryFolder folder;
  const std::string file = folder.path("story");
  const std::string line =
      join("trap '' HUP; exec ", MICA_PROGRAM, " run -n 150 --temp 0 --ignore-eos --session ", file);
  const Ran ran = ProgramRun("/bin/sh", {"-c", line}).signal_after_output(SIGHUP).run();
  CHECK(ran.code == 0);
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a program that waits for more of its prompt ends with a signal") {
  for (const auto& [number, code] :
       {std::pair(SIGINT, 130), std::pair(SIGTERM, 130), std::pair(SIGHUP, 129)}) {
    const int sent = number;
    ProgramRun run("/bin/sh", {"-c", join("echo begun; exec ", MICA_PROGRAM, " complete ", MICA_SOURCE,
                                          "/examples/models/fairy.gguf -f -")});
    const std::string pipe = run.folder().path("endless");
    const Ran ran = run.input("Once upon")
                        .keep_input_open()
                        .after_output([&](::pid_t child) {
                          const int fd = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
                          for (int unread = 1; unread > 0; ::usleep(10'000)) ::ioctl(fd, FIONREAD, &unread);
                          ::close(fd);
                          ::kill(child, sent);
                        })
                        .run();
    CHECK(ran.code == code);
    CHECK(ran.out == "begun\n");
  }
}

TEST_CASE("a conversation is not written to a pipe, a device or a folder, and the chat goes on") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/null"), folder.path("")}) {
    CAPTURE(path);
    const Ran ran =
        mica({"chat", "--chat-template", "chatml", "-n", "2"}, "Hello\n/save " + path + "\nAnd?\n/show\n");
    CHECK(ran.code == 0);
    CHECK(has(ran.err, "/save: " + path + " is not a regular file"));
    CHECK(has(ran.err, "4 messages"));
  }
}

TEST_CASE(
    "who leaves a chat ends it with 0, and a pipe that ends with the code of its first refused message") {
  const Words words = {"chat", "--chat-template", "chatml", "-c", "64", "-n", "2"};
  std::string too_long;
  for (int i = 0; i < 200; ++i) too_long += "once upon a time ";
  const auto code = [&](const std::string& input) { return mica(words, input).code; };
  CHECK(code("Hello\n" + too_long + "\n") == 6);
  CHECK(code(too_long + "\nHello\n") == 6);
  CHECK(code(too_long + "\n/quit\n") == 0);
  CHECK(code("Hello\n" + too_long + "\n/bye\n") == 0);
  CHECK(mica(words + Words{"--single-turn", "-p", too_long}).code == 6);
}

TEST_CASE("a session that is a pipe, a device or a folder is refused at once") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path :
       {pipe, std::string("/dev/zero"), std::string("/dev/null"), folder.path("")}) {
    CAPTURE(path);
    const Ran ran = mica({"run", "-n", "3", "--session", path});
    CHECK(ran.code == 3);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, path == folder.path("") ? "is a folder" : "is not a regular file"));
  }
}

}  // namespace mica::test::session_test

#endif
