// SPDX-License-Identifier: Apache-2.0
//
// The manifest of a packed directory as an enemy writes it, with a checksum that stands: refused with key,
// value and what is needed, before any file that it names is opened.

#include "mica/gguf/manifest.hpp"

#include "io/temporary_folder.hpp"
#include "mica/gguf/read_plain.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/pack/plan.hpp"
#include "mica_tools/synth/header_only.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include <sys/stat.h>

namespace mica::test::manifest_test {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

/// Two files, a tensor in parts and one as a whole.
gguf::Manifest sample() {
  gguf::Manifest manifest;
  manifest.fingerprint = 0xABCD;
  manifest.identity = 0x1234;
  manifest.files = {{"manifest.gguf", 0}, {"layer-000.bin", 8192}};
  gguf::TensorInfo a;
  a.name = "blk.0.a";
  a.dims = {256, 16, 2, 1};
  a.n_dims = 3;
  a.source = 1;
  a.format = format::info(format::Q4_0::id);
  a.bytes = 256 / 32 * 18 * 32;
  a.packed = true;
  a.parts = 2;
  a.stride = 4096;
  a.checksums = {1, 2};
  gguf::TensorInfo b = a;
  b.name = "blk.0.b";
  b.dims = {10, 1, 1, 1};
  b.n_dims = 1;
  b.format = format::info(format::F32::id);
  b.bytes = 40;
  b.offset = 2560;
  b.packed = false;
  b.parts = 1;
  b.stride = 0;
  b.checksums = {3};
  manifest.tensors = {a, b};
  return manifest;
}

/// The bytes of a manifest, of a model with one key.
Bytes bytes_of(gguf::Manifest& manifest) {
  gguf::Writer writer;
  writer.set("general.architecture", "none");
  const Bytes keys = writer.bytes();
  const gguf::Document model = gguf::parse(keys, "model");
  if (!manifest.files.empty())
    manifest.files[0].bytes = pack::manifest_bytes(manifest, &model.metadata()).size();
  return pack::manifest_bytes(manifest, &model.metadata());
}

Bytes sample_bytes() {
  gguf::Manifest manifest = sample();
  return bytes_of(manifest);
}

/// The bytes with the checksum that they need.
Bytes with_checksum(Bytes bytes) {
  bytes.resize(bytes.size() - 8);
  gguf::append_number(bytes, io::checksum(bytes));
  return bytes;
}

/// The sample's keys changed by `change`, without the key `left_out`.
Bytes forged(const std::function<void(gguf::Writer&)>& change, std::string_view left_out = {}) {
  const Bytes bytes = sample_bytes();
  const gguf::Header header = gguf::detail::parse_header(gguf::Source("sample", bytes), format::known);
  gguf::Writer writer;
  for (std::size_t i = 0; i < header.metadata.size(); ++i) {
    if (header.metadata.key(i) != left_out) writer.copy(header.metadata.key(i), header.metadata.value(i));
  }
  for (const gguf::TensorInfo& t : header.tensors)
    writer.add(t.name, t.format.id, std::span(t.dims).first(t.n_dims), gguf::Fill());
  change(writer);
  Bytes out = writer.header();
  out.resize(out.size() + 8);
  return with_checksum(std::move(out));
}

/// The sample with a number `behind` bytes after the name of its first tensor replaced.
template <class T>
Bytes with_number(std::size_t behind, T number) {
  Bytes bytes = sample_bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size()), name = "blk.0.a";
  const std::size_t at = text.find(name);
  REQUIRE(at != std::string_view::npos);
  std::memcpy(bytes.data() + at + name.size() + behind, &number, sizeof number);
  return with_checksum(std::move(bytes));
}

Error refused(std::span<const std::byte> bytes) {
  return refusal(
      [&] { return gguf::read_manifest(gguf::Source("DIR/manifest.gguf", bytes), format::known); });
}

/// A folder with the sample's files.
struct Folder {
  TemporaryFolder folder;
  gguf::Manifest manifest = sample();

