// SPDX-License-Identifier: Apache-2.0
#include "meter.hpp"

#include "json_text.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"

#include <algorithm>
#include <chrono>
#include <sys/resource.h>

namespace mica::program {

namespace {

ranks::LinkCosts costs_of(const ranks::AnyLink* link) noexcept {
  return link == nullptr ? ranks::LinkCosts{} : link->costs();
}
double exchange_seconds(const Costs& costs) noexcept {
  return std::chrono::duration<double>(costs.link.waited).count();
}

}  // namespace

Costs& Costs::operator+=(const Costs& other) noexcept {
  seconds += other.seconds;
  reads = reads + other.reads;
  faults += other.faults;
  link = link + other.link;
  return *this;
}

Meter::Meter(const AnyModel& model, const ranks::AnyLink* link)
    : model_(model), link_(link), before_{0, model.reads(), major_faults(), costs_of(link)} {}

Costs Meter::lap() {
  const Costs now{watch_.seconds(), model_.reads(), major_faults(), costs_of(link_)};
  const Costs lap{now.seconds - before_.seconds, now.reads - before_.reads, now.faults - before_.faults,
                  now.link - before_.link};
  before_ = now;
  return lap;
}

std::string json_of(const Costs& costs) {
  const paging::Reads& r = costs.reads;
  return join(
      "{\"ms\":", fixed(costs.seconds * 1e3, 3), ",\"wait_ms\":", fixed(r.waited * 1e3, 3),
      ",\"read_bytes\":", r.bytes, ",\"expert_hits\":", r.expert_hits, ",\"expert_misses\":", r.expert_misses,
      ",\"major_faults\":", costs.faults,
      costs.link.sent_messages == 0
          ? ""
          : join(",\"sent_bytes\":", costs.link.sent_bytes, ",\"sent_messages\":", costs.link.sent_messages,
                 ",\"exchange_ms\":", fixed(exchange_seconds(costs) * 1e3, 3)),
      "}");
}

std::string text_of(const Costs& costs, std::size_t tokens) {
  const paging::Reads& r = costs.reads;
  std::string text = "nothing read";
  if (r.bytes > 0) {
    text = join(budget::size_text(r.bytes / std::max<std::size_t>(tokens, 1)), " read",
                tokens > 0 ? join(" for each of ", tokens, " further tokens") : std::string(),
                ", waited for it ", fixed(costs.seconds > 0 ? r.waited / costs.seconds * 100 : 0.0, 0),
                " % of the time");
  }
  if (const std::uint64_t uses = r.expert_hits + r.expert_misses; uses > 0) {
    text += join("; experts there ", r.expert_hits, " of ", uses, " times");
  }
  if (costs.link.sent_messages > 0) {
    const std::uint64_t n = std::max<std::size_t>(tokens, 1);
    text += join(
        "; ", budget::size_text(costs.link.sent_bytes / n), " sent in ", costs.link.sent_messages / n,
        " messages", tokens > 0 ? " for each" : "", ", exchanges took ",
        fixed(costs.seconds > 0 ? exchange_seconds(costs) / costs.seconds * 100 : 0.0, 0), " % of the time");
  }
  return join(text, "; ", costs.faults, " major faults");
}

const io::File* largest_file(const gguf::Document& document) {
  const auto sources = document.sources();
  return std::max_element(sources.begin(), sources.end(),
                          [](const gguf::Source& a, const gguf::Source& b) { return a.size() < b.size(); })
      ->file();
}

io::DiskSpeed disk_speed(const io::File& file) {
  auto memory = alloc::Buffer<std::byte, alloc::Huge>::make({}, io::DiskProbe::memory_bytes);
  MICA_CHECK(memory, budget, "measuring a disk needs ", budget::size_text(io::DiskProbe::memory_bytes),
             " of memory");
  return io::DiskProbe(file, memory->span()).measure();
}

std::uint64_t major_faults() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_majflt);
}

}  // namespace mica::program
