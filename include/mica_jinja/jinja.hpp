// SPDX-License-Identifier: Apache-2.0
//
// Chat templates: the whole library in one include. It needs the C++20 standard library and nothing else.
#pragma once

#include "mica_jinja/civil_time.hpp"
#include "mica_jinja/limits.hpp"
#include "mica_jinja/template.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"
