// SPDX-License-Identifier: Apache-2.0
//
// The room runtime: opening files, sessions, generation.
#pragma once

#include "mica/runtime/any_model.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/complete.hpp"
#include "mica/runtime/concept.hpp"
#include "mica/runtime/drafter.hpp"
#include "mica/runtime/embed_batch.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/generate_options.hpp"
#include "mica/runtime/generation.hpp"
#include "mica/runtime/governed.hpp"
#include "mica/runtime/governor.hpp"
#include "mica/runtime/idle_sessions.hpp"
#include "mica/runtime/memory_watch.hpp"
#include "mica/runtime/model_drafter.hpp"
#include "mica/runtime/mtp_drafter.hpp"
#include "mica/runtime/ngram.hpp"
#include "mica/runtime/open.hpp"
#include "mica/runtime/open_options.hpp"
#include "mica/runtime/prefix_cache.hpp"
#include "mica/runtime/session.hpp"
#include "mica/runtime/shared_step.hpp"
#include "mica/runtime/stats.hpp"
#include "mica/runtime/token_scores.hpp"
