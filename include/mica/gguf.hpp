// SPDX-License-Identifier: Apache-2.0
//
// The room gguf: the file format, read.
#pragma once

#include "mica/gguf/document.hpp"
#include "mica/gguf/fingerprint.hpp"
#include "mica/gguf/manifest.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/gguf/read_plain.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/gguf/source.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/gguf/tensor_info.hpp"
#include "mica/gguf/value.hpp"
