// SPDX-License-Identifier: Apache-2.0
//
// The program on a terminal: what of a file's and a model's text reaches it, the chat as a person has it, and
// text that a shell puts on stdin beside a prompt.

#include "program/terminal.hpp"

#include "gguf/sample_file.hpp"
#include "mica/gguf/reader.hpp"

#include <fstream>
#include <sstream>
#include <sys/socket.h>

#ifdef MICA_PROGRAM

namespace mica::test::terminal_test {
namespace {

const std::string fairy = std::string(MICA_SOURCE) + "/examples/models/fairy.gguf";

/// Everything that a terminal obeys, in one text, with a word at each end.
const std::string hostile_name =
    "begin\x1b]0;owned\x07\x1b[2J\x1bP1q\x1b\\\r\b\x7F\xC2\23331m\xE2\x80\xAE\xE2\x81\246end";
const std::string hostile = hostile_name + "\xFF";  // no text; some file systems refuse it

/// The bundled model with such text wherever a file can have text: values, keys, names, pieces, its template.
std::string hostile_model(const TemporaryFolder& folder, const std::string& chat_template) {
  const gguf::Document document = gguf::open(fairy);
  gguf::Writer writer;
  writer.copy(document.metadata());
  writer.set("general.name", hostile);
  writer.set("general." + hostile, hostile);
  writer.set_array("general.tags", std::vector<std::string>{hostile, hostile});
  writer.set("tokenizer.chat_template", chat_template);
  std::vector<std::string> pieces;
  const auto known = document.metadata().get<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  REQUIRE(known.has_value());
  for (const std::string_view piece : *known) pieces.emplace_back(piece);
  pieces.back() = hostile;
  writer.set_array("tokenizer.ggml.tokens", pieces);
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    const gguf::Fill fill = [&](const gguf::Sink& sink) {
      std::vector<std::byte> data(static_cast<std::size_t>(tensor.bytes));
      document.read(tensor, data);
      sink(data);
    };
    writer.add(tensor.name, tensor.format.id, std::span(tensor.dims.data(), tensor.n_dims), fill);
  }
  const float zero = 0;
  writer.add(hostile, format::F32::id, {1}, std::as_bytes(std::span(&zero, 1)));
  const std::string path = folder.path(hostile_name + ".gguf");
  writer.write(path);
  return path;
}

/// Whether a terminal that gets this text shows it and does nothing else.
bool is_tame(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F || is_c1) return false;
  }
  return text.find("\xE2\x80\xAE") == std::string::npos && text.find("\xE2\x81\xA6") == std::string::npos &&
         text.find('\xFF') == std::string::npos;
}

