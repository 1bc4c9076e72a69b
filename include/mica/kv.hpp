// SPDX-License-Identifier: Apache-2.0
//
// The room kv: where keys, values and recurrent states lie.
#pragma once

#include "mica/kv/aging.hpp"
#include "mica/kv/any_eviction.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/kv/choice.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/elements.hpp"
#include "mica/kv/eviction.hpp"
#include "mica/kv/heavy_hitters.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/recurrent_state.hpp"
#include "mica/kv/reserved.hpp"
#include "mica/kv/resident_tiles.hpp"
#include "mica/kv/segmented.hpp"
#include "mica/kv/sinks_and_window.hpp"
#include "mica/kv/slab.hpp"
#include "mica/kv/snapshot.hpp"
#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/kv/spilled.hpp"
#include "mica/kv/spilled_paged.hpp"
