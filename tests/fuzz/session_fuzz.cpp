// SPDX-License-Identifier: Apache-2.0
//
// A saved session whose description, note and blocks were changed, with the checksums of what they then are,
// and with single bytes that were changed after that: refused by an error, or a session that takes a token.

#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/session.hpp"
#include "model/tiny_model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mica::fuzz::session_fuzz {
namespace {

using Model =
    Transformer<arch::Llama, WithWeights<format::F32>,
                WithBlocks<TypeList<block::Attention, block::DenseFeedForward>>, WithKernels<kernel::Scalar>>;

/// A model and the description of a session of it.
struct Base {
  static constexpr std::size_t n_ctx = 100;

  test::TinyModel file{
      test::Recipe{.layers = 1, .width = 16, .heads = 2, .kv_heads = 1, .head_dim = 8, .ff_width = 16}};
  exec::Inline executor;
  Model model{file.document(), executor, {.n_ctx = n_ctx, .chunk = 8, .logits_rows = 1, .log = {}}};
  Folder folder;
  kv::SnapshotInfo info;

  Base() {
    Session<Model> session(model);
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < 70; ++id) ids.push_back(id % 60);
    require(session.feed(ids) == model::StepStatus::ok, "the session is made");
    session.save(folder.path("base"),
                 {.sampler = sample::SamplerState{5, 17, {3, 1, 4}}, .next = {6}, .text = "a note"});
    info = kv::SnapshotReader(folder.path("base")).info();
  }
};

void change(kv::SnapshotInfo& info, Input& input) {
  const std::uint64_t number = input.flag() ? input.byte() : input.number<std::uint64_t>();
  switch (input.below(12)) {
    case 0:
      return info.tokens.resize(static_cast<std::size_t>(number % 200), static_cast<TokenId>(number));
    case 1:
      info.cached = number;
      return;
    case 2:
      return info.layers.resize(number % 5);
    case 3:
    case 4:
    case 5:
    case 6:
      if (!info.layers.empty()) {
        kv::SnapshotInfo::Layer& layer = info.layers[number % info.layers.size()];
        std::uint64_t* const fields[] = {&layer.kv_heads, &layer.tile_bytes, &layer.window,
                                         &layer.first_tile};
        *fields[input.below(4)] = input.flag() ? input.byte() : number;
      }
      return;
    case 7:
      info.state_floats = number;
      return;
    case 8:
      return info.copies.resize(number % 9, number);
    case 9:
      info.note = input.text();
      return;
    case 10:
      if (!info.note.empty()) info.note[number % info.note.size()] = static_cast<char>(input.byte());
      return;
    default:
      (input.flag() ? info.keys : info.values) = input.text();
  }
}

/// The description, and the rest of the input behind it.
std::string without_blocks(const kv::SnapshotInfo& info, std::string_view rest) {
  const std::vector<std::byte> description = kv::detail::describe(info);
  kv::detail::SnapshotPrelude prelude;
  prelude.description_bytes = description.size();
  prelude.description = io::checksum({description.data(), description.size()});
  prelude.file_bytes = sizeof prelude + description.size() + rest.size();
  prelude.prelude = io::checksum(bytes_of(&prelude, 1).first(sizeof prelude - sizeof prelude.prelude));
  std::string out(text_of_bytes(bytes_of(&prelude, 1)));
  return out.append(text_of_bytes({description.data(), description.size()})).append(rest);
}

/// Its blocks have the rest of the input as keys and values, again and again.
std::string file_of(const kv::SnapshotInfo& info, Input& input, const std::string& path) {
  const bool large = info.cached > 2 * Base::n_ctx || kv::SnapshotLayout::bytes_of(info) > (1 << 16);
  if (large) return without_blocks(info, input.rest());
  const std::size_t flips = input.below(3);
  const std::string_view places = input.text(flips * 3);
  kv::SnapshotWriter out(path, info);
  const auto write = [&](std::size_t bytes) {
    std::string block;
    while (block.size() < bytes) block.append(input.empty() ? std::string_view("\x01\x38") : input.rest());
    out.write(bytes_of_text(std::string_view(block).substr(0, bytes)));
    out.end_block();
  };
  const kv::SnapshotLayout& layout = out.layout();
  for (std::size_t copy = 0; info.state_floats != 0 && copy <= info.copies.size(); ++copy) {
    for (std::size_t part = 0; part < layout.parts(); ++part) write(layout.state(copy, part).bytes);
  }
  for (std::size_t layer = 0; layer < info.layers.size(); ++layer) {
    for (std::size_t page = 0; page < layout.pages(); ++page) {
      if (!layout.tiles(layer, page).empty()) write(layout.page(layer, page).bytes);
    }
  }
  out.commit();
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t i = 0; i + 3 <= places.size(); i += 3) {
    const auto at = static_cast<unsigned char>(places[i]) * 256U + static_cast<unsigned char>(places[i + 1]);
    bytes[at % bytes.size()] = static_cast<char>(bytes[at % bytes.size()] ^ places[i + 2]);
  }
  return bytes;
}

void run(Input input) {
  static Base base;
  kv::SnapshotInfo info = base.info;
  for (std::size_t n = input.below(6); n > 0; --n) change(info, input);
  const std::string bytes = file_of(info, input, base.folder.path("written"));
  const std::string path = base.folder.write("session", bytes);
  accepted_within(bytes.size(), [&] {
    SessionNote note;
    auto session = Session<Model>::open(base.model, path, &note);
    require(session.tokens().size() <= Base::n_ctx, "a session has the tokens of its context at most");
    const TokenId id = 1;
    if (session.feed({&id, 1}) != model::StepStatus::ok) return;
    require(all_finite(session.logits()), "logits are finite");
  });
}

}  // namespace

MICA_FUZZ_TARGET(session) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::session_fuzz