  Folder() {
    folder.file("layer-000.bin", std::string(8192, '\0'));
    write();
  }
  void write() { folder.file("manifest.gguf", bytes_of(manifest)); }
  [[nodiscard]] gguf::Document open() const { return gguf::open(folder.path("")); }
};

}  // namespace

TEST_CASE("a manifest is read as it was written, without its own keys among those of the model") {
  gguf::Manifest manifest = sample();
  const Bytes bytes = bytes_of(manifest);
  const gguf::Manifest read = gguf::read_manifest(gguf::Source("m", bytes), format::known);
  CHECK(pack::manifest_bytes(read, &read.metadata) == bytes);
  CHECK(read.metadata.size() == 1);
  CHECK(read.metadata.get<std::string_view>("general.architecture") == "none");
  CHECK(read.fingerprint == 0xABCD);
  CHECK(read.identity == 0x1234);
  CHECK(read.files == manifest.files);
  manifest.files[1].bytes += 64;
  CHECK_FALSE(read.files == manifest.files);
  manifest.files[1] = {"layer-001.bin", read.files[1].bytes};
  CHECK_FALSE(read.files == manifest.files);
  CHECK(read.tensors[0].parts == 2);
  CHECK(read.tensors[0].packed);
  CHECK(read.tensors[0].bytes == 4608);
  CHECK(read.tensors[0].checksums == std::vector<std::uint64_t>{1, 2});
  CHECK(read.tensors[1].offset == 2560);
  CHECK_FALSE(read.tensors[1].packed);
  CHECK(read.tensors[1].checksums == std::vector<std::uint64_t>{3});
}

TEST_CASE("a manifest that was cut or changed in any byte is refused") {
  const Bytes bytes = sample_bytes();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    CAPTURE(at);
    CHECK(refused(std::span(bytes).first(at)).code() == ErrorCode::file);
    for (const auto bit : {std::byte{1}, std::byte{0x20}}) {
      Bytes other = bytes;
      other[at] ^= bit;
      const Error error = refused(other);
      CHECK(error.code() == ErrorCode::file);
      CHECK(mentions(error, "DIR/manifest.gguf: damaged", "pack the model again"));
    }
  }
  Bytes more = bytes;
  more.push_back(std::byte{});
  CHECK(refused(more).code() == ErrorCode::file);
  more = bytes;
  more.insert(more.end(), bytes.begin(), bytes.end());
  CHECK(refused(more).code() == ErrorCode::file);
}

TEST_CASE(
    "a manifest with any byte changed and a checksum that stands is refused, or describes places in its "
    "files") {
  const Bytes bytes = sample_bytes();
  std::size_t refusals = 0;
  for (std::size_t at = 0; at + 8 < bytes.size(); ++at) {
    for (const auto bit : {std::byte{1}, std::byte{0x20}, std::byte{0x80}}) {
      Bytes other = bytes;
      other[at] ^= bit;
      other = with_checksum(std::move(other));
      try {
        const gguf::Manifest read = gguf::read_manifest(gguf::Source("m", other), format::known);
        for (const gguf::TensorInfo& tensor : read.tensors) {
          REQUIRE(tensor.source < read.files.size());
          const std::uint64_t before = (tensor.parts - std::uint64_t{1}) * tensor.stride;
          CHECK(tensor.offset + before + tensor.part_bytes() <= read.files[tensor.source].bytes);
          CHECK(tensor.checksums.size() == tensor.parts);
        }
      } catch (const Error& error) {
        CHECK(mentions(error, "pack the model again"));
        ++refusals;
      }
    }
  }
  CHECK(refusals > bytes.size());
}

