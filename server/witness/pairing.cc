#include "server/witness/pairing.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "server/random_text.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

using Ids = std::vector<std::string>;

constexpr size_t kIdBytes = 16;
constexpr int64_t kTenantsAtOnce = 500;
// For servers that start at once on one store.
constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr char kFirstReason[] = "the first witness directory";
constexpr char kTakenReason[] = "taken from the witness directory";
constexpr absl::string_view kGuide = "deploy/OPERATIONS.md, \"A lost witness directory\"";

bool Has(const Ids& ids, const std::string& id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

absl::StatusOr<Ids> StoredIds(Transaction& transaction) {
  return transaction.QueryTexts("SELECT id FROM witness_ids ORDER BY number", {});
}

struct Both {
  Ids store;
  Ids directory;
};

absl::StatusOr<Both> ReadBoth(Database& database, const MarkDirectory& marks) {
  Both both;
  DPAR_ASSIGN_OR_RETURN(both.store, ReadFrom(database, StoredIds));
  DPAR_ASSIGN_OR_RETURN(both.directory, marks.ReadIds());
  return both;
}

absl::Status Judge(const Both& ids, const std::string& root) {
  if (ids.store.empty() || Has(ids.directory, ids.store.back())) {
    return absl::OkStatus();
  }
  if (ids.directory.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this store has a witness directory, and ", root,
        " is not it: no store's id is there. Is its disk mounted, and --witness-dir right? If the directory is lost, "
        "put back the newest copy of it; if there is no copy, `dpard adopt-witness` puts ",
        root, " in its place. See ", kGuide));
  }
  if (Has(ids.store, ids.directory.back())) {
    return absl::FailedPreconditionError(
        absl::StrCat(root,
                     " was the witness directory of this store, and was replaced by another one since. Set "
                     "--witness-dir to the one that replaced it. See ",
                     kGuide));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the witness directory ", root,
                   " belongs to another store. Set --witness-dir to the one that was used with this store"));
}

absl::Status CheckContentKey(Database& database, const MarkDirectory& marks, const std::string& tenant,
                             bool must_be_known) {
  DPAR_ASSIGN_OR_RETURN(const std::string key, ReadFrom(database, [&](Transaction& transaction) {
                          return TenantContentKey(transaction, tenant);
                        }));
  bool known = true;
  if (must_be_known) {
    DPAR_ASSIGN_OR_RETURN(known, marks.HasContentKey(tenant));
  }
  std::string kept;
  if (known) {
    DPAR_ASSIGN_OR_RETURN(kept, marks.KeepContentKey(tenant, key));
  }
  if (kept == key) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the witness directory ", marks.root(), known ? " knows another content key of " : " does not know ",
                   tenant, known ? " than the store" : "",
                   ": it belongs to another store, so that nothing of this one is recognised there. Set --witness-dir "
                   "to the directory that was used with this store"));
}

// Keeps the key of every tenant; with `must_be_known`, all must be kept already.
absl::Status CheckContentKeys(Database& database, const MarkDirectory& marks, bool must_be_known) {
  std::string token;
  do {
    DPAR_ASSIGN_OR_RETURN(const TenantPage page, ReadFrom(database, [&](Transaction& transaction) {
                            return ListTenants(transaction, kTenantsAtOnce, token);
                          }));
    for (const v1::Tenant& tenant : page.tenants) {
      DPAR_RETURN_IF_ERROR(CheckContentKey(database, marks, tenant.name(), must_be_known));
    }
    token = page.next_page_token;
  } while (!token.empty());
  return absl::OkStatus();
}

