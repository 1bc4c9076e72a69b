// SPDX-License-Identifier: Apache-2.0
//
// The room budget: the ledger of bytes and the limits of the machine.
#pragma once

#include "mica/budget/account.hpp"
#include "mica/budget/growth.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/pressure.hpp"
#include "mica/budget/size.hpp"
