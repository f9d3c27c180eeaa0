#include "server/upkeep/commands.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/digest.h"
#include "core/plain_text.h"
#include "core/status_macros.h"
#include "server/auth/signing_keys.h"
#include "server/directory_lock.h"
#include "server/ledger/ledger.h"
#include "server/resource_name.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/upkeep/check_datasets.h"
#include "server/upkeep/check_ledgers.h"
#include "server/upkeep/restore.h"
#include "server/witness/pairing.h"
#include "server/witness/rollback.h"
#include "server/witness/witness.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxReason = 500;

// Compares released models with their rows. Files that vanish with their job meanwhile are no fault.
absl::StatusOr<int64_t> CheckModels(Database& database, const DataDirectory& directory, std::ostream& out) {
  using Files = std::vector<NamedFile>;
  DPAR_ASSIGN_OR_RETURN(const Files files, ReadFrom(database, [&](Transaction& transaction) {
                          return NamedFiles(transaction, directory);
                        }));
  int64_t good = 0;
  int64_t bad = 0;
  for (const NamedFile& file : files) {
    if (file.sha256.empty()) {
      continue;
    }
    const absl::StatusOr<std::string> digest = Sha256File(absl::StrCat(directory.root(), "/", file.path));
    if (digest.ok() && *digest == file.sha256) {
      ++good;
      continue;
    }
    ++bad;
    out << file.path << ": " << (digest.ok() ? "not the model that was released" : "missing")
        << "; restore it from a backup" << std::endl;
  }
  out << "model files: " << good << " ok, " << bad << " damaged or missing" << std::endl;
  return bad;
}

absl::StatusOr<int64_t> CheckKeys(const DataDirectory& directory, std::ostream& out) {
  const absl::StatusOr<SigningKey> key = ReadSigningKey(directory);
  const absl::StatusOr<std::vector<KnownKey>> known = ReadSigningKeys(directory);
  if (!key.ok() || !known.ok()) {
    out << "keys: " << (key.ok() ? known.status() : key.status()).message() << std::endl;
    return 1;
  }
  out << "keys: " << known->size() << " known, " << key->verifying_key().key_id() << " signs" << std::endl;
  return 0;
}

// A rolled back ledger cannot be detected without a mark.
void WarnOfUnmarked(const WitnessReport& report, const std::string& witness_directory, std::ostream& out) {
  if (!report.unmarked.empty()) {
    out << report.unmarked.size() << " populations have spent something and have no mark in " << witness_directory
        << ".\nUnless they were never served with one, find out where their marks are, or set\n"
        << "--witness-dir to where they are, before a server starts: it marks them as they\n"
        << "are, and what was spent since, if anything, could be spent again." << std::endl;
  }
}

// Reports marks of another store; returns the number of faults.
absl::StatusOr<int64_t> CheckPair(Database& database, const MarkDirectory& marks, std::ostream& out) {
  const absl::Status paired = CheckPaired(database, marks);
  if (!paired.ok() && !absl::IsFailedPrecondition(paired) && !absl::IsDataLoss(paired)) {
    return paired;
  }
  if (!paired.ok()) {
    out << "marks: " << paired.message() << std::endl;
  }
  return paired.ok() ? 0 : 1;
}

absl::StatusOr<int64_t> CheckMarks(Database& database, const MarkDirectory& marks, std::ostream& out) {
  DPAR_ASSIGN_OR_RETURN(const int64_t strange, CheckPair(database, marks, out));
  if (strange > 0) {
    return strange;
  }
  DPAR_ASSIGN_OR_RETURN(const WitnessReport report, CompareAll(database, marks));
  for (const Rollback& rollback : report.rollbacks) {
    out << rollback.population << ": " << rollback.reason << std::endl;
  }
  DPAR_ASSIGN_OR_RETURN(const int64_t frozen,
                        ReadFrom(database, [](Transaction& transaction) { return CountFrozen(transaction); }));
  const auto behind = static_cast<int64_t>(report.rollbacks.size());
  out << "marks: " << report.good << " ok, " << behind << " ahead of their ledgers or unreadable, " << report.unclaimed
      << " of populations that the store does not know; frozen: " << frozen << std::endl;
  WarnOfUnmarked(report, marks.root(), out);
  return std::max(behind, frozen) + static_cast<int64_t>(report.unmarked.size());
}

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / static_cast<double>(1 << 20));
}

