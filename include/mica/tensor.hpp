// SPDX-License-Identifier: Apache-2.0
//
// The room tensor: matrices whose format is known when the file is.
#pragma once

#include "mica/tensor/any_matrix.hpp"
#include "mica/tensor/matrix.hpp"
#include "mica/tensor/packed.hpp"
#include "mica/tensor/packed12.hpp"
#include "mica/tensor/packing.hpp"
#include "mica/tensor/rounded.hpp"
