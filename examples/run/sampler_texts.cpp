// SPDX-License-Identifier: Apache-2.0
#include "sampler_texts.hpp"

#include "chat_words.hpp"
#include "console.hpp"
#include "input.hpp"
#include "mica/base/assert.hpp"
#include "suggestion.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

namespace mica::program {
namespace {

using sample::Stage;

struct StageName {
  std::string_view name;
  Stage stage;
  char letter;
};

/// The names of the standard order first, then others that are in use.
constexpr StageName stage_names[] = {
    {"penalties", Stage::penalties, 'e'},
    {"dry", Stage::dry, 'd'},
    {"top_n_sigma", Stage::top_n_sigma, 's'},
    {"top_k", Stage::top_k, 'k'},
    {"typ_p", Stage::typical, 'y'},
    {"top_p", Stage::top_p, 'p'},
    {"min_p", Stage::min_p, 'm'},
    {"xtc", Stage::xtc, 'x'},
    {"temperature", Stage::temperature, 't'},
    {"typical", Stage::typical, 'y'},
    {"typical_p", Stage::typical, 'y'},
    {"typ", Stage::typical, 'y'},
    {"temp", Stage::temperature, 't'},
    {"nucleus", Stage::top_p, 'p'},
    {"top_nsigma", Stage::top_n_sigma, 's'},
};
constexpr std::size_t n_stages = 9;

void add_stage(std::vector<Stage>& stages, Stage stage, std::string_view name) {
  MICA_CHECK(std::find(stages.begin(), stages.end(), stage) == stages.end(), usage, "found '", escaped(name),
             "' twice, allowed: each once");
  stages.push_back(stage);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "+1.5", "-inf"
std::optional<float> signed_number(std::string_view text) {
  float value = 0.0f;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data() + 1, end, value);
  const bool second_sign = text.size() > 1 && (text[1] == '-' || text[1] == '+');
  if (error != std::errc() || next != end || second_sign || std::isnan(value)) return std::nullopt;
  return text[0] == '-' ? -value : value;
}

/// The id that a bias names: a number, or a text that is one token.
TokenId token_of(const std::string& name, const text::AnyTokenizer& tokenizer) {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  if (is_number(name)) {
    std::uint64_t id = vocabulary.size();
    std::from_chars(name.data(), name.data() + name.size(), id);
    MICA_CHECK(id < vocabulary.size(), usage, "--logit-bias: token ", escaped(name),
               " is outside the vocabulary of ", vocabulary.size(), " tokens");
    return static_cast<TokenId>(id);
  }
  if (const TokenId special = vocabulary.find_special(name); special != text::no_token) return special;
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    if (tokenizer.piece(id) == name) return id;
  std::string ids;
  for (const TokenId id : tokenizer.encode(name, {.add_special = false}))
    ids += join(ids.empty() ? "" : " ", id);
  raise(ErrorCode::usage, "--logit-bias: no token has the text '", escaped(name), "'; its tokens are ", ids,
        ", and each can have a bias");
}

/// The sequences of tokens that contain one of the texts and end with it: tokens with all of it, and tokens that
/// end with its beginning, with the tokens of the rest.
std::vector<std::vector<TokenId>> sequences_of(const std::vector<std::string>& texts,
                                               const text::AnyTokenizer& tokenizer) {
  std::vector<std::vector<std::vector<TokenId>>> rests;  // of each text, by the length of its beginning
  for (const std::string& text : texts) {
    auto& rest = rests.emplace_back(text.size());
    for (std::size_t n = 1; n < text.size(); ++n)
      rest[n] =
          tokenizer.encode(std::string_view(text).substr(n), {.add_special = false, .parse_special = true});
  }
  std::vector<std::vector<TokenId>> out;
  std::string piece;
  for (TokenId id = 0; !texts.empty() && id < tokenizer.vocabulary().size(); ++id) {
    piece.clear();
    tokenizer.append_piece(id, true, piece);
    const auto contains = [&](const std::string& text) { return piece.find(text) != std::string::npos; };
    if (std::any_of(texts.begin(), texts.end(), contains)) {
      out.push_back({id});
      continue;
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (std::size_t n = 1; n < texts[i].size(); ++n) {
        if (rests[i][n].empty() || !piece.ends_with(std::string_view(texts[i]).substr(0, n))) continue;
        out.push_back({id});
        out.back().insert(out.back().end(), rests[i][n].begin(), rests[i][n].end());
      }
    }
  }
  return out;
}

}  // namespace

std::vector<Stage> stages_of(std::string_view names) {
  std::vector<Stage> stages;
  while (!names.empty()) {
    const std::string_view given = names.substr(0, names.find(';'));
    names.remove_prefix(std::min(given.size() + 1, names.size()));
    std::string name = in_lower_case(given);
    std::replace(name.begin(), name.end(), '-', '_');
    const auto found = std::find_if(std::begin(stage_names), std::end(stage_names),
                                    [&](const StageName& each) { return each.name == name; });
    MICA_CHECK(found != std::end(stage_names), usage, "found '", escaped(given),
               "', allowed: ", standard_order, ", in any order.",
               suggestion(name, stage_names, [](const auto& each) { return each.name; }));
    add_stage(stages, found->stage, given);
  }
  return stages;
}

std::vector<Stage> stages_of_letters(std::string_view letters) {
  std::vector<Stage> stages;
  for (const char& letter : letters) {
    const auto all = std::span(stage_names).first(n_stages);
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const StageName& each) { return each.letter == letter; });
    MICA_CHECK(found != all.end(), usage, "found '", escaped(std::string_view(&letter, 1)),
               "', allowed: e penalties, d dry, s top_n_sigma, k top_k, y typ_p, p top_p, m min_p, x xtc, "
               "t temperature");
    add_stage(stages, found->stage, found->name);
  }
  return stages;
}

BiasText bias_of(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 1;) {
    if (text[at] != '+' && text[at] != '-') continue;
    const auto bias = signed_number(text.substr(at));
    if (!bias || *bias > 1e9f || (*bias < -1e9f && !std::isinf(*bias))) continue;
    if (text.substr(0, at).ends_with('e') && is_number(text.substr(0, text.find_first_of("+-")))) continue;
    return {std::string(text.substr(0, at)), *bias};
  }
  raise(ErrorCode::usage, "found '", escaped(text),
        "', allowed: TOKEN+N and TOKEN-N, with an id or the text of a token, and a number up to 1e9 or inf");
}

sample::SamplerOptions with_tokens(sample::SamplerOptions options, const SamplerTexts& texts,
                                   const text::AnyTokenizer& tokenizer, std::size_t n_ctx) {
  constexpr std::size_t max_last_n = std::size_t{1} << 20;
  if (options.dry.last_n < 0) options.dry.last_n = static_cast<std::int64_t>(std::min(n_ctx, max_last_n));
  for (const std::string& each : texts.biases) {
    const BiasText bias = bias_of(each);
    options.logit_bias.push_back({token_of(bias.token, tokenizer), bias.bias});
  }
  if (!(options.dry.multiplier > 0.0f)) return options;
  std::vector<std::string> breakers;
  for (const std::string& each : texts.breakers) {
    MICA_CHECK(!each.empty(), usage, "--dry-sequence-breaker: found an empty text; none alone means none");
    if (each != "none" || texts.breakers.size() > 1) breakers.push_back(unescaped(each));
  }
  if (texts.breakers.empty()) breakers = {"\n", ":", "\"", "*"};
  options.dry.breakers = sequences_of(breakers, tokenizer);
  return options;
}

}  // namespace mica::program
