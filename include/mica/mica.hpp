// SPDX-License-Identifier: Apache-2.0
//
// The table of contents: a header for each room, floor by floor. A room uses itself, lower floors, and rooms
// to its left. Include this for everything that needs Highway alone, or a room, or the headers you use. Not
// here: backends, which need another library, and the headers by which a unit of kernels is made
// (kernel/highway/dispatch.hpp and -inl.hpp). What makes and measures models, and conversations, are in
// mica_tools/tools.hpp.
#pragma once

#include "mica/fwd.hpp"
#include "mica/version.hpp"

// clang-format off
#include "mica/base.hpp"     // errors, checks, type lists, half floats, views, numbers from a seed

#include "mica/io.hpp"       // files, maps, direct reads
#include "mica/budget.hpp"   // the ledger of bytes and the limits of the machine
#include "mica/alloc.hpp"    // where bytes come from
#include "mica/exec.hpp"     // threads
#include "mica/ranks.hpp"    // one model in several processes or threads, each with some rows

#include "mica/format.hpp"   // how values are encoded
#include "mica/tensor.hpp"   // matrices whose format is known when the file is
#include "mica/gguf.hpp"     // the file format, read

#include "mica/kernel.hpp"   // what computes; the vector backend needs the library of mica_add_kernels()

#include "mica/paging.hpp"   // how weights come into memory
#include "mica/kv.hpp"       // where keys, values and recurrent states lie

#include "mica/block.hpp"    // the parts of a layer
#include "mica/arch.hpp"     // the families

#include "mica/sample.hpp"   // from logits to a token
#include "mica/text.hpp"     // from text to tokens and back
#include "mica/constraint.hpp"  // which tokens may come next, so that a text is one of a language
#include "mica/model.hpp"    // the transformer, composed from policies

#include "mica/plan.hpp"     // what a model will need
#include "mica/runtime.hpp"  // opening files, sessions, generation
// clang-format on
