// SPDX-License-Identifier: Apache-2.0
//
// The room constraint: which tokens may come next, so that a text is one of a language.
#pragma once

#include "mica/constraint/any.hpp"
#include "mica/constraint/behind.hpp"
#include "mica/constraint/byte_set.hpp"
#include "mica/constraint/code_points.hpp"
#include "mica/constraint/concept.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/grammar.hpp"
#include "mica/constraint/named_token.hpp"
#include "mica/constraint/next_texts.hpp"
#include "mica/constraint/recognizer.hpp"
#include "mica/constraint/regex.hpp"
#include "mica/constraint/rules.hpp"
#include "mica/constraint/token_mask.hpp"
#include "mica/constraint/token_trie.hpp"
