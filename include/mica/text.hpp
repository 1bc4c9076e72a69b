// SPDX-License-Identifier: Apache-2.0
//
// The room text: from text to tokens and back.
#pragma once

#include "mica/text/bpe.hpp"
#include "mica/text/concept.hpp"
#include "mica/text/pretokenize.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/token_pair.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/unigram.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica/text/wordpiece.hpp"
