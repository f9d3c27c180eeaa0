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

// `content_key` (raw bytes; never leaves the server) keys the tenant's content digests.
absl::Status InsertTenant(Transaction& transaction, const std::string& tenant_id, const std::string& content_key,
                          absl::Time now);
// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED above `max_tenants`.
absl::Status CheckTenantCount(Transaction& transaction, int64_t max_tenants);
absl::StatusOr<std::string> TenantContentKey(Transaction& transaction, const std::string& tenant);
struct TenantPage {
  std::vector<v1::Tenant> tenants;
  std::string next_page_token;
};
absl::StatusOr<TenantPage> ListTenants(Transaction& transaction, int64_t page_size, const std::string& page_token);

// RESOURCE_EXISTS when the id was ever used, RESOURCE_EXHAUSTED past `max_datasets`.
absl::Status InsertDataset(Transaction& transaction, const v1::Dataset& dataset, int64_t max_datasets);
// Dataset.schema, empty if there is none.
absl::StatusOr<std::string> GetTableSchema(Transaction& transaction, const std::string& name);
// NOT_FOUND also for a deleted one. LockDataset also keeps others from adding jobs or deleting it until the commit.
absl::StatusOr<v1::Dataset> GetDataset(Transaction& transaction, const std::string& name);
absl::StatusOr<v1::Dataset> LockDataset(Transaction& transaction, const std::string& name);
struct PopulationPage {
  std::vector<std::string> populations;
  std::string next_page_token;
};
// Oldest first, of all tenants when `tenant` is empty; merged ones too.
absl::StatusOr<PopulationPage> ListPopulations(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                               const std::string& page_token);
// Of those that were not merged, at most `limit` with the largest share of their cap used, fullest first.
absl::StatusOr<std::vector<std::string>> FullestPopulations(Transaction& transaction, const std::string& tenant,
                                                            int64_t limit);
// How many were not merged.
absl::StatusOr<int64_t> CountPopulations(Transaction& transaction);
// A population's datasets, oldest first, deleted ones too.
absl::StatusOr<std::vector<std::string>> DatasetsOf(Transaction& transaction, const std::string& population);
// Datasets and contents of `from`, and its `node_total`, become those of `into`. The caller holds both.
absl::Status MovePopulation(Transaction& transaction, const std::string& from, const std::string& into,
                            int64_t node_total);
struct DatasetPage {
  std::vector<v1::Dataset> datasets;
  std::string next_page_token;
};
absl::StatusOr<DatasetPage> ListDatasets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                         const std::string& page_token);
// No job is admitted for the dataset while `reason` is not empty. NOT_FOUND for an unknown one.
absl::Status SetOutOfService(Transaction& transaction, const std::string& name, const std::string& reason);
absl::Status MarkDatasetDeleted(Transaction& transaction, const std::string& name, absl::Time now);

absl::StatusOr<bool> DatasetIdTaken(Transaction& transaction, const std::string& name);

// The population of an earlier upload of the same content, if any.
absl::StatusOr<std::optional<std::string>> FindPopulationByContent(Transaction& transaction, const std::string& tenant,
                                                                   const std::string& content_digest);
absl::Status RememberContent(Transaction& transaction, const std::string& tenant, const std::string& content_digest,
                             const std::string& population);

// Whether the tenant ever declared the same content public. Never forgotten, like the population of private content.
absl::StatusOr<bool> WasPublic(Transaction& transaction, const std::string& tenant, const std::string& content_digest);
absl::Status RememberPublic(Transaction& transaction, const std::string& tenant, const std::string& content_digest);

struct StoredUpload {
  std::string name;
  v1::OpenUploadRequest declared;  // parent, dataset_id, sizes, cap and is_public are set
  v1::Upload::State state = v1::Upload::OPEN;
  absl::Time create_time;
};
// RESOURCE_EXHAUSTED past `max_open` open uploads of the tenant.
absl::Status InsertUpload(Transaction& transaction, const StoredUpload& upload, int64_t max_open);
absl::StatusOr<StoredUpload> GetUpload(Transaction& transaction, const std::string& name);
// Open uploads from before `time`, of a tenant or, when empty, of all; at most `most`, by name, after `after`.
absl::StatusOr<std::vector<std::string>> OpenUploadsBefore(Transaction& transaction, const std::string& tenant,
                                                           absl::Time time, const std::string& after, int64_t most);
absl::StatusOr<int64_t> CountOpenUploads(Transaction& transaction);
absl::Status SetUploadState(Transaction& transaction, const std::string& name, v1::Upload::State state);

// Idempotency: the serialised answer to an earlier request of this scope (tenant and method) and id. ALREADY_EXISTS /
// REQUEST_ID_REUSED when its fingerprint (SHA-256 of the request) differs.
absl::StatusOr<std::optional<std::string>> FindAnswer(Transaction& transaction, const std::string& scope,
                                                      const std::string& request_id, const std::string& fingerprint);
// Takes an id, before its answer is stored in the same transaction; false when taken.
absl::StatusOr<bool> ClaimAnswer(Transaction& transaction, const std::string& scope, const std::string& request_id,
                                 const std::string& fingerprint, absl::Time now);
absl::Status RequestIdReused(const std::string& request_id);
absl::Status StoreAnswer(Transaction& transaction, const std::string& scope, const std::string& request_id,
                         const std::string& answer);
// Forgets at most `most` answers from before a time, oldest first; returns how many.
absl::StatusOr<int64_t> ForgetAnswers(Transaction& transaction, absl::Time before, int64_t most);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_DATASETS_H_
