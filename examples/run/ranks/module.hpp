// SPDX-License-Identifier: Apache-2.0
//
// What the module for MPI has for the program. Both are of one build, so they share types and exceptions.
#pragma once

#include "mica/ranks/several.hpp"

#include <memory>

/// Joins the processes that mpirun started. on_stuck: mpi::WorldOptions. Raises as mpi::World.
extern "C" void mica_join_ranks(std::shared_ptr<mica::ranks::AnyLink>& link, void (*on_stuck)() noexcept);
