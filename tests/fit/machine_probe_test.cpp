// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/machine_probe.hpp"

#include "mica/exec/team.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::machine_probe_test {
namespace {

using Probe = fit::MachineProbe<exec::Team>;

/// Kernels whose products are wrong in one place.
struct Wrong : kernel::Highway {
  template <class F>
  static void matmul(const kernel::MatmulArgs<F>& args) noexcept {
    kernel::Highway::matmul<F>(args);
    if (args.last == args.w.rows()) args.y[args.y.rows() - 1][args.last - 1] += 1;
  }
};

}  // namespace

TEST_CASE("a machine is measured in every format that can be written and in every element") {
  exec::Team team(2);
  const plan::MachineSpeed speed = Probe(team, Probe::min_bytes).measure(1);
  CHECK(speed.known());
  CHECK(speed.basis == "measured");
  CHECK(speed.formats.size() == format::Encodable::size);
  CHECK(speed.elements.size() == format::AllKv::size);
  double max = 0;
  for (const auto& [id, found] : speed.formats) {
    const auto& the_id = id;
    CAPTURE(format::name(the_id));
    CHECK(found.decode_bytes > 0);
    CHECK(found.prefill_macs > 0);
    CHECK(found.macs.size() == Probe::more_tokens.size());
    for (const auto& [tokens, macs] : found.macs) CHECK(macs > 0);
    max = std::max(max, found.prefill_macs);
  }
  CHECK(speed.files.size() == Probe::packable_formats);
  for (const auto& [id, found] : speed.files) CHECK(found.decode_bytes > 0);
  for (const auto& [name, found] : speed.elements) {
    const auto& the_name = name;
    CAPTURE(the_name);
    CHECK(found.decode_bytes > 0);
    CHECK(found.prefill_macs > 0);
    CHECK(found.macs.size() == Probe::more_rows.size());
    CHECK(found.stored_numbers > 0);
  }
  CHECK(speed.dot_macs == max);
  for (const plan::PerOperation& rates : {speed.rows.one, speed.rows.many})
    rates.for_each([](plan::RowOperation operation, double rate) {
      CAPTURE(plan::name(operation));
      CHECK(rate > 0);
      CHECK(std::isfinite(rate));
    });
  CHECK(speed.run_seconds > 0);
}

TEST_CASE("a measurement that takes long runs each piece once, reports each, and ends when it is cancelled") {
  exec::Team team(2);
  Probe probe(team, Probe::min_bytes);
  std::size_t reports = 0, last = 0;
  const plan::MachineSpeed speed = probe.measure(1000, nullptr, 0, [&](std::size_t done) {
    ++reports;
    last = done;
  });
  CHECK(speed.formats.size() == format::Encodable::size);
  CHECK(reports == Probe::pieces);
  CHECK(last == Probe::pieces);
  std::atomic<bool> cancel = false;
  reports = 0;
  const plan::MachineSpeed part = probe.measure(1000, &cancel, 0, [&](std::size_t) {
    ++reports;
    cancel = true;
  });
  CHECK(reports == Probe::pieces_of_format);
  CHECK(part.formats.size() == 1);
  CHECK(part.elements.empty());
}

TEST_CASE("a measurement of parts has only their formats and elements") {
  exec::Team team(2);
  Probe probe(team, Probe::min_bytes);
  plan::SpeedParts only;
  only.formats = {format::Q4_K::id, format::F32::id, format::F64::id};  // F64 is no format of products
  only.elements = {std::string(format::Q8_0::name)};
  std::size_t reports = 0;
  const auto count = [&](std::size_t) { ++reports; };
  plan::MachineSpeed speed = probe.measure(1, nullptr, 20, count, &only);
  CHECK(speed.formats.size() == 2);
  CHECK(speed.formats.at(format::Q4_K::id).decode_bytes > 0);
  CHECK(speed.read_bytes > 0);
  CHECK(speed.dot_macs > 0);
  CHECK(speed.files.empty());
  CHECK(speed.elements.size() == 1);
  CHECK(speed.elements.at("Q8_0").stored_numbers > 0);
  CHECK(speed.rows.one[plan::RowOperation::norm] > 0);
  CHECK(speed.run_seconds > 0);
  CHECK(reports == Probe::pieces_of(&only));
  only.as_in_file = true;
  reports = 0;
  speed = probe.measure(1, nullptr, 20, count, &only);
  CHECK(speed.files.size() == 1);  // F32 is never packed
  CHECK(speed.files.contains(format::Q4_K::id));
  CHECK(reports == Probe::pieces_of(&only));
  CHECK(Probe::pieces_of(nullptr) == Probe::pieces);
}

TEST_CASE("products that are wrong are found before they are timed") {
  exec::Team team(1);
  using Measured = fit::MachineProbe<exec::Team, Wrong>;
  CHECK_THROWS_WITH_AS(static_cast<void>(Measured(team, Measured::min_bytes).measure(1)),
                       doctest::Contains("is not what the specification says"), Error);
}

TEST_CASE("too little memory to measure with is refused") {
  exec::Team team(1);
  CHECK_THROWS_WITH_AS(Probe(team, Probe::min_bytes - 1),
                       doctest::Contains("67108864 bytes of memory at least"), Error);
}

}  // namespace mica::test::machine_probe_test
