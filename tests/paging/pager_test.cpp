// SPDX-License-Identifier: Apache-2.0
//
// What every pager promises, mapped, resident or chosen by name: the bytes of the file, wherever they lie.

#include "base/enumerators.hpp"
#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/alloc/tracked.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/paging/any_pager.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/paging/resident.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace mica::test::pager_test {
namespace {

using A = alloc::Budgeted<alloc::Aligned>;
using budget::Account;

static_assert(enumerators_are<paging::Choice>(paging::choice_names));

/// A file of tensors whose sizes fit no page and no cache line, the last of which passes a block of direct
/// I/O.
gguf::Writer odd_tensors() {
  gguf::Writer writer(8);
  writer.set("general.architecture", "none");
  std::size_t i = 0;
  for (const std::uint64_t bytes : {1u, 3u, 4095u, 4097u, 64u, 13u, 70001u, 5u << 20}) {
    ++i;
    writer.add(join("t", i), format::I8::id, {bytes}, [bytes, i](const gguf::Sink& sink) {
      auto content = numbered_bytes(bytes);
      content[0] = static_cast<std::byte>(i);
      sink(content);
    });
  }
  return writer;
}

std::vector<paging::Extent> extents(const gguf::Document& document) {
  std::vector<paging::Extent> out;
  for (const auto& tensor : document.tensors()) {
    out.push_back({tensor.source, static_cast<std::uint32_t>(out.size() % 3), tensor.offset, tensor.bytes});
  }
  return out;
}

/// Whether a pager has at each tensor's address what the file has at the tensor's place.
template <class P>
bool same_as_file(P& pager, const gguf::Document& document) {
  bool same = true;
  for (std::size_t i = 0; i < document.tensors().size(); ++i) {
    REQUIRE(pager.acquire(i % 3));
    pager.prefetch((i + 1) % 3);
    std::vector<std::byte> expected(document.tensors()[i].bytes);
    document.read(document.tensors()[i], expected);
    same = same && std::memcmp(pager.data(i), expected.data(), expected.size()) == 0;
    pager.release(i % 3);
  }
  return same;
}

std::uint64_t bytes_of(const gguf::Document& document) {
  std::uint64_t sum = 0;
  for (const auto& tensor : document.tensors()) sum += tensor.bytes;
  return sum;
}

}  // namespace

TEST_CASE_TEMPLATE("a pager has the bytes of every tensor, from a file and from memory", P, paging::Mapped<A>,
                   paging::Mapped<A, io::MapAdvice::sequential>, paging::Resident<A>, paging::AnyPager<A>) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document file = gguf::open(folder.file("odd.gguf", bytes)),
                       memory = gguf::parse(bytes, "memory");
  for (const gguf::Document* document : {&file, &memory}) {
    budget::Ledger ledger;
    {
      const auto table = extents(*document);
      P pager({*document, table, 3}, A(ledger, Account::weights), {});
      CHECK(same_as_file(pager, *document));
      CHECK(ledger.used(Account::weights) >= bytes_of(*document));
      CHECK(ledger.used(Account::weights) < bytes_of(*document) + 64 * table.size());
      CHECK(ledger.used(Account::io_buffers) == 0);
    }
    CHECK(ledger.used() == 0);
  }
}

TEST_CASE_TEMPLATE("a pager that the budget refuses says so and leaves the ledger as before", P,
                   paging::Mapped<A>, paging::Resident<A>, paging::AnyPager<A>) {
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document);
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{5000}, bytes_of(document) - 1}) {
    CAPTURE(limit);
    budget::Ledger ledger(limit);
    const Error error = refusal([&] { return P({document, table, 3}, A(ledger, Account::weights), {}); });
    CHECK(error.code() == ErrorCode::budget);
    CHECK(mentions(error, "weights", "bytes do not fit the memory budget"));
    CHECK(ledger.used() == 0);
  }
}

TEST_CASE("resident weights need a buffer to read through, and are refused without") {
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document);
  budget::Ledger ledger(bytes_of(document) + 64 * table.size() + 1000);
  const Error error = refusal([&] {
    return paging::Resident<A>({document, table, 3}, A(ledger, Account::weights), {});
  });
  CHECK(error.code() == ErrorCode::budget);
  CHECK(mentions(error, "2097152 bytes"));
  CHECK(ledger.used() == 0);
}

