// SPDX-License-Identifier: Apache-2.0
//
// The table of contents of what makes, measures and talks with models: all that needs mica and Highway alone.
// Not here: the conversion of folders, which needs a JSON library and belongs in one unit
// (convert/conversion.hpp), and servers, which need one for HTTP (remote/open.hpp, hub/download.hpp).
#pragma once

// json: bytes and rows of numbers in JSON; the rest needs a JSON library
#include "mica_tools/json/base64.hpp"
#include "mica_tools/json/row_text.hpp"

// write: GGUF files, locks and free space of disks
#include "mica_tools/write/disk.hpp"
#include "mica_tools/write/gguf_writer.hpp"

// encode: weights in other formats, by a search for each block, and GGUF files
#include "mica_tools/encode/codebook_groups.hpp"
#include "mica_tools/encode/codebooks.hpp"
#include "mica_tools/encode/eights.hpp"
#include "mica_tools/encode/encode.hpp"
#include "mica_tools/encode/entry_search.hpp"
#include "mica_tools/encode/few_bits.hpp"
#include "mica_tools/encode/four.hpp"
#include "mica_tools/encode/iq1.hpp"
#include "mica_tools/encode/iq2.hpp"
#include "mica_tools/encode/iq3.hpp"
#include "mica_tools/encode/k.hpp"
#include "mica_tools/encode/lined_groups.hpp"
#include "mica_tools/encode/pack_pairs.hpp"
#include "mica_tools/encode/rounded.hpp"
#include "mica_tools/encode/scaled_groups.hpp"
#include "mica_tools/encode/split_codebook.hpp"

// embed: texts to embeddings and scores
#include "mica_tools/embed/text_embedder.hpp"
#include "mica_tools/embed/text_tokens.hpp"

// search: passages of texts, their embeddings as an index, the nearest ones
#include "mica_tools/search/cut_text.hpp"
#include "mica_tools/search/index_info.hpp"
#include "mica_tools/search/index_reader.hpp"
#include "mica_tools/search/index_writer.hpp"
#include "mica_tools/search/nearest.hpp"
#include "mica_tools/search/text_files.hpp"
#include "mica_tools/search/update_index.hpp"

// quantize: files in other formats, importance matrices
#include "mica_tools/quantize/importance.hpp"
#include "mica_tools/quantize/importance_collector.hpp"
#include "mica_tools/quantize/job.hpp"
#include "mica_tools/quantize/mix.hpp"
#include "mica_tools/quantize/mix_rules.hpp"
#include "mica_tools/quantize/quantize.hpp"
#include "mica_tools/quantize/recipe.hpp"
#include "mica_tools/quantize/tensor_role.hpp"

// synth: models with random weights, in the shapes of published ones
#include "mica_tools/synth/header_only.hpp"
#include "mica_tools/synth/shape.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

// pack: models as packed directories
#include "mica_tools/pack/finished.hpp"
#include "mica_tools/pack/pack.hpp"
#include "mica_tools/pack/plan.hpp"
#include "mica_tools/pack/verify.hpp"

// remote: models on servers, as far as it needs no HTTP library
#include "mica_tools/remote/options.hpp"
#include "mica_tools/remote/token.hpp"
#include "mica_tools/remote/url.hpp"

// measure: how well a model predicts a text, how fast a disk is
#include "mica_tools/measure/base_logits.hpp"
#include "mica_tools/measure/disk_probe.hpp"
#include "mica_tools/measure/divergence.hpp"
#include "mica_tools/measure/log_probabilities.hpp"
#include "mica_tools/measure/statistics.hpp"
#include "mica_tools/measure/windows.hpp"

// pace: rests, so that a temperature, a power or a part of the time is kept
#include "mica_tools/pace/pacer.hpp"
#include "mica_tools/pace/sensors.hpp"

// advice: what the kernel says about memory, what that means for a run, and graphics processors
#include "mica_tools/advice/advice.hpp"
#include "mica_tools/advice/cards.hpp"
#include "mica_tools/advice/file_facts.hpp"
#include "mica_tools/advice/machine_facts.hpp"

