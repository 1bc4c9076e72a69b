// SPDX-License-Identifier: Apache-2.0
//
// Answers with a constraint: which tokens they have, which of them cost nothing, and that drafts and other
// sequences change none.

#include "io/temporary_folder.hpp"
#include "mica/constraint/any.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/ngram.hpp"
#include "runtime/own_constraints.hpp"
#include "runtime/talking_family.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <functional>

namespace mica::test::constraint_test {
namespace {

const text::Spm& bytes() {
  static const text::Spm tokenizer = byte_tokenizer();
  return tokenizer;
}

constexpr ModelOptions options{.n_ctx = 300, .chunk = 32, .logits_rows = 32, .log = {}};

const std::vector<TokenId> prompt = random_ids(9, 250, 4);

/// Texts that begin alike, part, and are alike again.
const std::vector<std::string> names = {"{\"name\": \"Ann\", \"age\": 40}",
                                        "{\"name\": \"Ann\", \"age\": 41}",
                                        "{\"name\": \"Bartholomew\", \"age\": 40}", "{}"};

/// What a generation gave, with the tokens of its session.
struct Given {
  Answer answer;
  GenerateResult result;
  std::vector<TokenId> session;
};

template <class Model, class C, class D = NoDrafter>
Given give(Model& model, const sample::SamplerOptions& sampling, C& constraint,
           const GenerateOptions& how = {.max_tokens = 60}, D drafter = {},
           const std::function<bool(std::string_view)>& on_text = {}) {
  Session session(model);
  sample::Standard sampler(sampling, talking_vocabulary);
  Given given;
  given.result =
      generate(session, bytes(), sampler, drafter, constraint, prompt, how, [&](std::string_view text) {
        given.answer.text += text;
        return !on_text || on_text(text);
      });
  given.answer.tokens = given.result.tokens;
  given.answer.reason = given.result.reason;
  given.session.assign(session.tokens().begin(), session.tokens().end());
  // The session has the prompt, and all tokens but those that were not fed.
  auto expected = prompt;
  const auto& tokens = given.result.tokens;
  expected.insert(expected.end(), tokens.begin(),
                  tokens.end() - static_cast<std::ptrdiff_t>(given.result.unfed));
  if (given.result.shifted == 0) CHECK(given.session == expected);
  return given;
}

bool is_one_of(const std::vector<std::string>& texts, const Given& given) {
  return given.result.reason == StopReason::end_of_text && given.result.tokens.back() == scripted_eos &&
         std::find(texts.begin(), texts.end(), given.answer.text) != texts.end();
}

/// A model that would say something else.
ScriptedModel other_words(std::size_t n_ctx = 200, std::size_t logits_rows = 1) {
  return ScriptedModel(prompt.size(), "Nothing of the sort is here.", n_ctx, logits_rows);
}

/// Drafts an answer that it knows.
struct Says {
  std::vector<TokenId> answer;
  [[nodiscard]] std::size_t max_drafts() const noexcept { return 7; }
  [[nodiscard]] std::size_t draft(std::span<const TokenId> before, TokenId, std::span<TokenId> out) noexcept {
    std::size_t n = 0;
    for (std::size_t i = before.size() + 1 - prompt.size(); n < out.size() && i < answer.size(); ++i)
      out[n++] = answer[i];
    return n;
  }
};

}  // namespace

TEST_CASE("an answer has the tokens that its constraint allows, whatever the sampler") {
  for_each_talking_model(options, [](auto& model) {
    for (const sample::SamplerOptions& sampling : samplers()) {
      Even even;
      const Given given = give(model, sampling, even);
      CHECK(std::all_of(given.result.tokens.begin(), given.result.tokens.end(), &Even::allows));
      CHECK(given.result.forced == 0);
      for (const bool forces : {true, false}) {
        OneOf names_only(names, forces);
        CHECK(is_one_of(names, give(model, sampling, names_only)));
      }
    }
  });
}

TEST_CASE("tokens that are allowed anyway are those of the answer without a constraint") {
  for_each_talking_model(options, [](auto& model) {
    for (const sample::SamplerOptions& sampling : samplers()) {
      NoConstraint none;
      const Given plain = give(model, sampling, none);
      constraint::Any empty;
      CHECK_FALSE(empty);
      CHECK(give(model, sampling, empty).answer == plain.answer);
      constraint::Any nothing_either = NoConstraint();
      CHECK_FALSE(nothing_either);
      CHECK(give(model, sampling, nothing_either).answer == plain.answer);
      OneOf same({plain.answer.text}, false);  // bytes that are no text would be written as another one
      if (plain.result.tokens == ids_of(plain.answer.text))
        CHECK(give(model, sampling, same).answer == plain.answer);
    }
  });
}

TEST_CASE("greedy answers are the same with and without forced tokens") {
  for_each_talking_model(options, [](auto& model) {
    for (const std::size_t length : {0u, 1u, 5u, 12u, 13u, 30u}) {
      CAPTURE(length);
      OneOf forces(names), samples(names, false);
      const Given forced = give(model, {.temperature = 0}, forces, {.max_tokens = length});
      const Given sampled = give(model, {.temperature = 0}, samples, {.max_tokens = length});
      CHECK(forced.answer == sampled.answer);
      CHECK(forced.result.forced > 0);
      CHECK(sampled.result.forced == 0);
      CHECK(std::ranges::equal(forces.so_far(), forced.result.tokens));
    }
  });
}

TEST_CASE("forced tokens cost no mask, no row of logits and no step of their own") {
  const std::string text = "{\"name\": \"Ann\"}";
  {
    ScriptedModel model = other_words(200, 16);  // steps of 16 tokens
    OneOf only({text});
    const Given given = give(model, {}, only);
    CHECK(given.answer.text == text);
    CHECK(given.result.forced == text.size() + 1);
    CHECK(given.result.unfed == text.size() + 1);
    CHECK(model.steps == 1);  // the prompt
    CHECK(only.masks == 0);
  }
  {
    ScriptedModel model = other_words(200, 16);
    OneOf two({text, "{\"name\": \"Bob\"}"});
    const Given given = give(model, {.temperature = 0}, two);
    CHECK(given.result.forced == text.size());
    CHECK(model.steps == 2);  // the prompt, and what comes before the name
    CHECK(two.masks == 1);
  }
  {
    ScriptedModel model =
        other_words(200, 4);  // steps of 4 tokens: 3 of the prompt, 3 of the 10 before the name
    OneOf two({text, "{\"name\": \"Bob\"}"});
    give(model, {.temperature = 0}, two);
    CHECK(model.steps == 3 + 3);
  }
}

TEST_CASE("more forced tokens than one step may have follow after it") {
  std::string text(500, 'a');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  for (const std::size_t rows : {4u, 64u, 100u}) {
    CAPTURE(rows);
    ScriptedModel model = other_words(600, rows);
    OneOf two({"x" + text + "y", "x" + text + "z"});
    const Given given = give(model, {.temperature = 0}, two, {});
    CHECK(given.answer.text == "x" + text + "y");
    CHECK(given.result.forced == text.size() + 2);
    const std::size_t before = (prompt.size() + rows - 1) / rows;
    CHECK(model.steps <= before + text.size() / std::min<std::size_t>(rows, 64) + 2);
  }
}

TEST_CASE("an answer with drafts is the answer without, and drafts that are not allowed are not run") {
  for_each_talking_model(options, [](auto& model) {
    for (const sample::SamplerOptions& sampling : samplers()) {
      Even plain, drafted;
      const GenerateOptions how{.max_tokens = 60, .min_drafts = 3};
      CHECK(give(model, sampling, plain, how).answer ==
            give(model, sampling, drafted, how, Ngram({.n = 2, .drafts = 7})).answer);
      const std::vector<std::string> lists = {"aXaXaXaXbYbYbY", "aXaXaXaXbYbYbZ", "aXaXaXaYaXaXaX",
                                              "aXaXbYaXaXbYaXaXbY", "aXaXbZaXaXbYaXaXbY"};
      for (const bool forces : {true, false}) {
        CAPTURE(forces);
        OneOf alone(lists, forces), with(lists, forces);
        const Given expected = give(model, sampling, alone, how);
        const Given found = give(model, sampling, with, how, Ngram({.n = 2, .drafts = 7}));
        CHECK(found.answer == expected.answer);
        CHECK(found.result.forced == expected.result.forced);
        CHECK(std::ranges::equal(with.so_far(), found.result.tokens));
      }
    }
  });
  // Drafts that are right as far as they are allowed.
  ScriptedModel model(prompt.size(), "abcabcabcXYZ", 100, 8);
  OneOf texts({"abcabcabcdefg", "abcabcabcdefh"}, false);
  const Given given = give(model, {.temperature = 0}, texts, {.min_drafts = 7}, Says{ids_of("abcabcabcXYZ")});
  CHECK(given.answer.text == "abcabcabcdefg");
  CHECK(given.result.drafts.drafted == 7);  // none of XYZ
  CHECK(given.result.drafts.accepted == 7);
}

TEST_CASE("drafts that are forced tokens are accepted, and others end with them") {
  // "p" and "q" are free; the model samples what its script has there.
  const std::vector<std::string> texts = {"px_one_p", "px_one_q", "qx_one_p",
                                          "qx_one_q", "py_two_p", "qy_two_q"};
  for (const std::string script : {"pppppppp", "px_one_q", "qyyyyyyy"}) {
    for (const std::string guessed : {"px_one_q", "px_onE_q", "qy_two_q", "py_one_q"}) {
      CAPTURE(script);
      CAPTURE(guessed);
      ScriptedModel model(prompt.size(), script, 100, 8);
      OneOf alone(texts), with(texts);
      const Given expected = give(model, {.temperature = 0}, alone, {});
      const Given found = give(model, {.temperature = 0}, with, {.min_drafts = 7}, Says{ids_of(guessed)});
      CHECK(found.answer == expected.answer);
      CHECK(found.result.forced == expected.result.forced);
    }
  }
}

TEST_CASE("max_tokens, a stop text, the reader and the flag end an answer among forced tokens") {
  const std::string text = "{\"name\": \"Ann\"}";
  for (std::size_t length = 1; length <= text.size() + 1; ++length) {
    ScriptedModel model = other_words();
    OneOf only({text});
    const Given given = give(model, {}, only, {.max_tokens = length});
    CHECK(given.result.tokens.size() == length);
    CHECK(given.answer.text == text.substr(0, length));
    CHECK(given.result.reason == (length <= text.size() ? StopReason::length : StopReason::end_of_text));
    CHECK(only.so_far().size() == length);
  }
  {
    ScriptedModel model = other_words();
    OneOf only({text});
    const Given given = give(model, {}, only, {.stop = {"unseen", "me\": "}});
    CHECK(given.result.reason == StopReason::stop_text);
    CHECK(given.result.stop == 1);
    CHECK(given.answer.text == "{\"na");
    CHECK(given.result.tokens.size() == 9);
  }
  {
    ScriptedModel model = other_words();
    OneOf only({text});
    std::size_t pieces = 0;
    const Given given =
        give(model, {}, only, {}, NoDrafter(), [&](std::string_view) { return ++pieces < 3; });
    CHECK(given.result.reason == StopReason::cancelled);
    CHECK(given.answer.text == text.substr(0, 3));
  }
  {
    ScriptedModel model = other_words();
    OneOf two({text + "a", text + "b"});
    std::atomic<bool> cancel{false};
    const Given given = give(model, {}, two, {.cancel = &cancel}, NoDrafter(), [&](std::string_view) {
      cancel = true;  // read before the next step
      return true;
    });
    CHECK(given.result.reason == StopReason::cancelled);
    CHECK(given.answer.text == text);
  }
}

TEST_CASE("an end token ends an answer with a constraint, also where it would be passed over without") {
  ScriptedModel model = other_words();
  OneOf only({"ab"});
  const Given forced = give(model, {}, only, {.max_tokens = 9, .stop_at_end = false});
  CHECK(forced.answer ==
        Answer{{first_byte + 'a', first_byte + 'b', scripted_eos}, "ab", StopReason::end_of_text});
  OneOf sampled({"ab"}, false);
  CHECK(give(model, {}, sampled, {.max_tokens = 9, .stop_at_end = false}).answer == forced.answer);
}

TEST_CASE("a forced token is shown with probability 1 and no others") {
  ScriptedModel model(prompt.size(), "xyz");
  OneOf two({"name: a", "name: b"});
  std::vector<TokenId> seen;
  std::size_t sampled = 0;
  GenerateOptions how{.top_tokens = 2};
  how.on_token = [&](const TokenScores& scores) {
    seen.push_back(scores.token.id);
    if (scores.top.empty()) {
      CHECK(scores.token.log_probability == 0);
    } else {  // as the model gave them, before the mask
      ++sampled;
      CHECK(scores.top.size() == 2);
      CHECK(scores.token.log_probability < 0);
    }
  };
  const Given given = give(model, {.temperature = 0}, two, how);
  CHECK(seen == given.result.tokens);
  CHECK(sampled == 1);
  CHECK(given.result.forced == seen.size() - 1);
}

TEST_CASE("a constraint that allows nothing, or cannot tell, is an error with its reason") {
  struct Stuck : constraint::Unforced {
    [[nodiscard]] bool allowed(constraint::TokenMask&) noexcept { return true; }
    [[nodiscard]] bool advance(TokenId) noexcept { return false; }
    void rewind(std::size_t) noexcept {}
  };
  ScriptedModel model = other_words();
  Stuck stuck;
  const Error none = refusal([&] { give(model, {}, stuck); });
  CHECK(none.code() == ErrorCode::limit);
  CHECK(mentions(none, "allows no token"));
  OneOf limited({"abc", "abd", "ac"});
  limited.max_masks = 1;
  const Error limit = refusal([&] { give(model, {.temperature = 0}, limited); });
  CHECK(limit.code() == ErrorCode::limit);
  CHECK(mentions(limit, "no more masks"));
  OneOf nothing(std::vector<std::string>{});
  CHECK(mentions(refusal([&] { give(model, {}, nothing); }), "allows no token after 0 tokens"));
}

TEST_CASE("a sampler that chooses a token against the mask, and a token that is forced wrongly, are errors") {
  struct Stubborn {
    std::optional<TokenId> sample(std::span<const float>) { return first_byte + 'x'; }
    void accept(TokenId) {}
  };
  ScriptedModel model = other_words();
  Session session(model);
  Stubborn sampler;
  OneOf texts({"a", "b"});
  const auto on_text = [](std::string_view) { return true; };
  const Error refused =
      refusal([&] { generate(session, bytes(), sampler, texts, prompt, GenerateOptions(), on_text); });
  CHECK(refused.code() == ErrorCode::limit);
  struct Lies : OneOf {
    using OneOf::OneOf;
    [[nodiscard]] std::size_t forced(std::span<TokenId> tokens) noexcept { return tokens[0] = 1000, 1; }
  };
  Lies lies(names);
  CHECK(refusal([&] { give(model, {}, lies); }).code() == ErrorCode::limit);
}

TEST_CASE("without memory for several tokens forced ones run one by one, and the answer is the same") {
  ScriptedModel model = other_words(200, 16);
  const std::vector<std::string> texts = {"{\"name\": \"Ann\"}", "{\"name\": \"Bob\"}"};
  OneOf plenty(texts), little(texts);
  const Given expected = give(model, {.temperature = 0}, plenty, {});
  model.narrow_from = prompt.size();
  model.max_step_tokens = 1;
  CHECK(give(model, {.temperature = 0}, little, {}).answer == expected.answer);
}

TEST_CASE("a full context ends an answer with forced tokens, or shifts") {
  const std::vector<std::string> texts = {"a long text before the letter x",
                                          "a long text before the letter y"};
  ScriptedModel model = other_words(prompt.size() + 10, 4);
  OneOf stops(texts), shifts(texts);
  const Given full = give(model, {}, stops, {});
  CHECK(full.result.reason == StopReason::context_full);
  CHECK(full.session.size() == prompt.size() + 10);
  const Given shifted = give(model, {}, shifts, {.on_full = OnFull::shift, .keep_first = 2});
  CHECK(is_one_of(texts, shifted));
  CHECK(shifted.result.shifted > 0);
}

TEST_CASE("members of a batch, with a constraint or without, have the answers that each has alone") {
  struct Request {
    std::vector<TokenId> prompt;
    sample::SamplerOptions sampling;
    GenerateOptions how;
    constraint::Any constraint;
  };
  std::vector<Request> all;
  for (std::size_t i = 0; i < 10; ++i) {
    constraint::Any constraint;
    if (i % 4 == 1) constraint = Even();
    if (i % 4 == 2) constraint = OneOf(names);
    if (i % 4 == 3) constraint = OneOf({std::string(150, 'a') + "b", std::string(150, 'a') + "c"}, i < 5);
    all.push_back({random_ids(std::vector<std::size_t>{3, 70, 1, 20, 9}[i % 5], 250, i + 1),
                   samplers()[i % 4],
                   {.max_tokens = 20 + 15 * i},
                   constraint});
  }
  const auto check = [&](auto& model, std::size_t prompt_tokens, std::size_t gap, auto drafter) {
    CAPTURE(prompt_tokens);
    CAPTURE(gap);
    using Model = std::remove_reference_t<decltype(model)>;
    using D = decltype(drafter);
    struct Guest {
      Session<Model> session;
      sample::Standard<> sampler;
      D drafter;
      constraint::Any constraint;
      std::size_t id = 0;
      std::string text = {};
    };
    Batch<Model, text::Spm, sample::Standard<>, D, constraint::Any> batch(model, bytes(),
                                                                          {.prompt_tokens = prompt_tokens});
    std::deque<Guest> guests;  // stay where they are
    for (std::size_t step = 0;; ++step) {
      while (guests.size() < all.size() && step >= guests.size() * gap) {
        const Request& request = all[guests.size()];
        guests.push_back({Session<Model>(model), sample::Standard<>(request.sampling, talking_vocabulary),
                          drafter, request.constraint});
        Guest& guest = guests.back();
        guest.id = batch.add(guest.session, guest.sampler, guest.drafter, guest.constraint, request.prompt,
                             request.how, [&guest](std::string_view text) {
                               guest.text += text;
                               return true;
                             });
      }
      if (!batch.step() && guests.size() == all.size()) break;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      Session session(model);
      sample::Standard sampler(all[i].sampling, talking_vocabulary);
      constraint::Any constraint = all[i].constraint;
      std::string text;
      const auto expected = generate(session, bytes(), sampler, constraint, all[i].prompt, all[i].how,
                                     [&](std::string_view more) {
                                       text += more;
                                       return true;
                                     });
      const GenerateResult found = batch.remove(guests[i].id);
      CHECK(found.tokens == expected.tokens);
      CHECK(found.forced == expected.forced);
      CHECK(found.reason == expected.reason);
      CHECK(guests[i].text == text);
      CHECK(std::ranges::equal(guests[i].session.tokens(), session.tokens()));
    }
  };
  for_each_talking_model(options, [&](auto& model) {
    for (const std::size_t prompt_tokens : {8u, 64u}) check(model, prompt_tokens, 0, NoDrafter());
    check(model, 16, 3, NoDrafter());
    check(model, 16, 1, Ngram({.n = 2, .drafts = 2}));
  });
  const TinyHybrid hybrid = talking_hybrid();
  exec::Inline executor;
  Hybrid recurrent(hybrid.document(), executor, options);
  check(recurrent, 16, 1, NoDrafter());
}

TEST_CASE("forced tokens beside others are shared with their prompts, and who writes keeps its token") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  using Model = Transformer<arch::Llama>;
  Model model(tiny.document(), executor, options);
  Batch<Model, text::Spm, sample::Standard<>, NoDrafter, constraint::Any> batch(model, bytes(),
                                                                                {.prompt_tokens = 9});
  struct Guest {
    Session<Model> session;
    sample::Standard<> sampler;
    constraint::Any constraint;
  };
  std::deque<Guest> guests;
  const auto join = [&](std::size_t tokens, constraint::Any constraint) {
    guests.push_back(
        {Session(model), sample::Standard<>({.temperature = 0}, talking_vocabulary), constraint});
    Guest& guest = guests.back();
    batch.add(guest.session, guest.sampler, guest.constraint, random_ids(tokens, 250, guests.size()),
              {.max_tokens = 200}, [](std::string_view) { return true; });
  };
  const auto tokens = [&](std::size_t i) { return guests[i].session.tokens().size(); };
  const std::string text(150, 'a');
  join(4, OneOf({text + "b", text + "c"}));
  batch.step();
  batch.step();
  CHECK(tokens(0) == 4 + 32);  // alone it has the whole step
  join(4, Even());
  join(4, OneOf({text + "b", text + "c"}));
  batch.step();
  CHECK(tokens(0) == 36 + 1 + 4);  // half of the shared tokens: the prompts have the others
  CHECK(tokens(1) + tokens(2) == 5);
  while (tokens(1) < 4 || tokens(2) < 4) batch.step();
  const std::size_t first = tokens(0), second = tokens(1), third = tokens(2);
  batch.step();
  CHECK(tokens(0) == first + 1 + 4);
  CHECK(tokens(1) == second + 1);
  CHECK(tokens(2) == third + 1 + 5);
}

