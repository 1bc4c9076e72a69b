// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers beside slow ones, which are written here as their papers have them: SentencePiece's BPE as the
// best pair again and again, WordPiece as the longest token at each place, Unigram as Viterbi's algorithm
// over all tokens. Vocabularies and texts are of few letters, so that much can happen in them.

#include "fuzz/input.hpp"
#include "fuzz/vocabulary_program.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fuzz::tokenizer_reference_fuzz {
namespace {

using Ids = std::vector<text::TokenId>;

constexpr std::string_view space = "\xE2\x96\x81";

/// The first id of each text of an ordinary token, without the bytes.
struct Table {
  std::map<std::string_view, text::TokenId> ids;

  explicit Table(const VocabularyProgram& program) {
    for (std::size_t i = 0; i < program.tokens.size(); ++i) {
      if (program.types[i] == 1) ids.emplace(program.tokens[i], static_cast<text::TokenId>(i));
    }
  }
  [[nodiscard]] std::optional<text::TokenId> find(std::string_view text) const {
    const auto found = ids.find(text);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  }
};

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0, n = 0; at < text.size(); at += n) {
    n = text.substr(at).starts_with(space) ? space.size() : 1;
    out.emplace_back(text.substr(at, n));
  }
  return out;
}

/// A character that no token has.
void append_unknown(const VocabularyProgram& program, std::string_view text, Ids& out) {
  for (const char c : text)
    out.push_back(program.complete ? 1 + static_cast<text::TokenId>(static_cast<unsigned char>(c)) : 0);
}

/// Joins the pair with the highest score, of equal ones the first, until none is left.
Ids by_pairs(const VocabularyProgram& program, const Table& table, std::string_view text) {
  std::vector<std::string> parts = characters(text);
  for (;;) {
    std::optional<std::size_t> best;
    float highest = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto id = table.find(parts[i] + parts[i + 1]);
      if (!id || (best && program.scores[*id] <= highest)) continue;
      best = i;
      highest = program.scores[*id];
    }
    if (!best) break;
    parts[*best] += parts[*best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
  Ids out;
  for (const std::string& part : parts) {
    if (const auto id = table.find(part)) {
      out.push_back(*id);
    } else {
      append_unknown(program, part, out);
    }
  }
  return out;
}

/// The longest token at each place of a word. The text is of letters and spaces.
Ids by_longest(const Table& table, std::string_view text) {
  Ids out;
  while (!text.empty()) {
    std::string word(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    Ids ids;
    bool spelled = word.size() <= text::WordPiece::max_word_characters;
    word.insert(0, space);
    for (std::size_t at = 0; at < word.size() && spelled;) {
      std::size_t end = word.size();
      while (end > at && !table.find(std::string_view(word).substr(at, end - at))) --end;
      spelled = end > (at == 0 ? space.size() : at);  // the mark alone is no token of a word
      if (spelled) ids.push_back(*table.find(std::string_view(word).substr(at, end - at)));
      at = end;
    }
    spelled ? (void)out.insert(out.end(), ids.begin(), ids.end()) : out.push_back(0);
  }
  return out;
}

/// The tokens with the highest sum; of equal sums, the one whose last token begins first, at each place.
Ids by_sum(const VocabularyProgram& program, const Table& table, std::string_view text) {
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < program.tokens.size(); ++i) {
    if (program.types[i] == 1) lowest = std::min(lowest, double{program.scores[i]});
  }
  const double unknown = (table.ids.empty() ? 0 : lowest) - 10;
  struct Place {
    double sum = 0;
    std::size_t before = 0;
    std::optional<text::TokenId> id;
    bool reached = false;
  };
  std::vector<Place> places(text.size() + 1);
  places[0].reached = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!places[at].reached) continue;
    const auto reach = [&](std::size_t end, double score, std::optional<text::TokenId> id) {
      const double sum = places[at].sum + score;
      if (!places[end].reached || sum > places[end].sum) places[end] = {sum, at, id, true};
    };
    const std::size_t n = text.substr(at).starts_with(space) ? space.size() : 1;
    for (std::size_t end = at + 1; end <= text.size(); ++end) {
      if (const auto id = table.find(text.substr(at, end - at))) reach(end, program.scores[*id], id);
    }
    if (!table.find(text.substr(at, n))) reach(at + n, unknown, std::nullopt);
  }
  std::vector<std::size_t> ends;
  for (std::size_t at = text.size(); at > 0; at = places[at].before) ends.push_back(at);
  std::reverse(ends.begin(), ends.end());
  Ids out;
  bool after_unknown = false;
  for (const std::size_t end : ends) {
    const Place& place = places[end];
    if (place.id) out.push_back(*place.id);
    if (!place.id && program.complete)
      append_unknown(program, text.substr(place.before, end - place.before), out);
    if (!place.id && !program.complete && !after_unknown) out.push_back(0);
    after_unknown = !place.id;
  }
  return out;
}

/// What SPM and Unigram do to spaces before they look for tokens.
std::string with_marks(const text::Vocabulary& vocabulary, std::string text) {
  if (vocabulary.remove_extra_spaces() && vocabulary.kind() == text::TokenizerKind::unigram) {
    std::string kept;
    for (const char c : text) {
      if (c != ' ' || (!kept.empty() && kept.back() != ' ')) kept += c;
    }
    while (kept.ends_with(' ')) kept.pop_back();
    text = kept;
  }
  std::string out;
  if (!text.empty() && vocabulary.add_space_prefix()) out = space;
  for (const char c : text) c == ' ' ? (void)out.append(space) : out.push_back(c);
  return out;
}

std::string shown(const Ids& ids) {
  std::string out;
  for (const text::TokenId id : ids) out += join(" ", id);
  return out;
}

void run(Input input) {
  constexpr std::size_t kinds[] = {0, 2, 3};
  const VocabularyProgram program(input, kinds[input.below(3)]);
  const text::AnyTokenizer tokenizer{text::Vocabulary(program.source)};
  std::string text;
  for (const char c : input.text(300))
    text += static_cast<unsigned char>(c) % 8 == 7
                ? ' '
                : static_cast<char>('a' + static_cast<unsigned char>(c) % 8);
  const Table table(program);
  const std::string marked = with_marks(tokenizer.vocabulary(), text);
  const auto& model = program.source.model;
  const Ids expected = model == "llama"  ? by_pairs(program, table, marked)
                       : model == "bert" ? by_longest(table, text)
                                         : by_sum(program, table, marked);
  const Ids found = tokenizer.encode(text, {.add_special = false});
  require(found == expected,
          join(model, ": '", text, "' is", shown(found), ", by the slow tokenizer", shown(expected)));
}

}  // namespace

MICA_FUZZ_TARGET(tokenizer_reference) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::tokenizer_reference_fuzz
