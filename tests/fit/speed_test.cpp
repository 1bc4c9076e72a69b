// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/speed.hpp"

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::speed_test {
namespace {

using format::Id;

/// The header of a published model, all matrices in one format.
gguf::Document document_of(std::string_view name) {
  return quantize::SyntheticModel(*arch::find_shape(name), quantize::Recipe::Q8_0).document();
}

plan::Work work_of(const gguf::Document& document, kv::Element element, std::size_t tokens) {
  return plan::work_of(document, arch::AnyOf<arch::All>::config(document), {element, element}, tokens);
}

}  // namespace

TEST_CASE("a token of Llama 3.2 1B reads its matrices, the head, and the keys and values before it") {
  const gguf::Document document = document_of("llama-1b");
  const plan::Work work = work_of(document, kv::Element::f16, 1000);
  // 16 layers: q, o 2048 x 2048; k, v 2048 x 512; gate, up, down 2048 x 8192. The embedding is the head.
  const double layer = 2.0 * 2048 * 2048 + 2.0 * 2048 * 512 + 3.0 * 2048 * 8192, head = 2048.0 * 128256;
  const plan::FormatWork& q8 = work.weights.at(format::Q8_0::id);
  CHECK(q8.decode_bytes == (16 * layer + head) / 32 * 34);
  CHECK(q8.decode_macs == 16 * layer + head);
  CHECK(q8.prefill_macs == 16 * layer);
  // Norms and frequencies of the rotation are floats, and no products.
  CHECK(work.weights.at(format::F32::id).decode_bytes == 33 * 2048 * 4);
  CHECK(work.weights.at(format::F32::id).prefill_macs == 0);
  CHECK(work.keys.element == "F16");
  CHECK(work.values.number_bytes == 2);
  CHECK(work.kv_bytes == 16.0 * 1000 * 2 * 512 * 2);
  CHECK(work.attention_macs == 16.0 * 1000 * 2 * 2048);
  CHECK(work_of(document, kv::Element::q8_0, 1000).kv_bytes == 16.0 * 1000 * 8 * 2 * (64 + 2));
}

TEST_CASE("of experts a token uses those that it chooses, and in a window it sees the window") {
  const plan::Work work = work_of(document_of("mixtral-8x7b"), kv::Element::f16, 0);
  const double attention = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024, expert = 3.0 * 4096 * 14336;
  CHECK(work.weights.at(format::Q8_0::id).prefill_macs == doctest::Approx(32 * (attention + 2 * expert)));
  // Gemma 2 9B: 21 of 42 layers see 4,096 tokens; 8 heads of 256.
  const double token = 2.0 * 8 * 256 * 2;
  CHECK(work_of(document_of("gemma2-9b"), kv::Element::f16, 8000).kv_bytes == 21 * token * (8000 + 4096 - 1));
}

TEST_CASE(
    "streamed experts are read as often as chance has it, and a chunk of a prompt wants nearly all of them") {
  // Mixtral 8x7B: 2 of 8 experts, 32 layers of 3 x 4,096 x 14,336 for each.
  const plan::Work work = work_of(document_of("mixtral-8x7b"), kv::Element::f16, 0);
  const double experts = 32 * 8 * 3.0 * 4096 * 14336 / 32 * 34;
  CHECK(work.expert_bytes == doctest::Approx(experts));
  CHECK(work.used_expert_bytes == doctest::Approx(experts / 4));
  const auto all = static_cast<std::uint64_t>(work.expert_bytes) + 2'000'000'000;
  const auto half = static_cast<std::uint64_t>(work.expert_bytes / 2) + 2'000'000'000;
  const plan::StepReads reads = plan::reads_of(work, all, half, 1000, 3);
  CHECK(reads.always == 1000);
  CHECK(reads.token_experts == doctest::Approx(experts / 2 / 4));
  CHECK(reads.chunk_experts == doctest::Approx(experts * (1 - 0.75 * 0.75 * 0.75)));  // more than are there
  CHECK(plan::reads_of(work, all, half, 1000, 3, 2).token_experts ==
        doctest::Approx(experts / 2 * (1 - 0.75 * 0.75)));  // two sequences
  CHECK(plan::reads_of(work, all, all, 0, 512).chunk_experts == doctest::Approx(0));
  CHECK(plan::reads_of(work, all, 1'000'000, 0, 1).token_experts == doctest::Approx(experts / 4));
}

TEST_CASE("layers are read while others are computed if there is memory for two of them, experts never") {
  const plan::StepReads ahead{.always = 100, .token_experts = 50};
  CHECK(ahead.step(3, 50, 100) == 3.5);
  CHECK(ahead.step(0.5, 50, 100) == 1.5);
  const plan::StepReads behind{.always = 100, .ahead = false};
  CHECK(behind.step(3, 50, 100) == 4.5);
  CHECK(paging::reads_ahead({.min = 10, .requested = 10}));
  CHECK_FALSE(paging::reads_ahead({.min = 10, .requested = 9}));
}

namespace {

/// Two formats, one layer of attention at position 1,024.
plan::Work simple_work() {
  plan::Work work;
  work.tokens = 1024;
  work.weights[format::Q4_K::id] = {.decode_bytes = 8e9 * 144 / 256, .decode_macs = 8e9, .prefill_macs = 7e9};
  work.weights[format::Q6_K::id] = {.decode_bytes = 1e9 * 210 / 256, .decode_macs = 1e9, .prefill_macs = 1e9};
  work.keys = work.values = {"F16", 2};
  work.attention.push_back({.heads = 32, .kv_heads = 8, .head_dim = 128});
  return work;
}

plan::MachineSpeed simple_machine() {
  plan::MachineSpeed machine;
  machine.read_bytes = 20e9;
  machine.dot_macs = 400e9;
  machine.disk_bytes = 2e9;
  machine.formats[format::Q4_K::id] = {.decode_bytes = 16e9, .prefill_macs = 350e9};
  machine.elements["F16"] = {.decode_bytes = 10e9, .prefill_macs = 100e9};
  return machine;
}

constexpr double q4_token = 8e9 * 144 / 256 / 16e9, q4_head = q4_token / 8;
constexpr double q6_token = 1e9 * 210 / 256 / (20e9 * plan::assumed_decode_part);
constexpr double prompt_products = 512 * (7e9 / 350e9 + 1e9 / (400e9 * plan::assumed_prefill_part));

}  // namespace

TEST_CASE("what is foretold is the sum of the times of its parts") {
  const plan::Work work = simple_work();
  plan::MachineSpeed machine = simple_machine();
  // Blocks of 16 tokens see half a block and half a tile more than a token: 768 + 16 tokens on average.
  const double attention = 2.0 * 784 * 1024 * 32 * 64 / 100e9;
  const double prompt = prompt_products + attention + q4_head;
  const double token = q4_token + q6_token + 2.0 * 1024 * 1024 * 2 / 10e9;

  SUBCASE("in memory; a format that was not measured has a part of what the machine does") {
    const plan::Speed speed = plan::predict(work, machine, {}, {});
    CHECK(speed.decode == doctest::Approx(1 / token));
    CHECK(speed.first_token_seconds == doctest::Approx(prompt));
    CHECK(speed.prefill == doctest::Approx(512 / prompt));
  }
  SUBCASE("streamed: whichever takes longer, in each of two steps") {
    CHECK(plan::predict(work, machine, {.always = 3e9}, {}).decode == doctest::Approx(2e9 / 3e9));
    CHECK(plan::predict(work, machine, {.always = 3e9}, {512, 256}).first_token_seconds ==
          doctest::Approx(plan::predict(work, machine, {}, {512, 256}).first_token_seconds));
    CHECK(plan::predict(work, machine, {.always = 90e9}, {512, 256}).first_token_seconds ==
          doctest::Approx(90 + q4_head));
    // Experts are read when they are chosen: their time is added.
    CHECK(plan::predict(work, machine, {.always = 3e9, .token_experts = 1e9}, {}).decode ==
          doctest::Approx(2e9 / 4e9));
    CHECK(plan::predict(work, machine, {.chunk_experts = 2e9}, {}).first_token_seconds ==
          doctest::Approx(prompt + 1));
  }
  SUBCASE("a full cache evicts 64 tokens at a time, and each 64 tokens are a step") {
    plan::Work evicting = work;
    evicting.kv_capacity = 640;  // one step of 128 tokens, six of 64
    CHECK(plan::predict(evicting, machine, {.always = 90e9}, {}).first_token_seconds ==
          doctest::Approx(7 * 45 + q4_head));
    CHECK(plan::predict(evicting, machine, {}, {}).decode ==
          doctest::Approx(1 / (q4_token + q6_token + 2.0 * 640 * 1024 * 2 / 10e9)));
  }
  SUBCASE("runs that were faster than foretold make later ones faster") {
    const plan::Speed before = plan::predict(work, machine, {}, {});
    machine.decode_factor = 1.25;
    machine.prefill_factor = 0.5;
    const plan::Speed after = plan::predict(work, machine, {}, {});
    CHECK(after.decode == doctest::Approx(1.25 * before.decode));
    CHECK(after.prefill == doctest::Approx(0.5 * before.prefill));
    CHECK(plan::predict(work, machine, {.always = 3e9}, {}).decode ==
          doctest::Approx(2e9 / 3e9));  // of the disk
  }
  SUBCASE("only the memory's rate is known") {
    const plan::Speed speed = plan::predict(work, {.read_bytes = 50e9}, {}, {1, 512});
    const double bytes = 8e9 * 144 / 256 + 1e9 * 210 / 256 + 2.0 * 1024 * 1024 * 2;
    CHECK(speed.decode == doctest::Approx(50e9 * plan::assumed_decode_part / bytes));
    CHECK(speed.prefill > 0);
  }
}

TEST_CASE("products of some tokens lie between the measured ones, and sequences share them") {
  plan::Work work = simple_work();
  work.weights.erase(format::Q6_K::id);
  work.attention.clear();
  plan::MachineSpeed machine = simple_machine();
  const double one = 144.0 / 256 / 16e9, four = 4 / 100e9;  // of a weight
  machine.formats[format::Q4_K::id].macs = {{4, 100e9}};
  CHECK(plan::predict(work, machine, {}, {1, 1, 4}).decode == doctest::Approx(4 / (8e9 * four)));
  CHECK(plan::predict(work, machine, {}, {1, 1, 2}).decode ==
        doctest::Approx(2 / (8e9 * (one + (four - one) / 3))));
  CHECK(plan::predict(work, machine, {}, {1024, 1024}).first_token_seconds ==
        doctest::Approx(7e9 * 1024 / 350e9 + 1e9 * one));
}

TEST_CASE("rows of mapped and streamed weights have the rates of files") {
  plan::Work work = simple_work();
  work.weights.erase(format::Q6_K::id);
  work.attention.clear();
  plan::MachineSpeed machine = simple_machine();
  machine.files[format::Q4_K::id] = {.decode_bytes = 8e9, .prefill_macs = 175e9};
  const auto decode = [&](double as_in_file) {
    return 1 / plan::predict(work, machine, {}, {1, 1, 1, as_in_file}).decode;
  };
  CHECK(decode(0) == doctest::Approx(q4_token));
  CHECK(decode(1) == doctest::Approx(2 * q4_token));
  CHECK(decode(0.25) == doctest::Approx(1.25 * q4_token));
  CHECK(plan::predict(work, machine, {}, {512, 512, 1, 1}).first_token_seconds ==
        doctest::Approx(512 * 7e9 / 175e9 + 2 * q4_head));
  const gguf::Document document = document_of("llama-1b");
  CHECK(plan::part_as_in_file(document, paging::Choice::resident, 100, 100) == 0);
  CHECK(plan::part_as_in_file(document, paging::Choice::mapped, 100, 100) == 1);
  CHECK(plan::part_as_in_file(document, paging::Choice::streamed, 100, 40) == doctest::Approx(0.6));
}

TEST_CASE("the experts of a prompt's step have few tokens each") {
  plan::Work work;
  work.weights[format::Q4_K::id] = {
      .decode_macs = 2e9, .prefill_macs = 2e9, .expert_macs = 2e9};  // of 2 experts
  work.experts = 8;
  work.experts_used = 2;
  plan::MachineSpeed machine = simple_machine();
  machine.formats[format::Q4_K::id].macs = {{4, 100e9}};
  // Of 16 tokens each of 8 experts has 4, and all but 1 % of the experts are used.
  const double used = 1 - std::pow(0.75, 16), tokens = 4 / used;
  const double four = 4 / 100e9, many = 512 / 350e9, each = four + (many - four) * (tokens - 4) / 508;
  work.tokens = 16;
  CHECK(plan::predict(work, machine, {}, {16, 16}).first_token_seconds == doctest::Approx(8e9 * used * each));
  CHECK(plan::predict(work, machine, {}, {1, 1}).first_token_seconds ==
        doctest::Approx(2e9 * 144 / 256 / 16e9));
}

TEST_CASE("operations on rows and parallel runs take their time beside products") {
  using Op = plan::RowOperation;
  plan::Work work;
  work.tokens = 512;
  work.rows.numbers[Op::gate] = 1e6;
  work.rows.numbers[Op::delta_rule] = 4e6;
  work.rows.runs = 100;
  plan::MachineSpeed machine = simple_machine();
  machine.run_seconds = 1e-6;
  machine.rows.one[Op::gate] = 1e9;
  machine.rows.many[Op::gate] = 2e9;
  machine.rows.one[Op::delta_rule] = 4e9;
  machine.rows.many[Op::delta_rule] = 10e9;
  const auto decode = [&](std::size_t sequences) {
    return static_cast<double>(sequences) / plan::predict(work, machine, {}, {1, 1, sequences}).decode;
  };
  CHECK(decode(1) == doctest::Approx(1e-4 + 1e-3 + 1e-3));
  CHECK(decode(2) == doctest::Approx(1e-4 + 1e-3 + 2e-3));  // each sequence has a state
  CHECK(plan::predict(work, machine, {}, {}).first_token_seconds ==
        doctest::Approx(1e-4 + 512 * (0.5e-3 + 0.4e-3)));
}

TEST_CASE("a hybrid goes over its states, and a mixture over the rows of the experts that a token uses") {
  using Op = plan::RowOperation;
  const plan::RowWork hybrid = work_of(document_of("qwen3.5-0.8b"), kv::Element::f16, 0).rows;
  CHECK(hybrid.numbers[Op::delta_rule] == 18 * 128.0 * 16 * 128);  // delta nets of 16 heads
  CHECK(hybrid.numbers[Op::convolve] == 18 * 3.0 * 16 * 128);
  CHECK(hybrid.stored_numbers == 6 * 2 * 2 * 256.0);
  // Gates of feed-forward blocks, of attention and of delta nets.
  CHECK(hybrid.numbers[Op::gate] == 24 * 3584.0 + 6 * 8 * 256.0 + 18 * 16 * 128.0);
  CHECK(hybrid.runs == 24 * 2 + 6 * 3 + 18 * 4);
  const plan::RowWork mixture = work_of(document_of("qwen3-30b-a3b"), kv::Element::f16, 0).rows;
  CHECK(mixture.numbers[Op::gate] == 48 * 8 * 768.0);
  CHECK(mixture.numbers[Op::rope] == 48 * (32 + 4) * 128.0);
}

}  // namespace mica::test::speed_test