TEST_CASE("a member whose constraint fails is over with its error, and the others continue") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  using Model = Transformer<arch::Llama>;
  Model model(tiny.document(), executor, options);
  Session first(model), second(model);
  sample::Standard<> sampler({.temperature = 0}, talking_vocabulary),
      other({.temperature = 0}, talking_vocabulary);
  const std::vector<std::string> texts = {"abc", "abd", "bce", "bcf"};
  OneOf fails(texts), good(texts);
  fails.max_masks = 0;
  Batch<Model, text::Spm, sample::Standard<>, NoDrafter, OneOf> batch(model, bytes());
  const auto on_text = [](std::string_view) { return true; };
  const auto a = batch.add(first, sampler, fails, prompt, {}, on_text);
  const auto b = batch.add(second, other, good, prompt, {}, on_text);
  const Error error = refusal([&] {
    while (batch.step()) {
    }
  });
  CHECK(error.code() == ErrorCode::limit);
  CHECK(mentions(error, "no more masks"));
  CHECK(batch.over(a));
  CHECK_FALSE(batch.over(b));
  CHECK(mentions(refusal([&] { batch.raise_if_failed(a); }), "no more masks"));
  batch.raise_if_failed(b);
  while (batch.step()) {
  }
  CHECK(batch.remove(b).reason == StopReason::end_of_text);
}

