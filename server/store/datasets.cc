#include "server/store/datasets.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/resource_name.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"

namespace dpar {
namespace {

absl::Status LimitExceeded(const std::string& limit, int64_t maximum, absl::string_view what,
                           absl::string_view who = "a tenant") {
  return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                   absl::StrCat(who, " may have at most ", maximum, " ", what),
                   {{"limit", limit}, {"maximum", absl::StrCat(maximum)}});
}

// What ReadDataset reads, but for the schema, which stands last.
constexpr absl::string_view kDatasetColumns =
    "name, create_time, node_count, feature_count, class_count, is_public, content_digest, COALESCE(population, ''), "
    "edge_bound, entry_bound, COALESCE(max_degree, 0), out_of_service_reason";

absl::StatusOr<v1::Dataset> ReadDataset(const Row& row) {
  RowReader reader(row);
  v1::Dataset dataset;
  dataset.set_name(reader.Text());
  *dataset.mutable_create_time() = ToTimestamp(reader.Int());
  dataset.set_node_count(reader.Int());
  dataset.set_feature_count(reader.Int());
  dataset.set_class_count(reader.Int());
  dataset.set_is_public(reader.Int() != 0);
  dataset.set_content_digest(reader.Text());
  dataset.set_population(reader.Text());
  dataset.set_edge_bound(reader.Int());
  dataset.set_entry_bound(reader.Int());
  if (const int64_t max_degree = reader.Int(); max_degree > 0) {
    dataset.set_max_degree(max_degree);
  }
  dataset.set_out_of_service_reason(reader.Text());
  dataset.set_schema(reader.Text());
  DPAR_RETURN_IF_ERROR(reader.status());
  if (dataset.is_public() != dataset.population().empty()) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a private dataset has no population in the store",
                     {{"resource", dataset.name()}});
  }
  return dataset;
}

// With its schema, which lists leave out: a page of them would exceed a message.
absl::StatusOr<v1::Dataset> LoadDataset(Transaction& transaction, const std::string& name, absl::string_view lock) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kDatasetColumns,
                                     ", table_schema FROM datasets WHERE name = $1 AND delete_time IS NULL", lock),
                        {name}));
  if (rows.empty()) {
    return ResourceNotFound(name);
  }
  return ReadDataset(rows[0]);
}

}  // namespace

absl::Status InsertTenant(Transaction& transaction, const std::string& tenant_id, const std::string& content_key,
                          absl::Time now) {
  const std::string name = absl::StrCat("tenants/", tenant_id);
  DPAR_ASSIGN_OR_RETURN(
      const int64_t inserted,
      transaction.Execute(
          "INSERT INTO tenants (name, content_key, create_time) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
          {name, absl::BytesToHexString(content_key), absl::ToUnixMicros(now)}));
  if (inserted == 0) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS, absl::StrCat(name, " exists already"),
                     {{"resource", name}});
  }
  return absl::OkStatus();
}

absl::Status CheckTenantCount(Transaction& transaction, int64_t max_tenants) {
  DPAR_ASSIGN_OR_RETURN(const int64_t present, transaction.QueryInt("SELECT COUNT(*) FROM tenants", {}));
  return present > max_tenants ? LimitExceeded("max_tenants", max_tenants, "tenants", "this server") : absl::OkStatus();
}

absl::StatusOr<std::string> TenantContentKey(Transaction& transaction, const std::string& tenant) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                        transaction.QueryTexts("SELECT content_key FROM tenants WHERE name = $1", {tenant}));
  if (keys.empty()) {
    return ResourceNotFound(tenant);
  }
  return HexDecode(keys[0]);
}

absl::StatusOr<TenantPage> ListTenants(Transaction& transaction, int64_t page_size, const std::string& page_token) {
  DPAR_ASSIGN_OR_RETURN(const PagePosition after, ParsePageToken(page_token));
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT name, create_time FROM tenants WHERE (create_time, name) > ($1, $2) "
                                          "ORDER BY create_time, name LIMIT $3",
                                          {after.time, after.name, page_size + 1}));
  TenantPage page;
  for (const Row& row : rows) {
    RowReader reader(row);
    v1::Tenant tenant;
    tenant.set_name(reader.Text());
    *tenant.mutable_create_time() = ToTimestamp(reader.Int());
    DPAR_RETURN_IF_ERROR(reader.status());
    page.tenants.push_back(std::move(tenant));
  }
  page.next_page_token = CutPage(page.tenants, page_size);
  return page;
}

