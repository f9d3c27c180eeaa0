#include "tests/benchmark/ledger_world.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/ledger/ledger.h"
#include "server/store/data_directory.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/worker/outcome.h"

namespace dpar {
namespace {

// A cap and a price at which no budget is used up.
constexpr double kCapEpsilon = 100;
constexpr double kJobEpsilon = 0.01;
constexpr double kDelta = 1e-5;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 2;
constexpr absl::Duration kLease = absl::Minutes(10);
constexpr int64_t kBatch = 100;  // entries, or jobs, in one transaction of what is not measured
constexpr unsigned kFileMode = 0600;

void Require(const absl::Status& status, absl::string_view what) {
  if (!status.ok()) {
    std::cerr << "ledger_benchmark: " << what << ": " << status << "\n";
    std::abort();
  }
}

EntryContext Now(const std::string& actor) { return {actor, absl::Now()}; }

// Digests and sizes of files as a job writes them.
JobOutput WriteOutput(const DataDirectory& directory) {
  const std::string bytes(10'000, 'w');
  JobOutput output;
  for (const char* name : {kWeightsName, kScriptName, kSafetensorsName, kOnnxName}) {
    const std::string path = directory.ModelFile("tenants/t/jobs/j", 1, name);
    Require(MakeParentDirectory(path), "cannot make a directory");
    Require(WriteFileDurably(path, bytes, kFileMode), "cannot write a model");
    output.files[name] = {Sha256File(path).value(), static_cast<int64_t>(bytes.size())};
  }
  return output;
}

}  // namespace

LedgerWorld::LedgerWorld(testing::Engine engine, int clients)
    : store_(engine), key_(SigningKey::Generate().value()), output_(WriteOutput(store_.directory())) {
  for (int i = 0; i < clients; ++i) {
    const std::string tenant_id = absl::StrCat("t", i);
    Write([&](Transaction& transaction) { return InsertTenant(transaction, tenant_id, "key", absl::Now()); });
    AddDataset(tenant_id, i);
  }
}

void LedgerWorld::AddDataset(const std::string& tenant_id, int number) {
  Client client;
  client.tenant = absl::StrCat("tenants/", tenant_id);
  client.population = absl::StrCat(client.tenant, "/populations/d", number);
  v1::Dataset dataset;
  dataset.set_name(absl::StrCat(client.tenant, "/datasets/d", number));
  dataset.set_node_count(2000);
  dataset.set_feature_count(100);
  dataset.set_class_count(5);
  dataset.set_content_digest(std::string(64, 'a'));
  dataset.set_population(client.population);
  Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const BudgetTerms terms, MakeBudgetTerms(kCapEpsilon, kDelta));
    DPAR_RETURN_IF_ERROR(OpenBudget(transaction, client.population, terms, Now("server")));
    return InsertDataset(transaction, dataset, kUnlimited);
  });
  client.request.set_parent(client.tenant);
  client.request.mutable_spec()->set_dataset(dataset.name());
  client.request.mutable_spec()->set_epsilon(kJobEpsilon);
  absl::StatusOr<PlannedJob> planned = PlanJob(store_.database(), client.request.spec(), {kUnlimited, 1});
  Require(planned.status(), "a job cannot be planned");
  client.planned = *std::move(planned);
  absl::StatusOr<double> epsilon = AccountantEpsilon(client.planned.stored);
  Require(epsilon.status(), "a job has no price");
  epsilon_ = *epsilon;
  clients_.push_back(std::move(client));
}

void LedgerWorld::Write(const Database::Body& body) { Require(store_.database().Write(body), "a transaction failed"); }

std::string LedgerWorld::NextId() { return absl::StrCat("id-", ++ids_); }

void LedgerWorld::Submit(const Client& client) {
  v1::CreateJobRequest request = client.request;
  request.set_request_id(NextId());
  const EntryContext context = Now("operator/tokens/benchmark");
  Require(SubmitOnce(store_.database(), client.planned, MakeJobRequest(request), kUnlimited, context).status(),
          "a job was refused");
}

void LedgerWorld::Reserve(int client) { Submit(clients_[static_cast<size_t>(client)]); }

void LedgerWorld::ReserveInVain(int client) {
  const Client& asking = clients_[static_cast<size_t>(client)];
  const JobRequest request{absl::StrCat(asking.tenant, "/jobs/", NextId()), {}};
  absl::Status submitted;
  const absl::Status ended = store_.database().Write([&](Transaction& transaction) -> absl::Status {
    submitted = SubmitJob(transaction, asking.planned, request, kUnlimited, Now("operator/tokens/benchmark")).status();
    return absl::CancelledError("only for its time");
  });
  Require(submitted, "a job was refused");
  Require(absl::IsCancelled(ended) ? absl::OkStatus() : ended, "a transaction was not rolled back");
}

std::string LedgerWorld::RunJob(int client) {
  Submit(clients_[static_cast<size_t>(client)]);
  std::optional<StoredJob> leased;
  while (!leased.has_value()) {
    Write([&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(leased,
                            Lease(transaction, {"benchmark", absl::Now(), kLease, kUnlimited, kUnlimited, kUnlimited}));
      return absl::OkStatus();
    });
  }
  JobOutput output = output_;
  output.lease = leased->lease;
  const SigningKeySource key = [this] { return key_; };
  Require(Release(store_.database(), key, *leased, output, epsilon_), "a model could not be released");
  return leased->job.name();
}

void LedgerWorld::CancelAll() {
  absl::StatusOr<std::vector<Row>> rows = ReadFrom(store_.database(), [](Transaction& transaction) {
    return transaction.Query("SELECT name FROM jobs WHERE state = $1", {int64_t{v1::Job::QUEUED}});
  });
  Require(rows.status(), "the queue cannot be read");
  for (size_t start = 0; start < rows->size(); start += kBatch) {
    Write([&](Transaction& transaction) -> absl::Status {
      const size_t end = std::min<size_t>(start + kBatch, rows->size());
      for (size_t i = start; i < end; ++i) {
        DPAR_RETURN_IF_ERROR(CancelJob(transaction, RowReader((*rows)[i]).Text(), Now("server")).status());
      }
      return absl::OkStatus();
    });
  }
}

void LedgerWorld::Fill(int client, int64_t entries) {
  const Client& filled = clients_[static_cast<size_t>(client)];
  // The jobs of the past are copies of one. It has 2 entries, after the one that opened the budget.
  const std::string original = RunJob(client);
  for (int64_t done = 3; done + 2 <= entries;) {
    Write([&](Transaction& transaction) -> absl::Status {
      for (int64_t i = 0; i < kBatch && done + 2 <= entries; ++i, done += 2) {
        const std::string name = absl::StrCat(filled.tenant, "/jobs/", NextId());
        const EntryContext context = Now("worker");
        DPAR_RETURN_IF_ERROR(
            dpar::Reserve(transaction, filled.population, name, *filled.planned.price, context).status());
        DPAR_RETURN_IF_ERROR(Post(transaction, filled.population, name, 1, context).status());
        DPAR_RETURN_IF_ERROR(
            transaction
                .Execute(
                    "INSERT INTO jobs (name, tenant, dataset, population, spec, plan, state, failure, create_time, "
                    "start_time, end_time, attempts, cancel_requested, lease) SELECT $1, tenant, dataset, "
                    "population, spec, plan, state, failure, $3, $3, $3, 1, 0, 1 FROM jobs WHERE name = $2",
                    {name, original, absl::ToUnixMicros(context.time)})
                .status());
      }
      return absl::OkStatus();
    });
  }
}

}  // namespace dpar
