// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/serve/stream.hpp"

#include "fake_service.hpp"
#include "mica_tools/serve/messages.hpp"
#include "mica_tools/serve/route_options.hpp"
#include "mica_tools/serve/sampling.hpp"

#include <doctest/doctest.h>

namespace mica::test::stream_test {
namespace {

using namespace serve;

}  // namespace
}  // namespace mica::test::stream_test
