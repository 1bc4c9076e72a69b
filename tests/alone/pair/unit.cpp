// SPDX-License-Identifier: Apache-2.0
//
// Compiled twice (pairs.cmake): the names are the same, the settings are not.

#include "alone/pair/unit.hpp"

#include "mica/gguf/fingerprint.hpp"
#include "mica/io/checksum.hpp"
#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/text/bpe.hpp"
#include "mica/text/pretokenize.hpp"

#include <span>

namespace {

std::uint64_t checksum(const std::string& bytes) {
  mica::io::Checksum sum;
  sum.add(std::as_bytes(std::span(bytes)));
  return sum.value();
}

std::size_t words(const std::string& text) {
  const mica::text::Pretokenizer pretokenizer(mica::text::pretokenizer_rules("gpt-2"));
  std::size_t count = 0;
  pretokenizer.split(text, [&](std::string_view) { ++count; });
  return count;
}

const bool entered = (units().push_back({MICA_UNIT,
                                         {sizeof(mica::io::Checksum), sizeof(mica::kv::SnapshotReader),
                                          sizeof(mica::kv::SnapshotWriter), sizeof(mica::text::Pretokenizer),
                                          sizeof(mica::text::Bpe)},
                                         checksum,
                                         words}),
                      true);

}  // namespace
