// SPDX-License-Identifier: Apache-2.0
//
// Work in a process of its own.
#pragma once

#include <functional>
#include <string>

namespace mica::program {

/// The path that work() gives, in a child process: the memory of a download, with the libraries for networks, is
/// free before the model is loaded, so it is no part of the budget of a run. If the child fails it has said why,
/// and this process ends with its code. In this process where no child can be had.
[[nodiscard]] std::string in_child(const std::function<std::string()>& work);

}  // namespace mica::program
