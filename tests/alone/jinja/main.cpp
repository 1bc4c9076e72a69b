// SPDX-License-Identifier: Apache-2.0
//
// Chat templates in a program that has include/mica_jinja and no other file of this project.

#include "mica_jinja/jinja.hpp"

#include <cstdio>
#include <string>

using mica::jinja::Template;
using mica::jinja::TemplateError;
using mica::jinja::Value;

int main() {
  const Template parsed = Template::parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  const Value message = Value::mapping({{"role", "user"}, {"content", "Hi"}});
  const std::string text = parsed.render(Value::mapping({{"messages", Value::list({message})}}));
  if (text != "<user>Hi") return std::puts(text.c_str()), 1;
  try {
    (void)Template::parse("{{ raise_exception('No.') }}").render({});
  } catch (const TemplateError& error) {
    return error.what() == std::string("the chat template refuses: No.") ? 0 : 1;
  }
  return 1;
}
