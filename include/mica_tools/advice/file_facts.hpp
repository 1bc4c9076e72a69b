// SPDX-License-Identifier: Apache-2.0
//
// Where a model file lies: its file system, its disk, and whether reads can bypass the page cache. Facts
// alone; what they mean for a run is in advice.hpp.
//
//   proc/self/mountinfo   "36 25 8:2 / /data rw - ext4 /dev/sda2 rw": the longest folder with which the path
//                         begins
//   sys/dev/block/8:2     a link to the folder of the partition, which is in that of its disk
#pragma once

#include "mica/io/direct.hpp"
#include "mica_tools/advice/detail/small_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <unistd.h>

namespace mica::advice {

/// What stores the bytes of a file system.
enum class Storage : std::uint8_t {
  disk,     ///< or anything not named below
  memory,   ///< tmpfs, ramfs
  network,  ///< another machine
  host,     ///< the machine around a virtual one
  program,  ///< a process of this machine (FUSE)
};

/// The storage of a file system by its type, as mountinfo spells it.
[[nodiscard]] inline Storage storage_of(std::string_view type) noexcept {
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), type) != names.end();
  };
  constexpr std::array<std::string_view, 2> in_memory = {"tmpfs", "ramfs"};
  constexpr std::array<std::string_view, 17> on_network = {
      "nfs",          "nfs4",          "cifs",           "smb3",        "smbfs",
      "ceph",         "afs",           "lustre",         "gpfs",        "beegfs",
      "glusterfs",    "fuse.sshfs",    "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
      "fuse.gcsfuse", "fuse.ceph-fuse"};
  constexpr std::array<std::string_view, 5> of_host = {"9p", "virtiofs", "vboxsf", "fuse.vmhgfs-fuse",
                                                       "prl_fs"};
  if (is_one_of(in_memory)) return Storage::memory;
  if (is_one_of(on_network)) return Storage::network;
  if (is_one_of(of_host)) return Storage::host;
  return type.starts_with("fuse") ? Storage::program : Storage::disk;
}

/// One file.
struct FileFacts {
  std::string path;                       // as it was given
  std::uint64_t bytes = 0;                // its size; 0: not known
  std::string type;                       // of the file system: ext4; empty: not known
  std::string mount;                      // the folder where it is mounted
  Storage storage = Storage::disk;        // of the file system
  std::string disk;                       // sda, nvme0n1; empty: not visible
  std::optional<bool> rotational = {};    // as the kernel says; empty: not known
  std::optional<bool> reads_direct = {};  // O_DIRECT; empty: not tried

  /// A disk of a virtual machine, whose kind the host knows alone: the kernel often calls it rotational.
  [[nodiscard]] bool is_virtual_disk() const noexcept {
    return disk.starts_with("vd") || disk.starts_with("xvd");
  }
};

namespace detail {

struct Mount {
  std::string device;  // "8:2"
  std::string folder, type, source;
};

/// The mount of a path without links; of equal folders the last one hides the others.
[[nodiscard]] inline std::optional<Mount> mount_of(std::string_view mountinfo, std::string_view path) {
  using budget::detail::take_until;
  std::optional<Mount> best;
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::string_view kind = line.substr(dash + 3);
    for (int field = 0; field < 2; ++field) static_cast<void>(take_until(line, ' '));  // ids
    const std::string_view device = take_until(line, ' ');
    static_cast<void>(take_until(line, ' '));  // the folder of the file system
    Mount mount{std::string(device),
                budget::detail::unescaped(take_until(line, ' ')),
                std::string(take_until(kind, ' ')),
                {}};
    mount.source = budget::detail::unescaped(take_until(kind, ' '));
    const std::string& folder = mount.folder;
    const bool above = folder == "/" || (path.starts_with(folder) &&
                                         (path.size() == folder.size() || path[folder.size()] == '/'));
    if (above && (!best || folder.size() >= best->folder.size())) best = std::move(mount);
  }
  return best;
}

/// The folder of a block device below root/sys; empty if it is not visible. Some file systems (btrfs) have a
/// number of their own in place of their disk's, and name the disk as their source.
[[nodiscard]] inline std::string block_folder(const std::string& root, const Mount& mount) {
  std::string folder = io::detail::real_path(join(root, "/sys/dev/block/", mount.device));
  if (!folder.empty() || !mount.source.starts_with("/dev/")) return folder;
  const std::string device = io::detail::real_path(root + mount.source);
  const std::string& named = device.empty() ? mount.source : device;
  return io::detail::real_path(join(root, "/sys/class/block/", named.substr(named.rfind('/') + 1)));
}

inline void add_disk(FileFacts& facts, const std::string& root, const Mount& mount) {
  std::string folder = block_folder(root, mount);
  if (folder.empty()) return;
  if (::access((folder + "/partition").c_str(), F_OK) == 0) folder.resize(folder.rfind('/'));
  facts.disk = folder.substr(folder.rfind('/') + 1);
  if (const auto number = budget::detail::read_number(folder + "/queue/rotational"))
    facts.rotational = *number != 0;
}

}  // namespace detail

/// Whether reads of a file bypass the page cache. Reads a block of it; empty for an empty file. Raises
/// ErrorCode::failed if it cannot be read.
[[nodiscard]] inline std::optional<bool> reads_direct(const io::File& file) {
  if (file.size() == 0) return std::nullopt;
  const io::DirectReader reader(file);
  std::vector<std::byte> bounce(io::DirectReader::min_bounce_bytes);
  std::byte first{};
  reader.read(0, std::span(&first, 1), bounce);
  return reader.direct();
}

/// The facts about the place of a file. With `root`, which stands before /proc and /sys, the path is one of
/// that tree, absolute and without links. Direct reads are not tried.
[[nodiscard]] inline FileFacts read_file_facts(const std::string& root, const std::string& path) {
  FileFacts facts;
  facts.path = path;
  const std::string real = root.empty() ? io::detail::real_path(path) : path;
  const auto mountinfo = budget::detail::read_text(root + "/proc/self/mountinfo");
  if (!mountinfo || real.empty()) return facts;
  const auto mount = detail::mount_of(*mountinfo, real);
  if (!mount) return facts;
  facts.type = mount->type;
  facts.mount = mount->folder;
  facts.storage = storage_of(mount->type);
  if (facts.storage == Storage::disk || facts.storage == Storage::program)
    detail::add_disk(facts, root, *mount);
  return facts;
}

/// The same of an open file of this machine, with its size and direct reads. Raises what reads_direct()
/// raises.
[[nodiscard]] inline FileFacts read_file_facts(const io::File& file) {
  FileFacts facts = read_file_facts("", file.path());
  facts.bytes = file.size();
  if (facts.storage != Storage::memory) facts.reads_direct = reads_direct(file);
  return facts;
}

}  // namespace mica::advice
