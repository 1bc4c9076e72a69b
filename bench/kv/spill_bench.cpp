// SPDX-License-Identifier: Apache-2.0
//
// usage: spill_bench MODEL.gguf [TOKENS] [--json FILE]
//
// What a long context costs when most of it lies in a file: a Llama (mica synth llama-1b Q4_K_M FILE) with
// TOKENS (32,256) of 32,768 tokens in its caches writes some more, once with all keys and values in memory
// and once with kv::Spilled, an eighth of the context and two layers' old pages in memory. The prompt is not
// computed: its tiles are written. Tokens are computed in full.
//
//   resident   tokens per second with kv::Segmented
//   spilled    the same with kv::Spilled, in turns with the other; answers are compared bit for bit
//   disk       bytes per second with which the same file system gives blocks of the size of a layer's old pages,
//              nothing else running in between; (bytes in the file) / (bytes per second) is the minimum of a
//              token's time
#include "mica/alloc/budgeted.hpp"
#include "mica/arch/llama.hpp"
#include "mica/base/rng.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/team.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/io/spill_file.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/model/transformer.hpp"
#include "mica/paging/resident.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t n_ctx = 32768, chunk = 512, turns = 5, tokens_a_turn = 4;

using Model = Transformer<arch::Llama, WithKv<kv::AnyStorage<>>, WithAllocator<alloc::Budgeted<alloc::Huge>>,
                          WithPager<paging::Resident<>>, WithExecutor<exec::Team>>;

double seconds_of(auto&& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

/// A cache of a kind with so many tokens, whose tiles are noise: the same in all kinds.
Model::Cache filled(const Model& model, kv::Choice kind, std::size_t tokens) {
  auto cache = model.make_cache([&](auto allocator, std::span<const kv::LayerShape> layers, std::size_t n) {
    return Model::Storage(allocator, layers, n, kind);
  });
  CounterRng rng(1);
  std::vector<std::vector<std::byte>> tiles(61);
  const std::size_t head_dim = model.config().layers[0].get<block::Attention>().head_dim;
  for (auto& tile : tiles) {
    tile.resize(cache.layers[0].tile_bytes);
    std::vector<float> head(head_dim);
    for (std::size_t slot = 0; slot < 16; ++slot) {
      for (float& v : head) v = static_cast<float>(rng.uniform() - 0.5);
      format::F16::store_key(tile.data(), slot, head_dim, head.data());
      format::F16::store_value(tile.data() + format::F16::key_tile_bytes(head_dim), slot, head_dim,
                               head.data());
    }
  }
  for (std::size_t at = 0; at < tokens;) {
    const std::size_t end = std::min(at + chunk, tokens);
    if (!cache.storage.reserve(end)) fail("no memory, or no disk, for the context");
    for (std::size_t l = 0; l < cache.layers.size(); ++l) {
      if (!cache.storage.fetch(l)) fail("the spill file cannot be read");
      for (std::size_t h = 0; h < cache.layers[l].kv_heads; ++h) {
        for (std::size_t t = at / 16; t * 16 < end; ++t) {
          const auto& tile = tiles[(l * 31 + h * 7 + t) % tiles.size()];
          std::memcpy(cache.storage.run(l, h, t).data, tile.data(), tile.size());
        }
      }
    }
    at = end;
  }
  cache.tokens = tokens;
  return cache;
}

/// Writes some tokens and goes back; answers the logits after the last.
std::vector<float> write(Model& model, Model::Cache& cache) {
  const std::size_t before = cache.tokens, row = 0;
  for (text::TokenId id = 5; id < 5 + tokens_a_turn; ++id) {
    if (model.step(cache, {&id, 1}) != model::StepStatus::ok) fail("a step failed");
  }
  const auto logits = model.logits({&row, 1});
  std::vector<float> out(logits[0].begin(), logits[0].end());
  cache.rewind(before);
  return out;
}

/// Bytes per second of reads of one block after another from a file of so many.
double disk_rate(std::size_t block, std::size_t blocks) {
  auto file = io::SpillFile::make();
  auto bytes = alloc::Buffer<std::byte, alloc::Huge>::make({}, block, io::SpillFile::alignment);
  if (!file || !bytes) fail("no file for the disk's rate");
  std::memset(bytes->data(), 42, bytes->size());
  for (std::size_t i = 0; i < blocks; ++i) {
    if (!file->write(i * block, bytes->span())) fail("the disk is full");
  }
  std::vector<double> rates;
  for (int run = 0; run < 3; ++run) {
    const double seconds = seconds_of([&] {
      for (std::size_t i = 0; i < blocks; ++i) {
        if (!file->read(i * block, bytes->span())) fail("a file cannot be read");
      }
    });
    rates.push_back(static_cast<double>(block * blocks) / seconds);
  }
  return median(rates);
}

}  // namespace

