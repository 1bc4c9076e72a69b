// SPDX-License-Identifier: Apache-2.0
//
// The closed list of families.
#pragma once

#include "mica/arch/llama.hpp"
#include "mica/base/type_list.hpp"

namespace mica::arch {

using All = TypeList<Llama>;

}  // namespace mica::arch
