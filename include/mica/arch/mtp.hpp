// SPDX-License-Identifier: Apache-2.0
//
// Multi-token prediction: behind the layers of a model ("trunk") a file may have one or more that predict a
// token further (nextn_predict_layers). The first of them is a model of its own here, of one layer. It reads
// the trunk's hidden states and its own (block/mtp_input.hpp). It has no embedding and no output matrix:
// those of the trunk are used. Qwen3.5 and Qwen3-Next have one head; of several only the first one is used.
//
//   trunk | token i     -> ... 32 layers ... -> hidden state i -> token i + 1
//   head  | token i + 1, hidden state i      -> 1 layer ->        token i + 2, which the trunk checks
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/read_keys.hpp"
#include "mica/base/assert.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/mtp_input.hpp"
#include "mica/gguf/document.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

namespace mica::arch {

/// Heads for multi-token prediction in a file.
[[nodiscard]] inline std::size_t mtp_layers(const gguf::Document& document) {
  const auto arch = document.metadata().get<std::string_view>("general.architecture");
  return arch ? read_mtp_layer_count(KeyReader(document, *arch)) : 0;
}

/// The head of a file whose trunk has this configuration. Its layer is like the trunk's last one that
/// attends. Raises ErrorCode::unsupported where the file has none.
[[nodiscard]] inline Config mtp_config(const gguf::Document& document, Config trunk) {
  MICA_CHECK(mtp_layers(document) != 0, unsupported, document.path(), ": key '", trunk.arch,
             ".nextn_predict_layers' is missing or 0: the file has no head for multi-token prediction (MTP); "
             "draft by the text so far, or by a smaller model");
  std::size_t like = trunk.layers.size();
  while (like > 0 && !trunk.layers[like - 1].has<block::Attention>()) --like;
  MICA_CHECK(like > 0, unsupported, document.path(),
             ": no layer of the model attends, so its head is not known");
  Config head = trunk;
  head.mtp = true;
  head.first_layer = trunk.layers.size();
  head.layers.assign(1, trunk.layers[like - 1]);
  head.layers[0].add_first<block::MtpInput>();
  head.begin = head.end = Layer();
  head.n_vocab = 0;  // it has no logits of its own
  return head;
}

}  // namespace mica::arch
