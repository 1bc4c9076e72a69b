// SPDX-License-Identifier: Apache-2.0
//
// What a Transformer says of a saved cache: whose it is, and what lies where (model/detail/kv_cache.hpp).
#pragma once

#include "mica/gguf/fingerprint.hpp"
#include "mica/model/transformer.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace mica {

/// Of an empty cache.
template <class F, class P>
kv::SnapshotInfo BasicTransformer<F, P>::identity() const {
  kv::SnapshotInfo info;
  info.arch = config_.arch;
  if (!fingerprint_)
    fingerprint_ = gguf::fingerprint(weights_.document(), tensor::packing_in<typename P::Weights>);
  info.model = *fingerprint_;
  io::Checksum positions;
  for (const block::RopeFrequencies& rope : frequencies_) {
    positions.add(std::as_bytes(rope.frequencies()));
    const double magnitude = rope.magnitude();
    positions.add(std::as_bytes(std::span(&magnitude, 1)));
  }
  info.positions = positions.value();
  info.keys = kv::key_name(kv_.elements());
  info.values = kv::value_name(kv_.elements());
  for (const kv::LayerShape& layer : kv_.shape()) {
    info.layers.push_back({layer.kv_heads, layer.tile_bytes, layer.window, 0});
  }
  info.state_floats = weights_.state().floats();
  return info;
}

template <class F, class P>
void BasicTransformer<F, P>::check_saved(const kv::SnapshotReader& in) const {
  const kv::SnapshotInfo own = identity(), &saved = in.info();
  const auto same = [&](std::string_view what, const auto& found, const auto& needed,
                        std::string_view way_out) {
    MICA_CHECK(found == needed, usage, in.path(), ": ", what, " ", escaped(join(found)), "; this one has ",
               needed, "; ", way_out);
  };
  same("was saved with a model of the family", saved.arch, own.arch, "use that model, or another file");
  same("was saved with keys in", kv::saved_name(saved.keys), own.keys, "use -ctk with that, or another file");
  same("was saved with values in", kv::saved_name(saved.values), own.values,
       "use -ctv with that, or another file");
  MICA_CHECK(saved.model == own.model, usage, in.path(), ": was saved with another model of the family ",
             own.arch, ", which has other tensors; use that model, or another file");
  same("was saved with rotations of checksum", saved.positions, own.positions,
       "use -c as when it was saved, or another file");
  same("has a recurrent state of", saved.state_floats, own.state_floats, "the file is of another model");
  bool alike = saved.layers.size() == own.layers.size();
  for (std::size_t l = 0; alike && l < own.layers.size(); ++l) {
    kv::SnapshotInfo::Layer layer = saved.layers[l];
    layer.first_tile = 0;
    alike = layer == own.layers[l];
  }
  MICA_CHECK(
      alike, usage, in.path(),
      ": was saved with other layers; use --cache-recent and -c as when it was saved, or another file");
}

}  // namespace mica
