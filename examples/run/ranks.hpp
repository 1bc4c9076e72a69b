// SPDX-License-Identifier: Apache-2.0
//
// Several processes that mpirun started, which run one model together.
#pragma once

#include "mica/gguf/document.hpp"
#include "mica/ranks/several.hpp"
#include "mica/runtime/open_options.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

/// Bytes of an MPI library in a process, which no allocator sees: 6 to 7.5 MiB with Open MPI 4.1, on two and
/// four ranks of one machine (bench/machines.py).
inline constexpr std::uint64_t mpi_bytes = std::uint64_t{8} << 20;

/// The link to the other ranks; null where this process is alone. Raises ErrorCode::unsupported where there
/// are others, and the module for MPI is missing, or `alone` names a verb that runs as one process.
[[nodiscard]] std::shared_ptr<ranks::AnyLink> join_ranks(std::string_view alone);

/// Shares of ranks, "2,1,1". Raises ErrorCode::usage, beginning with `where`.
[[nodiscard]] std::vector<double> parse_shares(const std::string& text, const std::string& where);

/// Raises ErrorCode::usage on all ranks, naming one that runs another program, another model, or with other
/// options than rank 0.
void refuse_different_ranks(ranks::AnyLink& link, const gguf::Document& document, const OpenOptions& open,
                            const std::vector<double>& shares, ranks::Split split);

/// What rank 0 says to the others: that something begins again, or is over. True: it begins; false also where
/// a rank is gone.
[[nodiscard]] bool begins_again(ranks::AnyLink& link, bool again) noexcept;

}  // namespace mica::program
