// SPDX-License-Identifier: Apache-2.0
//
// Models by name: hf.co/ORG/REPO:QUANT, -hf ORG/REPO, a short name. A name becomes the path of a file in the
// cache that Hugging Face's tools share, without a request where the file is there; else the file is downloaded,
// after a plan of its header. A verb that needs a header alone gets a URL in its place.
#pragma once

#include "mica/runtime/open_options.hpp"
#include "mica_tools/fit/fallbacks.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/variant.hpp"
#include "verb.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

/// Whether a word that is no file is a model by name.
[[nodiscard]] bool is_model_name(const std::string& word);

/// The model of a hub that a word names; empty for a URL that is none of a hub and for a path, which is what an
/// existing file is. Raises ErrorCode::usage for a name that is written wrong.
[[nodiscard]] std::optional<hub::Name> hub_name_of(const std::string& word);

/// The model of a hub that -hf or the first word name; empty. Raises as hub_name_of(), and for both.
[[nodiscard]] std::optional<hub::Name> hub_name_of(const Verb& verb);

/// Replaces the names of a verb's models by paths or URLs; downloads what is not here. Raises as hub::fetch() and
/// what planning raises, budget for a model that does not fit in any way, and a Stop after an interrupt.
void find_named_model(Verb& verb);

/// A variant of a model, here or on its hub.
struct FoundModel {
  hub::Name name;  // with the quantisation
  std::string commit;
  hub::Variant variant;
  std::string place;  // the path or URL that opens it
  bool here = false;  // all of its files
};

/// What the choice of a variant depends on.
struct Wish {
  std::uint64_t budget = 0;  // bytes of memory
  std::size_t n_ctx = 0;     // 0: that of mica fit
};

/// The model in the cache; empty when it is not there.
[[nodiscard]] std::optional<FoundModel> find_here(const Verb& verb, const hub::Name& name, const Wish& wish);
/// The model on its hub. Raises as hub::Repository::listing(), and file for one that the hub does not have.
[[nodiscard]] FoundModel find_there(const Verb& verb, const hub::Name& name, const Wish& wish);

/// How a model is downloaded.
struct Pull {
  std::size_t connections = 4;
  bool force = false;   // also what does not fit
  bool events = false;  // progress as JSON on stdout
};

/// Says what a model needs, before it is downloaded. open: how it will be opened; free: what a run may change.
/// Raises ErrorCode::budget for one that does not fit, unless force is set.
void plan_download(const Verb& verb, const FoundModel& found, OpenOptions open, plan::Adjustable free,
                   bool force);

/// Downloads a model and returns the path that opens it. Raises as hub::fetch(), and a Stop after an interrupt.
[[nodiscard]] std::string download(const Verb& verb, const FoundModel& found, const Pull& pull);

/// Whether the environment or a flag forbids requests.
[[nodiscard]] bool is_offline(const Verb& verb);

}  // namespace mica::program
