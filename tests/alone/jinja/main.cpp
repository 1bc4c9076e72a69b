// SPDX-License-Identifier: Apache-2.0
//
// Chat templates in a program that has include/mica_jinja and no other file of this project.

#include "mica_jinja/jinja.hpp"

#include <cstdio>
#include <string>

int main() {
  using mica::jinja::Template;
  using mica::jinja::TemplateError;
  using mica::jinja::Value;
  const Value messages = Value::list({Value::mapping({{"role", "user"}, {"content", "Hi"}})});
  const std::string text =
      Template::parse("{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{% endfor %}")
          .render(Value::mapping({{"messages", messages}}));
  if (text != "<user>Hi") return std::puts(text.c_str()), 1;
  try {
    (void)Template::parse("{{ raise_exception('No.') }}").render({});
  } catch (const TemplateError& error) {
    return error.what() == std::string("the chat template refuses: No.") ? 0 : 1;
  }
  return 1;
}
