// SPDX-License-Identifier: Apache-2.0
//
// The room sample: from logits to a token.
#pragma once

#include "mica/sample/candidates.hpp"
#include "mica/sample/chain.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/dist.hpp"
#include "mica/sample/greedy.hpp"
#include "mica/sample/min_p.hpp"
#include "mica/sample/penalties.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica/sample/standard.hpp"
#include "mica/sample/temperature.hpp"
#include "mica/sample/top_k.hpp"
#include "mica/sample/top_p.hpp"
