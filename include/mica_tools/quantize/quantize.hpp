// SPDX-License-Identifier: Apache-2.0
//
// Writes a model in other formats: header first, then tensor by tensor as it is converted, slice by slice: a
// slice is read, its rows are decoded and encoded by the workers of an executor, and written. So memory does
// not grow with the file. The output appears whole or not at all.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/exec/concept.hpp"
#include "mica/gguf/detail/shard_name.hpp"
#include "mica/gguf/document.hpp"
#include "mica/gguf/read_plain.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/encode/encode.hpp"
#include "mica_tools/quantize/importance.hpp"
#include "mica_tools/quantize/job.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::quantize {

/// Called with the number of values done since the last call. May throw, which ends the work and leaves no
/// file.
using OnValues = std::function<void(std::uint64_t)>;

/// Converts tensors of a document. The same bytes for any number of workers.
template <Executor E>
class Converter {
 public:
  static constexpr std::size_t default_slice = std::size_t{1} << 22;  // values: 16 MiB of F32

  /// slice: values read at a time, at least a row. What is given outlives this.
  Converter(gguf::DocumentRef document, E& executor, OnValues on_values, std::size_t slice = default_slice,
            format::RowCodecs codecs = format::known_codecs)
      : document_(document),
        executor_(executor),
        on_values_(std::move(on_values)),
        slice_(slice),
        codecs_(codecs) {}

  /// Hands the tensor's bytes to the sink as they are.
  void copy(const gguf::TensorInfo& tensor, const gguf::Sink& sink) {
    const std::uint64_t piece = slice_ * sizeof(float);
    for (std::uint64_t at = 0; at < tensor.bytes; at += piece) {
      read(tensor, at, static_cast<std::size_t>(std::min(piece, tensor.bytes - at)));
      sink(in_);
    }
    done(tensor.elements());
  }
  /// Hands the tensor over in another format. Requires formats that can be read and written, and a width of
  /// whole blocks. importance: null, or that of this tensor. Raises ErrorCode::file when a number is not
  /// finite.
  void convert(const gguf::TensorInfo& tensor, format::Id to, const ImportanceEntry* importance,
               const gguf::Sink& sink) {
    const auto width = static_cast<std::size_t>(tensor.width());
    const auto all = static_cast<std::size_t>(tensor.rows());
    const std::size_t at_once = std::max<std::size_t>(1, slice_ / width);
    const std::size_t row_in = tensor.format.row_bytes(width);
    const std::size_t row_out = codecs_.formats().find(to)->row_bytes(width);
    take_means(tensor, importance);
    scratch_.resize(executor_.workers() * width);
    for (std::size_t first = 0; first < all; first += at_once) {
      const std::size_t count = std::min(at_once, all - first);
      read(tensor, std::uint64_t{first} * row_in, count * row_in);
      out_.resize(count * row_out);
      convert_rows({tensor, to, first, count});
      sink(out_);
      done(std::uint64_t{count} * width);
    }
  }

 private:
  struct Rows {
    const gguf::TensorInfo& tensor;
    format::Id to;
    std::size_t first;  // of the tensor
    std::size_t count;
  };

