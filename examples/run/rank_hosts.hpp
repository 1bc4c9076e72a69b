// SPDX-License-Identifier: Apache-2.0
//
// A file that describes the machines of ranks, for mica plan --ranks:
//
//   network speed=1Gbit/s latency=100us
//   node1 memory=6GiB reads=20GB/s
//   node2 memory=2GiB reads=12GB/s disk=1GB/s     # what follows a # is a comment
#pragma once

#include "mica_tools/fit/rank_plan.hpp"

#include <string>
#include <vector>

namespace mica::program {

struct RankHosts {
  std::vector<plan::RankMachine> machines;  // in the order of the lines
  plan::Network network;
};

/// Raises ErrorCode::file, naming the line, for text that describes no machines.
[[nodiscard]] RankHosts parse_rank_hosts(const std::string& path, const std::string& text);

/// The table of mica plan --ranks.
[[nodiscard]] std::string ranks_text(const RankHosts& hosts, const plan::RanksPlan& plan,
                                     const std::string& model_path);
[[nodiscard]] std::string ranks_json(const RankHosts& hosts, const plan::RanksPlan& plan);

}  // namespace mica::program