absl::Status RequireStore(const StorePlace& place) {
  std::error_code error;
  if (place.postgres_uri.empty() && !fs::exists(place.directory.Database(), error)) {
    // Opening would make one.
    return absl::NotFoundError(
        absl::StrCat("there is no store at ", place.directory.Database(), "; is --data-dir right?"));
  }
  return absl::OkStatus();
}

absl::Status CheckReason(const std::string& reason) {
  return reason.empty() || reason.size() > kMaxReason || !IsPlainText(reason)
             ? absl::InvalidArgumentError(absl::StrCat(
                   "--reason is 1 to ", kMaxReason, " characters without control characters or changes of direction"))
             : absl::OkStatus();
}

// What a thaw did, for the operator.
void SayThawed(const std::string& population, const Thawed& thawed, std::ostream& out) {
  if (!thawed.closed_end.empty()) {
    out << population
        << " is thawed. It was merged, and nobody knows how much was spent, so the\npopulation that holds "
        << "its spend is closed: " << thawed.closed_end << " admits no job again.\n";
    return;
  }
  out << population << (thawed.closed ? " is thawed, and closed: no job is admitted again" : " admits jobs again")
      << ". Debited for what its ledger did\nnot know: " << thawed.debited_units
      << " units; left: " << thawed.left_units << " units.\n";
}

}  // namespace

absl::StatusOr<int64_t> CheckEverything(const StorePlace& place, const std::string& witness_directory,
                                        std::ostream& out) {
  DPAR_RETURN_IF_ERROR(RequireStore(place));
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenStore(place));
  DPAR_RETURN_IF_ERROR(database->Read([](Transaction& transaction) { return CheckSchema(transaction); }));
  out << "schema: version " << kSchemaVersion << std::endl;
  DPAR_ASSIGN_OR_RETURN(const int64_t datasets, CheckDatasets(*database, place.directory, out));
  DPAR_ASSIGN_OR_RETURN(const int64_t models, CheckModels(*database, place.directory, out));
  const KeyReader read_keys = [&place] { return ReadSigningKeys(place.directory); };
  DPAR_ASSIGN_OR_RETURN(const int64_t ledgers, CheckLedgers(*database, read_keys, out));
  DPAR_ASSIGN_OR_RETURN(const int64_t keys, CheckKeys(place.directory, out));
  DPAR_ASSIGN_OR_RETURN(const int64_t marks, CheckMarks(*database, MarkDirectory(witness_directory), out));
  return datasets + models + ledgers + keys + marks;
}

