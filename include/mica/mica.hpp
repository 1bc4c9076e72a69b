// SPDX-License-Identifier: Apache-2.0
//
// The table of contents, floor by floor: a room includes itself, lower floors, and rooms to its left. Include this for
// everything that needs Highway alone, or the headers you use. Not here: backends and formats of text that need another
// library (text/json_value.hpp), chat templates, which cost seconds and belong in one unit (text/chat.hpp), and the
// headers by which a unit of kernels is made (kernel/highway/dispatch.hpp and -inl.hpp).
#pragma once

#include "mica/fwd.hpp"
#include "mica/version.hpp"

// base: errors, checks, type lists, half floats, views, numbers from a seed
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/error.hpp"
#include "mica/base/half.hpp"
#include "mica/base/log.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/base/rng.hpp"
#include "mica/base/token_id.hpp"
#include "mica/base/type_list.hpp"
#include "mica/base/visit.hpp"

// io: files, maps, direct reads
#include "mica/io/atomic_file.hpp"
#include "mica/io/direct.hpp"
#include "mica/io/file.hpp"
#include "mica/io/map.hpp"
#include "mica/io/near_name.hpp"

// budget: the ledger of bytes and the limits of the machine
#include "mica/budget/account.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"

// alloc: where bytes come from
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/arena.hpp"
#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/alloc/statistics.hpp"
#include "mica/alloc/tracked.hpp"

// exec: threads
#include "mica/exec/concept.hpp"
#include "mica/exec/denormals.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/partition.hpp"
#include "mica/exec/team.hpp"

// format: how values are encoded
#include "mica/format/codebook/entry.hpp"
#include "mica/format/codebook/iq1.hpp"
#include "mica/format/codebook/iq2.hpp"
#include "mica/format/codebook/iq3.hpp"
#include "mica/format/concept.hpp"
#include "mica/format/element.hpp"
#include "mica/format/float.hpp"
#include "mica/format/id.hpp"
#include "mica/format/iq1_m.hpp"
#include "mica/format/iq1_s.hpp"
#include "mica/format/iq2_s.hpp"
#include "mica/format/iq2_xs.hpp"
#include "mica/format/iq2_xxs.hpp"
#include "mica/format/iq3_s.hpp"
#include "mica/format/iq3_xxs.hpp"
#include "mica/format/iq4_nl.hpp"
#include "mica/format/iq4_xs.hpp"
#include "mica/format/lists.hpp"
#include "mica/format/mxfp4.hpp"
#include "mica/format/nf4.hpp"
#include "mica/format/nvfp4.hpp"
#include "mica/format/q1_0.hpp"
#include "mica/format/q2_0.hpp"
#include "mica/format/q2_k.hpp"
#include "mica/format/q3_k.hpp"
#include "mica/format/q4_0.hpp"
#include "mica/format/q4_1.hpp"
#include "mica/format/q4_k.hpp"
#include "mica/format/q5_0.hpp"
#include "mica/format/q5_1.hpp"
#include "mica/format/q5_k.hpp"
#include "mica/format/q6_k.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/format/tq1_0.hpp"
#include "mica/format/tq2_0.hpp"

// tensor: matrices whose format is known when the file is
#include "mica/tensor/any_matrix.hpp"
#include "mica/tensor/matrix.hpp"

// gguf: the file format
#include "mica/gguf/array.hpp"
#include "mica/gguf/header.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/gguf/shard_name.hpp"
#include "mica/gguf/source.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/gguf/tensor_info.hpp"
#include "mica/gguf/value.hpp"
#include "mica/gguf/value_type.hpp"
#include "mica/gguf/writer.hpp"

// kernel: who computes; link mica::kernels for the vector backend
#include "mica/kernel/activation.hpp"
#include "mica/kernel/attention.hpp"
#include "mica/kernel/causal_conv.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kernel/delta_rule.hpp"
#include "mica/kernel/fallback.hpp"
#include "mica/kernel/gated.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/highway/abi.hpp"
#include "mica/kernel/highway/generic.hpp"
#include "mica/kernel/matmul.hpp"
#include "mica/kernel/norm.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/kernel/rope.hpp"
#include "mica/kernel/rows.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/kernel/scalar/attention.hpp"
#include "mica/kernel/scalar/chains.hpp"
#include "mica/kernel/scalar/elementwise.hpp"
#include "mica/kernel/scalar/matmul.hpp"
#include "mica/kernel/scalar/recurrent.hpp"

// paging: how weights come into memory
#include "mica/paging/any_pager.hpp"
#include "mica/paging/concept.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/paging/resident.hpp"

// kv: where keys and values lie
#include "mica/kv/any_storage.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/elements.hpp"
#include "mica/kv/segmented.hpp"
#include "mica/kv/slab.hpp"

// block: the parts of a layer
#include "mica/block/attention.hpp"
#include "mica/block/config.hpp"
#include "mica/block/feed_forward.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"
#include "mica/block/rope.hpp"

// arch: the families
#include "mica/arch/concept.hpp"
#include "mica/arch/config.hpp"
#include "mica/arch/lists.hpp"
#include "mica/arch/llama.hpp"
#include "mica/arch/read_keys.hpp"
#include "mica/arch/tensor_names.hpp"

// sample: from logits to a token
#include "mica/sample/candidates.hpp"
#include "mica/sample/chain.hpp"
#include "mica/sample/concept.hpp"
#include "mica/sample/dist.hpp"
#include "mica/sample/greedy.hpp"
#include "mica/sample/min_p.hpp"
#include "mica/sample/penalties.hpp"
#include "mica/sample/sampler.hpp"
#include "mica/sample/sampler_options.hpp"
#include "mica/sample/sampler_state.hpp"
#include "mica/sample/temperature.hpp"
#include "mica/sample/top_k.hpp"
#include "mica/sample/top_p.hpp"

// text: from text to tokens and back, chat templates
#include "mica/text/bpe.hpp"
#include "mica/text/chat_style.hpp"
#include "mica/text/concept.hpp"
#include "mica/text/message.hpp"
#include "mica/text/pretokenize.hpp"
#include "mica/text/pretokenizer_rules.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/token_type.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/unicode.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica/text/vocabulary_source.hpp"

// model: the transformer, composed from policies
#include "mica/model/activations.hpp"
#include "mica/model/choice.hpp"
#include "mica/model/chosen.hpp"
#include "mica/model/policies.hpp"
#include "mica/model/step_status.hpp"
#include "mica/model/transformer.hpp"
#include "mica/model/weights.hpp"

// plan: what a model will need
#include "mica/plan/plan.hpp"
#include "mica/plan/solve.hpp"

// runtime: files, sessions, generation, measures
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/base_logits.hpp"
#include "mica/runtime/coded_row.hpp"
#include "mica/runtime/complete.hpp"
#include "mica/runtime/divergence.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/log_probabilities.hpp"
#include "mica/runtime/open.hpp"
#include "mica/runtime/open_options.hpp"
#include "mica/runtime/running_mean.hpp"
#include "mica/runtime/session.hpp"
#include "mica/runtime/sorted.hpp"
#include "mica/runtime/stats.hpp"
#include "mica/runtime/windows.hpp"
