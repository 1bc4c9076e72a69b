// SPDX-License-Identifier: Apache-2.0
//
// Opens models: a GGUF file, a set of shards, a packed directory, or bytes in memory. Reads headers and
// nothing else.
#pragma once

#include "mica/gguf/detail/header.hpp"
#include "mica/gguf/detail/packed_files.hpp"
#include "mica/gguf/detail/shard_name.hpp"
#include "mica/gguf/document.hpp"

#include <functional>

namespace mica::gguf {

/// Opens a GGUF file of version 2 or 3, with any shard of a model all its shards, or a packed directory.
/// Raises ErrorCode::file when something is missing, cut, damaged or contradicts itself; unsupported for a
/// version, byte order or block type that is not known; limit for a header larger than any honest one. Every
/// text names the culprit. `formats`: those that the file may have; format::table<List>() makes a table of a
/// program's own.
/// Cost: reads the headers; allocates at most four times what it reads and 16 MiB.
[[nodiscard]] Document open(std::string path, format::Table formats = format::known);

/// Opens a file of a model by its name. `missing` is what an error adds when there is no such file; empty for
/// the file that the user named.
using OpenSource = std::function<Source(const std::string& name, std::string_view missing)>;

/// The same for files that `open_source` opens by name, such as those of a server. Also raises its errors.
[[nodiscard]] Document open(const std::string& name, const OpenSource& open_source,
                            format::Table formats = format::known);

/// The same for a model of one file that lies in memory. `name` stands for the file in error texts.
/// Requires that the memory outlives the Document.
[[nodiscard]] Document parse(std::span<const std::byte> bytes, std::string_view name,
                             format::Table formats = format::known);

/// The same for a model of one file, wherever that is.
[[nodiscard]] Document open(Source source, format::Table formats = format::known);

namespace detail {

struct Shard {
  std::uint32_t index = 0;  // from 0
  std::uint32_t count = 1;
};

[[nodiscard]] inline Shard shard_of(const Metadata& metadata) {
  const auto count = metadata.get<std::uint16_t>("split.count").value_or(1);
  if (count <= 1) return {};
  const Shard shard{metadata.require<std::uint16_t>("split.no"), count};
  MICA_CHECK(shard.index < shard.count, file, metadata.file(), ": key 'split.no' is ", shard.index,
             "; a model of ", count, " shards has numbers 0 to ", count - 1);
  return shard;
}

/// The name of a shard, checked against what the file says about itself.
[[nodiscard]] inline ShardName name_of_shard(const std::string& path, Shard shard) {
  const auto name = ShardName::parse(path);
  const ShardName needed{"NAME", shard.index + 1, shard.count};
  MICA_CHECK(name && name->number == needed.number && name->count == needed.count, file, path,
             ": this is shard ", needed.number, " of ", needed.count, " by its metadata (split.no ",
             shard.index, ", split.count ", shard.count, "); its name must end as ", needed.path(), " does");
  return *name;
}

/// One file of a model and what it says.
struct OpenShard {
  OpenShard(Source from, format::Table formats)
      : source(std::move(from)), header(read_header(source, formats)) {}
  Source source;
  Header header;
};

/// Checks that a part is the i-th shard (from 0) of `count`.
inline void check_shard(const OpenShard& part, std::uint32_t i, std::uint32_t count) {
  const Shard shard = shard_of(part.header.metadata);
  MICA_CHECK(shard.count == count && shard.index == i, file, part.source.path(), ": this is shard ",
             shard.index + 1, " of ", shard.count, " by its metadata (split.no ", shard.index, "); shard ",
             i + 1, " of ", count, " is needed");
}

/// Opens all shards but the one that is open already.
[[nodiscard]] inline Document open_shards(const ShardName& name, OpenShard known,
                                          const OpenSource& open_source) {
  const format::Table formats = known.header.formats;
  std::vector<Source> sources;
  Header whole;
  for (std::uint32_t i = 0; i < name.count; ++i) {
    const std::string missing = join("shard ", i + 1, " of ", name.count, " is missing");
    OpenShard part = i + 1 == name.number ? std::move(known)
                                          : OpenShard(open_source(name.path_of(i + 1), missing), formats);
    check_shard(part, i, name.count);
    const auto promised = part.header.metadata.get<std::uint64_t>("split.tensors.count");
    if (i == 0) std::swap(whole, part.header);
    for (TensorInfo& tensor : part.header.tensors) {
      tensor.source = i;
      whole.tensors.push_back(std::move(tensor));
    }
    MICA_CHECK(whole.tensors.size() <= max_tensors, limit, part.source.path(),
               ": the shards up to this one have ", whole.tensors.size(), " tensors; ", max_tensors,
               " are allowed");
    MICA_CHECK(i + 1 < name.count || !promised || *promised == whole.tensors.size(), file, part.source.path(),
               ": the ", name.count, " shards have ", whole.tensors.size(),
               " tensors, key 'split.tensors.count' promises ", *promised, "; a shard is of another model");
    sources.push_back(std::move(part.source));
  }
  return Document(std::move(sources), std::move(whole));
}

[[nodiscard]] inline Document single(OpenShard part) {
  std::vector<Source> sources;
  sources.push_back(std::move(part.source));
  return Document(std::move(sources), std::move(part.header));
}

/// Raises for a folder that is not a packed directory; the message names the first GGUF file in it.
[[noreturn]] inline void refuse_folder(const std::string& path) {
  std::string first;
  io::detail::for_each_beside(path + "/", [&](int, std::string_view name) {
    if (name.ends_with(".gguf") && (first.empty() || name < first)) first = name;
    return true;
  });
  raise(ErrorCode::file, io::detail::shown(path), ": is a folder and no packed directory; ",
        first.empty() ? "it has no GGUF file" : "name a file in it, such as ", io::detail::shown(first));
}

[[nodiscard]] inline Source open_file(const std::string& path, std::string_view missing) {
  MICA_CHECK(missing.empty() || io::exists(path), file, path, ": no such file; ", missing);
  return Source(io::File::open(path));
}

}  // namespace detail

inline Document open(const std::string& name, const OpenSource& open_source, format::Table formats) {
  detail::OpenShard part(open_source(name, {}), formats);
  const detail::Shard shard = detail::shard_of(part.header.metadata);
  if (shard.count == 1) return detail::single(std::move(part));
  const ShardName first = detail::name_of_shard(part.source.path(), shard);
  return detail::open_shards(first, std::move(part), open_source);
}

inline Document open(std::string path, format::Table formats) {
  if (is_packed_folder(path)) {
    PackedFiles files = open_packed_files(path, formats);
    return Document(std::move(files.sources), std::move(files.manifest), std::move(path));
  }
  if (io::is_folder(path)) detail::refuse_folder(path);
  return open(path, detail::open_file, formats);
}

inline Document open(Source source, format::Table formats) {
  detail::OpenShard part(std::move(source), formats);
  const detail::Shard shard = detail::shard_of(part.header.metadata);
  MICA_CHECK(shard.count == 1, file, part.source.path(), ": shard ", shard.index + 1, " of ", shard.count,
             " alone; a sharded model is opened from its files");
  return detail::single(std::move(part));
}

inline Document parse(std::span<const std::byte> bytes, std::string_view name, format::Table formats) {
  return open(Source(std::string(name), bytes), formats);
}

}  // namespace mica::gguf
