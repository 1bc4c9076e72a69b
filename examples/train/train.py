#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train a small Llama on plain text, on a CPU, and write it as GGUF.

  train.py train TEXT --valid TEXT --out DIR --minutes M [--tokens N]      learn; goes on where DIR left off
  train.py export DIR FILE.gguf [--type f32|f16|q8_0] [--about FILE.json]  write the averaged weights
  train.py sample FILE.gguf [--prompt TEXT] [--count N]                    read a GGUF back and let it write
  train.py measure FILE.gguf TEXT                                          held-out loss of a GGUF

Needs torch, numpy, sentencepiece and gguf from PyPI, and a C++ compiler for --compile.
It is a recipe, not a framework: one model family, one machine, no accelerator. README.md has the results.
"""
import argparse
import json
import math
import os
import re
import signal
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import gguf
import numpy as np
import sentencepiece
import torch
import torch.distributed as workers
import torch.nn.functional as F
from torch import nn

# ---------------------------------------------------------------- text


def is_title(paragraph):
    """A short line that ends without punctuation and whose long words all start with a capital."""
    text = paragraph.strip()
    if len(text) > 80 or not text or text[-1] in ".,;:!?'\"-_*":
        return False
    return all(not word[0].islower() for word in re.findall(r"[A-Za-z]+", text) if len(word) > 4)


def documents(path, least=600):
    """Split a text into stories.

    A title that occurs once opens a story; one that repeats ("CHAPTER II", a caption) is only left out.
    Titles themselves are dropped, so a story opens with its first sentence, and so are pieces shorter
    than `least` characters (title pages, tables of contents). Text without titles is one document.
    """
    paragraphs = [p for p in Path(path).read_text(encoding="utf-8").split("\n\n") if p.strip()]
    seen = Counter(p.strip().lower() for p in paragraphs)
    stories = [[]]
    for paragraph in paragraphs:
        if not is_title(paragraph):
            stories[-1].append(paragraph.strip("\n"))
        elif seen[paragraph.strip().lower()] == 1 and stories[-1]:
            stories.append([])
    joined = ("\n\n".join(story) for story in stories)
    return [story for story in joined if len(story) >= least]


def train_vocabulary(stories, pieces, prefix):
    """SentencePiece BPE with byte fallback; text is taken as it is, and no space is put in front."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for story in stories for line in story.split("\n") if line),
        model_prefix=str(prefix), vocab_size=pieces, model_type="bpe", byte_fallback=True,
        character_coverage=1.0, normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, max_sentence_length=1 << 16, minloglevel=2)


def encode(vocabulary, stories):
    """One stream of ids: BOS, story, EOS, BOS, story, EOS ..."""
    ids = []
    for story in stories:
        ids += [vocabulary.bos_id(), *vocabulary.encode(story), vocabulary.eos_id()]
    return torch.tensor(ids)                                               # (tokens)


# ---------------------------------------------------------------- model


@dataclass
class Shape:
    vocab: int = 2048
    width: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    hidden: int = 768
    context: int = 256
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.width // self.heads


class RmsNorm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape.width))
        self.eps = shape.eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rope(x, cos, sin):
    """Rotates adjacent pairs, the order that GGUF's llama family keeps its q and k rows in."""
    even, odd = x[..., 0::2], x[..., 1::2]                      # (batch, heads, tokens, head_dim / 2)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


