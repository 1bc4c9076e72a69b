// SPDX-License-Identifier: Apache-2.0
//
// The threads of a step. An executor runs numbered tasks on a fixed number of workers. It chooses the worker
// of a task, so a result must never depend on it. A worker's number picks scratch and nothing else.
#pragma once

#include <concepts>
#include <cstddef>

namespace mica {

namespace detail {

struct AnyTask {
  void operator()(std::size_t task, std::size_t worker) const noexcept;
};

}  // namespace detail

/// Runs tasks. workers() >= 1 and never changes.
/// run(tasks, f): calls f(task, worker) once for each task in [0, tasks), worker < workers(), no two calls
/// with the same worker at a time; returns when all are done, their writes visible to the caller. f does not
/// throw and does not call run. Denormals count as zero inside f, on every worker. Allocates nothing. One run
/// at a time.
// clang-format off
template <class E>
concept Executor = requires(E& executor, const E& constant, std::size_t tasks, const detail::AnyTask& f) {
  { constant.workers() } noexcept -> std::same_as<std::size_t>;
  { executor.run(tasks, f) } noexcept -> std::same_as<void>;
};
// clang-format on

}  // namespace mica
