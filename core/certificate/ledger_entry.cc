#include "core/certificate/ledger_entry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/digest.h"

namespace dpar {

std::string ChainedEntryHash(const ChainedEntry& entry) {
  std::string bytes;
  const auto add = [&bytes](absl::string_view field) { absl::StrAppend(&bytes, field.size(), ":", field, ";"); };
  add("dpar ledger entry 1");
  add(entry.population);
  add(entry.previous_hash);
  add(absl::StrCat(entry.sequence));
  add(absl::StrCat(entry.time_microseconds));
  add(absl::StrCat(entry.kind));
  add(entry.job);
  add(entry.actor);
  add(absl::StrCat(entry.units));
  add(absl::StrFormat("%.17g", entry.epsilon));
  add(absl::StrFormat("%.17g", entry.delta));
  add(entry.event_text);
  add(entry.reason);
  add(absl::StrCat(entry.attempt));
  return Sha256Hex(bytes);
}

}  // namespace dpar
