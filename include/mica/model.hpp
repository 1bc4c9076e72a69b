// SPDX-License-Identifier: Apache-2.0
//
// The room model: the transformer, composed from policies.
#pragma once

#include "mica/model/activations.hpp"
#include "mica/model/cache_file.hpp"
#include "mica/model/choice.hpp"
#include "mica/model/chosen.hpp"
#include "mica/model/forward.hpp"
#include "mica/model/kv_cache.hpp"
#include "mica/model/observer.hpp"
#include "mica/model/policies.hpp"
#include "mica/model/sequence_step.hpp"
#include "mica/model/step.hpp"
#include "mica/model/step_status.hpp"
#include "mica/model/transformer.hpp"
#include "mica/model/transformer/saving.hpp"
#include "mica/model/weights.hpp"
