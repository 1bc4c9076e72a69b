// SPDX-License-Identifier: Apache-2.0
//
// Data beside a saved session, so that a text continues with the same tokens.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/sample/sampler_options.hpp"

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
  std::vector<TokenId> next = {};  // tokens that were sampled and not fed
  std::string text = {};           // of the program
};

namespace detail {

[[nodiscard]] inline std::string to_bytes(const SessionNote& note) {
  std::vector<std::byte> out;
  gguf::append_number(out, std::uint8_t{note.sampler.has_value()});
  if (note.sampler) {
    gguf::append_number(out, note.sampler->seed);
    gguf::append_number(out, note.sampler->counter);
    gguf::append_list(out, note.sampler->history);
  }
  gguf::append_list(out, note.next);
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
    note.sampler->history = reader.list<TokenId>("tokens");
  }
  note.next = reader.list<TokenId>("tokens");
  note.text = reader.text("the text");
  return note;
}

}  // namespace detail
}  // namespace mica