class Layer(nn.Module):
    """Member names are the tensor names of the file, after `blk.N.`."""

    def __init__(self, shape, dropout):
        super().__init__()
        self.shape, self.dropout = shape, dropout
        kv_width = shape.kv_heads * shape.head_dim
        self.attn_norm, self.ffn_norm = RmsNorm(shape), RmsNorm(shape)
        self.attn_q = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_k = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_v = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_output = nn.Linear(shape.width, shape.width, bias=False)
        self.ffn_gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.ffn_down = nn.Linear(shape.hidden, shape.width, bias=False)

    def drop(self, x):
        """Dropout with one mask for all tokens of a row: drawing one for each costs a fifth of the step."""
        if not self.training or not self.dropout:
            return x
        kept = torch.rand(x.shape[0], 1, x.shape[2]) >= self.dropout
        return x * (kept / (1 - self.dropout)).to(x.dtype)                 # (batch, tokens, width)

    def attend(self, h, cos, sin):
        batch, tokens, width = h.shape
        split = lambda x, heads: x.view(batch, tokens, heads, self.shape.head_dim).transpose(1, 2)
        q = rope(split(self.attn_q(h), self.shape.heads), cos, sin)        # (batch, heads, tokens, head_dim)
        k = rope(split(self.attn_k(h), self.shape.kv_heads), cos, sin)     # (batch, kv_heads, tokens, ...)
        v = split(self.attn_v(h), self.shape.kv_heads)
        group = self.shape.heads // self.shape.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        # Written out: on a CPU, fused by --compile, this is a third faster than scaled_dot_product_attention.
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = (q @ k.mT).float() * self.shape.head_dim ** -0.5          # (batch, heads, tokens, tokens)
        mixed = scores.masked_fill(future, -1e9).softmax(-1).to(v.dtype) @ v
        return self.attn_output(mixed.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x, cos, sin):
        x = x + self.drop(self.attend(self.attn_norm(x), cos, sin))
        h = self.ffn_norm(x)
        return x + self.drop(self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h)))


class Llama(nn.Module):
    """Decoder with a tied head: token_embd is also the output matrix."""

    def __init__(self, shape, dropout=0.0):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocab, shape.width)
        self.blk = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))
        self.output_norm = RmsNorm(shape)
        steps = 1.0 / shape.rope_base ** (torch.arange(0, shape.head_dim, 2) / shape.head_dim)
        angle = torch.outer(torch.arange(shape.context), steps)            # (context, head_dim / 2)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                # What writes into the residual stream starts at zero: every layer begins as identity.
                writes = name.endswith(("attn_output.weight", "ffn_down.weight"))
                spread = 0.02 if "embd" in name else shape.width ** -0.5
                nn.init.normal_(weight, std=0.0 if writes else spread)

    def forward(self, ids, targets=None):
        x = self.token_embd(ids)                                           # (batch, tokens, width)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.blk:
            x = layer(x, cos, sin)
        logits = F.linear(self.output_norm(x), self.token_embd.weight)     # (batch, tokens, vocab)
        if targets is None:
            return logits
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


# ---------------------------------------------------------------- optimiser


