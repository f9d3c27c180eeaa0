// Gives a data directory a store with many datasets and a long past, for a dpard to serve: ten tenants, and for each
// dataset an open budget and jobs that reserved and posted over the last forty days. All through the ledger's own
// verbs.
//   page_fill_store DATA_DIR DATASETS ENTRIES
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/privacy/budget.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/ledger/ledger.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/datasets.h"

namespace dpar {
namespace {

constexpr int kTenants = 10;
constexpr double kCapEpsilon = 8;
constexpr double kDelta = 1e-6;
constexpr absl::Duration kPast = absl::Hours(24 * 40);
constexpr int64_t kJobsAtOnce = 2'000;  // in one transaction
// The first dataset has this share of all entries.
constexpr int64_t kLongShare = 5;

std::string TenantId(int64_t dataset) { return absl::StrCat("tenant-", dataset % kTenants); }

// A dataset's jobs, to be posted one after the other.
struct Past {
  int64_t number = 0;
  std::string tenant;
  std::string population;
  int64_t jobs = 0;
  int64_t posted = 0;
};

absl::StatusOr<Price> PriceOf(double epsilon, const BudgetTerms& terms) {
  DPAR_ASSIGN_OR_RETURN(const double mu, GaussianMu(epsilon, kDelta));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent event, MakeGaussianEvent(1, 1 / mu, 1));
  return MakePrice(event, epsilon, kDelta, terms);
}

absl::Status AddDataset(Transaction& transaction, int64_t number, const BudgetTerms& terms, absl::Time start,
                        Past& past) {
  past.number = number;
  past.tenant = absl::StrCat("tenants/", TenantId(number));
  past.population = absl::StrCat(past.tenant, "/populations/graph-", number);
  v1::Dataset dataset;
  dataset.set_name(absl::StrCat(past.tenant, "/datasets/graph-", number));
  dataset.set_node_count(2000);
  dataset.set_feature_count(100);
  dataset.set_class_count(5);
  dataset.set_content_digest(std::string(64, 'a'));
  dataset.set_population(past.population);
  DPAR_RETURN_IF_ERROR(OpenBudget(transaction, past.population, terms, {"server", start}));
  return InsertDataset(transaction, dataset, std::numeric_limits<int64_t>::max() / 2);
}

// Posts some of the jobs that are left; how many.
absl::StatusOr<int64_t> PostSome(Transaction& transaction, Past& past, const Price& price, absl::Time start) {
  int64_t done = 0;
  for (; past.posted < past.jobs && done < kJobsAtOnce; ++past.posted, ++done) {
    const std::string job = absl::StrCat(past.tenant, "/jobs/", past.number, "-", past.posted);
    const absl::Time time = start + kPast * (static_cast<double>(past.posted) / static_cast<double>(past.jobs));
    DPAR_RETURN_IF_ERROR(Reserve(transaction, past.population, job, price, {"server", time}).status());
    DPAR_RETURN_IF_ERROR(Post(transaction, past.population, job, 1, {"worker", time}).status());
  }
  return done;
}

absl::Status Fill(Database& database, int64_t datasets, int64_t entries) {
  const absl::Time start = absl::Now() - kPast;
  DPAR_ASSIGN_OR_RETURN(const BudgetTerms terms, MakeBudgetTerms(kCapEpsilon, kDelta));
  DPAR_ASSIGN_OR_RETURN(const Price small, PriceOf(0.01, terms));
  DPAR_ASSIGN_OR_RETURN(const Price usual, PriceOf(0.4, terms));
  std::vector<Past> pasts(static_cast<size_t>(datasets));
  // An OPEN entry each, and two for every job.
  const int64_t jobs = (entries - datasets) / 2;
  pasts[0].jobs = jobs / kLongShare;
  for (int64_t left = jobs - pasts[0].jobs, i = 1; i < datasets; ++i) {
    // As many as the others on average, from a third to five thirds of it.
    const int64_t mean = left / (datasets - i);
    pasts[static_cast<size_t>(i)].jobs = i + 1 == datasets ? left : mean * (1 + i % 5) / 3;
    left -= pasts[static_cast<size_t>(i)].jobs;
  }
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    for (int64_t i = 0; i < kTenants; ++i) {
      DPAR_RETURN_IF_ERROR(InsertTenant(transaction, TenantId(i), "key", start));
    }
    for (int64_t i = 0; i < datasets; ++i) {
      DPAR_RETURN_IF_ERROR(AddDataset(transaction, i, terms, start, pasts[static_cast<size_t>(i)]));
    }
    return absl::OkStatus();
  }));
  for (size_t next = 0; next < pasts.size();) {
    std::vector<Past> after = pasts;
    size_t reached = next;
    DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
      after = pasts;
      reached = next;
      for (int64_t done = 0; reached < after.size() && done < kJobsAtOnce;) {
        DPAR_ASSIGN_OR_RETURN(const int64_t some,
                              PostSome(transaction, after[reached], reached == 0 ? small : usual, start));
        done += some;
        if (after[reached].posted == after[reached].jobs) {
          ++reached;
        }
      }
      return absl::OkStatus();
    }));
    pasts = after;
    next = reached;
  }
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  int64_t datasets = 0;
  int64_t entries = 0;
  if (arguments.size() != 3 || !absl::SimpleAtoi(arguments[1], &datasets) ||
      !absl::SimpleAtoi(arguments[2], &entries) || datasets < 2 || entries < 4 * datasets) {
    std::cerr << "usage: page_fill_store DATA_DIR DATASETS ENTRIES (4 for each dataset at least)\n";
    return 2;
  }
  const DataDirectory directory(arguments[0]);
  absl::Status status = MakeParentDirectory(directory.Database());
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<Database>> database = OpenSqlite(directory.Database());
    status = database.status();
    status.Update(database.ok() ? Migrate(**database) : status);
    if (status.ok()) {
      status = Fill(**database, datasets, entries);
    }
  }
  if (!status.ok()) {
    std::cerr << "page_fill_store: " << status << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) { return dpar::Main(std::vector<std::string>(argv + 1, argv + argc)); }