TEST_CASE("a manifest of an enemy is refused with what was found and what is needed") {
  struct Case {
    Bytes bytes;
    std::vector<std::string> said;
    ErrorCode code = ErrorCode::file;
  };
  const auto with = [](const std::string& key, auto value) {
    return forged([&](gguf::Writer& w) { w.set("mica.packed." + key, value); });
  };
  const auto with_list = [](const std::string& key, const auto& list) {
    return forged([&](gguf::Writer& w) { w.set_array("mica.packed." + key, list); });
  };
  using Numbers = std::vector<std::uint64_t>;
  using Names = std::vector<std::string>;
  const auto named = [&](const std::string& name) {
    return with_list("files", Names{"manifest.gguf", name});
  };
  std::vector<Case> cases = {
      {with("version", 3u), {"'mica.packed.version' is 3", "needed: 2"}, ErrorCode::unsupported},
      {with("version", -1), {"mica.packed.version", "whole number"}},
      {with("version", std::string_view("2")), {"mica.packed.version", "whole number"}},
      {with("layout", std::string_view("rows32")), {"is 'rows32'; needed: 'rows16'"}, ErrorCode::unsupported},
      {with("layout", 16), {"'mica.packed.layout' is 16", "a string"}},
      {with("fingerprint", -1), {"'mica.packed.fingerprint' is -1"}},
      {with("files", 1), {"'mica.packed.files' is 1", "an array of strings"}},
      {named("../layer-000.bin"), {"'../layer-000.bin' is no name of a file beside it"}},
      {named("/etc/passwd"), {"no name of a file"}},
      {named(".."), {"no name of a file"}},
      {named(".hidden"), {"no name of a file"}},
      {named(""), {"no name of a file"}},
      {named("a\nb"), {"'a\\x0ab' is no name of a file"}},
      {named(std::string(65, 'a')), {"no name of a file"}},
      {named("manifest.gguf"), {"'manifest.gguf' appears twice"}},
      {with_list("files", Names(5000)), {"5000 names; allowed: 4096"}, ErrorCode::limit},
      {with_list("files", Names{"manifest.gguf"}), {"'mica.packed.file_bytes' has 2 elements; needed: 1"}},
      {with_list("tensor_file", Numbers{1, 2}), {"'blk.0.b'", "is 2; needed: a file from 1 to 1"}},
      {with_list("tensor_file", Numbers{0, 1}), {"'blk.0.a'", "is 0; needed: a file from 1 to 1"}},
      {with_list("tensor_file", Numbers{1}), {"'mica.packed.tensor_file' has 1 elements; needed: 2"}},
      {with_number(0, 0u), {"0 dimensions; 1 to 4"}},
      {with_number(0, 5u), {"5 dimensions; 1 to 4"}},
      {with_number(12, std::uint64_t{32}), {"2 parts of 4608 bytes", "do not lie in"}},
      {with_number(4, std::uint64_t{255}), {"not a multiple of Q4_0's block"}},
      {with_number(4, UINT64_MAX), {"more values than 64 bits count"}},
      {with_number(4, std::uint64_t{1} << 63), {"more values than 64 bits count"}},
      {with_number(28, 4711u), {"'blk.0.a'", "type 4711 is not known; known: Q4_K"}, ErrorCode::unsupported},
      {with_list("tensor_offset", Numbers{8192, 2560}), {"do not lie in the 8192 bytes of layer-000.bin"}},
      {with_list("tensor_offset", Numbers{UINT64_MAX, 2560}), {"do not lie in"}},
      {with_list("tensor_offset", Numbers{32, 2560}), {"offset 32", "not multiples of 64"}},
      {with_list("tensor_parts", Numbers{0, 1}), {"'mica.packed.tensor_parts' is 0"}},
      {with_list("tensor_parts", Numbers{5, 1}), {"is 5; its 32 rows are not that many equal parts"}},
      {with_list("tensor_parts", Numbers{4294967297, 1}),
       {"mica.packed.tensor_parts", "from 0 to 4294967295"}},
      {with_list("tensor_parts", Numbers{4, 1}), {"do not lie in"}},
      {with_list("tensor_parts", Numbers{1, 1}), {"do not lie in"}},
      {with_list("tensor_stride", Numbers{100, 0}), {"100 apart, do not lie"}},
      {with_list("tensor_stride", Numbers{3000, 0}), {"stride 3000", "not multiples of 64"}},
      {with_list("tensor_stride", Numbers{UINT64_MAX, 0}), {"do not lie in"}},
      {with_list("tensor_packed", Numbers{1, 0}), {"mica.packed.tensor_packed", "each element a bool"}},
      {with_list("checksums", Numbers{1, 3}), {"'mica.packed.checksums' has 2 elements; needed: 3"}},
      {with_list("checksums", Names{"1", "2", "3"}), {"mica.packed.checksums", "an array"}},
  };
  for (const std::string name :
       {"version", "layout", "fingerprint", "identity", "files", "file_bytes", "tensor_file", "tensor_offset",
        "tensor_packed", "tensor_parts", "tensor_stride", "checksums"}) {
    const std::string key = "mica.packed." + name;
    cases.push_back({forged([](gguf::Writer&) {}, key), {"'" + key + "' is missing"}});
  }
  for (const Case& c : cases) {
    CAPTURE(c.said.back());
    const Error error = refused(c.bytes);
    CHECK(error.code() == c.code);
    CHECK(mentions(error, "DIR/manifest.gguf", "; pack the model again"));
    for (const std::string& part : c.said) CHECK(mentions(error, part));
  }
}

