// SPDX-License-Identifier: Apache-2.0
#include "fit_machine.hpp"

#include "console.hpp"
#include "machine_speed.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::program {
namespace {

using Json = nlohmann::json;

constexpr std::string_view known_keys = "ram available vram unified mlx cores bandwidth vram_bandwidth disk";

/// Reads one object whose keys are those of the flags. Sizes are numbers of bytes or texts as flags have
/// them.
class MachineFile {
 public:
  explicit MachineFile(const std::string& path) : path_(path), json_(io::parse_json(read_text(path), path)) {
    MICA_CHECK(json_.is_object(), file, path, ": this is no JSON object; needed: one with keys of ",
               known_keys);
    for (const auto& [key, value] : json_.items()) {
      MICA_CHECK(join(" ", known_keys, " ").find(join(" ", key, " ")) != std::string::npos, file, path,
                 ": key '", escaped(key), "' is not known; known: ", known_keys);
    }
  }

  [[nodiscard]] fit::Description description() const {
    fit::Description said;
    said.ram_bytes = size("ram");
    said.available_bytes = size("available");
    said.vram_bytes = size("vram");
    said.unified = flag("unified");
    said.mlx = flag("mlx").value_or(false);
    said.cores = size("cores");
    said.ram_rate = rate("bandwidth");
    said.vram_rate = rate("vram_bandwidth");
    said.disk_rate = rate("disk");
    return said;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> size(const char* key) const { return number(key, false); }
  [[nodiscard]] std::optional<std::uint64_t> rate(const char* key) const { return number(key, true); }
  [[nodiscard]] std::optional<std::uint64_t> number(const char* key, bool is_rate) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::nullopt;
    if (found->is_number_unsigned()) return found->get<std::uint64_t>();
    MICA_CHECK(found->is_string(), file, path_, ": key '", key, "' is ", escaped(found->dump(), 40),
               "; allowed: a whole number, or a text such as \"", is_rate ? "60G" : "16G", "\"");
    const std::string what = join(path_, ": key '", key, "'"), text = found->get<std::string>();
    return is_rate ? fit::parse_rate(text, what) : budget::parse_size(text, 0, what);
  }
  [[nodiscard]] std::optional<bool> flag(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::nullopt;
    MICA_CHECK(found->is_boolean(), file, path_, ": key '", key, "' is ", escaped(found->dump(), 40),
               "; allowed: true, false");
    return found->get<bool>();
  }

  std::string path_;
  Json json_;
};

}  // namespace

void MachineOptions::add_to(Flags& flags) {
  flags.group("Machine");
  flags.text("--ram", ram, "SIZE",
             "memory of another machine than this one; nine tenths of it are available");
  flags.text("--available", available, "SIZE", "the memory that a model can use");
  flags.text("--vram", vram, "SIZE", "memory of its graphics cards");
  flags.text("--bandwidth", bandwidth, "RATE", "the bandwidth of its memory: 60G");
  flags.text("--vram-bandwidth", vram_bandwidth, "RATE", "the bandwidth of the memory of its cards");
  flags.text("--disk", disk, "RATE", "the read speed of its disk");
  flags.text("--machine", machine_file, "FILE", "a JSON file with these values; flags take precedence");
  flags.number("--cores", cores, {0, 1 << 20}, "its cores; 0: as many as this machine has");
  flags.toggle("--unified", unified, "its processors share their memory");
  flags.toggle("--mlx", mlx, "with --unified: quantisations of MLX instead of GGUF's");
}

fit::Machine machine_of(const MachineOptions& flags) {
  fit::Description said =
      flags.machine_file.empty() ? fit::Description() : MachineFile(flags.machine_file).description();
  const auto size = [](const std::string& text, std::string_view what, std::optional<std::uint64_t>& out) {
    if (!text.empty()) out = budget::parse_size(text, 0, what);
  };
  const auto rate = [](const std::string& text, std::string_view what, std::optional<std::uint64_t>& out) {
    if (!text.empty()) out = fit::parse_rate(text, what);
  };
  size(flags.ram, "--ram", said.ram_bytes);
  size(flags.available, "--available", said.available_bytes);
  size(flags.vram, "--vram", said.vram_bytes);
  rate(flags.bandwidth, "--bandwidth", said.ram_rate);
  rate(flags.vram_bandwidth, "--vram-bandwidth", said.vram_rate);
  rate(flags.disk, "--disk", said.disk_rate);
  if (flags.unified) said.unified = true;
  if (flags.mlx) said.mlx = true;
  if (flags.cores != 0) said.cores = flags.cores;
  fit::Machine here = fit::read_machine("");
  if (const auto measured = known_speed(said.cores.value_or(here.cores), nullptr)) here.speed = *measured;
  return fit::described(here, said);
}

}  // namespace mica::program
