// SPDX-License-Identifier: Apache-2.0
//
// usage: growth_bench [STORAGE...] [--json FILE]
//        growth_bench --beside A B
//
// How a cache grows: the shape of a Llama of 8B (32 layers, 8 KV heads of 128, F16), a context of 131,072
// tokens, filled to 89, 809, 6,409, 25,609 and 40,009 tokens in steps of 512. The tiles are written, the
// model is not computed: no weights are there, and RSS is that of the cache. One thread attends for a token
// at a time to all layers.
//
//   levels   bytes booked for keys and values, RSS, and what a token's attention takes
//   steps    each time the storage takes memory: bytes before and after, the most RSS in between, attention
//            before and after
//
// --beside: two storages of 25,609 and of 40,009 tokens that attend in turns, and the ratio of their medians.
//
// The time is that of the processor, but for the storage `spilled`, which waits for a disk: there it is that
// of the wall. Every attention is compared with that of the first storage that had as many tokens. In the end
// rewind(0): what RSS is left over.

#include "kernel/measure.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/base/rng.hpp"
#include "mica/block/detail/attend.hpp"
#include "mica/exec/inline.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kv/any_storage.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>
#include <unistd.h>

namespace {

using namespace mica;  // NOLINT: a program

constexpr std::size_t n_ctx = 131072, chunk = 512;
constexpr std::array<std::size_t, 5> levels = {89, 809, 6409, 25609, 40009};
constexpr std::size_t n_layers = 32, heads = 32, kv_heads = 8, head_dim = 128;

using Elements = kv::Fixed<format::F16>;
using Storage = kv::AnyStorage<alloc::Budgeted<alloc::Huge>>;

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Bytes of this process that are in memory.
std::uint64_t rss() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}
/// The most of them since the last call.
std::uint64_t take_peak_rss() {
  std::ifstream in("/proc/self/status");
  std::uint64_t peak = 0;
  for (std::string word; in >> word;) {
    if (word == "VmHWM:") in >> peak;
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak << 10;
}

/// The storage of a name; ends the program where there is none.
kv::Choice choice_of(std::string_view name) {
  const auto& names = kv::choice_names;
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<kv::Choice>(at - names.begin());
  std::fprintf(stderr, "no storage '%s'\n", std::string(name).c_str());
  std::exit(2);
}

/// A cache, tiles to fill it with, and a token that attends to it.
class Cache {
 public:
  explicit Cache(kv::Choice kind)
      : storage_(alloc::Budgeted<alloc::Huge>(ledger_, budget::Account::kv),
                 std::vector<kv::LayerShape>(n_layers, {kv_heads, tile_bytes(), 0, chunk}), n_ctx, kind) {
    CounterRng rng(1);
    std::vector<float> head(head_dim);
    const auto noise = [&] { return static_cast<float>(rng.uniform() - 0.5); };
    for (auto& tile : tiles_) {
      tile.resize(tile_bytes());
      for (std::size_t slot = 0; slot < 16; ++slot) {
        for (float& v : head) v = noise();
        format::F16::store_key(tile.data(), slot, head_dim, head.data());
        format::F16::store_value(tile.data() + kv::key_bytes(Elements(), head_dim), slot, head_dim,
                                 head.data());
      }
    }
    for (float& v : q_) v = noise();
    layer_.heads = heads;
    layer_.kv_heads = kv_heads;
    layer_.head_dim = head_dim;
    layer_.rope = block::none;
    layer_.kv_source = 0;  // it only reads
  }

  [[nodiscard]] std::size_t tokens() const { return tokens_; }
  [[nodiscard]] std::size_t capacity() const { return storage_.capacity(); }
  [[nodiscard]] std::uint64_t booked() const { return ledger_.used(); }
  [[nodiscard]] std::uint64_t max_booked() const { return ledger_.peak(); }

  [[nodiscard]] bool reserve(std::size_t tokens) { return storage_.reserve(tokens); }
  /// Writes the tiles up to there; there is room for them.
  void fill(std::size_t tokens) {
    const std::size_t end = (tokens + 15) / 16;
    for (std::size_t l = 0; l < n_layers; ++l) {
      for (std::size_t h = 0; h < kv_heads; ++h) {
        for (std::size_t t = tokens_ / 16; t < end; ++t) {
          std::memcpy(storage_.run(l, h, t).data, tiles_[(l * 31 + h * 7 + t) % tiles_.size()].data(),
                      tile_bytes());
        }
      }
    }
    tokens_ = tokens;
  }
  void rewind() {
    storage_.shrink(0);
    tokens_ = 0;
  }
  /// The last token, in every layer.
  const std::vector<float>& attend() {
    for (std::size_t l = 0; l < n_layers; ++l) {
      if (!storage_.fetch(l)) raise(ErrorCode::failed, "layer ", l, " could not be read");
      storage_.prefetch((l + 1) % n_layers);
      const block::AttentionContext<block::KvView<Elements, Storage>> context{
          .layer = layer_,
          .kv = {elements_, storage_, l, tokens_ - 1},
          .q = {q_.data(), 1, heads * head_dim},
          .k = {},
          .v = {},
          .out = {out_.data() + l * heads * head_dim, 1, heads * head_dim}};
      block::attend<kernel::Highway>(executor_, context, [&](std::size_t) { return scratch_.data(); });
    }
    return out_;
  }

 private:
  static std::size_t tile_bytes() { return kv::tile_bytes(Elements(), head_dim); }

  budget::Ledger ledger_;
  Storage storage_;
  std::size_t tokens_ = 0;
  std::array<std::vector<std::byte>, 61> tiles_;
  block::AttentionConfig layer_;
  Elements elements_;
  exec::Inline executor_;
  std::vector<float> q_ = std::vector<float>(heads * head_dim);
  std::vector<float> out_ = std::vector<float>(n_layers * heads * head_dim);
  std::vector<float> scratch_ =
      std::vector<float>(block::AttentionScratch::floats(heads / kv_heads, head_dim));
};

/// A hash of what the first storage answered, by tokens.
std::map<std::size_t, std::uint64_t> expected;

/// FNV-1a of the bytes.
std::uint64_t hash(const std::vector<float>& values) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::byte b : std::as_bytes(std::span(values)))
    h = (h ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3u;
  return h;
}

