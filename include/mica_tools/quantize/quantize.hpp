// SPDX-License-Identifier: Apache-2.0
//
// Writes a model in other formats: header first, then tensor by tensor as it is converted, so that memory
// does not grow with the file. The output appears whole or not at all.
#pragma once

#include "mica/gguf/detail/shard_name.hpp"
#include "mica_tools/quantize/convert.hpp"
#include "mica_tools/quantize/job.hpp"

#include <filesystem>
#include <string>
#include <utility>

namespace mica::quantize {

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
