// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/speed.hpp"

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <doctest/doctest.h>

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
  CHECK(work.kv_element == "F16");
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
  CHECK(reads.token == doctest::Approx(1000 + experts / 2 / 4));
  CHECK(reads.chunk == doctest::Approx(1000 + experts / 2 * (1 - 0.75 * 0.75 * 0.75)));
  CHECK(plan::reads_of(work, all, all, 0, 512).chunk == doctest::Approx(0));
  CHECK(plan::reads_of(work, all, 1'000'000, 0, 1).token == doctest::Approx(experts / 4));
}

TEST_CASE("what is foretold is the sum of the times of its parts") {
  plan::Work work;
  work.weights[format::Q4_K::id] = {.decode_bytes = 4e9, .decode_macs = 8e9, .prefill_macs = 7e9};
  work.weights[format::Q6_K::id] = {.decode_bytes = 1e9, .decode_macs = 1e9, .prefill_macs = 1e9};
  work.kv_element = "F16";
  work.kv_bytes = 5e8;
  work.attention_macs = 1e9;
  plan::MachineSpeed machine;
  machine.read_bytes = 20e9;
  machine.dot_macs = 400e9;
  machine.disk_bytes = 2e9;
  machine.formats[format::Q4_K::id] = {.decode_bytes = 16e9, .prefill_macs = 350e9};
  machine.elements["F16"] = {.decode_bytes = 10e9, .prefill_macs = 100e9};

  SUBCASE("in memory; a format that was not measured has a part of what the machine does") {
    const plan::Speed speed = plan::predict(work, machine, {}, 1024, 512);
    const double decode = 4e9 / 16e9 + 1e9 / (20e9 * plan::assumed_decode_part) + 5e8 / 10e9;
    const double prefill = 7e9 / 350e9 + 1e9 / (400e9 * plan::assumed_prefill_part) + 1e9 / 100e9;
    CHECK(speed.decode == doctest::Approx(1 / decode));
    CHECK(speed.prefill == doctest::Approx(1 / prefill));
    CHECK(speed.first_token_seconds == doctest::Approx(1024 * prefill));
  }
  SUBCASE("streamed: whichever takes longer, and a prompt is two passes") {
    const plan::Speed speed = plan::predict(work, machine, {3e9, 3e9}, 1024, 512);
    CHECK(speed.decode == doctest::Approx(2e9 / 3e9));
    const double reading = 1024 * (7e9 / 350e9 + 1e9 / (400e9 * plan::assumed_prefill_part) + 1e9 / 100e9);
    CHECK(speed.first_token_seconds == doctest::Approx(reading));  // 38 s of computing hide 3 s of reading
    CHECK(plan::predict(work, machine, {90e9, 90e9}, 1024, 512).first_token_seconds == doctest::Approx(90.0));
  }
  SUBCASE("runs that were faster than foretold make later ones faster") {
    const plan::Speed before = plan::predict(work, machine, {}, 1024, 512);
    machine.decode_factor = 1.25;
    machine.prefill_factor = 0.5;
    const plan::Speed after = plan::predict(work, machine, {}, 1024, 512);
    CHECK(after.decode == doctest::Approx(1.25 * before.decode));
    CHECK(after.prefill == doctest::Approx(0.5 * before.prefill));
    CHECK(plan::predict(work, machine, {3e9, 3e9}, 1024, 512).decode ==
          doctest::Approx(2e9 / 3e9));  // the disk's pace
  }
  SUBCASE("only the memory's rate is known") {
    const plan::Speed speed = plan::predict(work, {.read_bytes = 50e9}, {}, 1, 512);
    CHECK(speed.decode == doctest::Approx(50e9 * plan::assumed_decode_part / 5.5e9));
    CHECK(speed.prefill > 0);
  }
}

}  // namespace mica::test::speed_test
