// SPDX-License-Identifier: Apache-2.0
//
// Lesson 13: answers that are one of some texts, by a constraint of one's own and by a grammar.
//
//   13_constraint [MODEL.gguf]
//
// A constraint says before each token which ones are allowed; the sampler chooses among them. A grammar has
// more texts than could be listed, finds the allowed tokens by a walk over the vocabulary, and forces those
// that follow with certainty: they need no logits and no step of their own.

#include "mica/constraint/grammar.hpp"
#include "mica/runtime/complete.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

/// One of some texts. Tokens that end a text are the byte 0 here, and each of the texts has it at its end.
class OneOf : public mica::constraint::Unforced {
 public:
  OneOf(const mica::Model& model, std::vector<std::string> texts) : model_(model), texts_(std::move(texts)) {
    for (std::string& text : texts_) text.push_back('\0');
  }

  // Required by Constraint
  bool allowed(mica::constraint::TokenMask& mask) noexcept {
    for (mica::TokenId id = 0; id < mask.size(); ++id)
      if (allows(id)) mask.insert(id);
    return true;
  }
  bool advance(mica::TokenId id) noexcept {
    if (!allows(id)) return false;
    sizes_.push_back(text_.size());
    text_ += spelled(id);
    return true;
  }
  void rewind(std::size_t n) noexcept {
    for (; n > 0; --n, sizes_.pop_back()) text_.resize(sizes_.back());
  }

 private:
  [[nodiscard]] std::string spelled(mica::TokenId id) const {
    const bool ends = model_.tokenizer().vocabulary().is_end(id);
    return ends ? std::string(1, '\0') : model_.tokenizer().piece(id, false);
  }
  [[nodiscard]] bool allows(mica::TokenId id) const {
    const std::string more = spelled(id);
    return !more.empty() && std::any_of(texts_.begin(), texts_.end(), [&](const std::string& text) {
      return text.starts_with(text_ + more);
    });
  }

  const mica::Model& model_;
  std::vector<std::string> texts_;
  std::string text_;                // so far
  std::vector<std::size_t> sizes_;  // of it, before each token
};
static_assert(mica::Constraint<OneOf>);

/// The same texts, and others, as a grammar: the animal is one of a list, and the number of its houses has
/// one to three digits.
mica::constraint::Language houses() {
  mica::constraint::Language language{std::make_unique<mica::constraint::Expressions>(),
                                      std::make_unique<mica::constraint::FixedRules>()};
  auto& e = *language.expressions;
  const auto animal = e.alt({e.literal("bear"), e.literal("fox"), e.literal("wolf")});
  const auto digit = e.set({'0', '9'});
  language.start = e.cat({e.literal(" there was a "), animal, e.literal(" who had "), e.repeat(digit, 1, 3),
                          e.literal(" houses.")});
  return language;
}

/// Prints an answer to its end, and the number of its tokens that were forced.
template <mica::Constraint C>
void tell(mica::Model& model, C& constraint) {
  auto session = model.session();
  mica::sample::Standard<> sampler({.temperature = 1, .seed = 2}, model.config().n_vocab);
  const std::string beginning = "Once upon a time";
  std::printf("%s", beginning.c_str());
  const auto result = mica::generate(
      session, model.tokenizer(), sampler, constraint, mica::prompt_ids(model.tokenizer(), beginning),
      {.max_tokens = 60}, [](std::string_view text) {
        return std::printf("%.*s", static_cast<int>(text.size()), text.data()) >= 0;
      });
  std::printf("\n  (%zu tokens, %zu of them forced)\n", result.tokens.size(), result.forced);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a model\n", path.c_str()), 0;
  auto model = mica::open(path, {.n_ctx = 256});

  OneOf texts(model, {" there was a bear.", " there was a fox.", " there were three little pigs."});
  tell(model, texts);

  // The sorted vocabulary is for all answers of a model. Each answer has a grammar of its own, which may be a
  // copy: copies share what they have found out about the language.
  const auto tokens = std::make_shared<mica::constraint::TokenTrie>(model.tokenizer());
  mica::constraint::Grammar grammar(tokens, houses());
  tell(model, grammar);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
