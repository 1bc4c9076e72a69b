// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include "console.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/fingerprint.hpp"
#include "mica/kv/elements.hpp"
#include "mica/version.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#ifdef MICA_MPI_MODULE
#include "ranks/module.hpp"

#include <dlfcn.h>
#endif

namespace mica::program {
namespace {

/// A positive number of the environment, 0 without one.
std::size_t number_of(const char* name) {
  const char* const text = std::getenv(name);
  std::size_t n = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), n);
  return n;
}

/// Processes that were started with this one: by Open MPI, by MPICH and its relatives, or by Slurm with PMIx.
std::size_t processes() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const std::size_t n = number_of(name); n != 0) return n;
  }
  return std::getenv("PMIX_RANK") == nullptr ? 1 : number_of("SLURM_STEP_NUM_TASKS");
}

#ifdef MICA_MPI_MODULE
[[noreturn]] void end_stuck() noexcept {
  write_error_line(
      "the ranks did not meet within 30 s: one did not start, or has died; look at the hosts of "
      "mpirun, and start all again");
  std::_Exit(1);
}
#endif

/// A fact that must be the same on all ranks.
struct Fact {
  std::string_view what;
  std::uint64_t value;
};

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace

std::shared_ptr<ranks::AnyLink> join_ranks(std::string_view alone) {
  const std::size_t n = processes();
  if (n <= 1) return nullptr;
  MICA_CHECK(alone.empty(), unsupported, "mica ", alone, " runs as one process, and mpirun started ", n,
             "; run, chat, complete and serve run as several");
#ifdef MICA_MPI_MODULE
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : {MICA_MPI_MODULE, MICA_MPI_MODULE_INSTALLED}) {
    void* const module =
        ::dlopen((folder / place).c_str(), RTLD_NOW | RTLD_GLOBAL);  // Open MPI loads parts of itself
    void* const function = module ? ::dlsym(module, "mica_join_ranks") : nullptr;
    if (function == nullptr) continue;
    std::shared_ptr<ranks::AnyLink> link;
    reinterpret_cast<decltype(&mica_join_ranks)>(function)(link, end_stuck);
    return link;
  }
  raise(ErrorCode::unsupported, "this is one of ", n,
        " processes of mpirun, and the module for MPI cannot be loaded: ", escaped(::dlerror(), 300),
        "; install it with the program, or start one process");
#else
  raise(ErrorCode::unsupported, "this is one of ", n,
        " processes of mpirun, and this program was built without MPI; install libopenmpi-dev or "
        "libmpich-dev and build "
        "it again, or start one process");
#endif
}

std::vector<double> parse_shares(const std::string& text, const std::string& where) {
  std::vector<double> shares;
  std::string_view rest = text;
  while (true) {
    const std::string_view word = rest.substr(0, rest.find(','));
    double share = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), share);
    MICA_CHECK(error == std::errc() && end == word.data() + word.size() && share > 0 && share <= 1e6, usage,
               where, ": found '", escaped(text),
               "', needed are numbers above 0, one for each rank, such as 2,1,1");
    shares.push_back(share);
    if (word.size() == rest.size()) return shares;
    rest.remove_prefix(word.size() + 1);
  }
}

void refuse_different_ranks(ranks::AnyLink& link, const gguf::Document& document, const OpenOptions& open,
                            const std::vector<double>& shares, ranks::Split split) {
  std::string division;
  for (const double share : shares) division += join(share, ",");
  const std::array facts = {
      Fact{"version of the program", hash_of(version)},
      Fact{"model", gguf::fingerprint(document)},
      Fact{"-c (tokens of context)", open.n_ctx},
      Fact{"-b (tokens of a step)", open.chunk},
      Fact{"rows of logits (flags for drafts)", open.logits_rows},
      Fact{"-ctk or -ctv (elements of keys and values)",
           hash_of(join(kv::name(open.choice.cache_type_k), " ", kv::name(open.choice.cache_type_v), " ",
                        open.choice.cache_recent))},
      Fact{"--evict", hash_of(join(open.choice.evict.capacity(), " ", open.choice.evict.needs_scores(), " ",
                                   open.choice.evict.decay()))},
      Fact{"--kernels", open.choice.fast8 ? 1U : 0U},
      Fact{"--rank-shares", hash_of(division)},
      Fact{"--rank-split", static_cast<std::uint64_t>(split)},
  };
  for (const Fact& fact : facts) {
    std::vector<std::uint64_t> all(link.size());
    std::vector<std::size_t> ends(link.size());
    for (std::size_t r = 0; r < ends.size(); ++r) ends[r] = (r + 1) * sizeof(std::uint64_t);
    all[link.rank()] = fact.value;
    MICA_CHECK(link.exchange(std::as_writable_bytes(std::span(all)), ends), failed,
               "another rank is gone, or did not answer in time");
    for (std::size_t r = 1; r < all.size(); ++r) {
      MICA_CHECK(
          all[r] == all[0], usage, "rank ", r, " and rank 0 differ: ", fact.what,
          "; all ranks need the same program, model and flags, also where a smaller memory chose others");
    }
  }
}

bool begins_again(ranks::AnyLink& link, bool again) noexcept {
  std::array message = {std::byte{again}};
  const std::vector<std::size_t> ends(link.size(), message.size());  // all of it is of rank 0
  return link.exchange(message, ends) && message[0] != std::byte{0};
}

}  // namespace mica::program