absl::Status MakeBackup(const StorePlace& place, const std::string& destination, absl::Time now, std::ostream& out,
                        std::ostream& progress) {
  DPAR_RETURN_IF_ERROR(RequireStore(place));
  DPAR_ASSIGN_OR_RETURN(const Manifest manifest, BackUp(place, destination, now, progress));
  int64_t bytes = 0;
  for (const BackedUpFile& file : manifest.files) {
    bytes += file.bytes;
  }
  out << "Backed up " << manifest.files.size() << " files, " << Mebibytes(bytes) << ", to " << destination << ".\n"
      << "It holds private data and keys: keep it as you keep the data directory, and apart\n"
      << "from the witness directory, which is not part of it.\n";
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RestoreBackup(const StorePlace& place, const std::string& witness_directory,
                                      const std::string& source, bool replace, absl::Time now, std::ostream& out,
                                      std::ostream& progress) {
  DPAR_ASSIGN_OR_RETURN(const Manifest manifest, Restore(place, source, replace, now, progress));
  out << "Restored the backup of " << manifest.made_at << " (" << manifest.software << ").\n";
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenStore(place));
  DPAR_RETURN_IF_ERROR(Migrate(*database));
  const KeyReader read_keys = [&place] { return ReadSigningKeys(place.directory); };
  DPAR_ASSIGN_OR_RETURN(const int64_t broken, CheckLedgers(*database, read_keys, out));
  const MarkDirectory marks(witness_directory);
  DPAR_ASSIGN_OR_RETURN(const int64_t strange, CheckPair(*database, marks, out));
  if (strange > 0) {
    return broken + strange;
  }
  DPAR_ASSIGN_OR_RETURN(const WitnessReport report, CompareAll(*database, marks));
  for (const Rollback& rollback : report.rollbacks) {
    DPAR_RETURN_IF_ERROR(Freeze(*database, rollback.population, rollback.reason));
    out << "FROZEN: " << rollback.population << ": " << rollback.reason << std::endl;
  }
  out << "marks: " << report.good << " ok, " << report.rollbacks.size() << " ahead of their ledgers or unreadable, "
      << report.unclaimed << " of populations that the store does not know" << std::endl;
  WarnOfUnmarked(report, witness_directory, out);
  return broken;
}

absl::Status ThawPopulation(const StorePlace& place, const std::string& witness_directory,
                            const std::string& population, const std::string& reason, const std::string& user,
                            absl::Time now, std::ostream& out) {
  DPAR_RETURN_IF_ERROR(CheckReason(reason));
  DPAR_RETURN_IF_ERROR(ParsePopulationName("population", population).status());
  DPAR_RETURN_IF_ERROR(RequireStore(place));
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenStore(place));
  DPAR_RETURN_IF_ERROR(database->Read([](Transaction& transaction) { return CheckSchema(transaction); }));
  const absl::Status found =
      ReadFrom(*database, [&](Transaction& transaction) { return GetBudgetSums(transaction, population); }).status();
  if (absl::IsNotFound(found)) {
    return absl::NotFoundError(absl::StrCat("there is no ", population, "; `dpard check` names those that are frozen"));
  }
  const MarkDirectory marks(witness_directory);
  DPAR_RETURN_IF_ERROR(CheckPaired(*database, marks));
  DPAR_ASSIGN_OR_RETURN(
      const Thawed thawed,
      Thaw(*database, marks, population, absl::StrCat(reason, " (dpard thaw, user ", user, ")"), {"server", now}));
  SayThawed(population, thawed, out);
  return absl::OkStatus();
}

absl::Status AdoptWitness(const StorePlace& place, const std::string& witness_directory, const std::string& reason,
                          const std::string& user, absl::Time now, std::ostream& out) {
  DPAR_RETURN_IF_ERROR(CheckReason(reason));
  DPAR_RETURN_IF_ERROR(RequireStore(place));
  std::optional<DirectoryLock> lock;
  if (place.postgres_uri.empty()) {
    DPAR_ASSIGN_OR_RETURN(DirectoryLock acquired, DirectoryLock::Acquire(place.directory.Lock()));
    lock.emplace(std::move(acquired));
  }
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenStore(place));
  DPAR_RETURN_IF_ERROR(database->Read([](Transaction& transaction) { return CheckSchema(transaction); }));
  if (!place.postgres_uri.empty()) {
    DPAR_RETURN_IF_ERROR(AwaitNoSessions(*database));
  }
  Witness witness(*database, witness_directory);
  DPAR_RETURN_IF_ERROR(witness.marks().Make());
  DPAR_RETURN_IF_ERROR(
      Adopt(*database, witness.marks(), absl::StrCat(reason, " (dpard adopt-witness, user ", user, ")"), now));
  DPAR_RETURN_IF_ERROR(witness.Begin());
  out << witness_directory << " is the witness directory of this store now, and every population is\n"
      << "marked, and every content remembered, as the store has it. What was released and is not in\n"
      << "the store, if the store is older than the last release, can be spent again: `dpar debit`\n"
      << "charges it.\n";
  return absl::OkStatus();
}

}  // namespace dpar