TEST_CASE("resident weights pack the matrices that may be packed, in panels that are larger than a read") {
  constexpr std::size_t rows = 4100, cols = 512;
  gguf::Writer writer(8);
  writer.set("general.architecture", "none");
  const std::vector<std::byte> content = numbered_bytes(rows * cols / 32 * sizeof(format::Q4_0::Block));
  for (const char* const name : {"packed", "kept"})
    writer.add(name, format::Q4_0::id, {cols, rows}, [&](const gguf::Sink& sink) { sink(content); });
  writer.add("few", format::Q4_0::id, {cols, 15}, [&](const gguf::Sink& sink) {
    sink(std::span(content).first(15 * cols / 32 * sizeof(format::Q4_0::Block)));
  });
  const std::vector<std::byte> bytes = writer.bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  std::vector<paging::Extent> table;
  for (const auto& tensor : document.tensors()) {
    table.push_back({tensor.source, 0, tensor.offset, tensor.bytes, tensor.format.id});
    if (tensor.name != "kept") table.back().rows = tensor.rows();
    table.back().cols = cols;
  }
  budget::Ledger ledger;
  const paging::Resident<A> pager({document, table, 1, 0, 0, tensor::packing_in<format::All>},
                                  A(ledger, Account::weights), {});
  const paging::Resident<A, paging::Layout::file> plain(
      {document, table, 1, 0, 0, tensor::packing_in<format::All>}, A(ledger, Account::weights), {});
  CHECK(pager.packed(0));
  CHECK_FALSE(pager.packed(1));
  CHECK_FALSE(pager.packed(2));
  CHECK_FALSE(plain.packed(0));
  std::vector<std::byte> expected(content.size());
  const auto* const blocks = reinterpret_cast<const format::Q4_0::Block*>(content.data());
  tensor::pack(tensor::Matrix<format::Q4_0>(blocks, rows, cols), expected.data());
  CHECK(std::memcmp(pager.data(0), expected.data(), expected.size()) == 0);
  CHECK(std::memcmp(pager.data(1), content.data(), content.size()) == 0);
  CHECK(std::memcmp(plain.data(0), content.data(), content.size()) == 0);
}

TEST_CASE("resident weights code the floats of 16 bits that lose nothing, and read the others as they are") {
  constexpr std::size_t rows = 1100, cols = 512;
  std::vector<std::byte> rounded(rows * cols * 2), halves(rounded.size());
  for (std::size_t i = 0; i < rows * cols; ++i) {
    const Bfloat weight = to_bfloat(0.001f * static_cast<float>(i * 7919 % 997) - 0.5f);
    const Half half = to_half(to_float(weight)), odd = i == 1087 * cols + 500 ? Half{0x3C01} : half;
    std::memcpy(rounded.data() + 2 * i, &half, 2);
    std::memcpy(halves.data() + 2 * i, &odd, 2);
  }
  gguf::Writer writer(8);
  writer.set("general.architecture", "none");
  writer.add("packed", format::F16::id, {cols, rows}, [&](const gguf::Sink& sink) { sink(rounded); });
  writer.add("odd in its last panel", format::F16::id, {cols, rows},
             [&](const gguf::Sink& sink) { sink(halves); });
  const std::vector<std::byte> bytes = writer.bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  std::vector<paging::Extent> table;
  for (const auto& tensor : document.tensors()) {
    table.push_back({tensor.source, 0, tensor.offset, tensor.bytes, tensor.format.id});
    table.back().rows = rows;
    table.back().cols = cols;
  }
  budget::Ledger ledger;
  const paging::Resident<A> pager({document, table, 1, 0, 0, tensor::packing_in<format::All>},
                                  A(ledger, Account::weights), {});
  const paging::Resident<A, paging::Layout::file> plain(
      {document, table, 1, 0, 0, tensor::packing_in<format::All>}, A(ledger, Account::weights), {});
  CHECK(pager.packed(0));
  CHECK_FALSE(pager.packed(1));
  CHECK_FALSE(plain.packed(0));
  CHECK(std::memcmp(pager.data(1), halves.data(), halves.size()) == 0);
  CHECK(std::memcmp(plain.data(0), rounded.data(), rounded.size()) == 0);
  const tensor::Matrix<tensor::Packed12<format::F16>> packed(reinterpret_cast<const Half*>(pager.data(0)),
                                                             rows, cols);
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < cols; ++k) {
      const Half half = packed.block(r, k);
      wrong += std::memcmp(&half, rounded.data() + 2 * (r * cols + k), 2) != 0 ? 1 : 0;
    }
  }
  CHECK(wrong == 0);

  for (const bool damaged : {false, true}) {
    for (auto& extent : table) {
      extent.checked = true;
      extent.checksum =
          io::checksum(std::span(bytes).subspan(extent.offset, extent.bytes)) ^ (damaged ? 1u : 0u);
    }
    const auto open = [&] {
      return paging::Resident<A>({document, table, 1, 0, 0, tensor::packing_in<format::All>},
                                 A(ledger, Account::weights), {});
    };
    if (damaged) {
      CHECK(refusal(open).code() == ErrorCode::file);
    } else {
      CHECK(open().packed(0));
    }
  }
}

