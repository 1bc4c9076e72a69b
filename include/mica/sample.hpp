// SPDX-License-Identifier: Apache-2.0
//
// The room sample: from logits to a token.
#pragma once

#include "mica/sample/candidates.hpp"
#include "mica/sample/chain.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/dry.hpp"
#include "mica/sample/mirostat.hpp"
#include "mica/sample/penalties.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica/sample/stages.hpp"
#include "mica/sample/standard.hpp"
