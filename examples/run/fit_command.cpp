// SPDX-License-Identifier: Apache-2.0
#include "fit_command.hpp"

#include "completion_script.hpp"
#include "mica/base/assert.hpp"
#include "mica_tools/hub/published.hpp"
#include "mica_tools/quantize/recipe.hpp"
#include "safe_text.hpp"

#include <string_view>

namespace mica::program {
namespace {

/// Whether a terminal can show the bytes, and a line with them can be pasted.
bool can_be_shown(std::string_view text) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!c.is_text || c.is_control) return false;
    text.remove_prefix(c.bytes);
  }
  return true;
}

/// $'...' with all bytes that are not plain ASCII in octal: bash, zsh and ksh read the same bytes.
std::string ansi_quoted(std::string_view text) {
  std::string out = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F || c == '\'' || c == '\\') {
      out += '\\';
      for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + (byte >> shift & 7));
    } else {
      out += c;
    }
  }
  return out + "'";
}

/// A path as a shell takes it.
std::string shell_word(std::string path) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+,@%-";
  const bool is_option = path.starts_with('-');
  if (is_option) path.insert(0, "./");
  if (!can_be_shown(path)) return ansi_quoted(path);
  const bool is_plain = path.find_first_not_of(plain) == std::string::npos;
  return is_plain && !is_option ? path : single_quoted(path);
}

}  // namespace

std::string fit_command(const fit::Fit& fit) {
  if (fit.level == fit::Level::too_tight) return {};
  std::string model;
  if (fit.row == nullptr) {
    model = shell_word(fit.name);
  } else if (hub::find_published(fit.row->name) != nullptr && quantize::find_recipe(fit.quantisation)) {
    model = join(fit.row->name, ":", fit.quantisation);
  } else {
    return {};
  }
  if (fit.estimated() && fit.row != nullptr) return join("mica pull ", model);
  const bool is_usual = fit.setting.n_ctx == fit.requested && fit.wanted == fit::default_context;
  return join("mica run ", model, is_usual ? std::string() : join(" -c ", fit.setting.n_ctx),
              fit.setting.element == kv::Element::f16 ? "" : " -ctk q8_0 -ctv q8_0",
              fit.setting.streamed ? " --weights streamed" : "");
}

}  // namespace mica::program
