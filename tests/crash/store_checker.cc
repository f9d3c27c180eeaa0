#include "tests/crash/store_checker.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/ledger/ledger.h"
#include "server/upkeep/check_datasets.h"
#include "server/witness/mark_directory.h"
#include "tests/end_to_end/process.h"

namespace dpar::crash {
namespace {

namespace fs = std::filesystem;

bool IsLive(const v1::Job& job) { return job.state() == v1::Job::QUEUED || job.state() == v1::Job::RUNNING; }

int64_t CountOpenedVoids(const JobRecord& record) {
  return std::count_if(record.entries.begin(), record.entries.end(), [](const v1::LedgerEntry& entry) {
    return entry.kind() == v1::LedgerEntry::VOID && entry.attempt() > 0;
  });
}

int64_t Count(const JobRecord& record, v1::LedgerEntry::Kind kind) {
  return std::count_if(record.entries.begin(), record.entries.end(),
                       [kind](const v1::LedgerEntry& entry) { return entry.kind() == kind; });
}

// A copy, so that the server which starts next has to recover from the crash itself: opening SQLite's files replays
// their log.
absl::Status CopySqlite(const std::string& from, const std::string& to) {
  for (const char* part : {"", "-wal"}) {
    std::error_code error;
    if (fs::exists(from + part, error) && !fs::copy_file(from + part, to + part, error)) {
      return absl::UnavailableError(absl::StrCat("cannot copy ", from, part, ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<VerifyingKey> ReadKey(const DataDirectory& directory) {
  DPAR_ASSIGN_OR_RETURN(const std::string pem, ReadWholeFile(directory.SigningPublicKey()));
  return VerifyingKey::FromPem(pem);
}

// What may never change once a job has ended.
std::string EndingOf(const JobRecord& record) {
  const v1::Job& job = record.stored.job;
  return absl::StrCat(v1::Job::State_Name(job.state()), " at ", job.end_time().seconds(), ".", job.end_time().nanos(),
                      " in attempt ", job.attempts(), record.output.has_value() ? record.output->envelope : "");
}

}  // namespace

absl::StatusOr<Snapshot> StoreChecker::Read() const {
  const e2e::TemporaryDirectory copy;
  std::unique_ptr<Database> database;
  if (postgres_uri_.empty()) {
    DPAR_RETURN_IF_ERROR(CopySqlite(directory_.Database(), copy.File("dpar.sqlite")));
    DPAR_ASSIGN_OR_RETURN(database, OpenSqlite(copy.File("dpar.sqlite")));
  } else {
    DPAR_ASSIGN_OR_RETURN(database, OpenPostgres(postgres_uri_));
  }
  DPAR_ASSIGN_OR_RETURN(const VerifyingKey key, ReadKey(directory_));
  Snapshot snapshot;
  DPAR_RETURN_IF_ERROR(database->Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(snapshot, ReadSnapshot(transaction, key));
    return absl::OkStatus();
  }));
  std::ostringstream report;
  DPAR_ASSIGN_OR_RETURN(const int64_t damaged, CheckDatasets(*database, directory_, report));
  if (damaged > 0) {
    return absl::DataLossError(report.str());
  }
  return snapshot;
}

absl::StatusOr<std::vector<Mark>> StoreChecker::ReadMarks() const {
  const MarkDirectory directory(directory_.root() + ".witness");
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> populations, directory.List());
  std::vector<Mark> marks;
  for (const std::string& population : populations) {
    DPAR_ASSIGN_OR_RETURN(const std::optional<Mark> mark, directory.Read(population));
    marks.push_back(mark.value());
  }
  return marks;
}

std::vector<std::string> StoreChecker::Check(const Promised& promised, Rest rest) {
  faults_.clear();
  // Before the store: a mark names what was committed when it was written.
  const absl::StatusOr<std::vector<Mark>> marks = ReadMarks();
  absl::StatusOr<Snapshot> snapshot = Read();
  const absl::StatusOr<VerifyingKey> key = ReadKey(directory_);
  if (!snapshot.ok() || !key.ok()) {
    Fault(absl::StrCat("the store cannot be read: ", (snapshot.ok() ? key.status() : snapshot.status()).ToString()));
    return faults_;
  }
  if (!marks.ok()) {
    Fault(absl::StrCat("the marks cannot be read: ", marks.status().ToString()));
    return faults_;
  }
  snapshot_ = *std::move(snapshot);
  CheckPromises(promised, rest);
  for (const auto& [name, record] : snapshot_.jobs) {
    CheckJob(record, promised);
    CheckOutput(record, *key);
  }
  for (const BudgetRecord& budget : snapshot_.budgets) {
    CheckBudget(budget, rest);
  }
  CheckHistory();
  CheckMarks(*marks, promised);
  CheckModelFiles(rest);
  if (rest == Rest::kSettled) {
    CheckSwept();
  }
  return faults_;
}

void StoreChecker::CheckPromises(const Promised& promised, Rest rest) {
  for (const std::string& job : promised.jobs) {
    if (snapshot_.jobs.count(job) == 0) {
      Fault(absl::StrCat(job, " was accepted and is lost"));
    }
  }
  for (const auto& [job, state] : promised.ended) {
    const auto found = snapshot_.jobs.find(job);
    if (found != snapshot_.jobs.end() && found->second.stored.job.state() != state) {
      Fault(absl::StrCat(job, " was seen as ", v1::Job::State_Name(state), " and is not any more"));
    }
  }
  for (const std::string& dataset : promised.datasets) {
    if (snapshot_.datasets.count(dataset) == 0) {
      Fault(absl::StrCat(dataset, " was sealed and is lost"));
    }
  }
  // Clients repeat a request until it is answered: in the end there is one job for each, and no other.
  if (rest == Rest::kSettled && snapshot_.jobs.size() != promised.jobs.size()) {
    Fault(absl::StrCat("there are ", snapshot_.jobs.size(), " jobs for ", promised.jobs.size(), " requests"));
  }
}

// Rule 2. Every dataset of these tests is sound, so that nothing but a cancel or the machine may end a job without a
// model. A cancel gives the price back, kFreeVoids times for a budget once the data was opened; the machine only if it
// was not.
void StoreChecker::CheckJob(const JobRecord& record, const Promised& promised) {
  const v1::Job& job = record.stored.job;
  const int64_t posts = Count(record, v1::LedgerEntry::POST);
  const int64_t voids = Count(record, v1::LedgerEntry::VOID);
  const std::string what = absl::StrCat(job.name(), ", ", v1::Job::State_Name(job.state()), ", attempt ",
                                        job.attempts(), ", ", posts, " posts, ", voids, " voids");
  if (Count(record, v1::LedgerEntry::RESERVE) != 1) {
    Fault(absl::StrCat(what, ": not reserved exactly once"));
  }
  for (const v1::LedgerEntry& entry : record.entries) {
    if (entry.units() != job.plan().price_units() || entry.units() <= 0) {
      Fault(absl::StrCat(what, ": entry ", entry.sequence(), " is not of the job's price"));
    }
  }
  const bool without_model = job.state() == v1::Job::FAILED || job.state() == v1::Job::CANCELLED;
  const int64_t due = job.state() == v1::Job::SUCCEEDED || without_model ? 1 : 0;
  if (posts + voids != due || (!without_model && voids > 0)) {
    Fault(absl::StrCat(what, ": ", due, " is due"));
  }
  if (job.state() == v1::Job::FAILED && CountOpenedVoids(record) > 0) {
    Fault(absl::StrCat(what, ": given back though its data was opened"));
  }
  if (job.state() == v1::Job::CANCELLED && posts > 0) {
    int64_t opened_voids = 0;
    for (const auto& [name, other] : snapshot_.jobs) {
      opened_voids += other.stored.population == record.stored.population ? CountOpenedVoids(other) : 0;
    }
    if (opened_voids != kFreeVoids) {
      Fault(absl::StrCat(what, ": posted though only ", opened_voids, " cancelled jobs were given back"));
    }
  }
  if (job.state() == v1::Job::FAILED && job.attempts() != max_attempts_) {
    Fault(absl::StrCat(what, ": failed before its attempts were used up: ", job.failure()));
  }
  if (job.state() == v1::Job::CANCELLED && promised.cancels.count(job.name()) == 0) {
    Fault(absl::StrCat(what, ": nobody cancelled it"));
  }
  const bool has_output = snapshot_.jobs_with_output.count(job.name()) != 0;
  if (has_output != (job.state() == v1::Job::SUCCEEDED)) {
    Fault(absl::StrCat(what, has_output ? ": it has an output" : ": it has no output"));
  }
}

// A model is there as it was certified, and its certificate names the entry that paid for it.
void StoreChecker::CheckOutput(const JobRecord& record, const VerifyingKey& key) {
  if (!record.output.has_value()) {
    return;
  }
  const std::string& name = record.stored.job.name();
  const JobOutput& output = *record.output;
  std::vector<std::string> files;
  for (const auto& [file_name, file] : output.files) {
    const std::string path = files.emplace_back(directory_.ModelFile(name, output.lease, file_name));
    const absl::StatusOr<std::string> actual = Sha256File(path);
    if (!actual.ok() || *actual != file.sha256) {
      Fault(absl::StrCat(path, " is missing or is not what was released"));
    }
  }
  const absl::StatusOr<Statement> statement = OpenSigned(output.envelope, {key});
  const auto post = std::find_if(record.entries.begin(), record.entries.end(),
                                 [](const v1::LedgerEntry& entry) { return entry.kind() == v1::LedgerEntry::POST; });
  if (!statement.ok() || post == record.entries.end() || statement->job != name ||
      statement->ledger_sequence != post->sequence() || statement->ledger_hash != post->hash() ||
      statement->units != post->units()) {
    Fault(absl::StrCat("the certificate of ", name, " does not name its posted entry"));
  }
  // Recomputing the price takes milliseconds; once is enough for bytes that do not change.
  if (!verified_.insert(output.envelope).second) {
    return;
  }
  const absl::StatusOr<Verification> verified = VerifyCertificate(output.envelope, {key}, files);
  if (!verified.ok() || !verified->passed()) {
    Fault(absl::StrCat("the certificate of ", name, " does not verify"));
  }
}

void StoreChecker::CheckBudget(const BudgetRecord& budget, Rest rest) {
  const Account& account = budget.account;
  if (!budget.chain.intact()) {
    Fault(absl::StrCat("the chain of budget ", budget.id, " breaks at entry ", budget.chain.first_bad_sequence(), ": ",
                       budget.chain.fault()));
  }
  // A single event may exceed the cap in units, when its own epsilon does not.
  if (account.used_units() > account.terms.cap_units && account.live_events > 1) {
    Fault(absl::StrCat("budget ", budget.id, " is overspent"));
  }
  int64_t held = 0;
  for (const auto& [name, record] : snapshot_.jobs) {
    const bool holds = record.stored.population == budget.id && IsLive(record.stored.job);
    held += holds ? record.stored.job.plan().price_units() : 0;
  }
  if (account.reserved_units != held) {
    Fault(absl::StrCat("budget ", budget.id, " holds ", account.reserved_units, " units for jobs of ", held));
  }
  if (rest == Rest::kSettled && held != 0) {
    Fault(absl::StrCat("budget ", budget.id, " holds units though every job should have ended"));
  }
}

// A job ends once, and a ledger only grows.
void StoreChecker::CheckHistory() {
  for (const auto& [name, record] : snapshot_.jobs) {
    if (IsLive(record.stored.job)) {
      if (endings_.count(name) != 0) {
        Fault(absl::StrCat(name, " had ended and is live again"));
      }
      continue;
    }
    const std::string ending = EndingOf(record);
    if (endings_.emplace(name, ending).first->second != ending) {
      Fault(absl::StrCat(name, " ended a second time"));
    }
  }
  for (const auto& [name, ending] : endings_) {
    if (snapshot_.jobs.count(name) == 0) {
      Fault(absl::StrCat(name, " had ended and is gone"));
    }
  }
  for (const BudgetRecord& budget : snapshot_.budgets) {
    std::vector<std::string> hashes;
    for (const v1::LedgerEntry& entry : budget.entries) {
      hashes.push_back(entry.hash());
    }
    std::vector<std::string>& before = chains_[budget.id];
    if (before.size() > hashes.size() || !std::equal(before.begin(), before.end(), hashes.begin())) {
      Fault(absl::StrCat("budget ", budget.id, " lost entries that it had"));
    }
    before = std::move(hashes);
  }
}

// No crash leaves a mark ahead of its ledger, which would freeze a budget for nothing; and nobody saw the end of a job
// that had posted before it was marked.
void StoreChecker::CheckMarks(const std::vector<Mark>& marks, const Promised& promised) {
  std::map<std::string, int64_t> marked;  // budget to sequence
  for (const Mark& mark : marks) {
    marked[mark.population] = mark.last().sequence;
  }
  for (const BudgetRecord& budget : snapshot_.budgets) {
    if (!budget.account.frozen_reason.empty()) {
      Fault(absl::StrCat("budget ", budget.id, " is frozen: ", budget.account.frozen_reason));
    }
    for (const Mark& mark : marks) {
      const bool in_chain =
          std::any_of(budget.entries.begin(), budget.entries.end(), [&](const v1::LedgerEntry& entry) {
            return entry.sequence() == mark.last().sequence && entry.hash() == mark.last().hash;
          });
      if (mark.population == budget.id && !in_chain) {
        Fault(absl::StrCat("the mark of budget ", budget.id, " is ahead of its ledger"));
      }
    }
  }
  for (const auto& [name, record] : snapshot_.jobs) {
    for (const v1::LedgerEntry& entry : record.entries) {
      if (entry.kind() == v1::LedgerEntry::POST && promised.ended.count(name) != 0 &&
          marked[record.stored.population] < entry.sequence()) {
        Fault(absl::StrCat("the end of ", name, " was seen and is not marked"));
      }
    }
  }
}

// No model is on disk without its posted entry, once the sweep had its turn.
void StoreChecker::CheckModelFiles(Rest rest) {
  std::error_code error;
  const fs::path top = fs::path(directory_.root()) / "jobs";
  for (fs::recursive_directory_iterator file(top, error); !error && file != fs::recursive_directory_iterator();
       file.increment(error)) {
    if (file->is_directory()) {
      continue;
    }
    const fs::path attempt = file->path().parent_path();
    const fs::path job = attempt.parent_path();
    const std::string name =
        absl::StrCat("tenants/", job.parent_path().filename().string(), "/jobs/", job.filename().string());
    int64_t lease = 0;
    const auto found = snapshot_.jobs.find(name);
    if (found == snapshot_.jobs.end() || !absl::SimpleAtoi(attempt.filename().string(), &lease)) {
      Fault(absl::StrCat(file->path().string(), " belongs to no job"));
      continue;
    }
    const std::optional<JobOutput>& output = found->second.output;
    const std::string path = file->path().string();
    const bool released =
        output.has_value() && output->lease == lease && output->files.count(file->path().filename().string()) > 0;
    if (rest == Rest::kSettled && !released) {
      Fault(absl::StrCat(path, " has no posted entry and was not swept"));
    }
  }
}

// Clients finish the uploads that they begin: in the end there is no file but the sealed ones.
void StoreChecker::CheckSwept() {
  std::set<std::string> expected;
  for (const std::string& dataset : snapshot_.datasets) {
    expected.insert(directory_.DatasetFile(dataset));
  }
  for (const char* room : {"datasets", "uploads"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator file(fs::path(directory_.root()) / room, error);
         !error && file != fs::recursive_directory_iterator(); file.increment(error)) {
      if (!file->is_directory() && expected.count(file->path().string()) == 0) {
        Fault(absl::StrCat(file->path().string(), " belongs to no dataset and was not swept"));
      }
    }
  }
}

}  // namespace dpar::crash
