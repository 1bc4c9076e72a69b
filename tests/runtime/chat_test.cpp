// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/chat/chat.hpp"

#include "io/temporary_folder.hpp"
#include "mica/sample/standard.hpp"
#include "runtime/scripted_model.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

namespace mica::test::chat_test {
namespace {

/// "U:hi\nA:Hello.\n...A:", with the thoughts of earlier answers in braces or without them.
ChatRenderer format(bool with_thoughts = false) {
  return {[=](std::span<const text::Message> messages) {
    std::string text;
    for (const text::Message& m : messages) {
      text += m.role == "system" ? "S:" : m.role == "user" ? "U:" : "A:";
      if (with_thoughts && !m.thoughts.empty()) text += "<think>" + m.thoughts + "</think>";
      text += m.content + "\n";
    }
    return text + "A:";
  }};
}

/// What came of an answer.
struct Parts {
  std::string thoughts, answer;
  std::size_t pieces = 0;

  auto take() {
    return [this](ChatPart part, std::string_view text) {
      ++pieces;
      (part == ChatPart::thoughts ? thoughts : answer) += text;
      return true;
    };
  }
};

/// A chat with a model that answers one thing after BOS and "U:hi\nA:".
struct Fixture {
  explicit Fixture(std::string_view answer, ChatRenderer renderer = format(), std::size_t n_ctx = 100)
      : model(8, answer, n_ctx), session(model), chat(session, tokenizer, std::move(renderer)) {}

  GenerateResult say(std::string text, const GenerateOptions& options = {}) {
    parts = {};
    return chat.say(std::move(text), sampler, options, parts.take());
  }

