// SPDX-License-Identifier: Apache-2.0
//
// What plans foretell of memory beside what runs take, what planning itself takes, and what a plan shows.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include "mica/gguf/reader.hpp"
#include "quantize/hollow_model.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace mica::test::plan_test {
namespace {

using Json = nlohmann::json;

Json json_of(const Ran& ran) {
  REQUIRE_MESSAGE((ran.code == 0 || ran.code == 4), ran.err);
  return Json::parse(ran.out);
}

std::uint64_t peak(const Json& json) { return json["peak_bytes"].get<std::uint64_t>(); }

/// The header of a published model with its vocabulary, and a hole where the weights would be.
std::string hollow_file(const TemporaryFolder& folder, std::string_view shape) {
  const HollowModel model = hollow_model(shape, quantize::Recipe::F16);
  const std::string path = folder.file("hollow.gguf", model.header);
  std::filesystem::resize_file(path, model.size);
  return path;
}

}  // namespace

TEST_CASE(
    "runs of small shapes take what was planned: within 2 per cent, or 2 MiB of what no allocator sees") {
  if (sanitized) return;  // whose memory would be measured
  const TemporaryFolder folder;
  const std::string file = folder.path("model.gguf");
  REQUIRE(mica({"synth", "stories-15m", "Q8_0", file, "-q"}).code == 0);
  const std::vector<Words> runs = {{},
                                   {"--chunk", "64"},
                                   {"-ctk", "q8_0", "-ctv", "q8_0"},
                                   {"-ctk", "q4_0", "-ctv", "q4_0", "--chunk", "32"},
                                   {"--kv", "contiguous"},
                                   {"--weights", "streamed", "--chunk", "64", "--memory", "40M"}};
  for (const Words& flags : runs) {
    CAPTURE(flags.empty() ? std::string() : flags.back());
    const Words model = Words{file, "-c", "512", "-t", "2"} + flags;
    const std::uint64_t planned = peak(json_of(mica(Words{"plan", "--json"} + model)));
    // A busy system takes pages of the program back, so the largest of some runs counts.
    std::uint64_t measured = 0;
    for (int round = 0; round < 3; ++round) {
      const Words bench = {"bench", "-p", "512", "-n", "0", "-r", "1", "-o", "json"};
      measured = std::max(measured, peak(json_of(mica(bench + model))[0]));
    }
    const double off = static_cast<double>(planned) - static_cast<double>(measured);
    CAPTURE(planned);
    CAPTURE(off);
    CHECK(std::abs(off) <= std::max(0.02 * static_cast<double>(planned), 2.0 * 1048576));
  }
}

TEST_CASE("a run books what was planned to the byte: several sequences, evictions, hybrids, mixtures") {
  const TemporaryFolder folder;
  const std::vector<Words> shapes = {
      {"stories-15m", "Q8_0"},
      {"qwen3.5-0.8b", "Q4_0", "--layers", "4", "--vocab", "300"},
      {"qwen3-30b-a3b", "Q4_0", "--layers", "1", "--experts", "8", "--vocab", "300"}};
  const std::vector<Words> runs = {{},
                                   {"-np", "3"},
                                   {"-np", "2", "--kv", "contiguous", "--weights", "mapped"},
                                   {"--evict", "sinks:192", "-np", "3"},
                                   {"--evict", "heavy:256", "--chunk", "64"},
                                   {"-ctk", "q8_0", "-ctv", "q4_0", "--chunk", "32", "-np", "2"}};
  for (const Words& shape : shapes) {
    const std::string file = folder.path("model.gguf");
    REQUIRE(mica(Words{"synth"} + shape + Words{file, "-q"}).code == 0);
    for (const Words& flags : runs) {
      CAPTURE(shape.front());
      CAPTURE(flags.empty() ? std::string() : flags.back());
      const Words model = Words{file, "-c", "320", "-t", "2"} + flags;
      const std::uint64_t planned = peak(json_of(mica(Words{"plan", "--json"} + model)));
      const Json run =
          json_of(mica(Words{"bench", "-p", "0", "-n", "4", "-d", "316", "-r", "1", "-o", "json"} + model));
      CHECK(run[0]["ledger_peak_bytes"] == planned);
    }
  }
}

TEST_CASE("planning takes four times the header and 16 MiB at most, whatever the model weighs") {
  if (sanitized) return;
  const TemporaryFolder folder;
  const std::uint64_t program = mica({"--version"}).peak_bytes;
  for (const char* shape : {"llama-70b", "gemma2-9b"}) {
    CAPTURE(shape);
    const std::string path = hollow_file(folder, shape);
    const std::uint64_t header = gguf::open(path).header_bytes();
    CHECK(header > 1 << 20);
    const Ran ran = mica({"plan", path, "-c", "8192", "--json", "--memory", "200GiB"});
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    CHECK(peak(Json::parse(ran.out)) > 10 * header);
    CHECK(ran.peak_bytes <= program + 4 * header + (16 << 20));
  }
}

