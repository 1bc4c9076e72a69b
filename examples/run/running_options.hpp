// SPDX-License-Identifier: Apache-2.0
//
// The flags of verbs that run or plan a model: how it is opened and computed.
#pragma once

#include "choice.hpp"
#include "flags.hpp"
#include "mica/runtime/open_options.hpp"
#include "ranks.hpp"
#include "verb.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

struct RunningOptions {
  std::size_t n_ctx = 0;
  std::size_t threads = 0;
  std::string targets;  // the newest instruction set that kernels may use; empty: the machine's
  std::size_t chunk = 512;
  bool chunk_given = false;
  std::string memory;  // "6GiB", "75%", empty
  ChoiceWords choice;
  bool elements_given = false;  // -ctk or -ctv was given
  bool weights_given = false;
  bool storage_given = false, eviction_given = false;
  bool degrade = false;  // choices that change numbers may be made to fit
  std::string rank_shares_text;
  std::vector<double> rank_shares;  // empty: equal ones
  ranks::Split rank_split = ranks::Split::rows;
  std::shared_ptr<ranks::AnyLink> link = {};  // to the other processes of mpirun; null: this one is alone

  budget::MemoryLimits limits;                // when the program began
  std::optional<std::uint64_t> memory_bytes;  // --memory in bytes, within the limits
  bool other_machine = false;                 // --memory may be that of another machine

  /// context, standard: what help says of -c.
  void add_to(Flags& flags, std::string context = "tokens of context; 0: what the model was trained for",
              std::string standard = "0");
  /// For verbs that run on several ranks.
  void add_ranks(Flags& flags);
  /// For verbs that change choices to fit the budget.
  void add_degrade(Flags& flags);

 private:
  void settle_memory(std::vector<std::string>& notes);
};

/// A verb that runs or plans a model.
class RunningVerb : public Verb, public RunningOptions {
 public:
  using Verb::Verb;
  void prepare() override;
  /// Whether this process repeats what rank 0 does.
  [[nodiscard]] bool follows() const noexcept { return link != nullptr && link->rank() != 0; }
};

/// --rank-split
void add_rank_split(Flags& flags, ranks::Split& split);

/// -t: 0 is as many as affinity and the CPU quota allow.
void add_threads(Flags& flags, std::size_t& threads, std::string group);

/// How the library opens the model.
[[nodiscard]] OpenOptions open_options(const RunningOptions& options);

}  // namespace mica::program
