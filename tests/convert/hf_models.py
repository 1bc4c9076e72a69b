# SPDX-License-Identifier: Apache-2.0
"""Makes hf_models.json: what tiny models of every family look like when transformers saves them, and what
they answer.

    python3 hf_models.py [FOLDER]      needs torch and transformers 5; FOLDER keeps the models

Of each model: its config, the names and shapes of its tensors (# stands for a layer, whose numbers follow),
and some logits after 24 tokens. Values follow from names (model_values.py), so they need not be stored.
"""

import json
import pathlib
import re
import sys
import tempfile

import numpy as np
import torch
import transformers
from model_values import values
from safetensors.numpy import load_file, save_file
from transformers.models.gemma4 import Gemma4TextConfig
from transformers.models.gemma4.modeling_gemma4 import Gemma4ForCausalLM
from transformers.models.qwen3_5 import Qwen3_5TextConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
from transformers.models.qwen3_5_moe import Qwen3_5MoeTextConfig
from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeForCausalLM

IDS = [(i * 37 + 11) % 250 + 4 for i in range(24)]
SHOWN = [k * 18 + 5 for k in range(16)]

BASE = dict(vocab_size=300, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=512)
FOUR = dict(BASE, num_hidden_layers=4)
SIX = dict(BASE, num_hidden_layers=6)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
DELTA = dict(head_dim=32, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2,
             linear_num_value_heads=4)
LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=128)
LONGROPE = dict(rope_type="longrope", rope_theta=1e4, partial_rotary_factor=1.0,
                long_factor=[1 + i / 4 for i in range(8)], short_factor=[1 + i / 16 for i in range(8)])
YARN = dict(rope_type="yarn", rope_theta=150000.0, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=True,
            original_max_position_embeddings=4096)
W, F = "sliding_attention", "full_attention"


def models():
    t = transformers
    yield "llama", t.LlamaForCausalLM, t.LlamaConfig(**BASE, rope_parameters=LLAMA3, tie_word_embeddings=True)
    yield "llama-biases", t.LlamaForCausalLM, t.LlamaConfig(**BASE, attention_bias=True, mlp_bias=True)
    yield "mistral", t.MistralForCausalLM, t.MistralConfig(**BASE, sliding_window=None)
    yield "mixtral", t.MixtralForCausalLM, t.MixtralConfig(
        **BASE, num_local_experts=4, num_experts_per_tok=2, sliding_window=None)
    yield "qwen2", t.Qwen2ForCausalLM, t.Qwen2Config(**BASE, tie_word_embeddings=True)
    yield "qwen2_moe", t.Qwen2MoeForCausalLM, t.Qwen2MoeConfig(
        **BASE, **MOE, shared_expert_intermediate_size=96, norm_topk_prob=False)
    yield "qwen3", t.Qwen3ForCausalLM, t.Qwen3Config(**BASE, head_dim=32, tie_word_embeddings=False)
    yield "qwen3_moe", t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig(**BASE, **MOE, head_dim=32,
                                                               norm_topk_prob=True)
    yield "qwen3_next", t.Qwen3NextForCausalLM, t.Qwen3NextConfig(
        **FOUR, **MOE, **DELTA, shared_expert_intermediate_size=32)
    yield "qwen3_5", Qwen3_5ForCausalLM, Qwen3_5TextConfig(**FOUR, **DELTA)
    yield "qwen3_5_moe", Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig(
        **FOUR, **MOE, **DELTA, shared_expert_intermediate_size=32)
    yield "phi3", t.Phi3ForCausalLM, t.Phi3Config(
        **BASE, original_max_position_embeddings=128, pad_token_id=0, rope_parameters=LONGROPE)
    yield "gemma", t.GemmaForCausalLM, t.GemmaConfig(**BASE, head_dim=32)
    yield "gemma2", t.Gemma2ForCausalLM, t.Gemma2Config(**BASE, head_dim=32, sliding_window=16,
                                                        query_pre_attn_scalar=32)
    yield "gemma3", t.Gemma3ForCausalLM, t.Gemma3TextConfig(
        **dict(BASE, num_hidden_layers=7), head_dim=32, sliding_window=16, query_pre_attn_scalar=32)
    yield "gemma3n", t.Gemma3nForCausalLM, t.Gemma3nTextConfig(
        **FOUR, head_dim=32, sliding_window=16, vocab_size_per_layer_input=290,
                                                               hidden_size_per_layer_input=16,
        num_kv_shared_layers=1, laurel_rank=8, activation_sparsity_pattern=[0.95, 0.95, 0.0, 0.0],
        layer_types=[W, F, W, F])
    yield "gemma4", Gemma4ForCausalLM, Gemma4TextConfig(
        **SIX, head_dim=32, global_head_dim=64, sliding_window=16, vocab_size_per_layer_input=300,
        hidden_size_per_layer_input=16, num_kv_shared_layers=2, use_double_wide_mlp=True, layer_types=[W, W,
                                                                                                       W, F,
                                                                                                       W, F])
    yield "gemma4-experts", Gemma4ForCausalLM, Gemma4TextConfig(
        **SIX, head_dim=32, global_head_dim=64, sliding_window=16, hidden_size_per_layer_input=0,
                                                                num_kv_shared_layers=0,
        enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=32,
                                                                attention_k_eq_v=True,
        num_global_key_value_heads=1)
    yield "gpt_oss", t.GptOssForCausalLM, t.GptOssConfig(
        **BASE, head_dim=32, num_local_experts=4, num_experts_per_tok=2, sliding_window=16,
                                                         rope_parameters=YARN)
    yield "llama4", t.Llama4ForCausalLM, t.Llama4TextConfig(
        **dict(FOUR, intermediate_size=64), intermediate_size_mlp=128, num_local_experts=4,
                                                            num_experts_per_tok=1,
        interleave_moe_layer_step=2, head_dim=16, attention_chunk_size=256)


