// SPDX-License-Identifier: Apache-2.0
//
// Brings an index up to date: rows of files that have not changed are copied, other files are cut and embedded,
// and files that are gone are left out.
#pragma once

#include "mica_tools/search/index_reader.hpp"
#include "mica_tools/search/index_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::search {

/// What an update asks of a model and of its caller.
struct Updating {
  /// The tokens that the model reads for a text.
  std::function<std::size_t(std::string_view text)> count;
  /// Embeddings of texts, (texts, width). What it raises ends the update, and no index is written.
  std::function<std::vector<float>(std::span<const std::string> texts)> embed;
  /// Called before each embed(): `bytes` of files are done or under way. False ends the update with the files that
  /// are complete.
  std::function<bool(std::uint64_t bytes)> proceed = [](std::uint64_t) { return true; };
  /// Called for a file that cannot be read. It is not in the index, so that the next update tries again.
  std::function<void(const std::string& path)> unreadable = [](const std::string&) {};
  std::size_t texts = 32;  // maximum of one call of embed(); a long file takes several calls
};

/// The difference between an index and a folder.
class IndexChanges {
 public:
  /// former: null: there is none. It outlives the object.
  IndexChanges(const IndexReader* former, std::vector<FileState> found)
      : former_(former), found_(std::move(found)), kept_(former == nullptr ? 0 : former->files().size()) {
    std::map<std::string_view, std::size_t> places;  // in the former index
    for (std::size_t i = 0; i < kept_.size(); ++i) places[former->files()[i].state.path] = i;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto place = places.find(found_[i].path);
      const bool same = place != places.end() && former->files()[place->second].state == found_[i];
      if (same) {
        kept_[place->second] = true;
      } else {
        changed_.push_back(i);
        bytes_ += found_[i].size;
      }
    }
  }

  [[nodiscard]] std::size_t changed() const noexcept { return changed_.size(); }  // files to embed
  [[nodiscard]] std::size_t kept() const noexcept {                               // files to copy
    return static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), true));
  }
  [[nodiscard]] bool any() const noexcept { return changed() != 0 || kept() != kept_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // of files to embed

  /// Writes all files to `out`, whose IndexInfo is that of the former index. False when proceed() ended it. Then
  /// some files are missing, and what was written is an index all the same. Raises as IndexReader, IndexWriter
  /// and embed().
  [[nodiscard]] bool apply(const std::string& folder, const Updating& with, IndexWriter& out) const {
    if (former_ != nullptr) copy(out);
    Batch batch;
    std::uint64_t done = 0;
    const CutOptions cut{.max_tokens = static_cast<std::size_t>(out.info().passage_tokens)};
    for (const std::size_t i : changed_) {
      add(folder, found_[i], cut, with, batch);
      done += found_[i].size;
      if (batch.texts.size() < with.texts) continue;
      if (!flush(with, done, batch, out)) return false;
    }
    return flush(with, done, batch, out);
  }

 private:
  /// Files with texts that are not embedded yet.
  struct Batch {
    std::vector<IndexedFile> files;
    std::vector<std::string> texts;  // of all files
  };

  /// Copies the rows of files that are kept.
  void copy(IndexWriter& out) const {
    std::vector<bool> rows;  // whether each is kept
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const IndexedFile& file = former_->files()[i];
      rows.insert(rows.end(), file.passages.size(), kept_[i]);
      if (kept_[i]) out.append_file(file);
    }
    former_->for_each_slice([&](std::size_t first, std::span<const std::byte> slice) {
      const std::size_t each = row_bytes(former_->info()), n = slice.size() / each;
      for (std::size_t at = 0, end = 0; at < n; at = end) {  // rows that lie together are written together
        const bool keep = rows[first + at];
        while (end < n && rows[first + end] == keep) ++end;
        if (keep) out.append_rows(slice.subspan(at * each, (end - at) * each));
      }
    });
  }
  static void add(const std::string& folder, const FileState& state, CutOptions cut, const Updating& with,
                  Batch& batch) {
    const auto text = read_text_file(path_in(folder, state.path));
    if (!text) return with.unreadable(state.path);
    IndexedFile& file = batch.files.emplace_back(IndexedFile{state});
    if (text->size() != state.size) return;
    cut.markdown = is_markdown(state.path);
    file.passages = cut_text(*text, cut, with.count);
    for (const Passage& passage : file.passages)
      batch.texts.push_back(text->substr(passage.offset, passage.bytes));
  }
  /// Embeds the texts, some at a time, and adds the files; none of them when proceed() ends it.
  static bool flush(const Updating& with, std::uint64_t done, Batch& batch, IndexWriter& out) {
    std::vector<std::byte> rows;
    const std::span<const std::string> all = batch.texts;
    for (std::size_t at = 0; at < all.size(); at += with.texts) {
      if (!with.proceed(done)) return false;
      const auto more = out.encoded(with.embed(all.subspan(at, std::min(with.texts, all.size() - at))));
      rows.insert(rows.end(), more.begin(), more.end());
    }
    out.append_rows({rows.data(), rows.size()});
    for (IndexedFile& file : batch.files) out.append_file(std::move(file));
    batch = {};
    return true;
  }

  const IndexReader* former_;
  std::vector<FileState> found_;
  std::vector<bool> kept_;            // of the former index
  std::vector<std::size_t> changed_;  // indices of found_
  std::uint64_t bytes_ = 0;
};

}  // namespace mica::search