  void read(const gguf::TensorInfo& tensor, std::uint64_t offset, std::size_t bytes) {
    in_.resize(bytes);
    gguf::read_plain(document_, tensor, offset, in_, codecs_.packing());
  }
  void convert_rows(const Rows& rows) {
    const auto width = static_cast<std::size_t>(rows.tensor.width());
    const std::size_t row_in = in_.size() / rows.count;
    const std::size_t row_out = out_.size() / rows.count;
    const std::size_t together = std::max<std::size_t>(1, 8192 / width);  // enough work for a task
    const format::RowCodec from = codecs_.find(rows.tensor.format.id), to = codecs_.find(rows.to);
    std::atomic<bool> finite{true};
    executor_.run((rows.count + together - 1) / together, [&](std::size_t task, std::size_t worker) noexcept {
      const std::span<float> values = std::span(scratch_).subspan(worker * width, width);
      const std::size_t last = std::min(rows.count, (task + 1) * together);
      for (std::size_t row = task * together; row < last; ++row) {
        from.decode(std::span(in_).subspan(row * row_in, row_in), values);
        if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }))
          finite = false;
        to.encode(values, width, importance_of(rows.tensor, rows.first + row), out_.data() + row * row_out);
      }
    });
    MICA_CHECK(finite, file, document_.source(rows.tensor).path(), ": tensor '", escaped(rows.tensor.name),
               "' holds numbers that are not finite, between rows ", rows.first, " and ",
               rows.first + rows.count);
  }

  void take_means(const gguf::TensorInfo& tensor, const ImportanceEntry* importance) {
    means_.clear();
    const auto experts = static_cast<std::size_t>(tensor.dims[2]);
    for (std::size_t expert = 0; importance != nullptr && expert < experts; ++expert)
      means_.push_back(
          importance->means(tensor.name, expert, experts, static_cast<std::size_t>(tensor.width())));
  }
  [[nodiscard]] std::span<const float> importance_of(const gguf::TensorInfo& tensor,
                                                     std::size_t row) const noexcept {
    if (means_.empty()) return {};
    return means_[row / static_cast<std::size_t>(tensor.dims[1]) % means_.size()];
  }
  void done(std::uint64_t values) {
    if (on_values_) on_values_(values);
  }

  const gguf::Document& document_;
  E& executor_;
  OnValues on_values_;
  std::size_t slice_;
  format::RowCodecs codecs_;
  std::vector<std::byte> in_, out_;
  std::vector<float> scratch_;             // a row for each worker
  std::vector<std::vector<float>> means_;  // a row of importance for each expert, or none
};

namespace detail {

inline void refuse_own_input(const gguf::Document& document, const std::string& path) {
  std::error_code error;
  for (const gguf::Source& source : document.sources()) {
    MICA_CHECK(!std::filesystem::equivalent(source.path(), path, error), usage, path,
               ": is the file that is read; choose another output name");
  }
}

/// Adds the tensors of one file of the document, or of all.
template <Executor E>
void add_tensors(gguf::Writer& writer, const Job& job, Converter<E>& converter,
                 std::optional<std::uint32_t> source) {
  const auto tensors = job.document().tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const gguf::TensorInfo& tensor = tensors[i];
    if (source && tensor.source != *source) continue;
    writer.add(tensor.name, job.format(i).id, std::span(tensor.dims).first(tensor.n_dims),
               [&job, &converter, &tensor, i](const gguf::Sink& sink) {
                 if (job.changes(i))
                   return converter.convert(tensor, job.format(i).id, job.importance(i), sink);
                 converter.copy(tensor, sink);
               });
  }
}

}  // namespace detail

/// Does the job and writes one file. Raises as Job::check(), io::AtomicFile and Converter; nothing is written
/// then.
template <Executor E>
void quantize(const Job& job, const std::string& path, E& executor, OnValues on_values = {}) {
  job.check();
  detail::refuse_own_input(job.document(), path);
  Converter<E> converter(job.document(), executor, std::move(on_values), Converter<E>::default_slice,
                         job.codecs());
  gguf::Writer writer(job.codecs().formats());
  job.put_keys(writer);
  detail::add_tensors(writer, job, converter, std::nullopt);
  writer.write(path);
}

/// The same in as many files as the document has, named PREFIX-00001-of-0000N.gguf. Each of them appears
/// whole.
template <Executor E>
void quantize_shards(const Job& job, const std::string& prefix, E& executor, OnValues on_values = {}) {
  job.check();
  const auto count = static_cast<std::uint32_t>(job.document().sources().size());
  const gguf::ShardName name{prefix, 1, count};
  Converter<E> converter(job.document(), executor, std::move(on_values), Converter<E>::default_slice,
                         job.codecs());
  for (std::uint32_t shard = 0; shard < count; ++shard) {
    gguf::Writer writer(job.codecs().formats());
    if (shard == 0) job.put_keys(writer);
    writer.set("split.no", static_cast<std::uint16_t>(shard));
    writer.set("split.count", static_cast<std::uint16_t>(count));
    writer.set("split.tensors.count", static_cast<std::int32_t>(job.document().tensors().size()));
    detail::add_tensors(writer, job, converter, shard);
    const std::string path = name.path_of(shard + 1);
    detail::refuse_own_input(job.document(), path);
    writer.write(path);
  }
}

}  // namespace mica::quantize
