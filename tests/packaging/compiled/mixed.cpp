// SPDX-License-Identifier: Apache-2.0
//
// One call of a kernel, to see whether it links.

#include "mica/kernel/highway.hpp"

int main() { mica::kernel::Highway::add({}); }
