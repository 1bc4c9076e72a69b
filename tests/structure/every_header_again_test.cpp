// SPDX-License-Identifier: Apache-2.0
//
// The other unit.

#include "every_header.hpp"

const char* version_seen_by_other_unit();
const char* version_seen_by_other_unit() { return mica::version.data(); }
