// SPDX-License-Identifier: Apache-2.0
//
// Weights that pass through a ring are those of the file, in whatever order units are asked for, and a file
// that cannot be read is an answer.

#include "mica/paging/streamed.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/base/rng.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace mica::test::streamed_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
using budget::Account;
using Streamed = paging::Streamed<A>;

constexpr std::size_t layers = 7, head = layers + 1;

/// A file of an embedding, layers of three tensors, and a head; sizes fit no block, and one layer is larger
/// than a request.
std::vector<std::byte> model_bytes() {
  gguf::Writer writer(32);
  writer.set("general.architecture", "none");
  const auto add = [&](std::string name, std::uint64_t bytes) {
    const std::size_t seed = name.size() + static_cast<unsigned char>(name[0]) + bytes;
    writer.add(name, format::I8::id, {bytes}, [bytes, seed](const gguf::Sink& sink) {
      std::vector<std::byte> content(bytes);
      CounterRng rng(seed);
      for (std::byte& b : content) b = static_cast<std::byte>(rng.next());
      sink(content);
    });
  };
  add("embedding", 30001);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    add(join(layer, ".norm"), 40 + layer);
    add(join(layer, ".matrix"), layer == 3 ? (std::uint64_t{9} << 20) + 77 : 100003 + 11 * layer);
    add(join(layer, ".other"), 5000);
  }
  add("head", 200009);
  return writer.bytes();
}

/// tied: the head has a small tensor alone, and the embedding is its matrix.
std::vector<paging::Extent> extents(const gguf::Document& document, bool tied) {
  std::vector<paging::Extent> out;
  for (const auto& tensor : document.tensors()) {
    const std::size_t i = out.size();
    paging::Extent& e = out.emplace_back();
    e = {tensor.source, static_cast<std::uint32_t>((i + 2) / 3), tensor.offset, tensor.bytes};
    const bool matrix = i == 0 ? tied : tensor.name != "head" || !tied;
    e.rows = matrix ? 1 : 0;  // too few to be packed
    e.cols = tensor.bytes;
  }
  return out;
}

struct File {
  TemporaryFolder folder;
  std::string path = folder.file("model.gguf", model_bytes());
  gguf::Document document = gguf::open(path);
};

/// Whether the tensors of a unit that is held are those of the file.
bool same(const Streamed& pager, const gguf::Document& document, std::size_t unit) {
  bool same = true;
  for (std::size_t i = 0; i < document.tensors().size(); ++i) {
    if ((i + 2) / 3 != unit) continue;
    std::vector<std::byte> expected(document.tensors()[i].bytes);
    document.read(document.tensors()[i], expected);
    same = same && std::memcmp(pager.data(i), expected.data(), expected.size()) == 0;
  }
  return same;
}

/// Holds each unit as a step does.
void step(Streamed& pager, const gguf::Document& document, bool with_head, bool tied) {
  const auto use = [&](std::size_t unit) {
    REQUIRE(pager.acquire(unit));
    pager.prefetch(unit + 1);
    CHECK(same(pager, document, unit));
  };
  use(0);
  pager.release(0);
  for (std::size_t layer = 1; layer < head; ++layer) {
    use(layer);
    pager.release(layer);
  }
  if (!with_head) return;
  use(head);
  if (tied) use(0);
  if (tied) pager.release(0);
  pager.release(head);
}

}  // namespace

TEST_CASE("whatever stays and whatever is read, every step sees the file") {
  const File file;
  for (const bool tied : {false, true}) {
    const auto table = extents(file.document, tied);
    for (const std::uint64_t bytes : {0u, 400000u, 9'800'000u, 100u << 20}) {
      CAPTURE(bytes);
      budget::Ledger ledger;
      {
        Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, bytes);
        for (int i = 0; i < 3; ++i) step(pager, file.document, i != 1, tied);
        const auto& r = pager.residency();
        CHECK((r.bytes() <= bytes || bytes < 9'000'000));
        CHECK(ledger.used(Account::io_buffers) == r.ring_bytes);
        const std::size_t norm = tied ? 200064 : 0;  // stays in any case
        const std::size_t rows = r.rows_stay ? 30016 : 0;
        CHECK(r.rows_stay == (bytes == 100u << 20));
        CHECK(ledger.used(Account::weights) <= r.staying_bytes + norm + rows + 64 * table.size());
        CHECK((r.streamed_bytes == 0) == (bytes == 100u << 20));
        CHECK((pager.reads().bytes >= 2 * r.streamed_bytes));
        CHECK(pager.reads().bytes <= 4 * r.streamed_bytes);
      }
      CHECK(ledger.used() == 0);
    }
  }
}

