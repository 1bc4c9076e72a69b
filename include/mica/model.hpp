// SPDX-License-Identifier: Apache-2.0
//
// The room model: the transformer, composed from policies.
#pragma once

#include "mica/model/choice.hpp"
#include "mica/model/chosen.hpp"
#include "mica/model/observer.hpp"
#include "mica/model/policies.hpp"
#include "mica/model/sequence_step.hpp"
#include "mica/model/transformer.hpp"
#include "mica/model/weights.hpp"