TEST_CASE("a plan shows all ways within a budget, and what fits when what was asked for does not") {
  const TemporaryFolder folder;
  const std::string path = hollow_file(folder, "llama-1b");
  const Json plan = json_of(mica({"plan", path, "--json", "--solve", "--memory", "3GiB", "-c", "131072"}));
  REQUIRE(plan["ways"].size() == 6);
  CHECK(plan["ways"][0]["element"] == "F16");
  CHECK(plan["ways"][1]["n_ctx"] > plan["ways"][0]["n_ctx"]);
  CHECK(plan["ways"][3]["weights"] == "streamed");
  CHECK(plan["ways"][3]["streamed_bytes"] > 0);
  const Ran text = mica({"plan", path, "--solve", "--memory", "3GiB"});
  CHECK(has(text.out, "Q4_0"));
  CHECK(has(text.out, "read for each step"));
  const Ran none = mica({"plan", path, "--memory", "1GiB", "-c", "512"});
  CHECK(none.code == 4);
  CHECK(has(none.err, "Fits with --weights streamed -c 512"));
}

TEST_CASE("a drawing has a line for each element, the budget, and is whole") {
  const TemporaryFolder folder;
  const std::string path = hollow_file(folder, "llama-1b"), svg = folder.path("plan.svg");
  CHECK(mica({"plan", path, "--svg", svg, "--memory", "4GiB", "-c", "4096"}).code == 0);
  const std::string drawn = contents(svg);
  CHECK(has(drawn, "budget 4.0 GiB"));
  CHECK(has(drawn, "131072"));
  std::size_t lines = 0;
  for (std::size_t at = drawn.find("<polyline"); at != std::string::npos;
       at = drawn.find("<polyline", at + 1))
    ++lines;
  CHECK(lines == 3);
  CHECK(drawn.ends_with("</svg>\n"));
}

TEST_CASE("a drawing of a short context has curves and ticks too") {
  const TemporaryFolder folder;
  const std::string path = hollow_file(folder, "stories-15m"),
                    svg = folder.path("plan.svg");  // trained for 256 tokens
  REQUIRE(mica({"plan", path, "--svg", svg, "--memory", "4GiB"}).code == 0);
  const std::string drawn = contents(svg);
  for (const char* tick : {">32<", ">64<", ">128<", ">256<"}) CHECK(has(drawn, tick));
  CHECK(drawn.find(">512<") == std::string::npos);
  for (std::size_t at = drawn.find("points=\""); at != std::string::npos;
       at = drawn.find("points=\"", at + 1)) {
    const std::string points = drawn.substr(at + 8, drawn.find('"', at + 8) - at - 8);
    CHECK(std::count(points.begin(), points.end(), ',') == 4);
    CHECK(points.find("nan") == std::string::npos);
  }
}

TEST_CASE("a plan for several machines has a share for each, and what is wrong with their file is said") {
  const TemporaryFolder folder;
  const std::string model = hollow_file(folder, "llama-1b");
  const auto plan = [&](std::string_view hosts, const Words& more = {}) {
    return mica(Words{"plan", model, "-c", "1024", "--ranks", folder.file("hosts", hosts)} + more);
  };
  const std::string two =
      "network speed=10Gbit/s latency=30us  # a switch\n\na memory=4GiB reads=30GB/s\n"
      "b memory=4GiB reads=10GB/s\n";
  const Json json = json_of(plan(two, {"--json"}));
  REQUIRE(json["ranks"].size() == 2);
  CHECK(json["ranks"][0]["share"].get<double>() == doctest::Approx(0.75).epsilon(0.1));
  CHECK(json["exchanges"].get<int>() == 4 * 16 + 2);
  CHECK(json["latency_seconds"].get<double>() == doctest::Approx(66 * 30e-6));
  const Ran table = plan(two);
  CHECK(table.code == 0);
  CHECK(has(table.out, "mpirun -n 2 --hostfile HOSTS"));
  CHECK(has(table.out, " at 10 Gbit/s"));

  const auto refused = [&](std::string_view hosts, int code, std::string_view text) {
    CAPTURE(hosts);
    const Ran ran = plan(hosts);
    CHECK(ran.code == code);
    CHECK(has(ran.err, text));
  };
  refused("", 3, "found 0 machines");
  refused("a memory=4GiB\n", 3, "line 1: a machine needs memory=, such as 6GiB, and reads=");
  refused("a memory=4GiB reads=20\n", 3, "'reads=20': needed is a number above 0 and one of GB/s");
  refused("\na memory=4GiB speed=20GB/s\n", 3, "line 2: 'speed=20GB/s' is not known; memory=");
  refused("network speed=0Gbit/s\n", 3, "'speed=0Gbit/s'");
  refused("a memory=1GiB reads=20GB/s\nb memory=100MiB reads=20GB/s\n", 4,
          "the memory of these 2 machines holds ");
  CHECK(plan(two, {"--memory", "4GiB"}).code == 2);
}

}  // namespace mica::test::plan_test
#endif
