// SPDX-License-Identifier: Apache-2.0
//
// What is kept beside a saved session, so that a text goes on as if nothing had happened.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/gguf/append.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/sample/sampler_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica {

struct SessionNote {
  std::optional<sample::SamplerState> sampler = {};
  std::vector<TokenId> next = {};  // tokens that were chosen and not fed
  std::string text = {};           // of whoever saves
};

namespace detail {

inline void append_tokens(std::vector<std::byte>& out, std::span<const TokenId> tokens) {
  gguf::append_number(out, std::uint64_t{tokens.size()});
  for (const TokenId token : tokens) gguf::append_number(out, token);
}

[[nodiscard]] inline std::vector<TokenId> read_tokens(gguf::SpanReader& reader) {
  const auto count = reader.read<std::uint64_t>("tokens");
  if (count > reader.remaining() / sizeof(TokenId)) {
    reader.refuse(ErrorCode::file, count, " tokens do not fit into it");
  }
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) token = reader.read<TokenId>("a token");
  return tokens;
}

[[nodiscard]] inline std::string to_bytes(const SessionNote& note) {
  std::vector<std::byte> out;
  gguf::append_number(out, std::uint8_t{note.sampler.has_value()});
  if (note.sampler) {
    gguf::append_number(out, note.sampler->seed);
    gguf::append_number(out, note.sampler->counter);
    append_tokens(out, note.sampler->history);
  }
  append_tokens(out, note.next);
  gguf::append_text(out, note.text);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

/// Raises ErrorCode::file, naming the file, for bytes that are no note.
[[nodiscard]] inline SessionNote note_of(const std::string& file, std::string_view bytes) {
  gguf::SpanReader reader(file, std::as_bytes(std::span(bytes)));
  reader.enter("note");
  SessionNote note;
  if (reader.read<std::uint8_t>("whether a sampler is there") != 0) {
    note.sampler.emplace();
    note.sampler->seed = reader.read<std::uint64_t>("the seed");
    note.sampler->counter = reader.read<std::uint64_t>("the counter");
    note.sampler->history = read_tokens(reader);
  }
  note.next = read_tokens(reader);
  note.text = reader.text("the text");
  return note;
}

}  // namespace detail
}  // namespace mica