TEST_CASE("units may be asked for in any order, and twice") {
  const File file;
  const auto table = extents(file.document, false);
  budget::Ledger ledger;
  Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, 20u << 20);
  CounterRng rng(5);
  for (int i = 0; i < 200; ++i) {
    const std::size_t unit = rng.next() % (head + 1);
    REQUIRE(pager.acquire(unit));
    CHECK(same(pager, file.document, unit));
    pager.release(unit);
  }
}

TEST_CASE("a file that was cut is an answer, and one that is whole again is read") {
  const File file;
  const auto table = extents(file.document, false);
  budget::Ledger ledger;
  Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, 0);
  const auto whole = contents(file.path);
  REQUIRE(pager.acquire(1));
  pager.release(1);
  std::filesystem::resize_file(file.path, whole.size() / 2);
  bool all = true;
  for (std::size_t unit = 1; unit <= head; ++unit) {
    const bool read = pager.acquire(unit);
    all = all && read;
    if (read) pager.release(unit);
  }
  CHECK_FALSE(all);
  file.folder.file("model.gguf", whole);
  for (std::size_t unit = 1; unit <= head; ++unit) {
    REQUIRE(pager.acquire(unit));
    CHECK(same(pager, file.document, unit));
    pager.release(unit);
  }
}

TEST_CASE("a budget without room for the ring is refused, and a plan books what a run takes") {
  const File file;
  const auto table = extents(file.document, false);
  budget::Ledger small(1u << 20);
  const Error error = refusal([&] {
    return Streamed({file.document, table, head + 1}, A(small, Account::weights), {}, 0);
  });
  CHECK(error.code() == ErrorCode::budget);
  CHECK(mentions(error, "bytes to read them through do not fit the memory budget"));
  CHECK(small.used() == 0);
  for (const std::uint64_t bytes : {0u, 12u << 20, 100u << 20}) {
    budget::Ledger run, plan;
    const Streamed pager({file.document, table, head + 1}, A(run, Account::weights), {}, bytes);
    const paging::Streamed<alloc::Counting> dry({file.document, table, head + 1},
                                                alloc::Counting(plan, Account::weights), {}, bytes);
    CHECK(plan.used() == run.used());
    CHECK(plan.peak() == run.peak());
  }
}

TEST_CASE("what stays changes between steps, and the ledger never holds more than the most that was told") {
  const File file;
  CounterRng rng(3);
  for (int round = 0; round < 12; ++round) {
    const bool tied = round % 2 == 1;
    const auto table = extents(file.document, tied);
    const std::uint64_t ends = 200064 + 64 * table.size();  // a norm, ends of tensors
    budget::Ledger ledger;
    Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, 0);
    const paging::WeightCapacity capacity = pager.capacity();
    CHECK(capacity.min < 10'500'000);
    const std::uint64_t max =
        round < 2 ? capacity.max : capacity.min + rng.next() % (capacity.max - capacity.min);
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t bytes = i % 3 == 1 ? max : capacity.min + rng.next() % (max - capacity.min + 1);
      CAPTURE(bytes);
      CHECK(pager.resize(bytes));
      CHECK(pager.capacity().resident <= bytes);
      CHECK(pager.capacity().requested == bytes);
      CHECK(ledger.used() <= pager.capacity().resident + ends);
      CHECK(ledger.peak() <= max + ends);
      CHECK(ledger.used(Account::io_buffers) == pager.residency().ring_bytes);
      CHECK((pager.residency().rows_stay == (bytes == capacity.max)));
      step(pager, file.document, i % 2 == 0, tied);
    }
  }
}

