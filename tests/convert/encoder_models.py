# SPDX-License-Identifier: Apache-2.0
"""Makes encoder_models.json: tiny models of every family that embeds texts, as Hugging Face folders have
them, and their embeddings or scores by a reference in float64.

    python3 encoder_models.py [FOLDER]      needs numpy, and safetensors where FOLDER keeps the models

Of each model: its config, the files beside it, the names and shapes of its tensors (# stands for a layer,
whose numbers follow), the number of tokens of its text, and numbers of the row that the text gets. Values
follow from names, as in hf_models.py.
"""

import json
import math
import pathlib
import re
import sys

import numpy as np
from model_values import values

SHOWN = 16
FIRST_TEXT = 10  # the place of the token that ends it in the pair
VOCABULARY = 300


def ids(n):
    return [(i * 37 + 11) % 250 + 4 for i in range(n)]


# The reference

def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def rotated(x, base):
    """(heads, n, dim), the pairs being halves of a head."""
    n, dim = x.shape[1:]
    angles = np.arange(n)[:, None] * base ** -(np.arange(dim // 2) * 2 / dim)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., :dim // 2], x[..., dim // 2:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def alibi_slopes(heads):
    n = 2 ** int(math.log2(heads))
    of = lambda m: [2 ** (-8 * (i + 1) / m) for i in range(m)]
    return np.array(of(n) + of(2 * n)[0::2][:heads - n])


class Reference:
    """One model: its config, and its tensors by name, in float64."""

    def __init__(self, config, tensors):
        self.c = config
        self.w = {name: t.astype(np.float64) for name, t in tensors.items()}
        self.eps = next(v for k, v in config.items() if k in (
            "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "rms_norm_eps"))
        self.prefix = ""

    def has(self, name):
        return self.prefix + name in self.w

    def get(self, name):
        return self.w[self.prefix + name]

    def bias(self, name):
        return self.get(name) if self.has(name) else 0

    def linear(self, x, name):
        return x @ self.get(name + ".weight").T + self.bias(name + ".bias")

    def layer_norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        old = self.has(name + ".gamma")
        weight, bias = (".gamma", ".beta") if old else (".weight", ".bias")
        return x * self.get(name + weight) + self.bias(name + bias)

    def rms_norm(self, x, name, plus=0.0):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * (self.get(name + ".weight") + plus)

    def heads(self, x, n):
        return x.reshape(len(x), n, -1).transpose(1, 0, 2)

    def attend(self, q, k, v, mask=0.0, scale=None):
        k, v = [np.repeat(t, len(q) // len(t), 0) for t in (k, v)]
        scores = q @ k.transpose(0, 2, 1) * (scale or q.shape[-1] ** -0.5) + mask
        return (softmax(scores) @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)

    def window(self, n, reach):
        """0 within `reach` tokens in each direction."""
        far = np.abs(np.arange(n)[:, None] - np.arange(n)) > reach
        return np.where(far, -np.inf, 0.0)


def bert_states(r, tokens, types=None):
    """BERT, RoBERTa, jina-bert-v2."""
    c, n = r.c, len(tokens)
    r.prefix = "bert." if r.has("bert.embeddings.word_embeddings.weight") else (
        "roberta." if r.has("roberta.embeddings.word_embeddings.weight") else "")
    x = r.get("embeddings.word_embeddings.weight")[tokens]
    x = x + r.get("embeddings.token_type_embeddings.weight")[types or [0] * n]
    mask = 0.0
    if c.get("position_embedding_type") == "alibi":
        distance = np.abs(np.arange(n)[:, None] - np.arange(n))
        mask = -alibi_slopes(c["num_attention_heads"])[:, None, None] * distance
    else:
        first = c["pad_token_id"] + 1 if c["model_type"] != "bert" else 0
        x = x + r.get("embeddings.position_embeddings.weight")[first:first + n]
    x = r.layer_norm(x, "embeddings.LayerNorm")
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        q, k, v = [r.heads(r.linear(x, p + "attention.self." + name), c["num_attention_heads"])
                   for name in ("query", "key", "value")]
        x = r.layer_norm(x + r.linear(r.attend(q, k, v, mask), p + "attention.output.dense"),
                         p + "attention.output.LayerNorm")
        if c.get("feed_forward_type") == "geglu":
            gate, up = np.split(r.linear(x, p + "mlp.gated_layers"), 2, -1)
            x = r.layer_norm(x + r.linear(gelu(gate) * up, p + "mlp.wo"), p + "mlp.layernorm")
        else:
            y = r.linear(gelu(r.linear(x, p + "intermediate.dense")), p + "output.dense")
            x = r.layer_norm(x + y, p + "output.LayerNorm")
    return x


def nomic_states(r, tokens):
    c, heads = r.c, r.c["n_head"]
    x = r.get("embeddings.word_embeddings.weight")[tokens]
    x = x + r.get("embeddings.token_type_embeddings.weight")[0]
    x = r.layer_norm(x, "emb_ln")
    for i in range(c["n_layer"]):
        p = f"encoder.layers.{i}."
        q, k, v = [r.heads(t, heads) for t in np.split(r.linear(x, p + "attn.Wqkv"), 3, -1)]
        q, k = rotated(q, c["rotary_emb_base"]), rotated(k, c["rotary_emb_base"])
        x = r.layer_norm(x + r.linear(r.attend(q, k, v), p + "attn.out_proj"), p + "norm1")
        y = r.linear(x, p + "mlp.fc11") * silu(r.linear(x, p + "mlp.fc12"))
        x = r.layer_norm(x + r.linear(y, p + "mlp.fc2"), p + "norm2")
    return x


def modern_bert_states(r, tokens):
    c, n = r.c, len(tokens)
    r.prefix = "model." if r.has("model.final_norm.weight") else ""
    x = r.layer_norm(r.get("embeddings.tok_embeddings.weight")[tokens], "embeddings.norm")
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        full = i % c["global_attn_every_n_layers"] == 0
        y = x if i == 0 else r.layer_norm(x, p + "attn_norm")
        fused = np.split(r.linear(y, p + "attn.Wqkv"), 3, -1)
        q, k, v = [r.heads(t, c["num_attention_heads"]) for t in fused]
        base = c["global_rope_theta"] if full else c["local_rope_theta"]
        mask = 0.0 if full else r.window(n, c["local_attention"] // 2)
        x = x + r.linear(r.attend(rotated(q, base), rotated(k, base), v, mask), p + "attn.Wo")
        gate, up = np.split(r.linear(r.layer_norm(x, p + "mlp_norm"), p + "mlp.Wi"), 2, -1)
        x = x + r.linear(gelu(gate) * up, p + "mlp.Wo")
    return r.layer_norm(x, "final_norm")


def gemma_states(r, tokens):
    c, n = r.c, len(tokens)
    x = r.get("embed_tokens.weight")[tokens] * math.sqrt(c["hidden_size"])
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        full = c["layer_types"][i] == "full_attention"
        y = r.rms_norm(x, p + "input_layernorm", 1)
        q = r.rms_norm(r.heads(r.linear(y, p + "self_attn.q_proj"), c["num_attention_heads"]),
                       p + "self_attn.q_norm", 1)
        k = r.rms_norm(r.heads(r.linear(y, p + "self_attn.k_proj"), c["num_key_value_heads"]),
                       p + "self_attn.k_norm", 1)
        v = r.heads(r.linear(y, p + "self_attn.v_proj"), c["num_key_value_heads"])
        base = c["rope_theta"] if full else c["rope_local_base_freq"]
        mask = 0.0 if full else r.window(n, c["sliding_window"] // 2)
        y = r.attend(rotated(q, base), rotated(k, base), v, mask, c["query_pre_attn_scalar"] ** -0.5)
        x = x + r.rms_norm(r.linear(y, p + "self_attn.o_proj"), p + "post_attention_layernorm", 1)
        y = r.rms_norm(x, p + "pre_feedforward_layernorm", 1)
        y = gelu_tanh(r.linear(y, p + "mlp.gate_proj")) * r.linear(y, p + "mlp.up_proj")
        x = x + r.rms_norm(r.linear(y, p + "mlp.down_proj"), p + "post_feedforward_layernorm", 1)
    return r.rms_norm(x, "norm", 1)


def qwen3_states(r, tokens):
    c, n = r.c, len(tokens)
    r.prefix = "model." if r.has("model.norm.weight") else ""
    mask = np.where(np.arange(n)[:, None] < np.arange(n), -np.inf, 0.0)
    x = r.get("embed_tokens.weight")[tokens]
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        y = r.rms_norm(x, p + "input_layernorm")
        q = r.rms_norm(r.heads(r.linear(y, p + "self_attn.q_proj"), c["num_attention_heads"]),
                       p + "self_attn.q_norm")
        k = r.rms_norm(r.heads(r.linear(y, p + "self_attn.k_proj"), c["num_key_value_heads"]),
                       p + "self_attn.k_norm")
        v = r.heads(r.linear(y, p + "self_attn.v_proj"), c["num_key_value_heads"])
        y = r.attend(rotated(q, c["rope_theta"]), rotated(k, c["rope_theta"]), v, mask)
        x = x + r.linear(y, p + "self_attn.o_proj")
        y = r.rms_norm(x, p + "post_attention_layernorm")
        x = x + r.linear(silu(r.linear(y, p + "mlp.gate_proj")) * r.linear(y, p + "mlp.up_proj"),
                         p + "mlp.down_proj")
    return r.rms_norm(x, "norm")


STATES = {"bert": bert_states, "xlm-roberta": bert_states, "roberta": bert_states, "nomic_bert": nomic_states,
          "modernbert": modern_bert_states, "gemma3_text": gemma_states, "qwen3": qwen3_states}


def row_of(model, tensors, tokens, types=None):
    """The embedding, of length 1, or the scores. types: of the tokens of a pair, for BERT."""
    r = Reference(model["config"], tensors)
    states = STATES[model["config"]["model_type"]](r, tokens, *([types] if types else []))
    first, mean, last = states[0], states.mean(0), states[-1]
    if model["answers"]:
        r.prefix = ""
        output = r.get("lm_head.weight" if r.has("lm_head.weight") else "model.embed_tokens.weight")
        return softmax(output[model["answers"]] @ last)
    architecture = model["config"].get("architectures", [""])[0]
    if architecture.startswith("BertForSequence"):
        y = np.tanh(r.linear(first, "pooler.dense"))
        r.prefix = ""
        return r.linear(y, "classifier")
    r.prefix = ""
    if architecture.endswith("RobertaForSequenceClassification"):
        return r.linear(np.tanh(r.linear(first, "classifier.dense")), "classifier.out_proj")
    if architecture.startswith("ModernBertForSequence"):
        return r.linear(r.layer_norm(gelu(r.linear(mean, "head.dense")), "head.norm"), "classifier")
    pooling = model["files"]["1_Pooling/config.json"]
    row = (mean if pooling["pooling_mode_mean_tokens"] else
           last if pooling["pooling_mode_lasttoken"] else first)
    for folder in ("2_Dense", "3_Dense"):
        if folder + ".linear.weight" in tensors:
            row = row @ r.get(folder + ".linear.weight").T
    return row / np.linalg.norm(row)


# The models

def files(pooling, dense=()):
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"},
               {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    out = {"1_Pooling/config.json": {f"pooling_mode_{name}": name == pooling
                                     for name in ("cls_token", "mean_tokens", "max_tokens", "lasttoken")}}
    for i, (n_in, n_out) in enumerate(dense):
        modules.append({"path": f"{i + 2}_Dense", "type": "sentence_transformers.models.Dense"})
        out[f"{i + 2}_Dense/config.json"] = {"in_features": n_in, "out_features": n_out, "bias": False,
                                             "activation_function": "torch.nn.modules.linear.Identity"}
    return dict(out, **{"modules.json": modules})



def norm(name, width, weight="weight", bias="bias"):
    return {f"{name}.{weight}": [width], f"{name}.{bias}": [width]}


def biased(name, n_out, n_in):
    return {name + ".weight": [n_out, n_in], name + ".bias": [n_out]}


def bert_tensors(c, prefix="", weight="weight", bias="bias"):
    d, ff = c["hidden_size"], c["intermediate_size"]
    ln = lambda name: norm(name, d, weight, bias)
    alibi = c.get("position_embedding_type") == "alibi"
    t = {"embeddings.word_embeddings.weight": [VOCABULARY, d],
         "embeddings.token_type_embeddings.weight": [c["type_vocab_size"], d], **ln("embeddings.LayerNorm")}
    if not alibi:
        t["embeddings.position_embeddings.weight"] = [c["max_position_embeddings"], d]
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        for name in ("query", "key", "value"):
            t |= biased(p + "attention.self." + name, d, d)
        t |= biased(p + "attention.output.dense", d, d) | ln(p + "attention.output.LayerNorm")
        if alibi:
            t |= {p + "mlp.gated_layers.weight": [2 * ff, d]} | biased(p + "mlp.wo", d, ff) | ln(
                p + "mlp.layernorm")
        else:
            t |= biased(p + "intermediate.dense", ff, d) | biased(p + "output.dense", d, ff) | ln(
                p + "output.LayerNorm")
    return {prefix + name: shape for name, shape in t.items()}


def nomic_tensors(c):
    d, ff = c["n_embd"], c["n_inner"]
    t = {"embeddings.word_embeddings.weight": [VOCABULARY, d],
         "embeddings.token_type_embeddings.weight": [2, d], **norm("emb_ln", d)}
    for i in range(c["n_layer"]):
        p = f"encoder.layers.{i}."
        t |= {p + "attn.Wqkv.weight": [3 * d, d], p + "attn.out_proj.weight": [d, d],
              p + "mlp.fc11.weight": [ff, d], p + "mlp.fc12.weight": [ff, d], p + "mlp.fc2.weight": [d, ff],
              **norm(p + "norm1", d), **norm(p + "norm2", d)}
    return t


def modern_bert_tensors(c, prefix=""):
    d, ff = c["hidden_size"], c["intermediate_size"]
    t = {"embeddings.tok_embeddings.weight": [VOCABULARY, d], "embeddings.norm.weight": [d],
         "final_norm.weight": [d]}
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        t |= {p + "attn.Wqkv.weight": [3 * d, d], p + "attn.Wo.weight": [d, d], p + "mlp_norm.weight": [d],
              p + "mlp.Wi.weight": [2 * ff, d], p + "mlp.Wo.weight": [d, ff]}
        if i > 0:
            t[p + "attn_norm.weight"] = [d]
    return {prefix + name: shape for name, shape in t.items()}


def decoder_tensors(c, prefix="", norms=("input_layernorm", "post_attention_layernorm")):
    d, ff, h = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * h, c["num_key_value_heads"] * h
    t = {"embed_tokens.weight": [VOCABULARY, d], "norm.weight": [d]}
    for i in range(c["num_hidden_layers"]):
        p = f"layers.{i}."
        t |= {p + f"{name}.weight": [d] for name in norms}
        t |= {p + "self_attn.q_proj.weight": [q, d], p + "self_attn.k_proj.weight": [kv, d],
              p + "self_attn.v_proj.weight": [kv, d], p + "self_attn.o_proj.weight": [d, q],
              p + "self_attn.q_norm.weight": [h], p + "self_attn.k_norm.weight": [h],
              p + "mlp.gate_proj.weight": [ff, d], p + "mlp.up_proj.weight": [ff, d],
              p + "mlp.down_proj.weight": [d, ff]}
    return {prefix + name: shape for name, shape in t.items()}


BASE = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            vocab_size=VOCABULARY)
BERT = dict(BASE, model_type="bert", hidden_act="gelu", layer_norm_eps=1e-12, max_position_embeddings=128,
            type_vocab_size=2, pad_token_id=0, position_embedding_type="absolute")
XLM = dict(BERT, model_type="xlm-roberta", layer_norm_eps=1e-5, max_position_embeddings=130,
           type_vocab_size=1, pad_token_id=1)
NOMIC = dict(model_type="nomic_bert", n_embd=64, n_layer=2, n_head=4, n_inner=128, n_positions=8192,
             max_trained_positions=2048, layer_norm_epsilon=1e-12, rotary_emb_base=1000,
             rotary_emb_fraction=1.0, rotary_emb_interleaved=False, activation_function="swiglu",
             prenorm=False, qkv_proj_bias=False, vocab_size=VOCABULARY)
JINA = dict(BERT, hidden_size=96, num_attention_heads=6, position_embedding_type="alibi",
            feed_forward_type="geglu", max_position_embeddings=8192)
MODERN = dict(BASE, model_type="modernbert", num_hidden_layers=5, hidden_activation="gelu", norm_eps=1e-5,
              global_attn_every_n_layers=3, local_attention=128, global_rope_theta=160000.0,
              local_rope_theta=10000.0, max_position_embeddings=8192)
GEMMA = dict(BASE, model_type="gemma3_text", num_hidden_layers=7, num_key_value_heads=1, head_dim=32,
             max_position_embeddings=2048, rms_norm_eps=1e-6, query_pre_attn_scalar=32, sliding_window=512,
             rope_theta=1e6, rope_local_base_freq=1e4, use_bidirectional_attention=True,
             layer_types=["sliding_attention"] * 5 + ["full_attention", "sliding_attention"])
QWEN = dict(BASE, model_type="qwen3", num_key_value_heads=2, head_dim=32, rms_norm_eps=1e-6, rope_theta=1e6,
            max_position_embeddings=32768, tie_word_embeddings=True)
SANDWICH = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
            "post_feedforward_layernorm")


def models():
    """Name, tokens, config, tensors, other files, ids of a reranker's answers."""
    classifies = lambda c, kind, labels: dict(c, architectures=[kind + "ForSequenceClassification"],
                                              id2label={str(i): f"LABEL_{i}" for i in range(labels)})
    yield "bert", 24, BERT, bert_tensors(BERT), files("mean_tokens"), []
    old = bert_tensors(BERT, "bert.", "gamma", "beta") | biased("bert.pooler.dense", 64, 64)
    yield "bert-old", 24, BERT, old | {"cls.predictions.bias": [VOCABULARY]}, files("cls_token"), []
    head = biased("bert.pooler.dense", 64, 64) | biased("classifier", 1, 64)
    yield "bert-reranker", 24, classifies(BERT, "Bert", 1), bert_tensors(BERT, "bert.") | head, {}, []
    yield "xlm-roberta", 24, XLM, bert_tensors(XLM), files("cls_token"), []
    head = biased("classifier.dense", 64, 64) | biased("classifier.out_proj", 3, 64)
    yield ("xlm-roberta-reranker", 24, classifies(XLM, "XLMRoberta", 3), bert_tensors(XLM, "roberta.") | head,
           {}, [])
    yield "nomic", 24, NOMIC, nomic_tensors(NOMIC), files("mean_tokens"), []
    yield "jina", 80, JINA, bert_tensors(JINA), files("mean_tokens"), []
    yield "modernbert", 200, MODERN, modern_bert_tensors(MODERN), files("cls_token"), []
    head = biased("classifier", 1, 64) | {"head.dense.weight": [64, 64], "head.norm.weight": [64]}
    yield ("modernbert-reranker", 200, dict(classifies(MODERN, "ModernBert", 1), classifier_pooling="mean"),
           modern_bert_tensors(MODERN, "model.") | head, {}, [])
    dense = {"2_Dense.linear.weight": [128, 64], "3_Dense.linear.weight": [64, 128]}
    yield ("embeddinggemma", 600, GEMMA, decoder_tensors(GEMMA, "", SANDWICH) | dense,
           files("mean_tokens", [(64, 128), (128, 64)]), [])
    yield "qwen3-embedding", 24, QWEN, decoder_tensors(QWEN), files("lasttoken"), []
    answers, tensors = [12, 13], decoder_tensors(QWEN, "model.")
    yield "qwen3-reranker", 24, QWEN, tensors, {"README.md": "# Qwen3-Reranker-0.6B"}, answers
    yield ("qwen3-reranker-untied", 24, dict(QWEN, tie_word_embeddings=False),
           tensors | {"lm_head.weight": [VOCABULARY, 64]}, {"README.md": "# Qwen3-Reranker-8B"}, answers)


def shown_tensors(tensors):
    layers = {}
    for name, shape in tensors.items():
        found = re.search(r"(?<=layers\.|.layer\.)\d+(?=\.)", name)
        pattern = re.sub(r"(?<=layers\.|.layer\.)\d+(?=\.)", "#", name)
        layers.setdefault((pattern, tuple(shape)), []).append(int(found[0]) if found else None)
    return [[name, list(shape)] + ([sorted(each)] if each[0] is not None else [])
            for (name, shape), each in sorted(layers.items())]


def keep(folder, model, tensors):
    """Writes the folder of a model, for other programs."""
    from safetensors.numpy import save_file
    below = {}
    for name, t in tensors.items():
        part = name.split(".")[0] if re.match(r"\d_Dense\.", name) else ""
        below.setdefault(part, {})[name.removeprefix(part + ".")] = t
    for part, own in below.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        save_file(own, folder / part / "model.safetensors", metadata={"format": "pt"})
    for name, text in dict(model["files"], **{"config.json": model["config"]}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text if isinstance(text, str) else json.dumps(text))


def main():
    texts = []
    for name, tokens, config, shapes, others, answers in models():
        tensors = {each: values(each, shape) for each, shape in shapes.items()}
        model = {"config": config, "files": others, "answers": answers, "tokens": tokens}
        row = row_of(model, tensors, ids(tokens))
        if len(sys.argv) > 1:
            keep(pathlib.Path(sys.argv[1]) / name, model, tensors)
            np.savetxt(pathlib.Path(sys.argv[1]) / name / "row.txt", row)
        model["row"] = [round(float(x), 8) for x in row[:SHOWN]]
        if name == "bert":
            pair = row_of(model, tensors, ids(tokens), [int(i > FIRST_TEXT) for i in range(tokens)])
            model["pair"] = [round(float(x), 8) for x in pair[:SHOWN]]
        rows = ",\n  ".join(json.dumps(each) for each in shown_tensors(shapes))
        fields = ",\n ".join(f'"{key}": {json.dumps(value)}' for key, value in model.items())
        texts.append(f'"{name}": {{{fields},\n "tensors": [\n  {rows}]}}')
    out = pathlib.Path(__file__).with_name("encoder_models.json")
    out.write_text("{\n" + ",\n".join(texts) + "\n}\n")
    print(f"{out}: {len(texts)} models")


main()