TEST_CASE("a manifest that would take more than any honest one is refused before it is read") {
  const gguf::Source large("DIR/manifest.gguf", std::uint64_t{1} << 40,
                           std::make_unique<gguf::HeaderOnly>(sample_bytes()));
  const Error error = refusal([&] { return gguf::read_manifest(large, format::known); });
  CHECK(error.code() == ErrorCode::limit);
  CHECK(mentions(error, "DIR/manifest.gguf", "allowed: 268435456"));
  gguf::Manifest many = sample();
  gguf::TensorInfo& tensor = many.tensors[1];
  tensor.dims = {1, (1 << 20) + 1, 1, 1};
  tensor.n_dims = 2;
  tensor.parts = (1 << 20) + 1;
  tensor.stride = 64;
  many.files[1].bytes = std::uint64_t{1} << 40;
  const Error parts = refused(bytes_of(many));
  CHECK(parts.code() == ErrorCode::limit);
  CHECK(mentions(parts, "tensors of 1048579 parts; allowed: 1048576"));
}

TEST_CASE("a packed folder is opened with its files, and refused without one") {
  const Folder good;
  const gguf::Document document = good.open();
  CHECK(document.packed());
  CHECK(document.tensors().size() == 2);
  CHECK(document.metadata().get<std::string_view>("general.architecture") == "none");
  std::vector<std::byte> bytes(40);
  document.read(document.tensor("blk.0.b"), bytes);
  const Error packed = refusal([&] {
    std::vector<std::byte> all(4608);
    return document.read(document.tensor("blk.0.a"), all), 0;
  });
  CHECK(mentions(packed, "blk.0.a", "read_plain"));
}

TEST_CASE("bytes of a packed tensor are read as they were before, from any place on") {
  Folder f;
  const gguf::TensorInfo a = f.manifest.tensors[0], b = f.manifest.tensors[1];
  const auto packing = tensor::packing_in<format::All>(a.format.id);
  Bytes plain(a.bytes), file(f.manifest.files[1].bytes);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (std::uint32_t part = 0; part < a.parts; ++part) {
    packing.pack(std::span(plain).subspan(part * a.part_bytes(), a.part_bytes()), a.dims[0],
                 file.data() + a.offset + part * a.stride);
  }
  for (std::size_t i = 0; i < b.bytes; ++i) file[b.offset + i] = static_cast<std::byte>(i + 1);
  f.folder.file("layer-000.bin", file);
  const gguf::Document document = f.open();
  const auto read = [&](const gguf::TensorInfo& tensor, std::size_t at, std::size_t n) {
    Bytes out(n);
    gguf::read_plain(document, tensor, at, out);
    return out;
  };
  const auto piece = [](std::span<const std::byte> of) { return Bytes(of.begin(), of.end()); };
  CHECK((read(a, 0, plain.size()) == plain));
  for (const std::size_t at : std::vector<std::size_t>{0, 1, 143, 144, 2303, 2304, 4607}) {
    for (const std::size_t n : std::vector<std::size_t>{0, 1, 144, 2305}) {
      if (at + n > plain.size()) continue;
      CAPTURE(at);
      CAPTURE(n);
      CHECK((read(a, at, n) == piece(std::span(plain).subspan(at, n))));
    }
  }
  CHECK((read(b, 8, 20) == piece(std::span(file).subspan(b.offset + 8, 20))));
  gguf::TensorInfo wrong = b;
  wrong.packed = true;
  const Error error = refusal([&] { return read(wrong, 0, 40); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "'blk.0.b' of F32 10 lies packed, which it cannot", "pack the model again"));
}

