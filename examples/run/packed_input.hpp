// SPDX-License-Identifier: Apache-2.0
//
// Packed directories that a verb reads once, to write another file of them.
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/gguf/document.hpp"
#include "mica_tools/pack/verify.hpp"
#include "progress.hpp"
#include "verb.hpp"

namespace mica::program {

using BufferAllocator = alloc::Budgeted<alloc::Aligned>;

/// Compares every checksum of a packed directory, with a line of progress. Raises as pack::verify().
inline void verify_packed(const Verb& verb, const gguf::Document& document, BufferAllocator allocator) {
  Progress progress(verb);
  pack::verify(document, allocator, progress.counter("verifying", document.file_bytes()),
               log_to_stderr(verb));
}

}  // namespace mica::program
