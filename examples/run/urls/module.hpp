// SPDX-License-Identifier: Apache-2.0
//
// What the module for URLs has for the program. Both are of one build, so they share types and exceptions.
#pragma once

#include "mica/gguf/reader.hpp"

#include <optional>
#include <string>

/// The model behind a URL. Raises as remote::open().
extern "C" void mica_open_remote(const std::string& url, std::optional<mica::gguf::Document>& document);