def orthogonal(m, rounds=5):
    """Pushes the singular values of each matrix of a stack towards one (quintic Newton-Schulz, in bf16)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = m.shape[-2] <= m.shape[-1]
    x = (m if wide else m.mT).bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x if wide else x.mT).float()


class Muon:
    """Momentum whose step is orthogonalised, for the matrices inside the layers.

    Matrices of one shape go as one stack, so that the small products are batched.
    """

    def __init__(self, weights, momentum=0.95):
        self.momentum = momentum
        self.groups = {}
        for weight in weights:
            self.groups.setdefault(tuple(weight.shape), []).append(weight)
        self.state = {shape: torch.zeros(len(g), *shape) for shape, g in self.groups.items()}

    @torch.no_grad()
    def step(self, rate, decay):
        for shape, group in self.groups.items():
            gradient = torch.stack([w.grad for w in group])                # (matrices, rows, columns)
            speed = self.state[shape].mul_(self.momentum).add_(gradient)
            turn = orthogonal(gradient + self.momentum * speed) * max(1.0, shape[0] / shape[1]) ** 0.5
            for weight, delta in zip(group, turn):
                weight.mul_(1 - rate * decay).sub_(delta, alpha=rate)


# ---------------------------------------------------------------- training


class Run:
    """Everything a later call goes on from, kept in DIR/state.pt; DIR/vocab.model holds the pieces."""

    def __init__(self, folder, shape, dropout):
        self.folder = Path(folder)
        self.model = Llama(shape, dropout)
        self.average = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        matrices = [p for n, p in self.model.named_parameters() if n.startswith("blk.") and p.dim() == 2]
        inside = {id(p) for p in matrices}
        self.muon = Muon(matrices)
        rest = [p for p in self.model.parameters() if id(p) not in inside]
        self.adam = torch.optim.AdamW(rest, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
        self.tokens, self.steps = 0, 0

    @property
    def state_file(self):
        return self.folder / "state.pt"

    def save(self):
        state = {"shape": asdict(self.model.shape), "model": self.model.state_dict(), "average": self.average,
                 "muon": self.muon.state, "adam": self.adam.state_dict(), "tokens": self.tokens,
                 "steps": self.steps}
        torch.save(state, self.state_file.with_suffix(".part"))
        os.replace(self.state_file.with_suffix(".part"), self.state_file)

    def load(self):
        state = torch.load(self.state_file)
        self.model.load_state_dict(state["model"])
        self.average, self.muon.state = state["average"], state["muon"]
        self.adam.load_state_dict(state["adam"])
        self.tokens, self.steps = state["tokens"], state["steps"]

    @torch.no_grad()
    def learn(self, options, rate, tokens):
        """One step with the gradients at hand; `rate` scales both optimisers."""
        for group in self.adam.param_groups:
            group["lr"] = options.adam_rate * rate
        self.adam.step()
        self.muon.step(options.muon_rate * rate, options.weight_decay)
        self.model.zero_grad(set_to_none=True)
        self.steps, self.tokens = self.steps + 1, self.tokens + tokens
        keep = min(options.average, self.steps / (self.steps + 10))
        for name, weight in self.model.named_parameters():
            self.average[name].lerp_(weight, 1 - keep)


def windows(stream, size, count):
    """`count` random stretches of the stream and the same stretches one token later."""
    starts = torch.randint(len(stream) - size, (count,))
    grid = starts[:, None] + torch.arange(size + 1)
    rows = stream[grid]
    return rows[:, :-1], rows[:, 1:]                                       # (count, size) twice


@torch.no_grad()
def held_out_loss(model, stream, size, most=1 << 30):
    """Nats per token over stretches side by side, evenly thinned when there are more than `most`."""
    starts = list(range(0, len(stream) - size, size))
    starts = starts[:: max(1, len(starts) // most)]
    total, count, was_training = 0.0, 0, model.training
    model.eval()
    for at in range(0, len(starts), 16):
        rows = torch.stack([stream[s : s + size + 1] for s in starts[at : at + 16]])
        with torch.autocast("cpu", torch.bfloat16):
            total += model(rows[:, :-1], rows[:, 1:]).item() * len(rows)
        count += len(rows)
    model.train(was_training)
    return total / count


def train(options):
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stories = documents(options.text)
    if not (folder / "vocab.model").exists():
        train_vocabulary(stories, options.vocab, folder / "vocab")
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.model"))
    streams = encode(vocabulary, stories), encode(vocabulary, documents(options.valid))
    signal.signal(signal.SIGINT, signal.SIG_IGN)                           # workers save, then leave
    torch.multiprocessing.spawn(worker, (options, *streams), options.workers)


def worker(rank, options, stream, held_out):
    """One of `workers` processes of one thread each, all holding the same weights."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    workers.init_process_group("gloo", rank=rank, world_size=options.workers)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    names = ("vocab", "width", "layers", "heads", "kv_heads", "hidden", "context")
    run = Run(options.out, Shape(**{n: getattr(options, n) for n in names}), options.dropout)
    if run.state_file.exists():
        run.load()
    size = sum(p.numel() for p in run.model.parameters())
    if rank == 0:
        print(f"{size / 1e6:.2f} M parameters; {len(stream)} tokens, held out {len(held_out)}; "
              f"going on from {run.tokens} tokens", flush=True)
    torch.manual_seed(hash((options.seed, run.steps, rank)))
    loop(options, run, stream, held_out)
    workers.destroy_process_group()


