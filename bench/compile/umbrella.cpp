// SPDX-License-Identifier: Apache-2.0
//
// What including everything costs.
#include "mica/mica.hpp"