  text::Spm tokenizer = byte_tokenizer();
  ScriptedModel model;
  Session<ScriptedModel> session;
  Chat<ScriptedModel, text::Spm> chat;
  sample::Standard<> sampler{{.temperature = 0}, first_byte + 256};
  Parts parts;
};

std::string split(std::string_view text, std::string_view prompt, std::size_t piece) {
  ThoughtSplitter splitter(prompt);
  std::string thoughts, answer;
  const auto give = [&](ChatPart part, std::string_view more) {
    CHECK(!more.empty());
    (part == ChatPart::thoughts ? thoughts : answer) += more;
    return true;
  };
  for (std::size_t at = 0; at < text.size(); at += piece) CHECK(splitter.take(text.substr(at, piece), give));
  CHECK(splitter.finish(give));
  return thoughts + "|" + answer;
}

/// The same in pieces of any length.
std::string split(std::string_view text, std::string_view prompt = {}) {
  const std::string whole = split(text, prompt, 1000);
  for (const std::size_t piece : {1u, 2u, 3u, 7u}) CHECK(split(text, prompt, piece) == whole);
  return whole;
}

}  // namespace

TEST_CASE("thoughts are separated from the answer, by the marks of each kind of model") {
  CHECK(split("<think>\n2 and 2\n\nis 4\n</think>\n\nFour.") == "2 and 2\n\nis 4|Four.");
  CHECK(split("\n <think>\n\n</think>\n\nFour.") == "|Four.");
  CHECK(split("[THINK]so[/THINK]Four.") == "so|Four.");
  CHECK(split("<|channel>thought\nso\n<channel|>Four.") == "so|Four.");
  CHECK(split("<|channel|>analysis<|message|>so<|start|>assistant<|channel|>final<|message|>Four.") ==
        "so|Four.");
  CHECK(split("<|channel|>final<|message|>Four.") == "|Four.");
  CHECK(split("<|channel|>analysis<|message|>a<|start|>assistant<|channel|>commentary<|message|>b"
              "<|start|>assistant<|channel|>analysis<|message|>c<|start|>assistant<|channel|>final<|message|>"
              "d") == "ac|bd");
}

TEST_CASE("a prompt may have opened the thoughts") {
  CHECK(split("so\n</think>\n\nFour.", "<|im_start|>assistant\n<think>\n") == "so|Four.");
  CHECK(split("Four.", "assistant\n<think>\n\n</think>\n\n") == "|Four.");
  CHECK(split("so</think>Four.", "") == "|so</think>Four.");
}

TEST_CASE("thoughts that do not end are thoughts") {
  CHECK(split("<think>so</thi") == "so</thi|");
  CHECK(split("<think>so \n") == "so|");
  CHECK(split("<|channel|>analysis") == "|");
}

TEST_CASE("text without marks passes unchanged, and later marks are text") {
  for (const char* const text : {"", " \n", "Four.", "\n Four.\n", "<", "<thin", "<b>x</b>",
                                 "a <think>b</think> c", "[THINGS]", "<|x|>"}) {
    CAPTURE(text);
    CHECK(split(text) == std::string("|") + text);
  }
  CHECK(split("<think>a</think>b <think>c</think>") == "a|b <think>c</think>");
}

TEST_CASE("a reader of thoughts may stop them") {
  ThoughtSplitter splitter;
  std::size_t calls = 0;
  const auto stop = [&](ChatPart, std::string_view) { return ++calls > 1; };
  CHECK_FALSE(splitter.take("<think>abc</think>def", stop));
  CHECK(calls == 1);
}

TEST_CASE("a chat owns its messages and feeds the new tokens alone") {
  Fixture f("Hello.");
  const GenerateResult first = f.say("hi");
  CHECK(f.parts.answer == "Hello.");
  CHECK(first.reason == StopReason::end_of_text);
  CHECK(first.timings.prompt.tokens == 8);
  REQUIRE(f.chat.messages().size() == 2);
  CHECK(f.chat.messages()[1].role == "assistant");
  CHECK(f.chat.messages()[1].content == "Hello.");
  const GenerateResult second = f.say("ok");
  CHECK(second.timings.prompt.tokens == std::string_view("\nU:ok\nA:").size());
  CHECK(f.chat.messages().size() == 4);
  CHECK(f.chat.tokens().size() == 1 + std::string_view("U:hi\nA:Hello.\nU:ok\nA:\nA:").size());
}

TEST_CASE(
    "a template that leaves thoughts out keeps the common beginning, and one that keeps them all of it") {
  for (const bool with_thoughts : {false, true}) {
    Fixture f("<think>x</think>Hi", format(with_thoughts));
    f.say("hi");
    CHECK(f.parts.thoughts == "x");
    CHECK(f.parts.answer == "Hi");
    CHECK(f.chat.messages()[1].thoughts == "x");
    CHECK(f.chat.messages()[1].content == "Hi");
    const std::string_view fed = with_thoughts ? "\nU:ok\nA:" : "Hi\nU:ok\nA:";
    CHECK(f.say("ok").timings.prompt.tokens == fed.size());
  }
}

TEST_CASE("an answer can be given again, and an exchange taken back") {
  Fixture f("Hello.");
  f.say("hi");
  f.parts = {};
  const GenerateResult again = f.chat.regenerate(f.sampler, {}, f.parts.take());
  CHECK(f.parts.answer == "Hello.");
  CHECK(again.timings.prompt.tokens == 1);  // logits come from a token that is fed
  CHECK(f.chat.messages().size() == 2);
  CHECK(f.chat.undo());
  CHECK(f.chat.messages().empty());
  CHECK_FALSE(f.chat.undo());
  CHECK(refusal([&] { f.chat.regenerate(f.sampler, {}, f.parts.take()); }).code() == ErrorCode::usage);
  CHECK(refusal([&] { f.chat.answer(f.sampler, {}, f.parts.take()); }).code() == ErrorCode::usage);
}

TEST_CASE("the system prompt is the first message, and stays when the rest is removed") {
  Fixture f("Hello.");
  f.chat.set_system("a");
  f.say("hi");
  f.chat.set_system("b");
  f.chat.clear();
  REQUIRE(f.chat.messages().size() == 1);
  CHECK(f.chat.messages()[0].content == "b");
  f.chat.set_system("");
  CHECK(f.chat.messages().empty());
}

TEST_CASE("stop texts of the options and of the format end an answer and are not in it") {
  Fixture f("Hello. U:");
  CHECK(f.say("hi", {.stop = {"."}}).reason == StopReason::stop_text);
  CHECK(f.parts.answer == "Hello");
  ChatRenderer stops = format();
  stops.stop = " U:";
  Fixture g("Hello. U:", stops);
  CHECK(g.say("hi").reason == StopReason::stop_text);
  CHECK(g.parts.answer == "Hello.");
}

TEST_CASE("another thread ends an answer before the next step, and the text so far is a message") {
  Fixture f(std::string(60, 'a'));
  std::atomic<bool> cancel{false}, running{false};
  std::thread other([&] {
    running.wait(false);
    cancel = true;
    cancel.notify_one();
  });
  const GenerateResult result =
      f.chat.say("hi", f.sampler, {.cancel = &cancel}, [&](ChatPart, std::string_view) {
        running = true;
        running.notify_one();
        cancel.wait(false);
        return true;
      });
  other.join();
  CHECK(result.reason == StopReason::cancelled);
  CHECK(result.tokens.size() == 1);
  CHECK(f.chat.messages().back().content == "a");
}

TEST_CASE("an answer that ends before its first token leaves the messages as they were") {
  Fixture f("Hello.");
  f.say("hi");
  const std::atomic<bool> cancel{true};
  CHECK(f.say("ok", {.cancel = &cancel}).reason == StopReason::cancelled);
  CHECK(f.parts.pieces == 0);
  CHECK(f.chat.messages().size() == 2);
  const GenerateResult again = f.chat.regenerate(f.sampler, {.cancel = &cancel}, f.parts.take());
  CHECK(again.reason == StopReason::cancelled);
  REQUIRE(f.chat.messages().size() == 2);
  CHECK(f.chat.messages()[1].content == "Hello.");
  f.chat.messages().push_back({"user", "ok"});
  CHECK(f.chat.answer(f.sampler, {.cancel = &cancel}, f.parts.take()).tokens.empty());
  CHECK(f.chat.messages().size() == 3);
  f.chat.answer(f.sampler, {}, f.parts.take());
  CHECK(f.chat.messages().size() == 4);
}

TEST_CASE("after an error the messages are what they were") {
  Fixture f("Hello.");
  f.say("hi");
  f.model.non_finite_from = 0;
  CHECK(refusal([&] { f.say("ok"); }).code() == ErrorCode::failed);
  CHECK(f.chat.messages().size() == 2);
  CHECK(refusal([&] { f.chat.regenerate(f.sampler, {}, f.parts.take()); }).code() == ErrorCode::failed);
  REQUIRE(f.chat.messages().size() == 2);
  CHECK(f.chat.messages()[1].content == "Hello.");
  f.chat.set_renderer({[](std::span<const text::Message>) -> std::string { raise(ErrorCode::limit, "no"); }});
  CHECK(refusal([&] { f.say("ok"); }).code() == ErrorCode::limit);
  CHECK(f.chat.messages().size() == 2);
}

TEST_CASE("a conversation that does not fit is refused with numbers, or shortened where the context shifts") {
  Fixture f("Hello.", format(), 20);
  CHECK(refusal([&] { f.say(std::string(30, 'x')); }).code() == ErrorCode::limit);
  f.say("hi");
  CHECK(f.chat.messages()[1].content == "Hello.");
  CHECK(f.chat.tokens().size() == 17);
  const Error error = refusal([&] { f.say("andmore"); });
  CHECK(error.code() == ErrorCode::limit);
  CHECK(mentions(error, "has 27 tokens; the capacity of the context is 20"));
  CHECK(f.chat.messages().size() == 2);
  const GenerateResult result =
      f.say("andmore", {.max_tokens = 2, .on_full = OnFull::shift, .keep_first = 1});
  CHECK(f.chat.messages().size() == 4);
  CHECK(result.reason != StopReason::context_full);
  CHECK(f.session.tokens().front() == scripted_bos);
}

TEST_CASE("control tokens that a user types stay text") {
  Fixture f("Hello.");
  CHECK(f.tokenizer.encode("</s>", {.add_special = false, .parse_special = true}).size() == 1);
  f.chat.messages() = {{"user", "</s>"}};
  CHECK(f.chat.tokens().size() == 1 + std::string_view("U:</s>\nA:").size());
}

}  // namespace mica::test::chat_test