absl::Status InsertDataset(Transaction& transaction, const v1::Dataset& dataset, int64_t max_datasets) {
  DPAR_ASSIGN_OR_RETURN(const bool taken, DatasetIdTaken(transaction, dataset.name()));
  if (taken) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS,
                     absl::StrCat(dataset.name(), " exists already, or did; choose another id"),
                     {{"resource", dataset.name()}});
  }
  const std::string tenant = TenantOf(dataset.name());
  DPAR_ASSIGN_OR_RETURN(
      const int64_t present,
      transaction.QueryInt("SELECT COUNT(*) FROM datasets WHERE tenant = $1 AND delete_time IS NULL", {tenant}));
  if (present >= max_datasets) {
    return LimitExceeded("max_datasets", max_datasets, "datasets; delete one first");
  }
  return transaction
      .Execute(
          "INSERT INTO datasets (name, tenant, create_time, node_count, feature_count, class_count, is_public, "
          "content_digest, population, edge_bound, entry_bound, max_degree, table_schema) "
          "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
          {dataset.name(), tenant, ToMicroseconds(dataset.create_time()), dataset.node_count(), dataset.feature_count(),
           dataset.class_count(), int64_t{dataset.is_public()}, dataset.content_digest(),
           TextOrNull(dataset.population()), dataset.edge_bound(), dataset.entry_bound(),
           dataset.has_max_degree() ? Value(dataset.max_degree()) : Value(std::monostate()), dataset.schema()})
      .status();
}

absl::StatusOr<std::string> GetTableSchema(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT table_schema FROM datasets WHERE name = $1", {name}));
  if (rows.empty()) {
    return std::string();
  }
  RowReader reader(rows[0]);
  std::string schema = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  return schema;
}

absl::StatusOr<v1::Dataset> GetDataset(Transaction& transaction, const std::string& name) {
  return LoadDataset(transaction, name, "");
}

absl::StatusOr<v1::Dataset> LockDataset(Transaction& transaction, const std::string& name) {
  return LoadDataset(transaction, name, transaction.for_update());
}

absl::StatusOr<PopulationPage> ListPopulations(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                               const std::string& page_token) {
  DPAR_ASSIGN_OR_RETURN(const PagePosition after, ParsePageToken(page_token));
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT name, create_time FROM populations WHERE ($1 = '' OR tenant = $1) AND "
                        "(create_time, name) > ($2, $3) ORDER BY create_time, name LIMIT $4",
                        {tenant, after.time, after.name, page_size + 1}));
  PopulationPage page;
  PagePosition last;
  for (const Row& row : rows) {
    if (static_cast<int64_t>(page.populations.size()) == page_size) {
      page.next_page_token = MakePageToken(last);
      break;
    }
    RowReader reader(row);
    last.name = reader.Text();
    last.time = reader.Int();
    DPAR_RETURN_IF_ERROR(reader.status());
    page.populations.push_back(last.name);
  }
  return page;
}

absl::StatusOr<std::vector<std::string>> FullestPopulations(Transaction& transaction, const std::string& tenant,
                                                            int64_t limit) {
  return transaction.QueryTexts(
      "SELECT name FROM populations WHERE ($1 = '' OR tenant = $1) AND merged_into = '' "
      "ORDER BY (posted_units + reserved_units) * 1.0 / (cap_units + 1) DESC, name LIMIT $2",
      {tenant, limit});
}

absl::StatusOr<int64_t> CountPopulations(Transaction& transaction) {
  return transaction.QueryInt("SELECT COUNT(*) FROM populations WHERE merged_into = ''", {});
}

absl::StatusOr<std::vector<std::string>> DatasetsOf(Transaction& transaction, const std::string& population) {
  return transaction.QueryTexts("SELECT name FROM datasets WHERE population = $1 ORDER BY create_time, name",
                                {population});
}