/// The best of three.
double wall_ms(Cache& cache) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    cache.attend();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best * 1e3;
}

double attention_ms(Cache& cache, std::string_view kind) {
  const std::uint64_t answer = hash(cache.attend());
  if (expected.try_emplace(cache.tokens(), answer).first->second != answer) {
    std::fprintf(stderr, "%s: other bits after %zu tokens\n", std::string(kind).c_str(), cache.tokens());
    std::exit(1);
  }
  if (kind == "spilled") return wall_ms(cache);
  return bench::time([&] { cache.attend(); }, 0.3).best * 1e3;
}

void level(Cache& cache, const std::string& kind, std::uint64_t rss_before, std::size_t grown,
           std::FILE* json) {
  const double ms = attention_ms(cache, kind);
  const double booked = mib(cache.booked()), resident = mib(rss() - rss_before);
  std::printf("%-11s %6zu %9zu | %9.1f %9.1f | %5zu | %8.2f\n", kind.c_str(), cache.tokens(),
              cache.capacity(), booked, resident, grown, ms);
  std::fflush(stdout);
  if (json == nullptr) return;
  std::fprintf(json,
               "{\"storage\": \"%s\", \"tokens\": %zu, \"room\": %zu, \"kv_mib\": %.1f, \"rss_mib\": %.1f, "
               "\"growth_steps\": %zu, \"attention_ms\": %.2f}\n",
               kind.c_str(), cache.tokens(), cache.capacity(), booked, resident, grown, ms);
}

/// One more step of the prompt; where the storage grows, what that does.
void step(Cache& cache, const std::string& kind, std::size_t to, std::size_t* grown, std::FILE* json) {
  const std::size_t room = cache.capacity(), at = cache.tokens();
  // Storages that grow with every step are shown for the first ones.
  const bool shown = json != nullptr && to > room && at > 0 && (*grown < 12 || kind == "segmented");
  const double before_ms = shown ? attention_ms(cache, kind) : 0;
  const std::uint64_t booked = cache.booked(), resident = rss();
  static_cast<void>(take_peak_rss());
  if (!cache.reserve(to)) {
    std::fprintf(stderr, "%s: no memory for %zu tokens\n", kind.c_str(), to);
    std::exit(1);
  }
  if (cache.capacity() > room) ++*grown;
  const std::uint64_t after = cache.booked(), max = cache.max_booked();
  if (max > after) {
    std::fprintf(stderr, "%s: more than live and new tiles were booked at a time\n", kind.c_str());
    std::exit(1);
  }
  const double after_ms = shown ? attention_ms(cache, kind) : 0;
  cache.fill(to);
  if (!shown) return;
  std::fprintf(
      json,
      "{\"storage\": \"%s\", \"step_at\": %zu, \"room\": [%zu, %zu], \"kv_mib\": [%.1f, %.1f], "
      "\"most_kv_mib\": %.1f, \"rss_mib\": [%.1f, %.1f], \"most_rss_mib\": %.1f, \"attention_ms\": [%.2f, "
      "%.2f]}\n",
      kind.c_str(), at, room, cache.capacity(), mib(booked), mib(after), mib(max), mib(resident), mib(rss()),
      mib(take_peak_rss()), before_ms, after_ms);
}