int main(int argc, char** argv) try {
  std::size_t tokens = 32256;
  std::FILE* json = nullptr;
  if (argc < 2) fail("usage: spill_bench MODEL.gguf [TOKENS] [--json FILE]");
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
      json = std::fopen(argv[++i], "w");
    } else {
      tokens = std::strtoull(argv[i], nullptr, 10);
    }
  }
  if (tokens == 0 || tokens + tokens_a_turn > n_ctx) fail("spill_bench: 1 to 32,764 tokens");
  const auto document = gguf::open(argv[1]);
  exec::Team team(budget::cpu_limits().threads());
  budget::Ledger ledger;
  Model model(document, team, {.n_ctx = n_ctx, .chunk = chunk, .logits_rows = 1, .log = {}},
              {.allocator = alloc::Budgeted<alloc::Huge>(ledger, budget::Account::weights)});
  const auto kv_bytes = [&] {
    return static_cast<double>(ledger.used(budget::Account::kv) + ledger.used(budget::Account::io_buffers));
  };
  auto resident = filled(model, kv::Choice::segmented, tokens);
  const double resident_bytes = kv_bytes();
  auto spilled = filled(model, kv::Choice::spilled, tokens);
  const double in_memory = kv_bytes() - resident_bytes;
  if (write(model, resident) != write(model, spilled)) fail("other bits from the file");
  std::vector<double> whole, parts;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    whole.push_back(seconds_of([&] { write(model, resident); }) / tokens_a_turn);
    parts.push_back(seconds_of([&] { write(model, spilled); }) / tokens_a_turn);
  }
  const std::size_t layers = resident.layers.size();
  const double token_bytes =
      static_cast<double>(resident.layers[0].kv_heads * resident.layers[0].tile_bytes) / 16;
  const std::size_t old = tokens - n_ctx / 8;
  const auto layer_bytes = static_cast<std::size_t>(static_cast<double>(old) * token_bytes) / 4096 * 4096;
  const double rate = disk_rate(layer_bytes, layers);
  const double limit = static_cast<double>(layer_bytes * layers) / rate;
  const double a = median(whole), b = median(parts);
  std::printf(
      "tiles of the prompt are written, not computed; the tokens that are timed are computed in full\n"
      "tokens %zu, in the file %zu; KV in memory %.0f MiB of %.0f\n"
      "resident %.2f tokens/s, spilled %.2f: %.2f of it; disk %.0f MB/s: at most %.2f tokens/s, %.2f of "
      "that\n",
      tokens, old, in_memory / (1 << 20), resident_bytes / (1 << 20), 1 / a, 1 / b, a / b, rate / 1e6,
      1 / limit, limit / b);
  if (json != nullptr) {
    std::fprintf(
        json,
        "{\"tokens\": %zu, \"n_ctx\": %zu, \"in_file\": %zu, \"kv_mib_in_memory\": %.0f, \"kv_mib\": %.0f, "
        "\"resident_tokens_per_s\": %.3f, \"spilled_tokens_per_s\": %.3f, \"of_resident\": %.3f, "
        "\"disk_mb_per_s\": %.0f, \"disk_limit_tokens_per_s\": %.3f, \"of_disk_limit\": %.3f}\n",
        tokens, n_ctx, old, in_memory / (1 << 20), resident_bytes / (1 << 20), 1 / a, 1 / b, a / b,
        rate / 1e6, 1 / limit, limit / b);
    std::fclose(json);
  }
  return 0;
} catch (const mica::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