// fit: which models a machine can run, and how well
#include "mica_tools/fit/candidate.hpp"
#include "mica_tools/fit/catalogue.hpp"
#include "mica_tools/fit/fallbacks.hpp"
#include "mica_tools/fit/level.hpp"
#include "mica_tools/fit/llmfit_score.hpp"
#include "mica_tools/fit/machine.hpp"
#include "mica_tools/fit/machine_probe.hpp"
#include "mica_tools/fit/quality.hpp"
#include "mica_tools/fit/quantisation.hpp"
#include "mica_tools/fit/rank.hpp"
#include "mica_tools/fit/rank_plan.hpp"
#include "mica_tools/fit/row_probe.hpp"
#include "mica_tools/fit/row_work.hpp"
#include "mica_tools/fit/rules.hpp"
#include "mica_tools/fit/select.hpp"
#include "mica_tools/fit/speed.hpp"
#include "mica_tools/fit/traffic.hpp"
#include "mica_tools/fit/use.hpp"
#include "mica_tools/fit/work.hpp"

// chat: conversations; chat_template.hpp, which makes their format of a file, belongs in one unit
#include "mica_tools/chat/call_values.hpp"
#include "mica_tools/chat/chat.hpp"
#include "mica_tools/chat/chat_renderer.hpp"
#include "mica_tools/chat/chat_style.hpp"
#include "mica_tools/chat/chat_tokens.hpp"
#include "mica_tools/chat/marked_messages.hpp"
#include "mica_tools/chat/message.hpp"
#include "mica_tools/chat/thought_splitter.hpp"

// hub: models by name, as far as it needs neither an HTTP library nor one for JSON
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/choice.hpp"
#include "mica_tools/hub/fetch.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/meant.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/partial_file.hpp"
#include "mica_tools/hub/published.hpp"
#include "mica_tools/hub/resolve_url.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/hub/variant.hpp"

// serve: answers for many clients inside one budget
#include "mica_tools/serve/answer.hpp"
#include "mica_tools/serve/chat_functions.hpp"
#include "mica_tools/serve/embed_engine.hpp"
#include "mica_tools/serve/engine.hpp"
#include "mica_tools/serve/event.hpp"
#include "mica_tools/serve/job.hpp"
#include "mica_tools/serve/loaded_model.hpp"
#include "mica_tools/serve/loader.hpp"
#include "mica_tools/serve/make_constraint.hpp"
#include "mica_tools/serve/metrics.hpp"
#include "mica_tools/serve/model_memory.hpp"
#include "mica_tools/serve/options.hpp"
#include "mica_tools/serve/refusal.hpp"
#include "mica_tools/serve/scheduler.hpp"
#include "mica_tools/serve/sequence_bytes.hpp"
#include "mica_tools/serve/served_model.hpp"
#include "mica_tools/serve/server_governor.hpp"
#include "mica_tools/serve/service.hpp"
#include "mica_tools/serve/slot_task.hpp"
#include "mica_tools/serve/state_folder.hpp"
#include "mica_tools/serve/step_pace.hpp"
#include "mica_tools/serve/waiting.hpp"

// schema: formats of strings, references and options; the rest needs a JSON library (schema/schema.hpp)
#include "mica_tools/schema/formats.hpp"
#include "mica_tools/schema/schema_options.hpp"
#include "mica_tools/schema/spelling.hpp"
#include "mica_tools/schema/uri.hpp"

// calls: how families write tool calls, and a parser of answers
#include "mica_tools/calls/call_event.hpp"
#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_language_options.hpp"
#include "mica_tools/calls/call_parser.hpp"
#include "mica_tools/calls/call_parts.hpp"
#include "mica_tools/calls/known_formats.hpp"
#include "mica_tools/calls/template_calls.hpp"
#include "mica_tools/calls/tool_types.hpp"

// http and routes: requests, replies and options, as far as they need neither JSON nor sockets
#include "mica_tools/http/listen_options.hpp"
#include "mica_tools/http/request_reply.hpp"
#include "mica_tools/routes/random_id.hpp"
#include "mica_tools/routes/route_options.hpp"