TEST_CASE(
    "no verb passes control characters of a file's names, keys, values, pieces or template to a terminal") {
  const TemporaryFolder folder;
  const std::string model =
      hostile_model(folder, "{{ raise_exception(messages[0]['content'] ~ '" + hostile + "') }}");
  const std::string messages = folder.file("m.json", "[{\"role\":\"user\",\"content\":\"hello\"}]");
  const std::string text = folder.file("text", "Once upon a time there was a king. He had a daughter.");
  const std::string out = folder.path("out");
  const std::vector<Words> runs = {
      {"inspect", model, "--tensors"},
      {"inspect", model, "--json"},
      {"inspect", model + "x"},
      {"tokenize", model, hostile},
      {"tokenize", model, hostile, "--json"},
      {"detokenize", model, "--ids", "511", "--json"},
      {"detokenize", model, "--ids", hostile},
      {"template", model, "--messages", messages},
      {"template", model, "--messages", folder.path(hostile_name)},
      {"run", model, "hello", "-n", "4"},
      {"run", model, "hello", "-n", "4", "--session", folder.path(hostile_name)},
      {"run", model, "-f", folder.path(hostile_name)},
      {"chat", model, "hello", "-n", "4", "-st"},
      {"complete", model, "hello", "-n", "4", "--json"},
      {"complete", model, "hello", "--draft", folder.path(hostile_name)},
      {"complete", model, hostile, "--evict", hostile},
      {"logits", model, "--ids", "1,2", "-o", out},
      {"bench", model, "-p", "8", "-n", "2", "-r", "1"},
      {"bench", model, "-p", "8", "-n", "2", "-r", "1", "-o", "csv"},
      {"perplexity", model, "-f", text, "-c", "8"},
      {"imatrix", model, "-f", text, "-c", "8", "-o", folder.path(hostile_name + ".imatrix")},
      {"quantize", model, folder.path(hostile_name + ".out"), "Q8_0", "--dry-run", "--allow-requantize"},
      {"quantize", model, folder.path(hostile_name + ".out"), "Q8_0", "--allow-requantize"},
      {"pack", model, folder.path(hostile_name + ".packed"), "--dry-run"},
      {"pack", model, folder.path(hostile_name + ".packed")},
      {"plan", model, "--solve", "--memory", "20MiB"},
      {"plan", model, "--memory", "1MiB"},
      {"fit", model},
      {"fit", model, "--explain"},
      {"fit", folder.path("")},
      {"doctor", model},
      {"convert", folder.path(""), out},
      {"run", "http://" + hostile},
      {"inspect", "http://" + hostile},
      {hostile},
      {"run", "--" + hostile},
  };
  for (const Words& words : runs) {
    const Ran ran = mica(words + Words{});
    CAPTURE(words[0]);
    CAPTURE(ran.code);
    CAPTURE(ran.out);
    CAPTURE(ran.err);
    CHECK(is_tame(ran.err));
    const bool is_data =
        words[0] == "run" || words[0] == "chat";  // a model's words, which a pipe gets as they are
    CHECK((is_data || is_tame(ran.out)));
    CHECK(ran.code < 128);
  }
}

