// Tenants, datasets, uploads and answers as stored. All functions run inside the caller's transaction.
#ifndef DPAR_SERVER_STORE_DATASETS_H_
#define DPAR_SERVER_STORE_DATASETS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/graph/graph.h"
#include "dpar/v1/dataset.pb.h"
#include "dpar/v1/operator.pb.h"
#include "server/store/database.h"

namespace dpar {

// A tenant with the key under which its content digests are kept (raw bytes; it never leaves the server).
absl::Status InsertTenant(Transaction& transaction, const std::string& tenant_id, const std::string& content_key,
                          absl::Time now);
// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED when there are more than `max_tenants`.
absl::Status CheckTenantCount(Transaction& transaction, int64_t max_tenants);
// Of tenants/{t}.
absl::StatusOr<std::string> TenantContentKey(Transaction& transaction, const std::string& tenant);
struct TenantPage {
  std::vector<v1::Tenant> tenants;
  std::string next_page_token;
};
absl::StatusOr<TenantPage> ListTenants(Transaction& transaction, int64_t page_size, const std::string& page_token);

// A dataset: the API's view, and what the server needs besides.
struct StoredDataset {
  v1::Dataset dataset;
  std::string budget_id;     // empty for public data
  int64_t stored_bytes = 0;  // of its file, rounded up to a power of two
};

// RESOURCE_EXISTS when the id was ever used, RESOURCE_EXHAUSTED past `max_datasets`.
absl::Status InsertDataset(Transaction& transaction, const StoredDataset& dataset, int64_t max_datasets);
// NOT_FOUND also for a deleted one.
absl::StatusOr<StoredDataset> GetDataset(Transaction& transaction, const std::string& name);
// The same for whoever adds to its jobs: no other transaction does, nor deletes it, until this one ends.
absl::StatusOr<StoredDataset> LockDataset(Transaction& transaction, const std::string& name);
// The budget of a dataset, deleted or not. NOT_FOUND when there never was one, or it is public.
absl::StatusOr<std::string> DatasetBudget(Transaction& transaction, const std::string& name);
// Which budget a private dataset has.
struct BudgetOfDataset {
  std::string dataset;
  std::string budget_id;
};
struct BudgetNamePage {
  std::vector<BudgetOfDataset> budgets;
  std::string next_page_token;
};
// Of private datasets, deleted or not, oldest first; of every tenant when `tenant` is empty.
absl::StatusOr<BudgetNamePage> ListBudgetNames(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                               const std::string& page_token);
// Of the same, the one with the largest share of its cap posted or reserved.
absl::StatusOr<std::optional<BudgetOfDataset>> FullestBudget(Transaction& transaction, const std::string& tenant);
// At most `limit` of those of every tenant, fullest first, and how many there are in all.
struct FullestBudgets {
  std::vector<BudgetOfDataset> budgets;
  int64_t total = 0;
};
absl::StatusOr<FullestBudgets> ListFullestBudgets(Transaction& transaction, int64_t limit);
struct DatasetPage {
  std::vector<v1::Dataset> datasets;
  std::string next_page_token;
};
absl::StatusOr<DatasetPage> ListDatasets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                         const std::string& page_token);
absl::Status MarkDatasetDeleted(Transaction& transaction, const std::string& name, absl::Time now);

// Whether an id of the tenant is taken by a dataset, deleted or not.
absl::StatusOr<bool> DatasetIdTaken(Transaction& transaction, const std::string& name);

// The budget that the tenant's earlier upload of the same content opened, if there was one.
absl::StatusOr<std::optional<std::string>> FindBudgetByContent(Transaction& transaction, const std::string& tenant,
                                                               const std::string& content_digest);
absl::Status RememberContent(Transaction& transaction, const std::string& tenant, const std::string& content_digest,
                             const std::string& budget_id);

// An upload, with what was declared when it was opened.
struct StoredUpload {
  std::string name;
  v1::OpenUploadRequest declared;  // parent, dataset_id, sizes, cap and is_public are set
  v1::Upload::State state = v1::Upload::OPEN;
  absl::Time create_time;
};
// RESOURCE_EXHAUSTED past `max_open` open uploads of the tenant.
absl::Status InsertUpload(Transaction& transaction, const StoredUpload& upload, int64_t max_open);
absl::StatusOr<StoredUpload> GetUpload(Transaction& transaction, const std::string& name);
// Names of open uploads that were opened before a time, of a tenant or, when it is empty, of all; at most so many, in
// the order of their names, and only those after one.
absl::StatusOr<std::vector<std::string>> OpenUploadsBefore(Transaction& transaction, const std::string& tenant,
                                                           absl::Time time, const std::string& after, int64_t most);
// Open uploads of all tenants.
absl::StatusOr<int64_t> CountOpenUploads(Transaction& transaction);
absl::Status SetUploadState(Transaction& transaction, const std::string& name, v1::Upload::State state);

// Idempotency: the serialised answer to an earlier request of the same scope (tenant and method) and id. A different
// fingerprint (SHA-256 of the request) under the same id is ALREADY_EXISTS / REQUEST_ID_REUSED.
absl::StatusOr<std::optional<std::string>> FindAnswer(Transaction& transaction, const std::string& scope,
                                                      const std::string& request_id, const std::string& fingerprint);
// Takes an id for a request whose answer follows in the same transaction; false when it was taken before.
absl::StatusOr<bool> ClaimAnswer(Transaction& transaction, const std::string& scope, const std::string& request_id,
                                 const std::string& fingerprint, absl::Time now);
// ALREADY_EXISTS / REQUEST_ID_REUSED.
absl::Status RequestIdReused(const std::string& request_id);
absl::Status StoreAnswer(Transaction& transaction, const std::string& scope, const std::string& request_id,
                         const std::string& answer);
// Forgets answers from before a time, the oldest first and at most so many. How many it were.
absl::StatusOr<int64_t> ForgetAnswers(Transaction& transaction, absl::Time before, int64_t most);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_DATASETS_H_
