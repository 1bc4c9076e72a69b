// SPDX-License-Identifier: Apache-2.0
//
// The argument type for objects that refer to a Document: a model, its weights, a quantisation job. It
// converts from a Document; a temporary does not compile, because it would end before its user.
//
//   mica::Transformer<...> model(gguf::open(path), executor);  // refused: name the document first
#pragma once

#include "mica/gguf/reader.hpp"

namespace mica::gguf {

class DocumentRef {
 public:
  DocumentRef(const Document& document) noexcept : document_(&document) {}
  DocumentRef(const Document&& temporary) = delete;  // name the document: it must outlive its user

  operator const Document&() const noexcept { return *document_; }
  const Document& operator*() const noexcept { return *document_; }
  const Document* operator->() const noexcept { return document_; }

 private:
  const Document* document_;
};

}  // namespace mica::gguf
