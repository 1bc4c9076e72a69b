// SPDX-License-Identifier: Apache-2.0
//
// What mica doctor and mica plan say about the settings of this machine: the lines of mica_tools/advice,
// whose words have tests of their own.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include "mica/io/file.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <utility>

namespace mica::test::doctor_test {
namespace {

using Json = nlohmann::json;

/// A topic, and the file from which it is known.
using Known = std::pair<const char*, const char*>;
constexpr std::array<Known, 8> known = {{{"swap", "/proc/meminfo"},
                                         {"swappiness", "/proc/sys/vm/swappiness"},
                                         {"zswap", "/sys/module/zswap/parameters/enabled"},
                                         {"overcommit", "/proc/sys/vm/overcommit_memory"},
                                         {"huge pages", "/proc/meminfo"},
                                         {"address space", "/proc/self/limits"},
                                         {"locked memory", "/proc/self/limits"},
                                         {"control group", "/proc/meminfo"}}};

/// Whether a text has a line that begins with a topic.
bool has_line(const std::string& text, const std::string& topic) {
  return ("\n" + text).find("\n" + topic + " ") != std::string::npos;
}

/// The line of a topic in JSON; null if there is none.
Json line_of(const Json& answer, const std::string& topic) {
  for (const Json& line : answer["advice"])
    if (line["topic"] == topic) return line;
  return nullptr;
}

/// `mica` with a soft limit of its data segment, in KiB.
Ran limited(const std::string& kib, const Words& words) {
  const Words shell = {"-c", "ulimit -S -d " + kib + " && exec \"$0\" \"$@\"", MICA_PROGRAM};
  return ProgramRun("/bin/sh", shell + words).run();
}

}  // namespace

TEST_CASE("doctor has a line for each setting that this system tells") {
  const Ran ran = mica({"doctor"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  for (const auto& [topic, file] : known) {
    const auto& the_topic = topic;
    CAPTURE(the_topic);
    if (io::exists(file)) CHECK(has_line(ran.out, topic));
  }
  CHECK_FALSE(has_line(ran.out, "file system"));
}

TEST_CASE("doctor says why the disk of a small file is not measured, and all else") {
  const TemporaryFolder folder;
  const Ran ran = mica({"doctor", folder.file("weights", "few bytes")});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has_line(ran.out, "overcommit") == io::exists("/proc/sys/vm/overcommit_memory"));
  CHECK(ran.out.find("disk_in_order         not measured: ") != std::string::npos);
}

TEST_CASE("doctor has the same lines in JSON, and with a file those of its place") {
  const TemporaryFolder folder;
  const std::string file = folder.file("weights", std::string(std::size_t{8} << 20, 'w'));
  const Ran ran = mica({"doctor", file, "--json"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const Json answer = Json::parse(ran.out);
  REQUIRE(answer["advice"].is_array());
  for (const auto& [topic, path] : known) {
    const auto& the_topic = topic;
    CAPTURE(the_topic);
    if (io::exists(path)) CHECK_FALSE(line_of(answer, topic).is_null());
  }
  for (const Json& line : answer["advice"]) {
    CHECK_FALSE(line["found"].get<std::string>().empty());
    CHECK(line["fine"].get<bool>() != line.contains("meaning"));
    if (!line["fine"]) CHECK_FALSE(line["change"].get<std::string>().empty());
  }
  if (!io::exists("/proc/self/mountinfo")) return;
  const Json place = line_of(answer, "file system");
  REQUIRE_FALSE(place.is_null());
  const bool in_memory = place["found"].get<std::string>().starts_with("tmpfs");
  CHECK(line_of(answer, "direct reads").is_null() == in_memory);
}

TEST_CASE("a plan repeats a limit that its run would exceed, and says nothing where a run fits") {
  if (sanitized || !io::exists("/proc/self/limits")) return;
  const TemporaryFolder folder;
  const std::string file = folder.path("model.gguf");
  REQUIRE(mica({"synth", "stories-15m", "Q8_0", file, "-q"}).code == 0);
  const Words plan = {"plan", file, "-c", "4096", "-t", "1", "--memory", "64GiB"};
  const Ran large = limited("524288", plan + Words{"-np", "256"});
  CHECK(has_line(large.out, "data limit"));
  CHECK(has(large.out, "512.0 MiB (ulimit -d): weights, keys and values count"));
  const Ran small = limited("524288", plan);
  CHECK(small.code == 0);
  CHECK_FALSE(has_line(small.out, "data limit"));
  const Ran json = limited("524288", plan + Words{"-np", "256", "--json"});
  CHECK(line_of(Json::parse(json.out), "data limit")["fine"] == false);
}

}  // namespace mica::test::doctor_test
#endif
