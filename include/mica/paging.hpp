// SPDX-License-Identifier: Apache-2.0
//
// The room paging: how weights come into memory.
#pragma once

#include "mica/paging/any_pager.hpp"
#include "mica/paging/checked.hpp"
#include "mica/paging/choice.hpp"
#include "mica/paging/concept.hpp"
#include "mica/paging/expert_cache.hpp"
#include "mica/paging/load_progress.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/paging/resident.hpp"
#include "mica/paging/streamed.hpp"
#include "mica/paging/unit_reader.hpp"