void measure(const std::string& kind, std::FILE* json) {
  Cache cache(choice_of(kind));
  const std::uint64_t empty = rss();
  std::size_t grown = 0;
  for (const std::size_t until : levels) {
    while (cache.tokens() < until) step(cache, kind, std::min(cache.tokens() + chunk, until), &grown, json);
    level(cache, kind, empty, grown, json);
  }
  cache.rewind();
  const double left = mib(rss() - std::min(rss(), empty));
  std::printf("%-11s rewind(0): %.1f MiB booked, RSS %.1f MiB above the empty cache's %.1f\n", kind.c_str(),
              mib(cache.booked()), left, mib(empty));
  if (json != nullptr) {
    std::fprintf(json,
                 "{\"storage\": \"%s\", \"rewound_to\": 0, \"kv_mib\": %.1f, \"rss_left_mib\": %.1f, "
                 "\"rss_empty_mib\": %.1f}\n",
                 kind.c_str(), mib(cache.booked()), left, mib(empty));
  }
}

void fill(Cache& cache, std::size_t tokens) {
  while (cache.tokens() < tokens) {
    const std::size_t to = std::min(cache.tokens() + chunk, tokens);
    if (!cache.reserve(to)) {
      std::fprintf(stderr, "no memory for %zu tokens\n", to);
      std::exit(1);
    }
    cache.fill(to);
  }
}

/// Two storages in turns: what else the machine does falls on both.
void beside(const std::string& a, const std::string& b) {
  constexpr std::size_t turns = 9;
  Cache first(choice_of(a)), second(choice_of(b));
  for (const std::size_t tokens : {levels[3], levels[4]}) {
    fill(first, tokens);
    fill(second, tokens);
    std::vector<double> of_a, of_b;
    for (std::size_t i = 0; i < turns; ++i) {
      for (const bool is_a : {true, false}) {
        const double begin = bench::now();
        (is_a ? first : second).attend();
        (is_a ? of_a : of_b).push_back((bench::now() - begin) * 1e3);
      }
    }
    std::sort(of_a.begin(), of_a.end());
    std::sort(of_b.begin(), of_b.end());
    const double ms_a = of_a[turns / 2], ms_b = of_b[turns / 2];
    std::printf("%zu tokens: %s %.1f ms, %s %.1f ms (medians of %zu): %.3f of it; best runs %.3f\n", tokens,
                a.c_str(), ms_a, b.c_str(), ms_b, turns, ms_b / ms_a, of_b[0] / of_a[0]);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--beside") == 0) {
    beside(argv[2], argv[3]);
    return 0;
  }
  std::vector<std::string> kinds;
  std::FILE* json = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") != 0) {
      kinds.emplace_back(argv[i]);
    } else if (++i == argc || (json = std::fopen(argv[i], "w")) == nullptr) {
      std::fprintf(stderr, "usage: growth_bench [STORAGE...] [--json FILE], a file that can be written\n");
      return 2;
    }
  }
  if (kinds.empty()) {
    kinds.emplace_back("contiguous");
    for (const std::string_view name : kv::choice_names) {
      if (name != kinds[0]) kinds.emplace_back(name);
    }
  }
  for (const std::string& kind : kinds) static_cast<void>(choice_of(kind));
  if (json != nullptr) {
    std::fprintf(json,
                 "{\"shape\": \"llama-8b: 32 layers, 8 KV heads of 128, F16\", \"n_ctx\": %zu, \"filled\": "
                 "\"tiles are written, the model is not computed\", \"threads\": 1, \"clock\": \"processor "
                 "time of one thread, the best run\"}\n",
                 n_ctx);
  }
  std::printf(
      "tiles are written, the model is not computed\n"
      "storage     tokens      room |   KV, MiB  RSS, MiB | steps | attention, ms a token\n");
  for (const std::string& kind : kinds) measure(kind, json);
  if (json != nullptr) std::fclose(json);
}