TEST_CASE(
    "another thread frees units while steps run and while units are read, and every step sees the file") {
  const File file;
  for (const bool tied : {false, true}) {
    const auto table = extents(file.document, tied);
    budget::Ledger ledger;
    Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, 100u << 20);
    std::atomic<bool> over{false};
    std::uint64_t yielded = 0;
    std::thread other([&] {
      for (CounterRng rng(7); !over;) {
        yielded += pager.yield(rng.next() % 4'000'000);
        CHECK(pager.capacity().resident <= pager.capacity().max);
        std::this_thread::sleep_for(std::chrono::microseconds(rng.next() % 300));
      }
    });
    CounterRng rng(9);
    for (int i = 0; i < 60; ++i) {
      step(pager, file.document, i % 4 != 3, tied);
      if (i % 3 == 0) pager.resize(rng.next() % pager.capacity().max);  // false where the other one yields
      if (i % 7 == 0) pager.resize(pager.capacity().max);
    }
    over = true;
    other.join();
    CHECK(yielded > 0);
    CHECK(pager.resize(pager.capacity().max));
    CHECK(pager.residency().streamed_bytes == 0);
    step(pager, file.document, true, tied);
  }
}

TEST_CASE("what yield() frees: as much as it is asked for where nothing is used, and nothing that is") {
  const File file;
  const auto table = extents(file.document, false);
  budget::Ledger ledger;
  Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, 100u << 20);
  const auto resident = [&] { return pager.capacity().resident; };
  const std::uint64_t whole = resident(), booked = ledger.used();
  const std::uint64_t some = pager.yield(100'000);
  CHECK(some >= 100'000);
  CHECK(resident() == whole - some);
  CHECK(booked - ledger.used() >= some);
  CHECK(pager.residency().stays[3]);  // the largest one makes the ring large
  REQUIRE(pager.acquire(4));
  CHECK(pager.yield(100u << 20) > 0);
  CHECK(same(pager, file.document, 4));  // resident, since it is used
  CHECK(pager.residency().stays[3]);
  pager.release(4);
  CHECK(pager.yield(1) < 300'000);  // its ring takes nearly as much
  CHECK_FALSE(pager.residency().stays[3]);
  CHECK(ledger.used(Account::weights) < 10'000);
  step(pager, file.document, true, false);
  CHECK(pager.yield(1) == 0);
}

TEST_CASE("memory that becomes short while units are read") {
  const File file;
  const auto table = extents(file.document, false);
  struct Reader {
    int left;
    static std::uint64_t lacking(void* self) noexcept {
      return static_cast<Reader*>(self)->left-- > 0 ? 0 : 150'000;
    }
  };
  for (const int parts : {0, 1, 5, 12, 1000}) {
    CAPTURE(parts);
    Reader reader{parts};
    paging::LoadCounter counter{{nullptr, &reader, Reader::lacking}};
    budget::Ledger ledger;
    paging::Table short_of_memory{file.document, table, head + 1};
    short_of_memory.loading = &counter;
    Streamed pager(short_of_memory, A(ledger, Account::weights), {}, 100u << 20);
    CHECK((pager.residency().streamed_bytes == 0) == (parts == 1000));
    step(pager, file.document, true, false);
    CHECK(pager.resize(pager.capacity().max));
    step(pager, file.document, true, false);
    Reader again{parts};
    counter = {{nullptr, &again, Reader::lacking}};
    if (parts == 1000) continue;
    const Error error =
        refusal([&] { return paging::Resident<A>(short_of_memory, A(ledger, Account::weights), {}); });
    CHECK(error.code() == ErrorCode::budget);
    CHECK(mentions(error, "others took the memory"));
  }
}

TEST_CASE("what cannot be read, or is refused, passes through the ring as before") {
  const File file;
  const auto table = extents(file.document, false);
  budget::Ledger ledger(11u << 20);
  Streamed pager({file.document, table, head + 1}, A(ledger, Account::weights), {}, 0);
  pager.resize(9'700'000);
  step(pager, file.document, true, false);
  CHECK_FALSE(pager.resize(pager.capacity().max));  // reading needs more than the ledger has
  CHECK(pager.capacity().resident <= ledger.limit());
  CHECK(pager.residency().streamed_bytes > 0);
  step(pager, file.document, true, false);

  budget::Ledger large;
  Streamed other({file.document, table, head + 1}, A(large, Account::weights), {}, 0);
  const auto whole = contents(file.path);
  std::filesystem::resize_file(file.path, 100000);
  CHECK_FALSE(other.resize(other.capacity().max));
  file.folder.file("model.gguf", whole);
  step(other, file.document, true, false);
}

TEST_CASE("an output matrix that is larger than layers passes in slices, and stays as a whole") {
  constexpr std::uint64_t rows = 4099, cols = 5003, matrix = 3;
  const TemporaryFolder folder;
  gguf::Writer writer(32);
  writer.set("general.architecture", "none");
  const auto add = [&](std::string name, std::uint64_t bytes) {
    writer.add(name, format::I8::id, {bytes}, [bytes](const gguf::Sink& sink) {
      std::vector<std::byte> content(bytes);
      CounterRng rng(bytes);
      for (std::byte& b : content) b = static_cast<std::byte>(rng.next());
      sink(content);
    });
  };
  add("embedding", 30001);
  add("layer", 300'000);
  add("norm", 77);
  add("output", rows * cols);
  const gguf::Document document = gguf::open(folder.file("model.gguf", writer.bytes()));
  std::vector<paging::Extent> table;
  for (const auto& tensor : document.tensors()) {
    const auto i = static_cast<std::uint32_t>(table.size());
    paging::Extent& e = table.emplace_back();
    e = {tensor.source, std::min(i, 2u), tensor.offset, tensor.bytes};
    if (i == matrix) e.rows = rows, e.cols = cols;
  }
  std::vector<std::byte> expected(rows * cols);
  document.read(document.tensors()[matrix], expected);
  for (const bool damaged : {false, true}) {
    table[matrix].checked = true;
    table[matrix].checksum = io::checksum(expected) + damaged;
    budget::Ledger ledger;
    Streamed pager({document, table, 3}, A(ledger, Account::weights), {}, 0);
    CHECK(ledger.used() < 10u << 20);
    bool whole = true;
    for (int round = 0; round < 2; ++round) {
      REQUIRE(pager.acquire(1));
      pager.release(1);
      REQUIRE(pager.acquire(2));
      CHECK(std::memcmp(pager.data(2), &contents(folder.path("model.gguf"))[document.tensors()[2].offset],
                        77) == 0);
      const std::size_t slices = pager.slices(2);
      CHECK(slices == 5);
      std::size_t row = 0;
      for (std::size_t i = 0; i < slices; ++i) {
        const paging::Slice slice = pager.acquire_slice(2, i);
        whole = whole && slice.data != nullptr;
        if (slice.data == nullptr) break;
        CHECK(slice.first_row == row);
        CHECK((slice.rows % 16 == 0 || i + 1 == slices));
        CHECK(std::memcmp(slice.data, &expected[row * cols], slice.rows * cols) == 0);
        row += slice.rows;
        pager.release_slice(2, i);
      }
      CHECK((row == rows) == whole);
      pager.release(2);
    }
    CHECK(whole != damaged);
    if (damaged) continue;
    CHECK(pager.resize(pager.capacity().max));
    REQUIRE(pager.acquire(2));
    CHECK(pager.slices(2) == 1);
    CHECK(std::memcmp(pager.data(matrix), expected.data(), expected.size()) == 0);
    pager.release(2);
  }
}

TEST_CASE("a model in memory is used where it is") {
  const std::vector<std::byte> bytes = model_bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document, false);
  budget::Ledger ledger;
  Streamed pager({document, table, head + 1}, A(ledger, Account::weights), {}, 0);
  step(pager, document, true, false);
  CHECK(ledger.used() == 0);
}

}  // namespace mica::test::streamed_test
