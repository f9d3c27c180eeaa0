#include "core/certificate/key_list.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr absl::string_view kBegin = "-----BEGIN PUBLIC KEY-----";
constexpr absl::string_view kEnd = "-----END PUBLIC KEY-----";
constexpr absl::string_view kKeyId = "Key-Id";
constexpr absl::string_view kCreated = "Created";
constexpr absl::string_view kRetired = "Retired";
constexpr absl::string_view kRevoked = "Revoked";
constexpr absl::string_view kReason = "Reason";
constexpr size_t kMaxReasonLength = 200;

absl::Status Malformed(absl::string_view what) { return InvalidField("public_key", what); }

using Lines = std::map<std::string, std::string>;  // before a key, by name

absl::Status AddLine(absl::string_view line, Lines& lines) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
  const auto& [name, value] = parts;
  if (name != kKeyId && name != kCreated && name != kRetired && name != kRevoked && name != kReason) {
    return Malformed("a line before a key is none of Key-Id, Created, Retired, Revoked and Reason");
  }
  if (!lines.emplace(std::string(name), std::string(value)).second) {
    return Malformed(absl::StrCat("a key has two lines ", name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<absl::Time>> ReadTime(const Lines& lines, absl::string_view name) {
  const auto line = lines.find(std::string(name));
  if (line == lines.end()) {
    return std::optional<absl::Time>();
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_sec, line->second, &time, &error) || KeyTimeText(time) != line->second) {
    return Malformed(absl::StrCat(name, " of a key must be a time like 2026-01-02T03:04:05Z"));
  }
  return std::optional<absl::Time>(time);
}

absl::StatusOr<KnownKey> ReadKnownKey(absl::string_view pem, const Lines& lines) {
  DPAR_ASSIGN_OR_RETURN(VerifyingKey key, VerifyingKey::FromPem(pem));
  if (const auto id = lines.find(std::string(kKeyId)); id != lines.end() && id->second != key.key_id()) {
    return Malformed(absl::StrCat("a key is listed under the id ", id->second, ", but its id is ", key.key_id()));
  }
  KnownKey known(std::move(key));
  DPAR_ASSIGN_OR_RETURN(known.create_time, ReadTime(lines, kCreated));
  DPAR_ASSIGN_OR_RETURN(known.retire_time, ReadTime(lines, kRetired));
  DPAR_ASSIGN_OR_RETURN(known.revoke_time, ReadTime(lines, kRevoked));
  if (const auto reason = lines.find(std::string(kReason)); reason != lines.end()) {
    DPAR_RETURN_IF_ERROR(ValidateRevokeReason(reason->second));
    known.revoke_reason = reason->second;
  }
  if (known.revoke_time.has_value() == known.revoke_reason.empty()) {
    return Malformed("a key has a line Revoked without Reason, or Reason without Revoked");
  }
  return known;
}

KnownKey* FindKey(absl::string_view key_id, std::vector<KnownKey>& keys) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const KnownKey& known) { return known.key.key_id() == key_id; });
  return found != keys.end() ? &*found : nullptr;
}

}  // namespace

std::string KeyTimeText(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

absl::Status ValidateRevokeReason(absl::string_view reason) {
  const bool printable = std::all_of(reason.begin(), reason.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (reason.empty() || reason.size() > kMaxReasonLength || !printable ||
      absl::StripAsciiWhitespace(reason) != reason) {
    return InvalidField("reason", absl::StrCat("the reason must be one line of 1 to ", kMaxReasonLength,
                                               " printable ASCII characters without a space at either end"));
  }
  return absl::OkStatus();
}

std::string FormatKeyList(const std::vector<KnownKey>& keys) {
  std::string text;
  const auto add = [&text](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&text, name, ": ", value, "\n");
  };
  for (const KnownKey& known : keys) {
    add(kKeyId, known.key.key_id());
    if (known.create_time.has_value()) {
      add(kCreated, KeyTimeText(*known.create_time));
    }
    if (known.retire_time.has_value()) {
      add(kRetired, KeyTimeText(*known.retire_time));
    }
    if (known.revoke_time.has_value()) {
      add(kRevoked, KeyTimeText(*known.revoke_time));
      add(kReason, known.revoke_reason);
    }
    absl::StrAppend(&text, known.key.pem());
  }
  return text;
}

absl::StatusOr<std::vector<KnownKey>> ParseKeyList(absl::string_view text) {
  std::vector<KnownKey> keys;
  Lines lines;
  std::string pem;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (!pem.empty() || line == kBegin) {
      absl::StrAppend(&pem, line, "\n");
    } else if (!line.empty()) {
      DPAR_RETURN_IF_ERROR(AddLine(line, lines));
    }
    if (pem.empty() || line != kEnd) {
      continue;
    }
    DPAR_ASSIGN_OR_RETURN(KnownKey known, ReadKnownKey(pem, lines));
    if (keys.size() == kMaxListedKeys || FindKey(known.key.key_id(), keys) != nullptr) {
      return Malformed(absl::StrCat("a list holds each key once, and at most ", kMaxListedKeys));
    }
    keys.push_back(std::move(known));
    lines.clear();
    pem.clear();
  }
  if (keys.empty() || !lines.empty() || !pem.empty()) {
    return Malformed("not an Ed25519 public key in PEM, or a list of them, or its end is missing");
  }
  return keys;
}

void MergeKeys(const std::vector<KnownKey>& more, std::vector<KnownKey>& keys) {
  for (const KnownKey& other : more) {
    KnownKey* const known = FindKey(other.key.key_id(), keys);
    if (known == nullptr) {
      keys.push_back(other);
    } else if (other.revoke_time.has_value() &&
               (!known->revoke_time.has_value() || *other.revoke_time < *known->revoke_time)) {
      known->revoke_time = other.revoke_time;
      known->revoke_reason = other.revoke_reason;
    }
  }
}

}  // namespace dpar