NOT_SHOWN = {"transformers_version", "initializer_range", "architectures", "dtype", "use_cache"}


def shown_config(config):
    return {k: v for k, v in config.items() if v is not None and k not in NOT_SHOWN
            and not k.endswith("token_id")}


def shown_tensors(tensors):
    layers = {}
    for name, values_ in tensors.items():
        found = re.search(r"(?<=layers\.)\d+(?=\.)", name)
        pattern = re.sub(r"(?<=layers\.)\d+(?=\.)", "#", name)
        layers.setdefault((pattern, values_.shape), []).append(int(found[0]) if found else None)
    return [[name, list(shape)] + ([sorted(each)] if each[0] is not None else [])
            for (name, shape), each in sorted(layers.items())]


def describe(folder, kind, config):
    kind(config).save_pretrained(folder)
    path = folder / "model.safetensors"
    tensors = {name: values(name, t.shape) for name, t in load_file(path).items()}
    save_file(tensors, path, metadata={"format": "pt"})
    model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        logits = model(torch.tensor([IDS]), use_cache=False).logits[0, -1]
    return {"config": shown_config(json.loads((folder / "config.json").read_text())),
            "tensors": shown_tensors(tensors),
            "logits": [round(float(logits[i]), 6) for i in SHOWN]}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    texts = []
    for name, kind, config in models():
        model = describe(root / name, kind, config)
        rows = ",\n  ".join(json.dumps(row) for row in model["tensors"])
        texts.append(f'"{name}": {{"config": {json.dumps(model["config"])},\n'
                     f' "logits": {json.dumps(model["logits"])},\n'
                     f' "tensors": [\n  {rows}]}}')
    out = pathlib.Path(__file__).with_name("hf_models.json")
    out.write_text("{\n" + ",\n".join(texts) + "\n}\n")
    print(f"{out}: {len(texts)} models by transformers {transformers.__version__}")


main()
