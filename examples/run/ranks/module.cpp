// SPDX-License-Identifier: Apache-2.0
//
// The one unit that knows MPI, in a module of its own: the program loads it when mpirun started it, so that
// no other run needs an MPI library.
#include "module.hpp"

#include "mica_tools/mpi/world.hpp"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace {

void end_stuck() noexcept {
  constexpr std::string_view line =
      "mica: error: the ranks did not meet within 30 s: one did not start, or has died; look at the hosts of "
      "mpirun, and start all again\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  std::_Exit(1);
}

}  // namespace

extern "C" void mica_join_ranks(std::shared_ptr<mica::ranks::AnyLink>& link) {
  link = std::make_shared<mica::mpi::World>(mica::mpi::WorldOptions{.on_stuck = end_stuck});
}