TEST_CASE("resident tensors begin on cache lines") {
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document);
  budget::Ledger ledger;
  const paging::Resident<A> pager({document, table, 3}, A(ledger, Account::weights), {});
  for (std::size_t i = 0; i < table.size(); ++i)
    CHECK(reinterpret_cast<std::uintptr_t>(pager.data(i)) % 64 == 0);
}

TEST_CASE_TEMPLATE("a dry pager books the same and reads nothing", P, paging::Mapped<A>,
                   paging::Resident<A>) {
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document);
  budget::Ledger real, dry;
  { const P pager({document, table, 3}, A(real, Account::weights), {}); }
  {
    const typename P::template Rebind<alloc::Counting> pager({document, table, 3},
                                                             alloc::Counting(dry, Account::weights), {});
    CHECK(pager.data(0) == nullptr);
  }
  CHECK(dry.peaks() == real.peaks());
  CHECK(dry.used() == 0);
}

TEST_CASE_TEMPLATE("a pager's bytes are booked through a decorator", P, paging::Mapped<alloc::Tracked<A>>,
                   paging::Resident<alloc::Tracked<A>>) {
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document);
  budget::Ledger ledger;
  alloc::Statistics statistics;
  {
    const P pager({document, table, 3}, alloc::Tracked<A>(statistics, A(ledger, Account::process)), {});
    CHECK(ledger.used(Account::weights) >= bytes_of(document));
    CHECK(ledger.used(Account::process) == 0);
  }
  CHECK(ledger.used() == 0);
}

TEST_CASE("a file that is cut after it was opened is an error, not a crash") {
  const TemporaryFolder folder;
  const std::string path = folder.file("odd.gguf", odd_tensors().bytes());
  const gguf::Document document = gguf::open(path);
  const auto table = extents(document);
  std::filesystem::resize_file(path, 100000);
  budget::Ledger ledger;
  const Error error = refusal([&] {
    return paging::Resident<A>({document, table, 3}, A(ledger, Account::weights), {});
  });
  CHECK(mentions(error, "odd.gguf"));
  CHECK(ledger.used() == 0);
}

TEST_CASE("a pager is chosen at run time, and has the name of its type") {
  const std::vector<std::byte> bytes = odd_tensors().bytes();
  const gguf::Document document = gguf::parse(bytes, "memory");
  const auto table = extents(document);
  budget::Ledger ledger;
  for (const auto kind :
       {paging::Choice::mapped, paging::Choice::mapped_sequential, paging::Choice::mapped_populated,
        paging::Choice::mapped_locked, paging::Choice::resident}) {
    CAPTURE(kind);
    paging::AnyPager<A> pager({document, table, 3}, A(ledger, Account::weights), {}, kind);
    CHECK(same_as_file(pager, document));
  }
  CHECK(paging::name(paging::Choice::mapped_locked) == "mapped-locked");
  CHECK(ledger.used() == 0);
}

}  // namespace mica::test::pager_test
