// SPDX-License-Identifier: Apache-2.0
//
// A file of a cache that several ranks have together. It is the file of one rank: rank 0 writes and reads it,
// and each rank has some heads of each layer. So it goes on with any number of ranks.
//
//   a block    | heads of rank 0: tile tile ... | heads of rank 1 ... |    gathered, or sent by rank 0
//
// A recurrent state is whole on each rank. All ranks call the same functions, in the same order.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/ranks/division.hpp"

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace mica::model {

/// Writes as a SnapshotWriter, which rank 0 has. What this rank gives are its own heads. After a failure of
/// the file the ranks go on, since the others wait for this one; finish() raises it.
template <class Exchange>
class SharedSnapshotWriter {
 public:
  /// divided: the heads of this rank, for each layer of the storage (KvLayout::divided()).
  SharedSnapshotWriter(Exchange& exchange, std::vector<ranks::Part> divided, kv::SnapshotWriter& out)
      : exchange_(exchange), divided_(std::move(divided)), out_(out) {
    skip_empty();
  }

  [[nodiscard]] const kv::SnapshotLayout& layout() const noexcept { return out_.layout(); }
  void write_state(std::span<const float> state) {
    on_first([&] { out_.write_state(state); });
  }
  void write(std::span<const std::byte> bytes) { own_.insert(own_.end(), bytes.begin(), bytes.end()); }
  /// Raises ErrorCode::failed when a rank is gone.
  void end_block() {
    const ranks::Part own = divided_[layer_];
    if (own.all == 0) {
      all_.swap(own_);
    } else {
      all_.resize(layout().page(layer_, page_).bytes);
      const std::size_t each = all_.size() / own.all;
      MICA_ASSERT(own_.size() == own.count * each);
      if (!own_.empty()) std::memcpy(all_.data() + own.first * each, own_.data(), own_.size());
      MICA_CHECK(exchange_.units(all_, own), failed, "a rank is gone, and its keys and values with it");
    }
    on_first([&] {
      out_.write(all_);
      out_.end_block();
    });
    own_.clear();
    ++page_;
    skip_empty();
  }
  /// Raises what the file raised.
  void finish() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <class F>
  void on_first(F&& f) noexcept {
    if (exchange_.division().rank() != 0 || failure_) return;
    try {
      f();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  /// To the next page that a layer has.
  void skip_empty() noexcept {
    for (; layer_ < divided_.size(); ++layer_, page_ = 0) {
      for (; page_ < layout().pages(); ++page_) {
        if (!layout().tiles(layer_, page_).empty()) return;
      }
    }
  }

  Exchange& exchange_;
  std::vector<ranks::Part> divided_;
  kv::SnapshotWriter& out_;
  std::size_t layer_ = 0, page_ = 0;  // of the next block
  std::vector<std::byte> own_, all_;  // of a block: the heads of this rank, and of all ranks
  std::exception_ptr failure_;
};

/// Reads as a SnapshotReader, which rank 0 has whole, and the others without its file.
template <class Exchange>
class SharedSnapshotReader {
 public:
  /// Thrown on the other ranks where rank 0 raises an error.
  struct Refused {};

  SharedSnapshotReader(Exchange& exchange, std::vector<ranks::Part> divided, const kv::SnapshotReader& in)
      : exchange_(exchange), divided_(std::move(divided)), in_(in) {}

  [[nodiscard]] const kv::SnapshotInfo& info() const noexcept { return in_.info(); }
  [[nodiscard]] const kv::SnapshotLayout& layout() const noexcept { return in_.layout(); }
  void read_state(std::size_t copy, std::span<float> to) const {
    receive(to.size_bytes(), [&] {
      const std::span floats(reinterpret_cast<float*>(message_.data() + header), to.size());
      in_.read_state(copy, floats);
    });
    std::memcpy(to.data(), message_.data() + header, to.size_bytes());
  }

  /// The heads of this rank in a block.
  class Block {
   public:
    void read(std::span<std::byte> to) {
      MICA_ASSERT(to.size() <= own_.size());
      std::memcpy(to.data(), own_.data(), to.size());
      own_ = own_.subspan(to.size());
    }
    void check() const { MICA_ASSERT(own_.empty()); }  // rank 0 has done so

   private:
    friend class SharedSnapshotReader;
    explicit Block(std::span<const std::byte> own) : own_(own) {}
    std::span<const std::byte> own_;
  };
  /// Valid until the next call.
  [[nodiscard]] Block page(std::size_t layer, std::size_t page) const {
    const std::size_t bytes = layout().page(layer, page).bytes;
    receive(bytes, [&] {
      auto block = in_.page(layer, page);
      block.read(std::span(message_).subspan(header));
      block.check();
    });
    const ranks::Part own = divided_[layer].all == 0 ? ranks::all_of(1) : divided_[layer];
    const std::size_t each = bytes / own.all;
    return Block(std::span<const std::byte>(message_).subspan(header + own.first * each, own.count * each));
  }
  /// Whether it is so on all ranks.
  [[nodiscard]] bool everywhere(bool own) const {
    const bool all = exchange_.largest(own ? 0 : 1) == 0;
    check_lost();
    return all;
  }

 private:
  static constexpr std::size_t header = alignof(float);  // whether rank 0 could read what follows

  /// Bytes that `read` puts behind the header on rank 0. Raises what it raises.
  template <class F>
  void receive(std::size_t bytes, F&& read) const {
    message_.assign(header + bytes, std::byte{0});
    std::exception_ptr failure;
    if (exchange_.division().rank() == 0) {
      try {
        read();
      } catch (...) {
        failure = std::current_exception();
        message_[0] = std::byte{1};
      }
    }
    const bool sent = exchange_.of_first(message_);
    if (failure) std::rethrow_exception(failure);
    if (!sent) check_lost();
    if (message_[0] != std::byte{0}) throw Refused{};
  }
  void check_lost() const {
    MICA_CHECK(!exchange_.lost(), failed, "a rank is gone while a saved session is read");
  }

  Exchange& exchange_;
  std::vector<ranks::Part> divided_;
  const kv::SnapshotReader& in_;
  mutable std::vector<std::byte> message_;
};

}  // namespace mica::model
