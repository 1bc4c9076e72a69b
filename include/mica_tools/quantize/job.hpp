// SPDX-License-Identifier: Apache-2.0
//
// The plan of a quantisation, decided and checked before the first weight is read: a format and a size for
// every tensor, and the keys of the output. The work itself is in quantize.hpp.
#pragma once

#include "mica/gguf/document.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/encode/encode.hpp"
#include "mica_tools/quantize/importance.hpp"
#include "mica_tools/quantize/mix.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::quantize {

/// The options. The objects that it points to outlive the Job.
struct JobOptions {
  std::optional<Recipe> recipe = {};       // empty: tensors are copied as they are
  MixOptions mix = {};                     // `importance` and `formats` are set from the members below
  const Importance* importance = nullptr;  // null: none
  std::string importance_file = {};        // its name, for the keys of the output
  bool allow_requantize = false;           // quantised tensors to other quantised formats
  format::RowCodecs codecs = format::known_codecs;  // of the formats that may be read and written
};

/// A document, and the target format of each tensor.
class Job {
 public:
  /// Requires that the document outlives this. Raises as choose_formats().
  Job(gguf::DocumentRef document, JobOptions options) : document_(&*document), options_(std::move(options)) {
    options_.mix.importance = options_.importance != nullptr;
    options_.mix.formats = options_.codecs.formats();
    for (const gguf::TensorInfo& tensor : document->tensors()) formats_.push_back(tensor.format);
    if (!options_.recipe) return;
    const std::vector<format::Id> chosen = choose_formats(document, *options_.recipe, options_.mix);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] != formats_[i].id) formats_[i] = *options_.mix.formats.find(chosen[i]);
    }
  }

  /// The document whose tensors are converted.
  [[nodiscard]] const gguf::Document& document() const noexcept { return *document_; }
  /// The format of tensor i of the document in the output.
  [[nodiscard]] const format::Info& format(std::size_t i) const noexcept { return formats_[i]; }
  /// Those of the options.
  [[nodiscard]] format::RowCodecs codecs() const noexcept { return options_.codecs; }
  /// Bytes of tensor i in the output. Requires a width of whole blocks, which choose_formats() ensures.
  [[nodiscard]] std::uint64_t bytes(std::size_t i) const noexcept {
    const gguf::TensorInfo& tensor = document_->tensors()[i];
    return changes(i) ? tensor.rows() * formats_[i].row_bytes(static_cast<std::size_t>(tensor.width()))
                      : tensor.bytes;
  }
  /// Whether tensor i gets another format.
  [[nodiscard]] bool changes(std::size_t i) const noexcept {
    return formats_[i].id != document_->tensors()[i].format.id;
  }
  /// Bytes of all tensors in the output.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < formats_.size(); ++i) sum += bytes(i);
    return sum;
  }
  /// Values of all tensors.
  [[nodiscard]] std::uint64_t elements() const noexcept {
    std::uint64_t sum = 0;
    for (const gguf::TensorInfo& tensor : document_->tensors()) sum += tensor.elements();
    return sum;
  }

  /// The importance of a tensor that changes; null when there is none.
  [[nodiscard]] const ImportanceEntry* importance(std::size_t i) const {
    return options_.importance == nullptr ? nullptr : options_.importance->find(document_->tensors()[i].name);
  }

  /// Refuses options that cannot work or would lose quality.
  /// Raises ErrorCode::usage for a tensor that is quantised already, and for one that is useless without
  /// importance; unsupported for a format that cannot be written or read; file when the importance is that of
  /// another model.
  void check() const {
    for (std::size_t i = 0; i < formats_.size(); ++i) {
      if (changes(i)) check(i);
    }
  }

  /// Writes the keys of the output: those of the document without split.*, file type, quantisation version,
  /// importance.
  void put_keys(gguf::Writer& writer) const {
    const gguf::Metadata& metadata = document_->metadata();
    for (std::size_t i = 0; i < metadata.size(); ++i) {
      const std::string_view key = metadata.key(i);
      if (key != "general.alignment" && !key.starts_with("split.")) writer.copy(key, metadata.value(i));
    }
    if (!options_.recipe) return;
    writer.set("general.quantization_version", std::uint32_t{2});
    writer.set("general.file_type", info(*options_.recipe).file_type);
    if (options_.importance == nullptr) return;
    const Importance& importance = *options_.importance;
    writer.set("quantize.imatrix.file", options_.importance_file);
    if (!importance.datasets.empty()) writer.set("quantize.imatrix.dataset", importance.datasets.front());
    writer.set("quantize.imatrix.entries_count", static_cast<std::uint32_t>(importance.entries.size()));
    writer.set("quantize.imatrix.chunks_count", importance.chunk_count);
  }

 private:
  void check(std::size_t i) const {
    const gguf::TensorInfo& tensor = document_->tensors()[i];
    const std::string& path = document_->source(tensor).path();
    const format::Info& to = formats_[i];
    const bool requantizes = is_quantized(tensor.format.id) && is_quantized(to.id);  // not to floats
    MICA_CHECK(!requantizes || options_.allow_requantize, usage, path, ": tensor '", escaped(tensor.name),
               "' is ", tensor.format.name,
               " already; quantising it again loses more than once: begin with an unquantised file, or give "
               "--allow-requantize");
    MICA_CHECK(options_.codecs.find(tensor.format.id).decode != nullptr, unsupported, path, ": tensor '",
               escaped(tensor.name), "' is ", tensor.format.name, ", which cannot be read here");
    MICA_CHECK(options_.codecs.writes(to.id), unsupported, path, ": tensor '", escaped(tensor.name),
               "' is to become ", to.name, "; formats that can be written: ", options_.codecs.written());
    const ImportanceEntry* const entry = importance(i);
    const TensorRole role = role_of(tensor.name);
    const bool measured = entry != nullptr || (options_.importance != nullptr && is_of_mtp_head(tensor.name));
    MICA_CHECK(
        measured || !needs_importance(to.id, *options_.recipe, role), usage, path, ": tensor '",
        escaped(tensor.name), "' is to become ", to.name,
        ", which loses too much without an importance matrix: give --imatrix FILE (mica imatrix makes one)");
    if (entry != nullptr)
      static_cast<void>(entry->means(tensor.name, 0, static_cast<std::size_t>(tensor.dims[2]),
                                     static_cast<std::size_t>(tensor.width())));
  }

  /// Whether a tensor is of a head for multi-token prediction. Importance is measured without heads; a head
  /// that lost more makes worse drafts, and changes no answer.
  [[nodiscard]] bool is_of_mtp_head(std::string_view name) const {
    const auto layer = layer_of(name);
    return layer && document_->find(join("blk.", *layer, ".nextn.eh_proj.weight")) != nullptr;
  }

  const gguf::Document* document_;
  JobOptions options_;
  std::vector<format::Info> formats_;
};

}  // namespace mica::quantize
