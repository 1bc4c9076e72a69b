// SPDX-License-Identifier: Apache-2.0
//
// What is foretold of speed: measured once, kept, corrected by runs, and never taken from a damaged file.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

#include <fstream>

namespace mica::test::speed_test {
namespace {

using Json = nlohmann::json;

Ran with_cache(const TemporaryFolder& cache, Words words) {
  return ProgramRun(MICA_PROGRAM, std::move(words)).set("XDG_CACHE_HOME", cache.path("")).run();
}

Json json_with(const TemporaryFolder& cache, Words words) {
  const Ran ran = with_cache(cache, std::move(words));
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return Json::parse(ran.out);
}

const Words plan = {"plan", "-c", "256", "--json", "-t", "2"};

}  // namespace

TEST_CASE("nothing is foretold of a machine that was not measured, and the plan says how") {
  const TemporaryFolder cache;
  CHECK_FALSE(json_with(cache, plan).contains("speed"));
  const Ran ran = with_cache(cache, {"plan", "-c", "256"});
  CHECK(ran.out.find("mica doctor --measure") != std::string::npos);
}

TEST_CASE("a machine is measured once; plans foretell from it, and runs correct them") {
  if (sanitized) return;  // measures the sanitizer
  const TemporaryFolder cache;
  const Ran measured = with_cache(cache, {"doctor", "--measure", "--json", "-t", "2"});
  REQUIRE_MESSAGE(measured.code == 0, measured.err);
  CHECK(measured.err.starts_with("mica: measuring this machine"));
  const Json doctor = Json::parse(measured.out);
  CHECK(doctor["read_bytes"] > 1e8);
  CHECK(doctor["Q4_K"]["prefill_macs"] > 1e8);
  CHECK(doctor["kv_Q8_0"]["decode_bytes"] > 1e7);
  const Json first = json_with(cache, plan)["speed"];
  CHECK(first["basis"] == "measured");
  for (const char* name :
       {"decode_per_second", "decode_per_second_full", "prefill_per_second", "first_token_seconds"})
    CHECK(first[name] > 0);
  CHECK(first["decode_per_second_full"] <= first["decode_per_second"]);
  CHECK_FALSE(json_with(cache, {"plan", "-c", "256", "--json", "-t", "1"})
                  .contains("speed"));  // another machine, so to speak
  const Json runs = json_with(cache, {"bench", "-p", "128", "-n", "32", "-r", "2", "-t", "2", "-o", "json"});
  CHECK(runs[0]["predicted_ts"] > 0);
  CHECK(runs[1]["predicted_ts"] > 0);
  const Ran table = with_cache(cache, {"bench", "-p", "16", "-n", "8", "-r", "1", "-t", "2"});
  CHECK_MESSAGE(has(table.err, "GB/s; predicted "), table.err);
  CHECK_MESSAGE(has(table.err, " M multiply-adds a token, "), table.err);
  CHECK(json_with(cache, plan)["speed"] == first);  // a model that a cache holds teaches nothing about others

  Json kept = Json::parse(std::ifstream(cache.path("mica/machine.json")));
  kept["runs"] = {{"decode", {2.0, 0.5, 2.0}}, {"prefill", {1.0}}};
  std::ofstream(cache.path("mica/machine.json")) << kept;
  const Json corrected = json_with(cache, plan)["speed"];
  CHECK(corrected["basis"] == "calibrated");
  CHECK(corrected["decode_per_second"].get<double>() ==
        doctest::Approx(2 * first["decode_per_second"].get<double>()));
  CHECK(corrected["prefill_per_second"] == first["prefill_per_second"]);

  // A lower measurement says so, and one of a busy machine does not replace the former.
  for (auto& [name, rates] : kept["formats"].items()) rates["decode_bytes"] = 9e17;
  std::ofstream(cache.path("mica/machine.json")) << kept;
  const Ran again = with_cache(cache, {"doctor", "--measure", "-t", "2"});
  REQUIRE(again.code == 0);
  const bool stays = has(again.err, " was stored before and stays with all other figures");
  CHECK((stays || has(again.err, " was stored before and is replaced")));
  CHECK(stays == has(again.err, "mica: other processes "));
  kept = Json::parse(std::ifstream(cache.path("mica/machine.json")));
  CHECK((kept["formats"]["Q4_K"]["decode_bytes"] == 9e17) == stays);
}

TEST_CASE("a plan measures what its model uses, and keeps what was measured of the rest") {
  if (sanitized) return;  // measures the sanitizer
  const TemporaryFolder cache;
  const Words again = {"plan", "-c", "256", "--json", "-t", "2", "--measure"};
  // Nothing is known: all is measured.
  const Ran whole = with_cache(cache, again);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  CHECK_MESSAGE(whole.err.starts_with("mica: measuring this machine"), whole.err);
  Json kept = Json::parse(std::ifstream(cache.path("mica/machine.json")));
  REQUIRE(kept["formats"].contains("Q4_K"));
  REQUIRE(kept["formats"].contains("Q8_0"));
  // Figures that no machine has.
  for (auto& [name, rates] : kept["formats"].items()) rates["decode_bytes"] = 1.0;
  kept["runs"] = {{"decode", {2.0}}, {"prefill", {2.0}}};
  std::ofstream(cache.path("mica/machine.json")) << kept;
  const Ran parts = with_cache(cache, again);
  REQUIRE_MESSAGE(parts.code == 0, parts.err);
  CHECK_MESSAGE(parts.err.starts_with("mica: measuring what this model uses"), parts.err);
  CHECK(Json::parse(parts.out)["speed"]["basis"] == "measured");
  const Json now = Json::parse(std::ifstream(cache.path("mica/machine.json")));
  CHECK(now["formats"].size() == kept["formats"].size());
  CHECK(now["elements"].size() == kept["elements"].size());
  CHECK_FALSE(now.contains("runs"));
  std::size_t measured = 0;
  for (const auto& [name, rates] : now["formats"].items()) measured += rates["decode_bytes"] > 1.0 ? 1 : 0;
  CHECK(measured > 0);
  CHECK(measured < 8);
  CHECK(now["formats"]["IQ2_XS"]["decode_bytes"] == 1.0);
}

TEST_CASE("what was kept and damaged counts as not measured") {
  const TemporaryFolder cache;
  REQUIRE(::mkdir(cache.path("mica").c_str(), 0700) == 0);
  for (const char* text : {"", "{", "[1, 2]", "{\"machine\": 3, \"formats\": []}", "\xff\xfe",
                           "{\"machine\": {}, \"read_bytes\": 1e300}"}) {
    CAPTURE(text);
    std::ofstream(cache.path("mica/machine.json")) << text;
    CHECK_FALSE(json_with(cache, plan).contains("speed"));
  }
}

}  // namespace mica::test::speed_test
#endif
