// SPDX-License-Identifier: Apache-2.0
//
// Asks a hub for the files of a repository, by the API of Hugging Face: /api/models/REPO/revision/REVISION
// for the commit, /api/models/REPO/tree/COMMIT?recursive=1 for the list, in pages.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/parse_listing.hpp"
#include "mica_tools/hub/resolve_url.hpp"
#include "mica_tools/remote/client.hpp"
#include "mica_tools/remote/token.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::hub {

/// Of an answer, and of a listing; more is refused.
inline constexpr std::size_t max_page_bytes = std::size_t{16} << 20;
inline constexpr std::size_t max_pages = 200;

namespace detail {

/// The target of `<URL>; rel="next"`; empty when the field has none.
[[nodiscard]] inline std::optional<std::string> next_page(std::string_view link) {
  const std::size_t begin = link.find('<'), end = link.find('>');
  if (begin == link.npos || end == link.npos || end < begin) return std::nullopt;
  if (link.find("rel=\"next\"", end) == link.npos) return std::nullopt;
  return std::string(link.substr(begin + 1, end - begin - 1));
}

}  // namespace detail

class Repository {
 public:
  /// The token is that of the environment, for the endpoint. Raises as remote::hub_endpoint().
  Repository(const Name& name, remote::Options options = {})
      : name_(name), endpoint_(remote::hub_endpoint()), client_(endpoint_, with_token(std::move(options))) {}

  /// The GGUF files of the named revision. Raises as remote::Client::get(), file for an answer that is no
  /// listing, limit for one that is too long.
  [[nodiscard]] Listing listing() {
    const std::string api = join("/api/models/", name_.repo);
    remote::Url url = at(join(api, "/revision/", name_.revision));
    const std::string where = url.shown();
    Listing listing = parse_revision(text_of(url), where, name_.repo);
    url = at(join(api, "/tree/", listing.commit));
    url.query = "?recursive=1";
    for (std::size_t page = 0;; ++page) {
      MICA_CHECK(page < max_pages, limit, url.shown(), ": more than ", max_pages, " pages of files");
      link_.clear();
      const std::string text = text_of(url);
      add_page(text, url.shown(), listing);
      const auto next = detail::next_page(link_);
      if (!next) break;
      const remote::Url there = url.resolved(*next);
      MICA_CHECK(there.origin() == url.origin(), file, url.shown(), ": the next page of files is at ",
                 there.shown(), ", which is another server");
      url = there;
    }
    client_.hang_up();
    return listing;
  }

 private:
  [[nodiscard]] remote::Options with_token(remote::Options options) const {
    options.token = remote::token_for(endpoint_);
    return options;
  }
  [[nodiscard]] remote::Url at(const std::string& path) const {
    remote::Url url = endpoint_;
    url.path += path;
    return url;
  }
  /// The answer to one question of the API.
  [[nodiscard]] std::string text_of(remote::Url& url) {
    const std::string name = url.shown();
    std::vector<std::byte> text(max_page_bytes);
    const std::string missing =
        join("is there a repository ", name_.repo, " with a revision ", name_.revision, "?");
    remote::Range range{name, 0,       text,
                        {},   missing, [this](const remote::detail::Head& head) { link_ = head.link; }};
    range.whole = true;
    range.restricted = "the hub also answers so for a repository that it does not have";
    const std::size_t bytes = client_.get(url, range);
    return {reinterpret_cast<const char*>(text.data()), bytes};
  }

  Name name_;
  remote::Url endpoint_;
  remote::Client client_;
  std::string link_;  // of the last answer
};

}  // namespace mica::hub