TEST_CASE("a saved answer continues with a constraint that is advanced by its tokens") {
  const TemporaryFolder folder;
  const std::string file = folder.path("answer.session");
  const std::vector<std::string> texts = {
      "{\"name\": \"Ann\", \"likes\": \"tea\"}", "{\"name\": \"Bob\", \"likes\": \"milk\"}",
      "{\"name\": \"Bob\", \"likes\": \"mint\"}", "{\"name\": \"Ann\", \"likes\": \"toast\"}"};
  for_each_talking_model(options, [&](auto& model) {
    const sample::SamplerOptions sampling = samplers()[2];
    const auto on_text = [](std::string_view) { return true; };
    Session whole(model);
    sample::Standard uninterrupted(sampling, talking_vocabulary);
    OneOf undivided(texts);
    const auto expected =
        generate(whole, bytes(), uninterrupted, undivided, prompt, GenerateOptions(), on_text);
    for (std::size_t length = 1; length < expected.tokens.size(); ++length) {
      CAPTURE(length);
      std::vector<TokenId> tokens;
      {
        Session session(model);
        sample::Standard sampler(sampling, talking_vocabulary);
        OneOf constraint(texts);
        const auto part =
            generate(session, bytes(), sampler, constraint, prompt, {.max_tokens = length}, on_text);
        tokens = part.tokens;
        const auto unfed = std::span(tokens).last(part.unfed);
        session.save(file, {.sampler = sampler.save(), .next = {unfed.begin(), unfed.end()}});
      }
      SessionNote note;
      auto session = Session<std::remove_reference_t<decltype(model)>>::open(model, file, &note);
      sample::Standard sampler(sampling, talking_vocabulary);
      sampler.restore(*note.sampler);
      OneOf constraint(texts);
      for (const TokenId id : tokens) REQUIRE(constraint.advance(id));
      const auto rest =
          generate(session, bytes(), sampler, constraint, note.next, GenerateOptions(), on_text);
      tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
      CHECK(tokens == expected.tokens);
    }
  });
}

TEST_CASE("a copy of any constraint continues on its own") {
  constraint::Any first = OneOf({"abc", "abd"});
  CHECK(first.advance(first_byte + 'a'));
  constraint::Any second = first;
  CHECK(second.advance(first_byte + 'b'));
  CHECK_FALSE(first.advance(first_byte + 'c'));
  CHECK(second.advance(first_byte + 'c'));
  second = constraint::Any();
  CHECK_FALSE(second);
  CHECK(second.advance(first_byte + 'z'));
  constraint::TokenMask mask(10);
  CHECK(second.allowed(mask));
  CHECK(mask.count() == 10);
  CHECK(first);
}

}  // namespace mica::test::constraint_test