def agree(run, loss, rate):
    """Averages the gradients of all workers in place; returns the mean loss and worker 0's `rate`.

    Workers meet only here, once a step: on a machine that is busy with other work this keeps each
    at its share of a core, where threads inside every product would wait for each other all the time.
    """
    count = workers.get_world_size()
    weights = list(run.model.parameters())
    told = torch.tensor([loss, rate * count if workers.get_rank() == 0 else 0.0])
    everything = torch.cat([*(w.grad.flatten() for w in weights), told])
    workers.all_reduce(everything)
    everything /= count
    for weight, part in zip(weights, everything[:-2].split([w.numel() for w in weights])):
        weight.grad = part.view_as(weight)
    return everything[-2].item(), everything[-1].item()


def rate_now(progress, steps, decay):
    """Up over the first 100 steps, level, then straight down to zero over the last `decay` of the call."""
    return min(1.0, (steps + 1) / 100) * min(1.0, (1 - progress) / decay if decay else 1.0)


def report(options, run, held_out):
    averaged = Llama(run.model.shape)
    averaged.load_state_dict(run.average)
    losses = [held_out_loss(m, held_out, options.context, most=128) for m in (run.model, averaged)]
    run.save()
    print(f"step {run.steps} tokens {run.tokens} held-out: last {losses[0]:.4f}, average {losses[1]:.4f}",
          flush=True)


def loop(options, run, stream, held_out):
    forward = torch.compile(run.model) if options.compile else run.model
    begin = saved = shown = time.monotonic()
    first, losses, chief = run.steps, [], workers.get_rank() == 0
    asked_to_stop = []                                                     # interrupted: save, then leave
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked_to_stop.append(True))
    step_tokens = options.batch * options.context
    rate = 1.0
    while rate >= 0:
        ids, targets = windows(stream, options.context, options.batch // options.workers)
        with torch.autocast("cpu", torch.bfloat16):
            loss = forward(ids, targets)
        loss.backward()
        minutes, done = (time.monotonic() - begin) / 60, run.steps - first
        progress = max(minutes / options.minutes, done * step_tokens / options.tokens)
        rate = -1.0 if asked_to_stop or progress >= 1 else rate_now(progress, run.steps, options.decay)
        mean, rate = agree(run, loss.item(), rate)
        if rate >= 0:
            run.learn(options, rate, step_tokens)
        losses.append(mean)
        if chief and run.steps % 50 == 0:
            took, shown = time.monotonic() - shown, time.monotonic()
            print(f"step {run.steps} loss {sum(losses) / len(losses):.3f} rate {rate:.2f} "
                  f"{len(losses) * step_tokens / took:.0f} tokens/s {minutes:.1f} min", flush=True)
            losses = []
        if chief and (rate < 0 or time.monotonic() - saved > options.save_every):
            report(options, run, held_out)
            saved = time.monotonic()


# ---------------------------------------------------------------- GGUF


def piece_type(vocabulary, i):
    kinds = gguf.TokenType
    return (kinds.UNKNOWN if vocabulary.is_unknown(i) else kinds.CONTROL if vocabulary.is_control(i)
            else kinds.BYTE if vocabulary.is_byte(i) else kinds.NORMAL)


def write_vocabulary(writer, vocabulary):
    count = vocabulary.vocab_size()
    writer.add_tokenizer_model("llama")
    writer.add_token_list([vocabulary.id_to_piece(i).encode() for i in range(count)])
    writer.add_token_scores([vocabulary.get_score(i) for i in range(count)])
    writer.add_token_types([int(piece_type(vocabulary, i)) for i in range(count)])
    writer.add_bos_token_id(vocabulary.bos_id())
    writer.add_eos_token_id(vocabulary.eos_id())
    writer.add_unk_token_id(vocabulary.unk_id())
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)


