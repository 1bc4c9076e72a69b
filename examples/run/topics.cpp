// SPDX-License-Identifier: Apache-2.0
#include "topics.hpp"

#include "topics/environment.hpp"
#include "topics/exit_codes.hpp"
#include "topics/formats.hpp"
#include "topics/kv.hpp"
#include "topics/memory.hpp"
#include "topics/models.hpp"
#include "topics/sampling.hpp"
#include "topics/sessions.hpp"
#include "topics/streaming.hpp"
#include "topics/templates.hpp"
#include "topics/tiers.hpp"

#include <algorithm>

namespace mica::program {

std::span<const Topic> topics() noexcept {
  static constexpr Topic all[] = {topic::models,   topic::memory,     topic::kv,         topic::streaming,
                                  topic::sampling, topic::formats,    topic::templates,  topic::sessions,
                                  topic::tiers,    topic::exit_codes, topic::environment};
  return all;
}

const Topic* find_topic(std::string_view name) noexcept {
  const auto all = topics();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Topic& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace mica::program
