// SPDX-License-Identifier: Apache-2.0
//
// Opens models on servers, to plan and to inspect them: it reads headers by range requests, no weights, and
// writes nothing. docs/remote.md lists the requirements of a server.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/remote/client.hpp"
#include "mica_tools/remote/options.hpp"
#include "mica_tools/remote/ranges.hpp"
#include "mica_tools/remote/url.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mica::remote {

namespace detail {

/// More than any model has: published ones have some 300.
inline constexpr std::uint32_t max_shards = 2000;

[[nodiscard]] inline gguf::Source source_of(const std::shared_ptr<Client>& client, Url url,
                                            std::string_view missing) {
  std::string name = url.shown();
  if (const auto shard = gguf::ShardName::parse(name)) {
    MICA_CHECK(shard->count <= max_shards, limit, name, ": one of ", shard->count, " shards; at most ",
               max_shards, " are requested");
  }
  auto ranges = std::make_unique<Ranges>(client, std::move(url), missing);
  const std::uint64_t size = ranges->size();
  return gguf::Source(std::move(name), size, std::move(ranges));
}

}  // namespace detail

/// Opens a GGUF file behind a URL, with any shard of a model all its shards. Raises as gguf::open(),
/// Url::parse() and Client::get(); texts name the file without credentials and query.
/// Cost: the header and less than Options::piece_bytes, for each file, a request for each of these pieces.
[[nodiscard]] inline gguf::Document open(std::string_view url, Options options = {}) {
  const Url requested = Url::parse(url);
  const auto client = std::make_shared<Client>(requested, std::move(options));
  const std::size_t before_path = requested.origin().size();
  gguf::Document document =
      gguf::open(requested.shown(), [&](const std::string& name, std::string_view missing) {
        Url one = requested;
        one.path = name.substr(before_path);
        return detail::source_of(client, std::move(one), missing);
      });
  client->hang_up();
  return document;
}

}  // namespace mica::remote
