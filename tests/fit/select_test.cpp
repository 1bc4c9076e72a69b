// SPDX-License-Identifier: Apache-2.0
//
// Which way of running a model is chosen. What is needed is worked out here by hand, from block sizes and
// shapes, and the four examples of llmfit's page on fit levels are held against it.

#include "mica_tools/fit/select.hpp"

#include "doc_table.hpp"
#include "fit/planned.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::select_test {
namespace {

using fit::Fit, fit::Level, fit::Mode;

constexpr double margin = 512.0 * 1024 * 1024;

/// Keys and values in F16 of 32 layers with 8 heads of 128, for so many tokens: 2 * 32 * 8 * 128 * 2 bytes
/// each.
double llama_kv(double tokens) { return 131072 * tokens; }

/// Llama 3.1 8B in Q8_0: 34 bytes for 32 weights, but norms in F32: (2 * 32 + 1) * 4096 of them.
double llama_q8() {
  const double norms = 65.0 * 4096;
  return (8030261248.0 - norms) * 34 / 32 + norms * 4;
}

fit::Machine with_rates(fit::Machine machine, double ram, double vram) {
  machine.speed.read_bytes = ram;
  machine.speed.basis = "described";
  machine.vram_rate = vram;
  machine.vram_basis = "described";
  return machine;
}

bool noted(const Fit& fit, std::string_view words) {
  for (const std::string& note : fit.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("on a card a model needs its weights, its keys and values, and a margin") {
  const fit::Machine card = with_rates(machine(64, 24), 50e9, 1000e9);
  const Fit fit = fit_of("llama-8b", card);
  CHECK(fit.mode == Mode::gpu);
  CHECK(fit.quantisation == "Q8_0");
  CHECK(fit.estimated());
  const double need = llama_q8() + llama_kv(8192) + margin;
  CHECK(static_cast<double>(fit.need.vram) == doctest::Approx(need).epsilon(0.001));
  CHECK(fit.need.ram == 0);
  CHECK(fit.level == Level::perfect);  // 24 GiB are more than twice 4.9 GB, and 8.5 GB of them are left
  // A token reads all weights but the embedding (128,256 rows of 4,096), and half of the context.
  const double read = llama_q8() - 128256.0 * 4096 * 34 / 32 + llama_kv(4096);
  CHECK(fit.decode == doctest::Approx(1000e9 * 0.55 / read).epsilon(0.001));
  CHECK(fit.basis == "described");
}

TEST_CASE("on a processor a model needs what its plan says, and reads memory at seven tenths of its rate") {
  const fit::Machine plain = with_rates(machine(16), 60e9, 0);
  const Fit fit = fit_of("llama-8b", plain);
  CHECK(fit.mode == Mode::cpu);
  CHECK(fit.quantisation == "Q8_0");
  CHECK_FALSE(fit.estimated());
  CHECK(static_cast<double>(fit.need.ram) > llama_q8() + llama_kv(8192));
  CHECK(static_cast<double>(fit.need.ram) <
        llama_q8() + llama_kv(8192) + 200e6);  // scratch, vocabulary, process
  CHECK(fit.available.ram == 16 * GiB / 10 * 9);
  CHECK(fit.level == Level::good);  // never perfect
  const double read = llama_q8() - 128256.0 * 4096 * 34 / 32 + llama_kv(4096);
  CHECK(fit.decode == doctest::Approx(60e9 * 0.7 / read).epsilon(0.001));
}

TEST_CASE("example 1: a card of 24 GiB and Qwen2.5-Coder-14B, perfect in the best quantisation") {
  const Fit fit = fit_of("qwen2.5-coder-14b", machine(64, 24));
  CHECK(fit.mode == Mode::gpu);
  CHECK(fit.level == Level::perfect);
  CHECK(fit.quantisation == "Q8_0");
  CHECK(fit.setting.element == kv::Element::f16);
  // 14.77 B weights * 34 / 32, 48 layers * 2 * 8 heads * 128 * 2 bytes * 8,192 tokens, the margin: 17.8 GB,
  // 69 % of 24 GiB.
  CHECK(static_cast<double>(fit.need.vram) ==
        doctest::Approx(14770033664.0 * 34 / 32 + 196608.0 * 8192 + margin).epsilon(0.002));
  const double part = fit::utilisation(fit.need, fit.available);
  CHECK(part > 0.5);  // where the page wants cards to be: 50 to 80 %
  CHECK(part < 0.8);
}

TEST_CASE(
    "example 2: a card of 8 GiB, 32 GiB of memory and Mixtral 8x7B: experts stay beside the processor") {
  const Fit fit = fit_of("mixtral-8x7b", machine(32, 8));
  CHECK(fit.mode == Mode::moe_offload);
  CHECK(fit.level == Level::good);  // the best that this mode can be
  // The page splits 12.9 B of 46.7 B weights. Of 32 layers with 8 experts of 3 * 4096 * 14336 weights each, 2
  // are used, so six eighths of the experts are elsewhere. It leaves keys and values out, which take a GiB;
  // with them fewer bits fit.
  fit::Candidate mixtral = candidate("mixtral-8x7b");
  const fit::Parts parameters = mixtral.parameters();
  CHECK(parameters.experts == 32.0 * 8 * 3 * 4096 * 14336);
  CHECK(parameters.active == doctest::Approx(46702792704.0 - 0.75 * parameters.experts));
  const fit::Parts& weights = mixtral.weights(fit.setting.quantisation);
  CHECK(static_cast<double>(fit.need.ram) == doctest::Approx(0.75 * weights.experts).epsilon(1e-6));
  CHECK(fit.need.vram + fit.need.ram > 8 * GiB);  // all of it would not fit on the card
  CHECK(fit.quantisation == "Q2_K");
  // Without a card's help it would need all in memory.
  CHECK(fit_of("mixtral-8x7b", machine(16, 8)).mode == Mode::moe_offload);
  CHECK(fit_of("mixtral-8x7b", machine(16)).mode == Mode::streamed);
}

TEST_CASE("example 3: a card of 6 GiB, 16 GiB of memory and Llama 3.1 8B, which does fit on the card") {
  // The page says CPU+GPU. Its own steps try every quantisation on the card first, and Q3_K_M fits there by
  // its own numbers: 8.03 * 0.48 + 1.0 + 0.5 = 5.4 "GB". So the card has it.
  const Fit fit = fit_of("llama-8b", machine(16, 6));
  CHECK(fit.mode == Mode::gpu);
  CHECK(fit.quantisation == "Q3_K_M");
  CHECK(fit.level == Level::good);
  CHECK(noted(fit, "keys and values in Q8_0"));
  // Asked for Q6_K, 6.6 GB of weights alone are more than 6 GiB: that spills, and costs speed.
  fit::Candidate one = candidate("llama-8b");
  REQUIRE(one.keep_only("q6_k"));
  const fit::Machine small = machine(16, 6);
  const Fit spilled = fit::Selector(small, {}).select(one);
  CHECK(spilled.mode == Mode::cpu_gpu);
  CHECK(spilled.level == Level::good);
  CHECK(spilled.decode < fit.decode);
}

TEST_CASE("example 4: a card of 4 GiB, 8 GiB of memory and Llama 3.1 70B, too tight but for the disk") {
  // The page says that it does not run: 70.6 B weights in Q2_K are 26 GB. mica streams what does not fit, at
  // the disk's speed.
  const fit::Machine small = machine(8, 4);
  const Fit fit = fit_of("llama-70b", small);
  CHECK(fit.mode == Mode::streamed);
  CHECK(fit.level == Level::marginal);  // the best that this mode can be
  CHECK(fit.need.ram <= fit.available.ram);
  CHECK(noted(fit, "are read from the disk for each token"));
  CHECK(fit.decode < 0.1);
  fit::Candidate one = candidate("llama-70b");
  const fit::Selector selector(small, {});
  for (const Mode mode : {Mode::gpu, Mode::cpu_gpu, Mode::cpu}) {
    const fit::Setting min{one.ladder().size() - 1, 1024, kv::Element::q8_0};
    CHECK_FALSE(fit::fits(selector.need(one, mode, min), {4 * GiB, 8 * GiB}));
  }
}

TEST_CASE("70 billion weights never fit on a card of 24 GiB, however short the context is") {
  // The page ends its search with 24.6 GB, "fits", on a card of 24 GB. 24.6 is more than 24.
  fit::Candidate one = candidate("llama-70b");
  const fit::Machine card = machine(64, 24);
  const fit::Selector selector(card, {65536});
  for (std::size_t n_ctx = 65536; n_ctx >= 1024; n_ctx /= 2) {
    const fit::Setting min{one.ladder().size() - 1, n_ctx, kv::Element::q8_0};
    CHECK(selector.need(one, Mode::gpu, min).vram > 24 * GiB);
  }
  CHECK(fit_of("llama-70b", card).mode == Mode::cpu_gpu);
}

TEST_CASE("a context is halved as often as it takes, and a fit that needed that is marginal") {
  // Llama 2 7B has 4,096 tokens and 512 KiB of keys and values for each, 272 in Q8_0; Q2_K weighs 2.5 GB.
  fit::Machine small = machine(4);
  small.available_bytes = 14 * GiB / 5;
  const Fit fit = fit_of("llama2-7b", small);
  CHECK(fit.mode == Mode::cpu);
  CHECK(fit.requested == 4096);
  CHECK(fit.setting.n_ctx == 1024);
  CHECK(fit.level == Level::marginal);
  CHECK(noted(fit, "context halved from 4096 to 1024 tokens"));
  CHECK(fit_of("llama2-7b", machine(16)).setting.n_ctx == 4096);
  CHECK(fit_of("llama2-7b", machine(16), {512}).setting.n_ctx == 512);  // nobody asked for more
}

TEST_CASE("the longest context fits, and 256 tokens more do not") {
  const fit::Machine plain = machine(8);
  fit::Candidate one = candidate("llama-8b");
  REQUIRE(one.keep_only("Q4_K_M"));
  const fit::Selector selector(plain, {});
  const Fit fit = selector.select(one);
  const std::size_t max = selector.longest_context(one, fit);
  CHECK(max > 8192);
  CHECK(max < 131072);
  const auto need = [&](std::size_t n_ctx) {
    fit::Setting setting = fit.setting;
    setting.n_ctx = n_ctx;
    return selector.need(one, fit.mode, setting).ram;
  };
  CHECK(need(max) <= plain.available_bytes);
  CHECK(need(max + 256) > plain.available_bytes);
  CHECK(fit::Selector(plain, {4096}).longest_context(one, fit::Selector(plain, {4096}).select(one)) == 4096);
}

TEST_CASE("more memory never gives a worse level, and never a shorter context") {
  for (const char* name : {"llama-8b", "gemma2-9b", "qwen3-30b-a3b", "gpt-oss-20b"}) {
    for (const std::uint64_t vram : {0u, 8u}) {
      Level level = Level::too_tight;
      std::size_t n_ctx = 0;
      bool streamed = true;
      for (const std::uint64_t ram : {1u, 2u, 3u, 4u, 5u, 6u, 8u, 10u, 12u, 16u, 20u, 24u, 32u, 48u, 64u}) {
        CAPTURE(name);
        CAPTURE(vram);
        CAPTURE(ram);
        const Fit fit = fit_of(name, machine(ram, vram));
        CHECK(fit.level <= level);
        const bool now_streamed = fit.mode == Mode::streamed;
        CHECK((streamed || !now_streamed));
        if (!streamed || now_streamed)
          CHECK(fit.setting.n_ctx >= n_ctx);  // in memory less context may be better than streaming
        level = fit.level;
        n_ctx = fit.setting.n_ctx;
        streamed = now_streamed;
      }
      CHECK(level <= Level::good);
    }
  }
}

TEST_CASE("graphics that may use a part of the memory leave the rest to the processor") {
  fit::Machine shared = machine(32);
  shared.unified = true;
  shared.shared_bytes = 4 * GiB;
  CHECK(fit_of("qwen2-1.5b", shared).mode == Mode::gpu);
  const Fit large = fit_of("qwen2-14b", shared);
  CHECK(large.mode == Mode::cpu);
  CHECK(large.available.ram == shared.available_bytes);
}

TEST_CASE("processors that share their memory have one pool, and MLX has two quantisations for it") {
  fit::Machine shared = machine(32);
  shared.unified = true;
  const Fit gguf = fit_of("qwen2-14b", shared);
  CHECK(gguf.mode == Mode::gpu);
  CHECK(gguf.available.vram == shared.available_bytes);
  CHECK(gguf.quantisation == "Q8_0");
  shared.mlx = true;
  fit::Candidate one = candidate("qwen2-14b", true);
  const Fit mlx = fit::Selector(shared, {}).select(one);
  CHECK(mlx.quantisation == "mlx-8bit");
  // 8 bits a weight, and 32 bits for 64 of them.
  CHECK(static_cast<double>(mlx.need.vram) ==
        doctest::Approx(14770033664.0 * 8.5 / 8 + 196608.0 * 8192 + margin).epsilon(0.001));
  CHECK(mlx.decode ==
        doctest::Approx(50e9 * 0.55 / (14770033664.0 * 8.5 / 8 + 196608.0 * 4096)).epsilon(0.001));
  shared.available_bytes = 6 * GiB;
  CHECK(fit::Selector(shared, {}).select(one).level == Level::too_tight);  // and nothing of ours streams MLX
}

TEST_CASE("what the maker gives in four bits is taken as it is") {
  fit::Candidate one = candidate("gpt-oss-20b");
  REQUIRE(one.ladder().size() == 1);
  CHECK(one.ladder().front().name == "MXFP4_MOE");
  CHECK(one.ladder().front().penalty == 0);
  CHECK_FALSE(one.keep_only("Q8_0"));
}

TEST_CASE("a recipe without a published perplexity is worth what its bits are worth") {
  const auto worth = [](const char* recipe) {
    fit::Candidate one = candidate("qwen2-7b");
    REQUIRE(one.keep_only(recipe));
    return one.ladder().front().worth;
  };
  CHECK(worth("IQ4_XS") == 0.83);
  CHECK(worth("Q4_K_M") == 0.88);
  CHECK(worth("TQ1_0") == 0.14);
  CHECK(worth("MXFP4_MOE") <= worth("Q8_0"));
  CHECK(worth("IQ3_M") < worth("IQ4_XS"));
  CHECK(worth("IQ1_S") <= worth("IQ2_XXS"));  // both the least
}

TEST_CASE("experts that are streamed are read as chance has it") {
  // gpt-oss 20B: 24 layers, 32 experts of which 4 are used. With nothing cached a token reads an eighth of
  // them.
  fit::Machine small = machine(3);
  const Fit fit = fit_of("gpt-oss-20b", small);
  REQUIRE(fit.mode == Mode::streamed);
  fit::Candidate one = candidate("gpt-oss-20b");
  const double experts = one.weights(0).experts;
  CHECK(experts ==
        doctest::Approx(24.0 * 32 * 3 * 2880 * 2880 * 17 / 32).epsilon(0.01));  // MXFP4: 17 bytes for 32
  CHECK(fit.decode < 1.2e9 / (experts / 8));  // a disk of 1 GB/s, and a part of the experts in memory
  CHECK(fit.decode > 0.9e9 / (experts / 8));  // computing takes the rest: experts are known only then
}

TEST_CASE("a file is judged as it is, by what it says of itself") {
  const quantize::SyntheticModel stories(*arch::find_shape("stories-15m"), quantize::Recipe::Q5_0);
  const fit::Machine plain = machine(1);
  fit::Candidate one(stories.document(), 2, planned);
  CHECK(one.row() == nullptr);
  REQUIRE(one.ladder().size() == 1);
  CHECK(one.ladder().front().name == "Q5_0");
  CHECK(one.ladder().front().penalty == 1);  // by its bits: more than six, for the head has eight
  const Fit fit = fit::Selector(plain, {}).select(one);
  CHECK(fit.mode == Mode::cpu);
  CHECK(fit.level == Level::good);
  CHECK(fit.setting.n_ctx == 256);  // what it was trained for
  CHECK(fit.parameters == 15191712);
  plan::Question question;
  question.model.n_ctx = 256;
  question.threads = 2;
  CHECK(fit.need.ram == planned(stories.document(), question, 0).peak_bytes);
  CHECK_FALSE(one.keep_only("Q8_0"));
}

TEST_CASE("which models of nine billion weights fit in 6 GB") {
  // The page's table in plans: 6 GiB, of which 200 MiB are the system's, weights in Q4_K_M. Its verdicts by
  // context are F16, INT8.
  struct Case {
    std::string_view name;
    std::size_t n_ctx;
    bool said_f16, said_q8;
  };
  constexpr Case cases[] = {
      {"qwen2-7b", 512, true, true},    {"qwen2-7b", 2048, true, true},    {"qwen2-7b", 8192, true, true},
      {"llama-8b", 512, true, true},    {"llama-8b", 2048, true, true},    {"llama-8b", 4096, true, true},
      {"llama-8b", 8192, false, true},  {"gemma2-9b", 512, true, true},    {"gemma2-9b", 1024, true, true},
      {"gemma2-9b", 2048, false, true}, {"gemma2-9b", 4096, false, false},
  };
  constexpr std::uint64_t budget = 6 * GiB - (std::uint64_t{200} << 20);
  const fit::Machine six = machine(6);
  const fit::Selector selector(six, {});
  std::string table = "| model, Q4_K_M | context | F16 | | Q8_0 | |\n|---|---|---|---|---|---|\n", corrected;
  for (const Case& c : cases) {
    fit::Candidate one = candidate(c.name);
    table += join("| ", one.title(), " | ", c.n_ctx, " |");
    for (const bool small : {false, true}) {
      const std::uint64_t need =
          selector
              .need(one, Mode::cpu, {one.reference(), c.n_ctx, small ? kv::Element::q8_0 : kv::Element::f16})
              .ram;
      const bool fits = need <= budget, said = small ? c.said_q8 : c.said_f16;
      table += join(" ", budget::size_text(need), " | ", fits ? "fits" : "does not",
                    fits == said ? "" : " (the page: otherwise)", " |");
      if (fits != said) corrected += join(c.name, " ", c.n_ctx, small ? " Q8_0; " : " F16; ");
    }
    table += "\n";
  }
  publish_table("fit.md", "six", table);
  // Llama's 4.9 GB of weights are 4.6 GiB: the page adds GB and MiB. Gemma lacks 15 MiB, and at 2,048 tokens
  // Q8_0 takes 8.5 bits.
  CHECK(corrected == "llama-8b 8192 F16; gemma2-9b 1024 F16; gemma2-9b 2048 Q8_0; ");
}

TEST_CASE("the memory of a process counts the vocabulary that the header of a shape does not have") {
  for (const bool streamed : {false, true}) {
    CAPTURE(streamed);
    fit::Candidate one = candidate("llama-8b");
    const plan::Plan plan = one.plan({one.reference(), 1024, kv::Element::f16, streamed, 3 * GiB});
    const std::uint64_t bytes = plan.accounts[budget::Account::process];
    CHECK(bytes ==
          plan::process_bytes(one.document(one.reference())) + 128256 * plan::process_bytes_per_piece);
    CHECK(plan.peak_bytes >= bytes + plan.accounts[budget::Account::weights]);
    if (streamed) CHECK(plan.peak_bytes <= 3 * GiB);
  }
}

}  // namespace mica::test::select_test
