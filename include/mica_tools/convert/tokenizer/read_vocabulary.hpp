// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of a folder: from tokenizer.model where that is a SentencePiece file of the same vocabulary,
// since it has the scores, else from tokenizer.json, else from the older files spiece.model,
// sentencepiece.bpe.model and vocab.txt; as many tokens as the embedding has rows.
#pragma once

#include "mica/io/folder_file.hpp"
#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/tokenizer/sentencepiece.hpp"
#include "mica_tools/convert/tokenizer/tokenizer_json.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"
#include "mica_tools/convert/tokenizer/wordpiece.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// Where special tokens may be looked up: named in tokenizer_config.json, numbered in the others.
struct SpecialSources {
  const Json& tokenizer_config;   ///< an empty object where there is no such file
  const Json& generation_config;  ///< an empty object where there is no such file
  const Config& config;           ///< counts where the others say nothing
};

namespace detail {

/// "bos_token": "<s>", or {"content": "<s>", ...}.
[[nodiscard]] inline std::optional<std::uint64_t> named_token(const Json& config, std::string_view key,
                                                              const VocabularyData& vocabulary) {
  const Json* found = find_member(config, key);
  if (found != nullptr && found->is_object()) found = find_member(*found, "content");
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return vocabulary.find(found->get<std::string>());
}

/// "eos_token_id": 2, or [2, 5]; what is no id of the vocabulary is passed over.
[[nodiscard]] inline std::vector<std::uint64_t> numbered_tokens(const Json* found,
                                                                const VocabularyData& vocabulary) {
  std::vector<std::uint64_t> out;
  const auto add = [&](const Json& id) {
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < vocabulary.tokens.size())
      out.push_back(id.get<std::uint64_t>());
  };
  if (found != nullptr && found->is_array()) {
    for (const Json& each : *found) add(each);
  } else if (found != nullptr) {
    add(*found);
  }
  return out;
}

[[nodiscard]] inline bool ends_turn(std::string_view text) {
  constexpr std::string_view names[] = {"<end_of_turn>", "<turn|>",    "<|eot_id|>",
                                        "<|eot|>",       "<|im_end|>", "<|end|>"};
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

}  // namespace detail

/// Sets bos, eos, eot, unknown, padding, separator, classifier and mask where the folder has them. BERT's
/// classifier and separator begin and end texts.
inline void find_special_ids(const SpecialSources& from, VocabularyData& out) {
  const auto find = [&](const std::string& name, std::optional<std::uint64_t> known) {
    if (known) return known;
    if (const auto id = detail::named_token(from.tokenizer_config, name, out)) return id;
    const std::string key = name + "_id";
    for (const Json* const found : {find_member(from.generation_config, key), from.config.find(key)}) {
      if (const auto ids = detail::numbered_tokens(found, out); !ids.empty())
        return std::optional(ids.front());
    }
    return known;
  };
  out.classifier = find("cls_token", out.classifier);
  out.separator = find("sep_token", out.separator);
  out.mask = find("mask_token", out.mask);
  out.bos = find("bos_token", out.bos);
  out.eos = find("eos_token", out.eos);
  out.padding = find("pad_token", out.padding);
  if (!out.bos) out.bos = out.classifier;
  if (!out.eos) out.eos = out.separator;
  if (!out.unknown) out.unknown = detail::named_token(from.tokenizer_config, "unk_token", out);
  const Json* const ends = find_member(from.generation_config, "eos_token_id");
  for (const std::uint64_t id :
       detail::numbered_tokens(ends != nullptr ? ends : from.config.find("eos_token_id"), out)) {
    if (id != out.eos && detail::ends_turn(out.tokens[static_cast<std::size_t>(id)].text)) out.eot = id;
  }
}

/// Names and texts; the usual template has an empty name. Empty when there is none. Raises what
/// io::folder_file and read_json raise.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> chat_templates(
    const std::string& folder, const Json& tokenizer_config) {
  const std::string file = io::folder_file(folder, "chat_template.jinja");
  if (io::exists(file)) return {{"", read_text(file)}};
  const auto own = read_json_if_present(io::folder_file(folder, "chat_template.json"));
  const Json* found = own ? find_member(*own, "chat_template") : nullptr;
  if (found == nullptr) found = find_member(tokenizer_config, "chat_template");
  if (found == nullptr) return {};
  if (found->is_string()) return {{"", found->get<std::string>()}};
  std::vector<std::pair<std::string, std::string>> out;
  for (const Json& each : *found) {
    const Json* const name = find_member(each, "name");
    const Json* const text = find_member(each, "template");
    if (name == nullptr || text == nullptr || !name->is_string() || !text->is_string()) continue;
    out.emplace_back(name->get<std::string>() == "default" ? "" : name->get<std::string>(),
                     text->get<std::string>());
  }
  return out;
}