absl::Status MovePopulation(Transaction& transaction, const std::string& from, const std::string& into,
                            int64_t node_total) {
  DPAR_RETURN_IF_ERROR(
      transaction.Execute("UPDATE datasets SET population = $2 WHERE population = $1", {from, into}).status());
  DPAR_RETURN_IF_ERROR(
      transaction.Execute("UPDATE contents SET population = $2 WHERE population = $1", {from, into}).status());
  return transaction.ExecuteOne("UPDATE populations SET node_total = node_total + $2 WHERE name = $1",
                                {into, node_total}, ResourceNotFound(into));
}

absl::StatusOr<DatasetPage> ListDatasets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                         const std::string& page_token) {
  DPAR_ASSIGN_OR_RETURN(const PagePosition after, ParsePageToken(page_token));
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kDatasetColumns,
                                     ", '' FROM datasets WHERE tenant = $1 AND delete_time IS NULL AND "
                                     "(create_time, name) > ($2, $3) ORDER BY create_time, name LIMIT $4"),
                        {tenant, after.time, after.name, page_size + 1}));
  DatasetPage page;
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(v1::Dataset stored, ReadDataset(row));
    page.datasets.push_back(std::move(stored));
  }
  page.next_page_token = CutPage(page.datasets, page_size);
  return page;
}

absl::Status SetOutOfService(Transaction& transaction, const std::string& name, const std::string& reason) {
  return transaction.ExecuteOne("UPDATE datasets SET out_of_service_reason = $2 WHERE name = $1", {name, reason},
                                ResourceNotFound(name));
}

absl::Status MarkDatasetDeleted(Transaction& transaction, const std::string& name, absl::Time now) {
  return transaction.ExecuteOne("UPDATE datasets SET delete_time = $1 WHERE name = $2 AND delete_time IS NULL",
                                {absl::ToUnixMicros(now), name}, ResourceNotFound(name));
}

absl::StatusOr<bool> DatasetIdTaken(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const int64_t count,
                        transaction.QueryInt("SELECT COUNT(*) FROM datasets WHERE name = $1", {name}));
  return count != 0;
}

absl::StatusOr<std::optional<std::string>> FindPopulationByContent(Transaction& transaction, const std::string& tenant,
                                                                   const std::string& content_digest) {
  DPAR_ASSIGN_OR_RETURN(
      std::vector<std::string> populations,
      transaction.QueryTexts("SELECT population FROM contents WHERE tenant = $1 AND content_digest = $2",
                             {tenant, content_digest}));
  return populations.empty() ? std::nullopt : std::optional(std::move(populations[0]));
}

absl::Status RememberContent(Transaction& transaction, const std::string& tenant, const std::string& content_digest,
                             const std::string& population) {
  return transaction
      .Execute("INSERT INTO contents (tenant, content_digest, population) VALUES ($1, $2, $3)",
               {tenant, content_digest, population})
      .status();
}

absl::StatusOr<bool> WasPublic(Transaction& transaction, const std::string& tenant, const std::string& content_digest) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t count,
      transaction.QueryInt("SELECT COUNT(*) FROM public_contents WHERE tenant = $1 AND content_digest = $2",
                           {tenant, content_digest}));
  return count > 0;
}

absl::Status RememberPublic(Transaction& transaction, const std::string& tenant, const std::string& content_digest) {
  return transaction
      .Execute("INSERT INTO public_contents (tenant, content_digest) VALUES ($1, $2) ON CONFLICT DO NOTHING",
               {tenant, content_digest})
      .status();
}

absl::Status InsertUpload(Transaction& transaction, const StoredUpload& upload, int64_t max_open) {
  const std::string& tenant = upload.declared.parent();
  DPAR_ASSIGN_OR_RETURN(const int64_t open,
                        transaction.QueryInt("SELECT COUNT(*) FROM uploads WHERE tenant = $1 AND state = $2",
                                             {tenant, int64_t{v1::Upload::OPEN}}));
  if (open >= max_open) {
    return LimitExceeded("max_open_uploads", max_open, "open uploads; finish one first");
  }
  DPAR_ASSIGN_OR_RETURN(const std::string declared, MessageToText(upload.declared));
  return transaction
      .Execute("INSERT INTO uploads (name, tenant, declared, state, create_time) VALUES ($1, $2, $3, $4, $5)",
               {upload.name, tenant, declared, int64_t{upload.state}, absl::ToUnixMicros(upload.create_time)})
      .status();
}

