// SPDX-License-Identifier: Apache-2.0
//
// What a model that is opened books for the process that it is in.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/gguf/document.hpp"
#include "mica/plan/plan.hpp"

#include <cstdint>

namespace mica::detail {

/// Raises unless the bytes were booked.
inline void check_booked(bool booked, const gguf::Document& document, const budget::Ledger& ledger,
                         budget::Account account, std::uint64_t bytes) {
  MICA_CHECK(booked, budget, document.path(), ": ", budget::name(account), ": ", bytes,
             " bytes do not fit the memory budget of ", ledger.limit(),
             " bytes; use a larger budget (OpenOptions::memory_bytes, or that of OpenOptions::ledger)");
}

/// A model's share in the bytes of the process, and those that its vocabulary adds to them.
class ProcessShare {
 public:
  /// Raises ErrorCode::budget. The ledger outlives it.
  ProcessShare(const gguf::Document& document, budget::Ledger& ledger) : ledger_(&ledger) {
    const std::uint64_t all = plan::process_bytes(document);
    check_booked(ledger.enter_process(plan::any_process_bytes), document, ledger, budget::Account::process,
                 all);
    own_ = all - plan::any_process_bytes;
    if (ledger.book(budget::Account::process, own_)) return;
    ledger.leave_process();
    check_booked(false, document, ledger, budget::Account::process, all);
  }
  ProcessShare(const ProcessShare&) = delete;
  ProcessShare& operator=(const ProcessShare&) = delete;
  ~ProcessShare() {
    ledger_->release(budget::Account::process, own_);
    ledger_->leave_process();
  }

 private:
  budget::Ledger* ledger_;
  std::uint64_t own_ = 0;
};

}  // namespace mica::detail
