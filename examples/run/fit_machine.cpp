// SPDX-License-Identifier: Apache-2.0
#include "fit_machine.hpp"

#include "console.hpp"
#include "machine_speed.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/json/parse_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {
namespace {

using Json = nlohmann::json;

constexpr std::array known_keys = {"ram",   "available", "vram",           "unified", "mlx",
                                   "cores", "bandwidth", "vram_bandwidth", "disk"};

std::string all_keys() {
  std::string all;
  for (const char* const key : known_keys) all += join(all.empty() ? "" : " ", key);
  return all;
}

/// A key of the outermost object, where it is written.
struct Key {
  std::string name;
  std::size_t line = 0;  // from 1
};

/// All of them in their order, those that are written twice too, which a parsed object does not have. The
/// text is that of an object, and parsed before.
std::vector<Key> keys_of(std::string_view json) {
  std::vector<Key> keys;
  Key last;
  std::size_t line = 1;
  int depth = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == '\n') ++line;
    if (c == ':' && depth == 1) keys.push_back(last);
    if (c != '"') continue;
    const std::size_t begin = i;
    for (++i; json[i] != '"'; ++i) i += json[i] == '\\' ? 1 : 0;
    if (depth == 1) last = {Json::parse(json.substr(begin, i + 1 - begin)).get<std::string>(), line};
  }
  return keys;
}

/// Reads one object whose keys are those of the flags. Sizes are numbers of bytes or texts as flags have
/// them.
class MachineFile {
 public:
  explicit MachineFile(const std::string& path) : path_(path) {
    const std::string text = read_text(path);
    json_ = io::parse_json(text, path);
    MICA_CHECK(json_.is_object(), file, path, ": this is no JSON object; needed: one with keys of ",
               all_keys());
    keys_ = keys_of(text);
    for (auto key = keys_.begin(); key != keys_.end(); ++key) {
      MICA_CHECK(std::find(known_keys.begin(), known_keys.end(), key->name) != known_keys.end(), file,
                 place(key->name), " is not known; known: ", all_keys());
      const auto same = [&](const Key& other) { return other.name == key->name; };
      const auto before = std::find_if(keys_.begin(), key, same);
      MICA_CHECK(before == key, file, path, ", line ", key->line, ": key '", key->name, "' is in line ",
                 before->line, " already; needed: one of them");
    }
  }

  [[nodiscard]] fit::Description description() const {
    fit::Description said;
    said.ram_bytes = size("ram");
    said.available_bytes = size("available");
    said.vram_bytes = size("vram");
    said.unified = flag("unified");
    said.mlx = flag("mlx").value_or(false);
    said.cores = cores();
    said.ram_rate = rate("bandwidth");
    said.vram_rate = rate("vram_bandwidth");
    said.disk_rate = rate("disk");
    return said;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> size(const char* key) const { return number(key, false); }
  [[nodiscard]] std::optional<std::uint64_t> rate(const char* key) const { return number(key, true); }
  /// A number is read as a text without a unit is.
  [[nodiscard]] std::optional<std::uint64_t> number(const char* key, bool is_rate) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::nullopt;
    const bool whole = found->is_number_unsigned();
    MICA_CHECK(whole || found->is_string(), file, place(key), " is ", escaped(found->dump(), 40),
               "; allowed: a whole number of bytes, or a text such as \"", is_rate ? "60G" : "16G", "\"");
    const std::string text = whole ? found->dump() : found->get<std::string>();
    return is_rate ? fit::parse_rate(text, place(key)) : budget::parse_size(text, 0, place(key));
  }
  [[nodiscard]] std::optional<std::uint64_t> cores() const {
    const auto found = json_.find("cores");
    if (found == json_.end()) return std::nullopt;
    MICA_CHECK(found->is_number_unsigned() && *found != 0, file, place("cores"), " is ",
               escaped(found->dump(), 40), "; allowed: a whole number, 1 or more");
    return found->get<std::uint64_t>();
  }
  [[nodiscard]] std::optional<bool> flag(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return std::nullopt;
    MICA_CHECK(found->is_boolean(), file, place(key), " is ", escaped(found->dump(), 40),
               "; allowed: true, false");
    return found->get<bool>();
  }
  /// "machine.json, line 3: key 'ram'".
  [[nodiscard]] std::string place(std::string_view name) const {
    const auto found =
        std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) { return key.name == name; });
    return join(path_, ", line ", found->line, ": key '", escaped(found->name, 40), "'");
  }

  std::string path_;
  Json json_;
  std::vector<Key> keys_;  // of json_
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
  if (flags.unified) said.unified = flags.unified;
  if (flags.mlx) said.mlx = true;
  if (flags.cores != 0) said.cores = flags.cores;
  fit::Machine here = fit::read_machine("");
  if (const auto measured = known_speed(said.cores.value_or(here.cores), nullptr)) here.speed = *measured;
  return fit::described(here, said);
}

}  // namespace mica::program
