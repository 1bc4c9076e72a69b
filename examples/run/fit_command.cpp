// SPDX-License-Identifier: Apache-2.0
#include "fit_command.hpp"

#include "completion_script.hpp"
#include "mica/base/assert.hpp"
#include "mica_tools/hub/published.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <string_view>

namespace mica::program {
namespace {

/// A path as a shell takes it.
std::string shell_word(const std::string& path) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+,@%-";
  const bool is_plain = path.find_first_not_of(plain) == std::string::npos;
  return is_plain && !path.starts_with('-') ? path
                                            : single_quoted(path.starts_with('-') ? "./" + path : path);
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