TEST_CASE("damage is reported with the name of the tensor, and the part where there are several") {
  const gguf::Manifest manifest = sample();
  const gguf::PlacedTensor second{0, &manifest.tensors[0], 1}, only{0, &manifest.tensors[1], 0};
  CHECK(second.damage_text("x.bin").starts_with("x.bin: tensor 'blk.0.a', part 1 of 2, is damaged: "));
  CHECK(only.damage_text("x.bin").starts_with("x.bin: tensor 'blk.0.b' is damaged: "));
}

TEST_CASE("what only the files can tell is compared with the manifest") {
  const auto said = [](const Folder& f, const auto&... parts) {
    CHECK(mentions(refusal([&] { return f.open(); }), parts...));
  };
  for (const std::string name : {"layer-000.bin", "manifest.gguf"}) {
    const Folder f;
    const std::string path = f.folder.path(name);
    if (name == "layer-000.bin") {
      fs::resize_file(path, 8191);
      said(f, "layer-000.bin: 8191 bytes; the manifest has 8192");
      fs::remove(path);
      said(f, "layer-000.bin", "is missing; pack the model again");
    }
    fs::remove(path);
    fs::create_directory(path);
    said(f, name, "is a folder");
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    said(f, name, "is not a regular file");
  }
  {
    Folder f;
    f.manifest.tensors[1].offset = 1984;
    f.write();
    said(f, "layer-000.bin: tensors 'blk.0.a' and 'blk.0.b' overlap",
         "40 bytes from byte 1984; pack the model");
    f.manifest.tensors[1].offset = 4096 + 128;  // in the second part
    f.write();
    said(f, "overlap: 2304 bytes from byte 4096, 40 bytes from byte 4224; pack the model again");
  }
  {
    Folder f;
    f.manifest.tensors[1].name = "blk.0.a";
    f.write();
    said(f, "'blk.0.a' appears twice");
  }
  {
    Folder f;
    f.manifest.tensors.clear();
    std::swap(f.manifest.files[0], f.manifest.files[1]);
    f.write();
    said(f, "mica.packed.files", "the first name must be manifest.gguf");
    f.manifest.files.clear();
    f.write();
    said(f, "the first name must be");
  }
}

TEST_CASE("a folder that is no finished packed directory of this version is refused with the way out") {
  const Folder f;
  const Error alone = refusal([&] { return gguf::open(f.folder.path("manifest.gguf")); });
  CHECK(mentions(alone, "manifest.gguf: key 'mica.packed.version'", "name the directory"));
  fs::remove(f.folder.path("manifest.gguf"));
  CHECK(mentions(refusal([&] { return f.open(); }), "is a folder and no packed directory"));
  f.folder.file("progress.gguf", sample_bytes());
  CHECK(mentions(refusal([&] { return f.open(); }), "packing was not finished; run mica pack"));
  fs::remove(f.folder.path("progress.gguf"));
  f.folder.file("metadata.gguf", sample_bytes());
  for (const std::string name : {"progress.json", "manifest.json"}) {
    f.folder.file(name, "{\"mica_packed\":1}");
    const Error old = refusal([&] { return f.open(); });
    CHECK(old.code() == ErrorCode::unsupported);
    CHECK(mentions(old, "an earlier version of mica", name));
    CHECK(mentions(old, "remove the folder and pack the model again"));
    fs::remove(f.folder.path(name));
  }
}

}  // namespace mica::test::manifest_test