def export(options):
    state = torch.load(Path(options.folder) / "state.pt")
    shape = Shape(**state["shape"])
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=str(Path(options.folder) / "vocab.model"))
    kind = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16,
            "q8_0": gguf.GGMLQuantizationType.Q8_0}[options.type]
    file_type = {"f32": gguf.LlamaFileType.ALL_F32, "f16": gguf.LlamaFileType.MOSTLY_F16,
                 "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}[options.type]
    writer = gguf.GGUFWriter(options.file, "llama")
    about = json.loads(Path(options.about).read_text()) if options.about else {"general.name": "unnamed"}
    for key, value in about.items():
        writer.add_array(key, value) if isinstance(value, list) else writer.add_string(key, value)
    writer.add_file_type(int(file_type))
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(shape.eps)
    writer.add_vocab_size(shape.vocab)
    writer.add_uint64("training.tokens", state["tokens"])
    write_vocabulary(writer, vocabulary)
    for name, weight in state["average" if options.weights == "average" else "model"].items():
        data = weight.numpy()
        if data.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, gguf.quants.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{options.file}: {os.path.getsize(options.file)} bytes after {state['tokens']} training tokens "
          f"in {state['steps']} steps")


def read_gguf(path):
    """Model and vocabulary of a file this script wrote; quantised matrices are widened to F32."""
    reader = gguf.GGUFReader(path)
    number = lambda key: reader.get_field(key).contents()
    shape = Shape(vocab=number("llama.vocab_size"), width=number("llama.embedding_length"),
                  layers=number("llama.block_count"), heads=number("llama.attention.head_count"),
                  kv_heads=number("llama.attention.head_count_kv"),
                  hidden=number("llama.feed_forward_length"), context=number("llama.context_length"),
                  rope_base=number("llama.rope.freq_base"),
                  eps=number("llama.attention.layer_norm_rms_epsilon"))
    model = Llama(shape)
    model.load_state_dict({t.name: torch.tensor(np.array(gguf.quants.dequantize(t.data, t.tensor_type)))
                           for t in reader.tensors})
    model.eval()
    return model, Pieces(reader)


class Pieces:
    """The vocabulary of a file: greedy merging by score, the way an SPM runtime does it, and back."""

    def __init__(self, reader):
        field = lambda key: reader.get_field(f"tokenizer.ggml.{key}").contents()
        self.pieces, self.types = field("tokens"), field("token_type")
        scores = field("scores")
        self.bos, self.eos = field("bos_token_id"), field("eos_token_id")
        normal = int(gguf.TokenType.NORMAL)
        self.ranks = {p: (-scores[i], i) for i, p in enumerate(self.pieces) if self.types[i] == normal}
        self.bytes = {p: i for i, p in enumerate(self.pieces) if self.types[i] == int(gguf.TokenType.BYTE)}

    def encode_word(self, symbols):
        while len(symbols) > 1:
            joined = [a + b for a, b in zip(symbols, symbols[1:])]
            pairs = [(self.ranks[piece][0], at) for at, piece in enumerate(joined) if piece in self.ranks]
            if not pairs:
                break
            at = min(pairs)[1]
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        for symbol in symbols:
            if symbol in self.ranks:
                yield self.ranks[symbol][1]
            else:
                yield from (self.bytes[f"<0x{byte:02X}>"] for byte in symbol.encode())

    def encode(self, text):
        """No piece holds a space except in front, so text may be cut before each space."""
        words = re.findall(r" ?[^ ]*", text)
        return [i for word in words for i in self.encode_word(list(word.replace(" ", "\u2581")))]

    def decode(self, ids):
        parts = [bytes([int(self.pieces[i][3:5], 16)]) if self.pieces[i] in self.bytes
                 else self.pieces[i].replace("\u2581", " ").encode() for i in ids]
        return b"".join(parts).decode(errors="replace")


