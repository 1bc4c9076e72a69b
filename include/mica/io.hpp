// SPDX-License-Identifier: Apache-2.0
//
// The room io: files, maps, direct reads.
#pragma once

#include "mica/io/atomic_file.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/direct.hpp"
#include "mica/io/file.hpp"
#include "mica/io/folder_file.hpp"
#include "mica/io/map.hpp"
#include "mica/io/map_fault.hpp"
#include "mica/io/read_queue.hpp"
#include "mica/io/spill_file.hpp"