absl::StatusOr<StoredUpload> GetUpload(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT name, declared, state, create_time FROM uploads WHERE name = $1", {name}));
  if (rows.empty()) {
    return ResourceNotFound(name);
  }
  RowReader reader(rows[0]);
  StoredUpload upload;
  upload.name = reader.Text();
  const std::string declared = reader.Text();
  upload.state = static_cast<v1::Upload::State>(reader.Int32());
  upload.create_time = absl::FromUnixMicros(reader.Int());
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(TextToMessage(declared, upload.declared));
  return upload;
}

absl::StatusOr<std::vector<std::string>> OpenUploadsBefore(Transaction& transaction, const std::string& tenant,
                                                           absl::Time time, const std::string& after, int64_t most) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT name FROM uploads WHERE ($1 = '' OR tenant = $1) AND state = $2 AND create_time < $3 "
                        "AND name > $4 ORDER BY name LIMIT $5",
                        {tenant, int64_t{v1::Upload::OPEN}, absl::ToUnixMicros(time), after, most}));
  std::vector<std::string> names;
  for (const Row& row : rows) {
    RowReader reader(row);
    names.push_back(reader.Text());
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return names;
}

absl::StatusOr<int64_t> CountOpenUploads(Transaction& transaction) {
  return transaction.QueryInt("SELECT COUNT(*) FROM uploads WHERE state = $1", {int64_t{v1::Upload::OPEN}});
}

absl::Status SetUploadState(Transaction& transaction, const std::string& name, v1::Upload::State state) {
  return transaction.ExecuteOne("UPDATE uploads SET state = $1 WHERE name = $2", {int64_t{state}, name},
                                ResourceNotFound(name));
}

absl::StatusOr<std::optional<std::string>> FindAnswer(Transaction& transaction, const std::string& scope,
                                                      const std::string& request_id, const std::string& fingerprint) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT fingerprint, answer FROM answers WHERE scope = $1 AND request_id = $2",
                        {scope, request_id}));
  if (rows.empty()) {
    return std::nullopt;
  }
  RowReader reader(rows[0]);
  const std::string stored_fingerprint = reader.Text();
  const std::string encoded = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  if (stored_fingerprint != fingerprint) {
    return RequestIdReused(request_id);
  }
  std::string answer;
  if (!absl::Base64Unescape(encoded, &answer)) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a stored answer could not be read back");
  }
  return answer;
}

absl::Status RequestIdReused(const std::string& request_id) {
  return MakeError(absl::StatusCode::kAlreadyExists, v1::REQUEST_ID_REUSED,
                   "this request_id was used before with another request; use a new one", {{"request_id", request_id}});
}

absl::StatusOr<bool> ClaimAnswer(Transaction& transaction, const std::string& scope, const std::string& request_id,
                                 const std::string& fingerprint, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(const int64_t inserted,
                        transaction.Execute("INSERT INTO answers (scope, request_id, fingerprint, answer, create_time) "
                                            "VALUES ($1, $2, $3, '', $4) ON CONFLICT DO NOTHING",
                                            {scope, request_id, fingerprint, absl::ToUnixMicros(now)}));
  return inserted == 1;
}

absl::Status StoreAnswer(Transaction& transaction, const std::string& scope, const std::string& request_id,
                         const std::string& answer) {
  return transaction.ExecuteOne(
      "UPDATE answers SET answer = $3 WHERE scope = $1 AND request_id = $2",
      {scope, request_id, absl::Base64Escape(answer)},
      MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "the id of a request was not claimed"));
}

absl::StatusOr<int64_t> ForgetAnswers(Transaction& transaction, absl::Time before, int64_t most) {
  return transaction.Execute(
      "DELETE FROM answers WHERE (scope, request_id) IN (SELECT scope, request_id FROM answers WHERE create_time < $1 "
      "ORDER BY create_time LIMIT $2)",
      {absl::ToUnixMicros(before), most});
}

}  // namespace dpar