namespace detail {

/// Ids without a token get a name that no text has.
inline void pad_vocabulary(std::uint64_t n_vocab, VocabularyData& out) {
  std::uint64_t padded = 0;
  out.tokens.resize(static_cast<std::size_t>(n_vocab));
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    if (!out.tokens[id].text.empty() || out.tokens[id].type != text::TokenType::unused) continue;
    out.tokens[id].text = join("[PAD", id, "]");
    ++padded;
  }
  if (padded > 0) out.notes.push_back(join(padded, " rows of the embedding have no token"));
}

/// Sets what stands around texts where nothing else said it. The first and the last token of BERT's are its
/// classifier and its separator.
inline void apply(const PostProcessor& around, VocabularyData& out) {
  if (!out.add_bos) out.add_bos = around.adds_special(false);
  if (!out.add_eos) out.add_eos = around.adds_special(true);
  if (!out.add_separator) out.add_separator = around.adds_separator();
  if (!out.bos && !around.special(false).empty()) out.bos = out.find(around.special(false));
  if (!out.eos && !around.special(true).empty()) out.eos = out.find(around.special(true));
  if (out.model != "bert") return;
  if (!out.classifier) out.classifier = out.bos;
  if (!out.separator) out.separator = out.eos;
}

/// The vocabulary of a folder without tokenizer.json and tokenizer.model.
[[nodiscard]] inline VocabularyData read_older_files(const std::string& folder, const Json& settings,
                                                     std::uint64_t n_vocab) {
  const auto path = [&](std::string_view name) { return io::folder_file(folder, name); };
  if (io::exists(path("vocab.txt"))) return read_vocabulary_lines(path("vocab.txt"), settings, n_vocab);
  const bool fairseq = io::exists(path("sentencepiece.bpe.model"));
  const std::string file = path(fairseq ? "sentencepiece.bpe.model" : "spiece.model");
  MICA_CHECK(
      io::exists(file), file, folder,
      ": neither tokenizer.json nor tokenizer.model, spiece.model, sentencepiece.bpe.model or vocab.txt ",
      "is there");
  MICA_CHECK(!fairseq || n_vocab >= fairseq_tokens, file, file, ": the embedding has ", n_vocab,
             " rows, and the special tokens of this vocabulary take ", fairseq_tokens,
             "; the folder has the files of two models");
  VocabularyData out = read_sentencepiece(file, n_vocab);
  if (fairseq) place_fairseq_tokens(n_vocab, out);
  place_added_tokens(configured_tokens(settings, folder), n_vocab, out);
  return out;
}

}  // namespace detail

/// Reads the vocabulary and the chat template of a folder. `family` is Family::vocabulary. Raises
/// ErrorCode::file when there is no tokenizer, and what the readers raise.
[[nodiscard]] inline VocabularyData read_vocabulary(const std::string& folder, const Config& config,
                                                    std::uint64_t n_vocab, std::string_view family) {
  const auto object = [&](std::string_view name) {
    return read_json_if_present(io::folder_file(folder, name)).value_or(Json::object());
  };
  const auto present = [&](std::string_view name) {
    const std::string file = io::folder_file(folder, name);
    return io::exists(file) ? file : std::string();
  };
  const Json settings = object("tokenizer_config.json"), generation = object("generation_config.json");
  const std::string json_file = io::folder_file(folder, "tokenizer.json");
  const auto json = read_json_if_present(json_file);
  std::optional<TokenizerJson> tokenizer;
  if (json) tokenizer.emplace(*json, json_file);

  VocabularyData out;
  const std::string spm = present("tokenizer.model");
  if (!spm.empty() && family.empty() && (!tokenizer || tokenizer->is_spm())) {
    out = read_sentencepiece(spm, n_vocab);
    MICA_CHECK(!tokenizer || out.model == "llama", unsupported, folder,
               ": tokenizer.model is a Unigram, and tokenizer.json is another tokenizer");
    place_added_tokens(tokenizer ? tokenizer->added() : configured_tokens(settings, folder), n_vocab, out);
    if (tokenizer && tokenizer->add_space_prefix()) out.add_space_prefix = tokenizer->add_space_prefix();
  } else if (tokenizer) {
    out = tokenizer->read(n_vocab, family, member_flag(settings, "clean_up_tokenization_spaces"));
  } else {
    MICA_CHECK(spm.empty(), unsupported, folder, ": this family needs tokenizer.json");
    out = detail::read_older_files(folder, settings, n_vocab);
  }
  detail::pad_vocabulary(n_vocab, out);
  find_special_ids({settings, generation, config}, out);
  if (const auto flag = member_flag(settings, "add_bos_token")) out.add_bos = flag;
  if (const auto flag = member_flag(settings, "add_eos_token")) out.add_eos = flag;
  if (tokenizer) detail::apply(tokenizer->around(), out);
  out.chat_templates = chat_templates(folder, settings);
  return out;
}

}  // namespace mica::convert