TEST_CASE("messages stay short whatever is named in them") {
  const TemporaryFolder folder;
  const std::string index =
      folder.file("model.safetensors.index.json",
                  "{\"weight_map\":{\"a\":\"" + std::string(5000, 'x') + ".safetensors\"}}");
  folder.file("config.json", "{\"model_type\":\"llama\",\"hidden_size\":" + std::string(5000, '9') + "}");
  folder.file("tokenizer.json", "{}");
  for (const Words& words :
       std::vector<Words>{{"inspect", "http://127.0.0.1:1/" + std::string(100'000, 'u') + ".gguf"},
                          {"run", "http://127.0.0.1:1/" + std::string(100'000, 'u')},
                          {"run", std::string(100'000, 'f')},
                          {"convert", folder.path(""), folder.path("out")},
                          {std::string(100'000, 'v')}}) {
    const Ran ran = mica(words);
    CAPTURE(words[0]);
    CHECK(ran.code != 0);
    CHECK(!ran.err.empty());
    CHECK(ran.err.size() < 2500);
  }
}

TEST_CASE(
    "the answers of a terminal are a model's words and colours; a pipe, or --raw-output, has its bytes") {
  const TemporaryFolder folder;
  const std::string source = folder.file("t", "{{ 'a\x1b[31mred\x1b]0;owned\x07\x1b[2Jb\x1b[0m' }}");
  const std::string messages = folder.file("m", "[]");
  const Words words = {"template", "--template-file", source, "--messages", messages};
  CHECK(mica(words).out == "a\x1b[31mred\x1b]0;owned\x07\x1b[2Jb\x1b[0m");
  const auto shown = [&](const Words& more) {
    TerminalRun run(words + more);
    CHECK(run.start().finish() == 0);
    return run.output();
  };
  CHECK(shown({}) == "a\x1b[31mredb\x1b[0m");
  CHECK(shown({"--color", "never"}) == "aredb");
  CHECK(shown({"--raw-output"}) == "a\x1b[31mred\x1b]0;owned\x07\x1b[2Jb\x1b[0m");
  const std::string model = hostile_model(folder, "x");
  const gguf::Document document = gguf::open(model);
  const auto vocabulary = document.metadata().get<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  const std::string last = join(vocabulary->size() - 1);
  TerminalRun run({"detokenize", model, "--ids", last, "--special", "--color", "never"});
  CHECK(run.start().finish() == 0);
  CHECK(run.output().find("begin") != std::string::npos);
  REQUIRE(run.output().ends_with("\r\n"));  // on a terminal the text ends its line
  CHECK(is_tame(run.output().substr(0, run.output().size() - 2)));
}

TEST_CASE("the streams of the program are written to in one file, and bytes as they are by three") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MICA_SOURCE "/examples/run")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.starts_with("console.")) continue;
    const std::string source = contents(entry.path().string());
    CAPTURE(name);
    for (const char* const way : {"std::cout", "std::cerr", "fputs(", "fwrite(", "fprintf(", " printf(",
                                  "::write(", "puts(", "putchar("})
      CHECK(source.find(way) == std::string::npos);
    const bool has_data = name.starts_with("answer.") || name == "template.cpp" || name == "detokenize.cpp";
    if (!has_data) CHECK(source.find("print_data(") == std::string::npos);
    if (!has_data) CHECK(source.find("DataOutput") == std::string::npos);
    const bool has_sequences = name.starts_with("line_input.") || name == "main.cpp";
    if (!has_sequences) CHECK(source.find("write_sequence(") == std::string::npos);
  }
}

const Words talk = {"chat", fairy, "--chat-template", "plain", "-n", "4", "--temp", "0"};

TEST_CASE("a chat on a terminal says who is there and what can be typed; quiet, and on a pipe, it does not") {
  TerminalRun run(talk);
  run.start().expect("context ").expect("tokens; /help").expect("\"\"\"").expect("> ").type("/bye\r");
  CHECK(run.finish() == 0);
  TerminalRun quiet(talk + Words{"-q"});
  quiet.start().expect("> ").type("/bye\r");
  CHECK(quiet.finish() == 0);
  CHECK(quiet.output().find("/help") == std::string::npos);
  CHECK(mica(talk, "/bye\n").err.find("/help") == std::string::npos);
}

TEST_CASE("pasted lines are one message, with libedit and without") {
  for (const char* const term : {"xterm", "dumb"}) {
    CAPTURE(term);
    TerminalRun run(talk);
    const std::string saved = run.folder().path("saved");
    run.set("TERM", term).start().expect("> ");
    run.type("\x1b[200~/first line\rsecond\rthird\x1b[201~\r").expect("> ");
    run.type("/save " + saved + "\r").expect("messages: 2").expect("> ").type("/exit\r");
    CHECK(run.finish() == 0);
    const std::string text = contents(saved);
    CAPTURE(run.output());
    CHECK(has(text, "### user\n\n/first line\nsecond\nthird\n\n### assistant"));
    CHECK(text.find("### user", text.find("### user") + 1) == std::string::npos);
    const bool asked = run.output().find("\x1b[?2004h") != std::string::npos;
    CHECK(asked == (std::string_view(term) == "xterm"));
    if (asked) CHECK(run.output().rfind("\x1b[?2004l") > run.output().rfind("\x1b[?2004h"));
  }
}

TEST_CASE("commands confirm what they did, know their names in any case, and suggest a near one") {
  const Words words = {"chat", fairy, "--chat-template", "plain", "-n", "4", "--temp", "0"};
  const TemporaryFolder folder;
  const Ran ran = mica(
      words, "/System Be brief.\nhello\n/UNDO\n/set top_k 5\n/Set n -1\n/set n 0\nhello\n/clear\n/save " +
                 folder.path("s") + "\n/hepl\n/sav x\n/set  \n/Exit\nnever said\n");
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "system's words are set"));
  CHECK(has(ran.err, "stopped after 4 tokens, the limit of -n; /set n -1 removes the limit"));
  CHECK(has(ran.err, "last exchange is removed; 1 message remains"));
  CHECK(has(ran.err, "top_k is 5"));
  CHECK(has(ran.err, "n is -1: no maximum"));
  CHECK(has(ran.err, "n is 0, from"));
  CHECK(has(ran.err, "stopped after 0 tokens"));
  CHECK(has(ran.err, "conversation is cleared, the system prompt stays"));
  CHECK(has(ran.err, "written to"));
  CHECK(has(ran.err, "unknown command /hepl; did you mean /help?"));
  CHECK(has(ran.err, "unknown command /sav; did you mean /save?"));
  const Ran wrong =
      mica(words, "/set temp -1\n/set top_k 1.5\n/set tmp 1\n/set seed\n/set\n/read\n/set min_p .1\n");
  CHECK(has(wrong.err, "/set temp needs a number from 0 to 10000, found '-1'."));
  CHECK(has(wrong.err, "/set top_k needs a whole number from 0 on, found '1.5'."));
  CHECK(has(wrong.err, "/set: unknown name 'tmp'. Did you mean temp? Known: temp top_k "));
  CHECK(has(wrong.err, "/set seed needs a whole number from -1 on"));
  CHECK(has(wrong.err, "/set NAME VALUE: the name is one of temp "));
  CHECK(has(wrong.err, "/read needs the name of a file"));
  CHECK(has(wrong.err, "min_p is .1"));
  const Ran quiet = mica(words + Words{"-q"}, "/system Be brief.\n/clear\n/set top_k 5\n/Quit\nnever said\n");
  CHECK(quiet.err.empty());
  CHECK(quiet.out.empty());
}

TEST_CASE("a conversation is saved over a conversation, and over nothing else") {
  const TemporaryFolder folder;
  const std::string letter = folder.file("letter", "GGUF and more"), saved = folder.path("saved");
  const Words words = {"chat", fairy, "--chat-template", "plain", "-n", "4", "--temp", "0"};
  const Ran ran = mica(words, "hello\n/save " + letter + "\n/save " + saved + "\nyou\n/save " + saved + "\n");
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "letter already exists and is not a saved conversation; choose another name"));
  CHECK(contents(letter) == "GGUF and more");
  CHECK(has(contents(saved), "### user\n\nyou"));
}

/// Whether the program was built with libedit, which keeps a history.
bool has_editor() {
  TerminalRun run(talk);
  run.start().expect("> ").type("/bye\r");
  CHECK(run.finish() == 0);
  return std::filesystem::exists(run.folder().path("state/mica/history"));
}

TEST_CASE("run without a prompt continues a saved text on a terminal, and chats where it is a conversation") {
  const TemporaryFolder folder;
  const std::string story = folder.path("story"), chat = folder.path("chat");
  const Words run = {"run", fairy, "-n", "4", "--temp", "0", "--session"};
  REQUIRE(mica(run + Words{story, "-p", "Once upon a time"}).code == 0);
  TerminalRun text(run + Words{story});
  text.start().expect("story: continues after ").expect("answer 4 tokens");
  CHECK(text.finish() == 0);
  REQUIRE(mica({"chat", fairy, "-n", "4", "--chat-template", "plain", "--session", chat}, "Hello\n").code ==
          0);
  TerminalRun talks(run + Words{chat, "--chat-template", "plain"});
  talks.start().expect("chat: messages so far: 2").expect("> ").type("/bye\r");
  CHECK(talks.finish() == 0);
}

TEST_CASE("Tab completes commands and the names of files") {
  if (!has_editor()) return skipped("Tab in a chat", "the program was built without libedit");
  TerminalRun run(talk);
  const std::string path = run.folder().file("a-long-name.txt", "Once upon a time");
  run.start().expect("> ").type("/he\t").expect("lp").type("\r").expect("this text").expect("> ");
  run.type("/read " + path.substr(0, path.size() - 8) + "\t")
      .expect(".txt")
      .type("\r")
      .expect("stopped after")
      .expect("> ");
  run.type("/s\t").expect("/save  /set  /show  /system").type("\x15/bye\r");
  CHECK(run.finish() == 0);
}

TEST_CASE("what a person types has a colour on a terminal, unless colours are off") {
  const auto talked = [](const char* name, const char* value, const Words& more) {
    TerminalRun run(talk + more);
    run.set(name, value)
        .start()
        .expect("> ")
        .type("hello\r")
        .expect("stopped after")
        .expect("> ")
        .type("/bye\r");
    CHECK(run.finish() == 0);
    return run.output();
  };
  const std::string colored = talked("NO_COLOR", "", {});
  CHECK(colored.find("\x1b[1;32m") != std::string::npos);
  CHECK(colored.find("\x1b[2m") != std::string::npos);
  CHECK(colored.rfind("\x1b[0m") > colored.rfind("\x1b[1;32m"));
  for (const std::string& plain :
       {talked("NO_COLOR", "1", {}), talked("NO_COLOR", "", {"--color", "never"})}) {
    CHECK(plain.find("\x1b[1;32m") == std::string::npos);
    CHECK(plain.find("\x1b[2m") == std::string::npos);
  }
}

/// How many tokens of prompt a run read, with this on stdin.
std::uint64_t tokens_read(const Words& words, const std::string& input) {
  return number(mica(words + Words{"--json", "-q", "-n", "1", "--temp", "0"}, input), "prompt_n");
}

TEST_CASE("text on stdin stands before the prompt") {
  for (const std::string verb : {"run", "complete"}) {
    CAPTURE(verb);
    const Words model = {verb, fairy};
    const std::string text = "The king had a daughter.\n", asked = "Who was she?";
    const auto joined = tokens_read(model + Words{"The king had a daughter.\n\nWho was she?"}, "");
    CHECK(joined > tokens_read(model + Words{asked}, ""));
    CHECK(tokens_read(model + Words{asked}, text) == joined);
    CHECK(tokens_read(model + Words{"-p", asked}, text) == joined);
    CHECK(tokens_read(model + Words{"-f", "-", "-p", asked}, text) == joined);
    const TemporaryFolder folder;
    CHECK(tokens_read(model + Words{"-f", folder.file("f", text), asked}, "") == joined);
    CHECK(tokens_read(model + Words{"-f", folder.file("f", text)}, asked) ==
          tokens_read(model + Words{"Who was she?\n\nThe king had a daughter.\n"}, ""));
  }
  // The order, word for word: a text that only goes on as it does behind both.
  const Words tell = {"complete", fairy, "-q", "-n", "12", "--temp", "0"};
  CHECK(mica(tell + Words{"She said"}, "Once upon a time there was a fox.\n").out ==
        mica(tell + Words{"Once upon a time there was a fox.\n\nShe said"}).out);
}

/// A run with a prompt whose stdin is this descriptor.
std::string answer_with_stdin(int descriptor) {
  TerminalRun run(
      {"complete", fairy, "Once upon a time", "-q", "-n", "4", "--temp", "0", "--color", "never"});
  run.input(descriptor).start();
  CHECK(run.finish() == 0);
  return run.output();
}

TEST_CASE("an idle socket, a device and a closed stdin are not waited for") {
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  const int null = ::open("/dev/null", O_RDONLY);
  const std::string plain = answer_with_stdin(null);
  CHECK(!plain.empty());
  CHECK(answer_with_stdin(sockets[0]) == plain);
  for (const int fd : {sockets[0], sockets[1], null}) ::close(fd);
}

TEST_CASE("an open pipe that is idle is waited for with a note, and its text counts when it comes") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  TerminalRun run({"complete", fairy, "She said", "-n", "4", "--temp", "0"});
  run.input(ends[0]).start().expect("waiting for text on stdin");
  REQUIRE(::write(ends[1], "Once", 4) == 4);
  ::close(ends[1]);
  CHECK(run.finish() == 0);
  ::close(ends[0]);
}

TEST_CASE("a terminal sees how much of a long prompt is read, and no trace of it stays") {
  const TemporaryFolder folder;
  std::string story;
  while (story.size() < 12'000) story += "Once upon a time there was a king who had a daughter. ";
  const std::string text = folder.file("story", story);
  // Steps of one token on one thread, half of the time at rest: slow enough on any machine.
  const Words words = {"complete", fairy, "-f", text, "-c",     "4096", "-n",     "2",
                       "-t",       "1",   "-b", "1",  "--pace", "10%",  "--temp", "0"};
  TerminalRun run(words);
  run.start().expect("reading the prompt: ").expect(" t/s, ").expect(" left").type("\x03");
  CHECK(run.finish() == 130);
  const std::size_t last = run.output().rfind("reading the prompt");
  CHECK(run.output().find("\r\x1b[K", last) != std::string::npos);
}

}  // namespace
}  // namespace mica::test::terminal_test

#endif
