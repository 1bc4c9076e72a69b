// SPDX-License-Identifier: Apache-2.0
//
// Reads the answers of the hub's API. They are not trusted: names that lead out of a folder, wrong types,
// endless lists and invalid checksums raise an error.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/json/parse_json.hpp"
#include "mica_tools/remote/url.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::hub {

inline constexpr std::size_t max_files = 100'000;                   // of a repository
inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << 62;  // of all of them: sums are exact

namespace detail {

/// The member of that name; null when there is none or it has another type.
[[nodiscard]] inline const std::string* text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return !object.is_object() || found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

/// An integer of at least 0; raises ErrorCode::file for any other value.
[[nodiscard]] inline std::uint64_t bytes_of(const nlohmann::json& object, const std::string& where) {
  const auto found = object.find("size");
  MICA_CHECK(found != object.end() && found->is_number_unsigned(), file, where,
             ": its size is not a whole number");
  return found->get<std::uint64_t>();
}

}  // namespace detail

/// A listing without files: the commit of a revision and the spelling of the repository, from the answer to
/// /api/models/REPO/revision/REVISION. `name` stands for the answer in errors. Raises ErrorCode::file for an
/// answer without a commit.
[[nodiscard]] inline Listing parse_revision(std::string_view text, const std::string& name,
                                            std::string_view repo) {
  const nlohmann::json answer = io::parse_json(text, name);
  const std::string* const commit = detail::text_of(answer, "sha");
  MICA_CHECK(commit != nullptr && is_commit(*commit), file, name,
             ": no commit in the answer (key 'sha' with 40 hexadecimal digits); is this the API of a hub?");
  const std::string* const id = detail::text_of(answer, "id");
  const bool same = id != nullptr && remote::detail::lower(*id) == remote::detail::lower(repo);
  return {same ? *id : std::string(repo), *commit, {}};
}

/// Adds the GGUF files of one page of /api/models/REPO/tree/COMMIT to a listing. Raises ErrorCode::file for
/// an answer that is no list of files, limit for more than max_files.
inline void add_page(std::string_view text, const std::string& name, Listing& to) {
  const nlohmann::json answer = io::parse_json(text, name);
  MICA_CHECK(answer.is_array(), file, name, ": the answer is no list of files; is this the API of a hub?");
  std::uint64_t all = 0;
  for (const File& each : to.files) all += each.bytes;
  for (const nlohmann::json& entry : answer) {
    const std::string* const path = detail::text_of(entry, "path");
    MICA_CHECK(path != nullptr, file, name, ": a file of the list has no path");
    const std::string* const type = detail::text_of(entry, "type");
    if (type == nullptr || *type != "file" || !remote::detail::lower(*path).ends_with(".gguf")) continue;
    const std::string where = join(name, ": ", escaped(*path, 200));
    MICA_CHECK(is_safe_path(*path), file, where,
               ": a path of the list that no file may have (absolute, with '..', with control characters, a "
               "name of more "
               "than 200 bytes, or more than eight folders)");
    const auto lfs = entry.find("lfs");
    const std::string* const sum = lfs == entry.end() ? nullptr : detail::text_of(*lfs, "oid");
    MICA_CHECK(sum != nullptr && sum->size() == 64 &&
                   sum->find_first_not_of("0123456789abcdef") == std::string::npos,
               file, where, ": the list has no SHA-256 of this file (lfs.oid), so it cannot be checked");
    const std::uint64_t bytes = detail::bytes_of(entry, where);
    MICA_CHECK(bytes != 0 && detail::bytes_of(*lfs, where) == bytes, file, where,
               ": the list names two sizes of this file, or none");
    MICA_CHECK(bytes <= max_bytes - all, file, where, ": found ", bytes, " bytes, allowed ", max_bytes - all);
    all += bytes;
    MICA_CHECK(to.files.size() < max_files, limit, name, ": more than ", max_files, " files");
    to.files.push_back({*path, bytes, *sum});
  }
}

}  // namespace mica::hub
