// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/advice/file_facts.hpp"

#include "advice/machine_tree.hpp"

#include <doctest/doctest.h>

namespace mica::test::file_facts_test {
namespace {

std::string line(const advice::FileFacts& file, std::string_view topic) {
  return MachineTree::line_of(advice::advise(file), topic);
}

}  // namespace

TEST_CASE("a partition belongs to its disk, which is rotational or not") {
  const MachineTree turning;
  turning.disk("sda", true);
  const advice::FileFacts file = turning.file("/data/models/m.gguf");
  CHECK(file.disk == "sda");
  CHECK(file.mount == "/data");
  CHECK(line(file, "file system") == "ext4, mounted at /data: fine");
  CHECK(line(file, "disk") ==
        "sda, rotational: streamed weights are read at the speed of this disk for each token; use settings "
        "that fit in memory, or move the file to an SSD: mica plan /data/models/m.gguf --solve");
  CHECK(line(file, "direct reads").empty());  // not tried
  const MachineTree still;
  still.disk("nvme0n1", false);
  CHECK(line(still.file("/data/m.gguf"), "disk") == "nvme0n1, not rotational: fine");
}

TEST_CASE("a virtual disk is not called rotational, whatever the kernel says") {
  const MachineTree tree;
  tree.disk("vda", true);
  CHECK(line(tree.file("/data/m.gguf"), "disk") ==
        "vda, a virtual disk, whose kind is not visible here: fine");
}

TEST_CASE("the mount is the longest folder above the file, and the last one of its name") {
  const MachineTree tree;
  tree.mounts(
      "36 25 0:50 / /data rw - xfs /dev/sdb rw\n37 36 0:51 / /data/in rw shared:3 - btrfs /dev/sdc rw\n"
      "38 36 0:52 / /data/in rw - tmpfs none rw\n");
  CHECK(tree.file("/data/x/m.gguf").type == "xfs");
  CHECK(tree.file("/data/in/m.gguf").type == "tmpfs");
  CHECK(tree.file("/data/inner/m.gguf").type == "xfs");
  CHECK(tree.file("/database/m.gguf").type == "overlay");
  CHECK(line(tree.file("/database/m.gguf"), "disk").empty());
}

TEST_CASE("a file system with a number of its own names its disk as source") {
  const MachineTree tree;
  tree.mounts("36 25 0:50 /@home /home rw - btrfs /dev/mapper/vault rw\n");
  tree.put("sys/devices/virtual/block/dm-0/queue/rotational", "1\n");
  tree.put("dev/dm-0", "");
  tree.link("dev/mapper/vault", "../dm-0");
  tree.link("sys/class/block/dm-0", "../../devices/virtual/block/dm-0");
  const advice::FileFacts file = tree.file("/home/m.gguf");
  CHECK(file.disk == "dm-0");
  CHECK(file.rotational == true);
}

TEST_CASE("network, host, program and memory are told apart") {
  using advice::Storage;
  CHECK(advice::storage_of("ext4") == Storage::disk);
  CHECK(advice::storage_of("nfs4") == Storage::network);
  CHECK(advice::storage_of("cifs") == Storage::network);
  CHECK(advice::storage_of("fuse.sshfs") == Storage::network);
  CHECK(advice::storage_of("virtiofs") == Storage::host);
  CHECK(advice::storage_of("9p") == Storage::host);
  CHECK(advice::storage_of("fuse.mergerfs") == Storage::program);
  CHECK(advice::storage_of("fuseblk") == Storage::program);
  CHECK(advice::storage_of("tmpfs") == Storage::memory);
  const MachineTree tree;
  tree.mounts(
      "36 25 0:50 / /net rw - nfs4 server:/m rw\n37 25 0:51 / /tmp rw - tmpfs tmpfs rw\n"
      "38 25 0:52 / /mnt rw - 9p share rw\n39 25 0:53 / /pool rw - fuse.mergerfs a:b rw\n");
  const std::string streamed = "a load, and each token with streamed weights, reads ",
                    copy = "; copy the file to a disk of this machine: cp ";
  CHECK(line(tree.file("/net/m.gguf"), "file system") ==
        "nfs4, mounted at /net: " + streamed + "over the network" + copy + "/net/m.gguf FOLDER");
  CHECK(line(tree.file("/mnt/m.gguf"), "file system") == "9p, mounted at /mnt: " + streamed +
                                                             "through the host of this machine" + copy +
                                                             "/mnt/m.gguf FOLDER");
  CHECK(line(tree.file("/pool/m.gguf"), "file system") == "fuse.mergerfs, mounted at /pool: " + streamed +
                                                              "through a program (FUSE)" + copy +
                                                              "/pool/m.gguf FOLDER");
  CHECK(line(tree.file("/tmp/m.gguf"), "file system") ==
        "tmpfs, mounted at /tmp: the file takes memory already, and weights that are loaded from it take it "
        "again; use it in place, or move it to a disk: mica run /tmp/m.gguf --weights mapped");
}

TEST_CASE("direct reads are tried, and a refusal is said") {
  const TemporaryFolder folder;
  const io::File file = io::File::open(folder.file("m.gguf", std::string(10000, 'x')));
  const io::DirectReader reader(file);
  const auto direct = advice::reads_direct(file);
  REQUIRE(direct);
  CHECK((!*direct || reader.direct()));
  CHECK_FALSE(advice::reads_direct(io::File::open(folder.file("empty", ""))));
  const advice::FileFacts here = advice::read_file_facts(file);
  CHECK(here.bytes == 10000);
  CHECK((here.storage == advice::Storage::memory || here.reads_direct == direct));
  advice::FileFacts refused;
  refused.path = "/pool/m.gguf";
  refused.reads_direct = false;
  CHECK(
      line(refused, "direct reads") ==
      "refused: weights are read through the page cache and dropped from it again, which costs processor "
      "time; copy the file to a file system with direct reads, such as ext4 or xfs: cp /pool/m.gguf FOLDER");
  refused.reads_direct = true;
  CHECK(line(refused, "direct reads") == "supported: fine");
}

}  // namespace mica::test::file_facts_test
