// SPDX-License-Identifier: Apache-2.0
//
// The one unit that knows MPI, in a module of its own: the program loads it when mpirun started it, so that
// no other run needs an MPI library.
#include "module.hpp"

#include "mica_tools/mpi/world.hpp"

extern "C" void mica_join_ranks(std::shared_ptr<mica::ranks::AnyLink>& link, void (*on_stuck)() noexcept) {
  link = std::make_shared<mica::mpi::World>(mica::mpi::WorldOptions{.on_stuck = on_stuck});
}