absl::Status AddToStore(Database& database, size_t begin, const Ids& ids, const std::string& reason, absl::Time now) {
  if (ids.empty()) {
    return absl::OkStatus();
  }
  return database.Write([&](Transaction& transaction) -> absl::Status {
    for (size_t i = 0; i < ids.size(); ++i) {
      DPAR_RETURN_IF_ERROR(transaction
                               .Execute("INSERT INTO witness_ids (number, id, time, reason) VALUES ($1, $2, $3, $4)",
                                        {static_cast<int64_t>(begin + i), ids[i], absl::ToUnixMicros(now), reason})
                               .status());
    }
    return absl::OkStatus();
  });
}

std::string NewId() {
  SecureRandom random;
  return RandomHex(random, kIdBytes);
}

}  // namespace

absl::StatusOr<std::string> Pair(Database& database, const MarkDirectory& marks, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold, database.Hold("witness", kPatience));
  DPAR_ASSIGN_OR_RETURN(Both ids, ReadBoth(database, marks));
  DPAR_RETURN_IF_ERROR(Judge(ids, marks.root()));
  DPAR_RETURN_IF_ERROR(CheckContentKeys(database, marks, ids.store.empty() && !ids.directory.empty()));
  std::string reason = kTakenReason;
  if (ids.directory.empty()) {
    ids.directory.push_back(NewId());
    DPAR_RETURN_IF_ERROR(marks.WriteIds(ids.directory));
    reason = kFirstReason;
  }
  // The directory's ids after the newest common one.
  const auto common = ids.store.empty() ? ids.directory.begin()
                                        : std::find(ids.directory.begin(), ids.directory.end(), ids.store.back()) + 1;
  DPAR_RETURN_IF_ERROR(AddToStore(database, ids.store.size(), Ids(common, ids.directory.end()), reason, now));
  return ids.directory.back();
}

absl::Status CheckPaired(Database& database, const MarkDirectory& marks) {
  DPAR_ASSIGN_OR_RETURN(const Both ids, ReadBoth(database, marks));
  return Judge(ids, marks.root());
}

absl::Status CheckStillPaired(Transaction& transaction, const MarkDirectory& marks) {
  DPAR_ASSIGN_OR_RETURN(const Ids stored, StoredIds(transaction));
  DPAR_ASSIGN_OR_RETURN(const Ids kept, marks.ReadIds());
  return stored.empty() || Has(kept, stored.back())
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat("the store was given another witness directory than ", marks.root(),
                                                   "; start this server with that one"));
}

absl::Status Adopt(Database& database, const MarkDirectory& marks, const std::string& reason, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold, database.Hold("witness", kPatience));
  DPAR_ASSIGN_OR_RETURN(Both ids, ReadBoth(database, marks));
  if (ids.store.empty()) {
    return absl::FailedPreconditionError(
        "this store has no witness directory yet that could be replaced; the next start of a server takes the one that "
        "it is given");
  }
  // An adoption may have been cut off before or after the store was written.
  const bool extended = ids.directory.size() == ids.store.size() + 1 &&
                        std::equal(ids.store.begin(), ids.store.end(), ids.directory.begin());
  if (extended || ids.directory == ids.store) {
    return AddToStore(database, ids.store.size(),
                      Ids(ids.directory.begin() + static_cast<std::ptrdiff_t>(ids.store.size()), ids.directory.end()),
                      reason, now);
  }
  if (!ids.directory.empty()) {
    return Has(ids.directory, ids.store.back())
               ? absl::FailedPreconditionError(
                     absl::StrCat(marks.root(), " is this store's witness directory already; nothing was changed"))
               : absl::FailedPreconditionError(
                     absl::StrCat(marks.root(),
                                  " belongs to another store, or was replaced; nothing was changed. Give "
                                  "an empty directory"));
  }
  DPAR_RETURN_IF_ERROR(CheckContentKeys(database, marks, /*must_be_known=*/false));
  ids.directory = ids.store;
  ids.directory.push_back(NewId());
  DPAR_RETURN_IF_ERROR(marks.WriteIds(ids.directory));
  return AddToStore(database, ids.store.size(), {ids.directory.back()}, reason, now);
}

}  // namespace dpar
