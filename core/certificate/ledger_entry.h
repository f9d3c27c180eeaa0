// What the hash of a ledger entry covers. The server chains its ledger with it; verifiers recompute it.
#ifndef DPAR_CORE_CERTIFICATE_LEDGER_ENTRY_H_
#define DPAR_CORE_CERTIFICATE_LEDGER_ENTRY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace dpar {

// An entry's columns as stored, and the hash of the entry before it. The caller owns the texts.
struct ChainedEntry {
  absl::string_view population;
  absl::string_view previous_hash;  // empty before the first
  int64_t sequence = 0;
  int64_t time_microseconds = 0;  // since 1970
  int64_t kind = 0;               // v1::LedgerEntry::Kind
  absl::string_view job;
  absl::string_view actor;
  int64_t units = 0;
  double epsilon = 0;
  double delta = 0;
  absl::string_view event_text;  // the event as the ledger stores it
  absl::string_view reason;
  int64_t attempt = 0;
};

// SHA-256, lower-case hex, of the fields in this order after a line of their version, each as "<length>:<text>;".
// Numbers are decimal; doubles have 17 significant digits ("%.17g").
std::string ChainedEntryHash(const ChainedEntry& entry);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_LEDGER_ENTRY_H_