@torch.no_grad()
def sample(options):
    torch.manual_seed(options.seed)
    model, pieces = read_gguf(options.file)
    ids = [pieces.bos, *pieces.encode(options.prompt)]
    for _ in range(options.count):
        logits = model(torch.tensor([ids[-model.shape.context :]]))[0, -1]  # (vocab)
        if options.temperature <= 0:
            ids.append(int(logits.argmax()))
        else:
            best = torch.topk(logits / options.temperature, options.top_k)
            ids.append(int(best.indices[torch.multinomial(best.values.softmax(0), 1)]))
        if ids[-1] == pieces.eos:
            break
    print(pieces.decode(i for i in ids if i not in (pieces.bos, pieces.eos)))


def measure(options):
    model, pieces = read_gguf(options.file)
    stories = documents(options.text)
    ids = []
    for story in stories:
        ids += [pieces.bos, *pieces.encode(story), pieces.eos]
    loss = held_out_loss(model, torch.tensor(ids), model.shape.context)
    letters = sum(len(story) for story in stories)
    print(f"{loss:.4f} nats per token, perplexity {math.exp(loss):.2f}; {len(ids)} tokens, "
          f"{letters} characters, {loss * len(ids) / letters / math.log(2):.4f} bits per character")


# ---------------------------------------------------------------- command line


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    t = verbs.add_parser("train")
    t.set_defaults(call=train)
    t.add_argument("text", help="UTF-8, paragraphs apart by an empty line")
    t.add_argument("--valid", required=True, help="text that is only measured, never learnt")
    t.add_argument("--out", required=True, help="folder for vocab.model and state.pt")
    t.add_argument("--minutes", type=float, default=math.inf, help="stop after this long; sets the schedule")
    t.add_argument("--tokens", type=float, default=math.inf, help="or after this many tokens of this call")
    t.add_argument("--decay", type=float, default=0.4,
                   help="last part of the call, in which the rate falls to zero (default %(default)s)")
    for name, default, what in (
            ("vocab", 2048, "pieces"), ("width", 256, "of the residual stream"), ("layers", 6, "blocks"),
            ("heads", 4, "of attention"), ("kv-heads", 2, "of keys and values"),
            ("hidden", 768, "width of the feed-forward"), ("context", 256, "tokens a window"),
            ("batch", 24, "windows a step, all workers together"), ("workers", 2, "processes of one thread"),
            ("port", 29511, "of 127.0.0.1, where workers meet"), ("seed", 1, "of everything drawn"),
            ("save-every", 300, "seconds between states")):
        t.add_argument(f"--{name}", type=int, default=default, help=f"{what} (default %(default)s)")
    for name, default, what in (
            ("muon-rate", 0.02, "of the matrices inside the layers"), ("weight-decay", 0.1, "of the same"),
            ("adam-rate", 0.003, "of the embedding and the norms"),
            ("dropout", 0.05, "on what layers add"), ("average", 0.998, "part of the average kept each step")):
        t.add_argument(f"--{name}", type=float, default=default, help=f"{what} (default %(default)s)")
    t.add_argument("--compile", action="store_true", help="fuse the element-wise work with torch.compile")
    e = verbs.add_parser("export")
    e.set_defaults(call=export)
    e.add_argument("folder")
    e.add_argument("file")
    e.add_argument("--type", choices=("f32", "f16", "q8_0"), default="f16")
    e.add_argument("--about", help="JSON object of general.* keys")
    e.add_argument("--weights", choices=("average", "last"), default="average")
    s = verbs.add_parser("sample")
    s.set_defaults(call=sample)
    s.add_argument("file")
    s.add_argument("--prompt", default="Once upon a time")
    for name, kind, default in (("count", int, 200), ("temperature", float, 0.7), ("top-k", int, 40),
                                ("seed", int, 1)):
        s.add_argument(f"--{name}", type=kind, default=default)
    m = verbs.add_parser("measure")
    m.set_defaults(call=measure)
    m.add_argument("file")
    m.add_argument("text")
    options = parser.parse_args()
    if options.call is train and math.isinf(options.minutes) and math.isinf(options.tokens):
        parser.error("train needs an end: --minutes M or --tokens N")
    return options


if __name__ == "__main__":
    chosen = arguments()
    chosen.call(chosen)
