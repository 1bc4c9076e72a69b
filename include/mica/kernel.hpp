// SPDX-License-Identifier: Apache-2.0
//
// The room kernel: what computes; a program with the vector backend links the
// library of mica_add_kernels().
#pragma once

#include "mica/kernel/activation.hpp"
#include "mica/kernel/attention.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kernel/elementwise.hpp"
#include "mica/kernel/fast8.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/highway/abi.hpp"
#include "mica/kernel/highway/generic.hpp"
#include "mica/kernel/highway/instruction_sets.hpp"
#include "mica/kernel/highway/machine_options.hpp"
#include "mica/kernel/highway/reading.hpp"
#include "mica/kernel/matmul.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/kernel/recurrent.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kernel/scalar/attention.hpp"
#include "mica/kernel/scalar/chains.hpp"
#include "mica/kernel/scalar/elementwise.hpp"
#include "mica/kernel/scalar/matmul.hpp"
#include "mica/kernel/scalar/recurrent.hpp"
#include "mica/kernel/second_codes.hpp"
