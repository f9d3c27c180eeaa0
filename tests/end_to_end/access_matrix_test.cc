// Every method of the API by every kind of caller, with the answer that each must get.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "dpar/v1/overview.pb.h"
#include "tests/end_to_end/client_authority.h"
#include "tests/end_to_end/raw_call.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

// What a call gives: a code, and a reason unless it is OK.
struct Outcome {
  grpc::StatusCode code = grpc::StatusCode::OK;
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;

  bool operator==(const Outcome&) const = default;
};
void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.code << " / " << v1::ErrorReason_Name(outcome.reason);
}

const Outcome kOk = {};
const Outcome kMissing = {grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING};
const Outcome kInvalid = {grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID};
const Outcome kWrongRole = {grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT};
const Outcome kWrongScope = {grpc::StatusCode::PERMISSION_DENIED, v1::SCOPE_INSUFFICIENT};
const Outcome kNotFound = {grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND};
const Outcome kIncomplete = {grpc::StatusCode::FAILED_PRECONDITION, v1::UPLOAD_INCOMPLETE};
const Outcome kItself = {grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD};
const Outcome kEnded = {grpc::StatusCode::FAILED_PRECONDITION, v1::JOB_ENDED};

Outcome OutcomeOf(const grpc::Status& status) {
  Outcome outcome = {status.error_code()};
  if (const auto info = ErrorInfoOf(status)) v1::ErrorReason_Parse(info->reason(), &outcome.reason);
  return outcome;
}

using Roles = std::set<v1::Role>;
const Roles kEverybody = {v1::OPERATOR, v1::OWNER, v1::MEMBER, v1::READER};
const Roles kTenant = {v1::OWNER, v1::MEMBER, v1::READER};
const Roles kWriters = {v1::OWNER, v1::MEMBER};
const Roles kOwner = {v1::OWNER};
const Roles kManagers = {v1::OPERATOR, v1::OWNER};
const Roles kOperator = {v1::OPERATOR};

// What a method expects of its caller, and how it is called.
struct Row {
  std::string method;  // Service/Method
  Roles roles;
  v1::Scope scope;   // SCOPE_UNSPECIFIED: any token will do
  Outcome allowed;   // what a caller gets who may
  Outcome outsider;  // what the owner of another tenant gets
  // The name of something that the call can be about, made for it where the call changes it.
  std::function<std::string()> resource;
  // The request about the resource of that name, serialised.
  std::function<std::string(const std::string&)> request;
};

// A request with one text field that names what it is about.
template <typename Request>
std::function<std::string(const std::string&)> Naming(const std::string& field) {
  return [field](const std::string& name) {
    Request request;
    Request::GetReflection()->SetString(&request, Request::descriptor()->FindFieldByName(field), name);
    return request.SerializeAsString();
  };
}

class AccessMatrixTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    authority_ = new ClientAuthority;
    StartServer({"--client-ca", authority_->file(), "--auth-failures-per-minute", "1000000", "--max-tokens", "100000",
                 "--max-open-uploads", "10000"});
  }
  static void TearDownTestSuite() {
    SharedServerTest::TearDownTestSuite();
    delete authority_;
  }

  void SetUp() override {
    SharedServerTest::SetUp();
    tenant_ = server().NewTenant();
    outsider_ = server().NewTenant();
    owner_ = std::make_unique<Client>(server().Owner(tenant_));
    dataset_ = UploadGraph(*owner_, tenant_.name, MakeGraph(500));
    const auto job = CreateJob(*owner_, JobRequest(dataset_, 0.5));
    ASSERT_THAT(job.status, IsOk());
    job_ = job.value.name();
    ASSERT_EQ(WaitForJob(*owner_, job_).state(), v1::Job::SUCCEEDED);
  }

  std::string NewUpload() {
    const auto upload =
        owner_->Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, "bytes", MakeGraph(500).sizes));
    EXPECT_THAT(upload.status, IsOk());
    return upload.value.name();
  }
  std::string NewToken() {
    v1::CreateTokenRequest request = TokenRequest(tenant_.name, v1::READER);
    request.mutable_token()->add_scopes(v1::ADMINISTER);
    return owner_->Call(&v1::OperatorService::Stub::CreateToken, request).value.token().name();
  }

  std::vector<Row> Rows();
  std::vector<Row> DatasetRows();
  std::vector<Row> TrainingRows();
  std::vector<Row> BudgetRows();
  std::vector<Row> OperatorRows();

  static ClientAuthority* authority_;
  TenantAccess tenant_;
  TenantAccess outsider_;
  std::unique_ptr<Client> owner_;
  std::string dataset_;
  std::string job_;
};

ClientAuthority* AccessMatrixTest::authority_ = nullptr;

std::vector<Row> AccessMatrixTest::DatasetRows() {
  const auto tenant = [this] { return tenant_.name; };
  const auto dataset = [this] { return dataset_; };
  const auto new_upload = [this] { return NewUpload(); };
  const auto new_dataset = [this] { return UploadGraph(*owner_, tenant_.name, MakeGraph(500)); };
  const auto open = [](const std::string& parent) {
    return OpenRequest(parent, "bytes", MakeGraph(500).sizes).SerializeAsString();
  };
  const auto write = [](const std::string& name) {
    v1::WriteUploadRequest request;
    request.set_name(name);
    request.set_data("b");
    return request.SerializeAsString();
  };
  const auto finish = [](const std::string& name) {
    v1::FinishUploadRequest request;
    request.set_name(name);
    request.set_sha256(std::string(64, 'a'));
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  const auto remove = [](const std::string& name) {
    v1::DeleteDatasetRequest request;
    request.set_name(name);
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  const auto get_upload = Naming<v1::GetUploadRequest>("name");
  const auto get = Naming<v1::GetDatasetRequest>("name");
  const auto list = Naming<v1::ListDatasetsRequest>("parent");
  return {
      {"DatasetService/OpenUpload", kWriters, v1::UPLOAD, kOk, kNotFound, tenant, open},
      {"DatasetService/WriteUpload", kWriters, v1::UPLOAD, kOk, kNotFound, new_upload, write},
      {"DatasetService/GetUpload", kWriters, v1::UPLOAD, kOk, kNotFound, new_upload, get_upload},
      {"DatasetService/FinishUpload", kWriters, v1::UPLOAD, kIncomplete, kNotFound, new_upload, finish},
      {"DatasetService/GetDataset", kEverybody, v1::READ, kOk, kNotFound, dataset, get},
      {"DatasetService/ListDatasets", kEverybody, v1::READ, kOk, kNotFound, tenant, list},
      {"DatasetService/DeleteDataset", kOwner, v1::ADMINISTER, kOk, kNotFound, new_dataset, remove},
  };
}

std::vector<Row> AccessMatrixTest::TrainingRows() {
  const auto tenant = [this] { return tenant_.name; };
  const auto job = [this] { return job_; };
  const auto create = [this](const std::string& parent) {
    v1::CreateJobRequest request = JobRequest(dataset_, 0.1);
    request.set_parent(parent);
    request.set_validate_only(true);
    return request.SerializeAsString();
  };
  const auto cancel = [](const std::string& name) {
    v1::CancelJobRequest request;
    request.set_name(name);
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  const auto get = Naming<v1::GetJobRequest>("name");
  const auto list = Naming<v1::ListJobsRequest>("parent");
  const auto watch = Naming<v1::WatchJobRequest>("name");
  const auto download = Naming<v1::DownloadModelRequest>("name");
  const auto certificate = Naming<v1::GetCertificateRequest>("name");
  return {
      {"TrainingService/CreateJob", kWriters, v1::TRAIN, kOk, kNotFound, tenant, create},
      {"TrainingService/GetJob", kEverybody, v1::READ, kOk, kNotFound, job, get},
      {"TrainingService/ListJobs", kEverybody, v1::READ, kOk, kNotFound, tenant, list},
      {"TrainingService/CancelJob", kWriters, v1::TRAIN, kEnded, kNotFound, job, cancel},
      {"TrainingService/WatchJob", kEverybody, v1::READ, kOk, kNotFound, job, watch},
      {"TrainingService/DownloadModel", kTenant, v1::DOWNLOAD, kOk, kNotFound, job, download},
      {"TrainingService/GetCertificate", kEverybody, v1::DOWNLOAD, kOk, kNotFound, job, certificate},
  };
}

std::vector<Row> AccessMatrixTest::BudgetRows() {
  const auto tenant = [this] { return tenant_.name; };
  const auto budget = [this] { return OwnPopulation(dataset_); };
  const auto get = Naming<v1::GetBudgetRequest>("name");
  const auto list = Naming<v1::ListBudgetsRequest>("parent");
  const auto entries = Naming<v1::ListLedgerEntriesRequest>("parent");
  const auto verify = Naming<v1::VerifyChainRequest>("name");
  const auto merge = [](const std::string& name) {
    v1::MergePopulationRequest request;
    request.set_name(name);
    request.set_into(name);
    request.set_reason("the same people");
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  const auto set_cap = [](const std::string& name) {
    v1::SetBudgetCapRequest request;
    request.set_name(name);
    request.set_cap_epsilon(8);
    request.set_reason("the same again");
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  const auto debit = [](const std::string& name) {
    v1::AdjustLedgerRequest request;
    request.set_name(name);
    request.set_debit_units(1);
    request.set_reason("spent elsewhere");
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  const auto overview = Naming<v1::GetOverviewRequest>("parent");
  const auto usage = Naming<v1::ListUsageRequest>("parent");
  const auto history = Naming<v1::GetSpendHistoryRequest>("parent");
  const auto jobs = Naming<v1::ListRecentJobsRequest>("parent");
  const auto tail = Naming<v1::ListLedgerTailRequest>("parent");
  return {
      {"OverviewService/GetOverview", kEverybody, v1::READ, kOk, kNotFound, tenant, overview},
      {"OverviewService/ListUsage", kEverybody, v1::READ, kOk, kNotFound, tenant, usage},
      {"OverviewService/GetSpendHistory", kEverybody, v1::READ, kOk, kNotFound, budget, history},
      {"OverviewService/ListRecentJobs", kEverybody, v1::READ, kOk, kNotFound, tenant, jobs},
      {"OverviewService/ListLedgerTail", kEverybody, v1::READ, kOk, kNotFound, budget, tail},
      {"BudgetService/GetBudget", kEverybody, v1::READ, kOk, kNotFound, budget, get},
      {"BudgetService/ListBudgets", kEverybody, v1::READ, kOk, kNotFound, tenant, list},
      {"BudgetService/MergePopulation", kOwner, v1::ADMINISTER, kItself, kNotFound, budget, merge},
      {"BudgetService/ListLedgerEntries", kEverybody, v1::READ, kOk, kNotFound, budget, entries},
      {"BudgetService/VerifyChain", kEverybody, v1::READ, kOk, kNotFound, budget, verify},
      {"OperatorService/SetBudgetCap", kOperator, v1::ADMINISTER, kOk, kWrongRole, budget, set_cap},
      {"OperatorService/AdjustLedger", kOperator, v1::ADMINISTER, kOk, kWrongRole, budget, debit},
  };
}

std::vector<Row> AccessMatrixTest::OperatorRows() {
  const auto tenant = [this] { return tenant_.name; };
  const auto new_token = [this] { return NewToken(); };
  const auto nothing = [] { return std::string(); };
  const auto empty = [](const std::string&) { return std::string(); };
  const auto create_tenant = [](const std::string&) {
    v1::CreateTenantRequest request;
    request.set_request_id(NewRequestId());
    request.set_tenant_id("new-" + request.request_id());
    return request.SerializeAsString();
  };
  const auto create_token = [](const std::string& parent) {
    v1::CreateTokenRequest request = TokenRequest(parent, v1::OWNER);
    request.mutable_token()->add_scopes(v1::ADMINISTER);
    return request.SerializeAsString();
  };
  const auto list = Naming<v1::ListTokensRequest>("parent");
  const auto revoke = Naming<v1::RevokeTokenRequest>("name");
  const auto rotate = [](const std::string& name) {
    v1::RotateTokenRequest request;
    request.set_name(name);
    request.set_request_id(NewRequestId());
    return request.SerializeAsString();
  };
  return {
      {"OperatorService/CreateTenant", kOperator, v1::ADMINISTER, kOk, kWrongRole, nothing, create_tenant},
      {"OperatorService/ListTenants", kOperator, v1::ADMINISTER, kOk, kWrongRole, nothing, empty},
      {"OperatorService/CreateToken", kManagers, v1::ADMINISTER, kOk, kNotFound, tenant, create_token},
      {"OperatorService/ListTokens", kManagers, v1::ADMINISTER, kOk, kNotFound, tenant, list},
      {"OperatorService/RotateToken", kManagers, v1::ADMINISTER, kOk, kNotFound, new_token, rotate},
      {"OperatorService/RevokeToken", kManagers, v1::ADMINISTER, kOk, kNotFound, new_token, revoke},
      {"ServerService/GetServerInfo", kEverybody, v1::SCOPE_UNSPECIFIED, kOk, kOk, nothing, empty},
      {"ServerService/WhoAmI", kEverybody, v1::SCOPE_UNSPECIFIED, kOk, kOk, nothing, empty},
      {"ServerService/ListSigningKeys", kEverybody, v1::SCOPE_UNSPECIFIED, kOk, kOk, nothing, empty},
  };
}

std::vector<Row> AccessMatrixTest::Rows() {
  std::vector<Row> rows;
  for (const auto& part : {DatasetRows(), TrainingRows(), BudgetRows(), OperatorRows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

// Somebody who calls.
struct Caller {
  std::string name;
  std::string token;  // empty: no header
  std::shared_ptr<grpc::Channel> channel;
  // Either what it gets whatever it calls, or its role and scopes (none is all).
  std::optional<Outcome> always = std::nullopt;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::set<v1::Scope> scopes = {};
  bool outsider = false;
};

Outcome Expected(const Row& row, const Caller& caller) {
  if (caller.always.has_value()) return *caller.always;
  if (caller.outsider) return row.outsider;
  if (row.roles.count(caller.role) == 0) return kWrongRole;
  const bool in_scope =
      row.scope == v1::SCOPE_UNSPECIFIED || caller.scopes.empty() || caller.scopes.count(row.scope) > 0;
  return in_scope ? row.allowed : kWrongScope;
}

// Makes tokens of every kind.
class Callers {
 public:
  Callers(TestServer& server, const TenantAccess& tenant, const TenantAccess& outsider)
      : server_(server), channel_(server.MakeChannel()) {
    const std::string unknown = absl::StrCat("dpar_nobody_", std::string(64, '0'));
    all_ = {{"no token", "", channel_, kMissing},
            {"a malformed token", "nonsense", channel_, kInvalid},
            {"an unknown token", unknown, channel_, kInvalid},
            {"a wrong secret", WrongSecret(server.operator_token()), channel_, kInvalid},
            {"an expired token", Expired(tenant.name), channel_, kInvalid},
            {"a revoked token", Revoked(tenant.name), channel_, kInvalid}};
    for (const v1::Role role : {v1::OWNER, v1::MEMBER, v1::READER}) Add(tenant.name, role, {});
    Add("operator", v1::OPERATOR, {});
    Add("operator", v1::OPERATOR, {v1::READ});
    Add("operator", v1::OPERATOR, {v1::ADMINISTER});
    for (int scope = v1::Scope_MIN + 1; scope <= v1::Scope_MAX; ++scope) {
      Add(tenant.name, v1::OWNER, {static_cast<v1::Scope>(scope)});
    }
    Add(tenant.name, v1::MEMBER, {v1::READ, v1::UPLOAD});
    all_.push_back({"the owner of another tenant", outsider.owner_token, channel_, std::nullopt, v1::OWNER, {}, true});
  }

  // A caller without a token, whose certificate has this URI.
  void AddCertificate(const std::string& parent, const std::string& uri, const ClientCertificate& certificate) {
    v1::CreateTokenRequest request = TokenRequest(parent, v1::OWNER);
    request.mutable_token()->set_certificate_uri(uri);
    const auto made = server_.Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
    ASSERT_THAT(made.status, IsOk());
    EXPECT_EQ(made.value.secret(), "");
    all_.push_back({"an owner's certificate", "", server_.MakeChannel({}, certificate), std::nullopt, v1::OWNER});
  }
  void AddUnknownCertificate(const ClientCertificate& certificate) {
    all_.push_back({"a certificate that nobody knows", "", server_.MakeChannel({}, certificate), kInvalid});
  }

  [[nodiscard]] const std::vector<Caller>& all() const { return all_; }

 private:
  v1::CreateTokenResponse Make(const v1::CreateTokenRequest& request) {
    const auto made = server_.Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
    EXPECT_THAT(made.status, IsOk());
    return made.value;
  }
  void Add(const std::string& parent, v1::Role role, const std::set<v1::Scope>& scopes) {
    v1::CreateTokenRequest request = TokenRequest(parent, role);
    std::string name = v1::Role_Name(role);
    for (const v1::Scope scope : scopes) {
      request.mutable_token()->add_scopes(scope);
      absl::StrAppend(&name, " ", v1::Scope_Name(scope));
    }
    all_.push_back({name, Make(request).secret(), channel_, std::nullopt, role, scopes});
  }
  static std::string WrongSecret(std::string token) {
    token.back() = token.back() == '0' ? '1' : '0';
    return token;
  }
  std::string Revoked(const std::string& parent) {
    const v1::CreateTokenResponse made = Make(TokenRequest(parent, v1::OWNER));
    v1::RevokeTokenRequest revoke;
    revoke.set_name(made.token().name());
    EXPECT_THAT(server_.Operator().Call(&v1::OperatorService::Stub::RevokeToken, revoke).status, IsOk());
    return made.secret();
  }
  // Rotating without an overlap lets it expire at once.
  std::string Expired(const std::string& parent) {
    const v1::CreateTokenResponse made = Make(TokenRequest(parent, v1::OWNER));
    v1::RotateTokenRequest rotate;
    rotate.set_name(made.token().name());
    rotate.set_request_id(NewRequestId());
    EXPECT_THAT(server_.Operator().Call(&v1::OperatorService::Stub::RotateToken, rotate).status, IsOk());
    return made.secret();
  }

  TestServer& server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<Caller> all_;
};

grpc::Status Call(const Caller& caller, const Row& row, const std::string& resource) {
  const auto context = MakeContext(caller.token);
  return RawCall(caller.channel, absl::StrCat("/dpar.v1.", row.method), row.request(resource), *context).status;
}

TEST_F(AccessMatrixTest, EveryMethodOfTheApiHasARow) {
  std::set<std::string> methods;
  for (const google::protobuf::MethodDescriptor* method : AllMethods()) {
    methods.insert(absl::StrCat(method->service()->name(), "/", method->name()));
  }
  std::set<std::string> rows;
  for (const Row& row : Rows()) EXPECT_TRUE(rows.insert(row.method).second) << row.method;
  EXPECT_EQ(rows, methods);
}

TEST_F(AccessMatrixTest, EveryCallerGetsWhatItsTokenAllowsFromEveryMethod) {
  Callers callers(server(), tenant_, outsider_);
  callers.AddCertificate(tenant_.name, "spiffe://test/owner", authority_->Issue("owner", "URI:spiffe://test/owner"));
  callers.AddUnknownCertificate(authority_->Issue("nobody", "URI:spiffe://test/nobody"));
  int surprises = 0;
  int cells = 0;
  for (const Row& row : Rows()) {
    for (const Caller& caller : callers.all()) {
      const Outcome expected = Expected(row, caller);
      const Outcome got = OutcomeOf(Call(caller, row, row.resource()));
      EXPECT_EQ(got, expected) << row.method << " by " << caller.name;
      surprises += got == expected ? 0 : 1;
      ++cells;
    }
  }
  EXPECT_EQ(surprises, 0);
  EXPECT_EQ(cells, 35 * static_cast<int>(callers.all().size()));
  EXPECT_EQ(callers.all().size(), 21U);
}

// A status with every mention of `name` taken out, byte for byte otherwise. Only errors with one entry of metadata have
// details that come in one order.
std::string WithoutName(const grpc::Status& status, const std::string& name) {
  const std::string details = OutcomeOf(status) == kNotFound ? status.error_details() : "";
  return absl::StrReplaceAll(absl::StrCat(status.error_code(), "\n", status.error_message(), "\n", details),
                             {{name, "NAME"}});
}

TEST_F(AccessMatrixTest, AnotherTenantsResourceIsAnsweredByteForByteAsOneThatIsNotThere) {
  ASSERT_EQ(tenant_.id.size(), outsider_.id.size()) << "names of one length have statuses of one length";
  const Caller outsider{"outsider", outsider_.owner_token, server().MakeChannel()};
  const std::string no_tenant = "tenants/" + std::string(tenant_.id.size(), 'z');
  int compared = 0;
  for (const Row& row : Rows()) {
    const std::string there = row.resource();
    if (there.empty()) continue;
    const std::string expected = WithoutName(Call(outsider, row, there), there);
    const auto expect_same = [&](const std::string& name) {
      ASSERT_EQ(name.size(), there.size());
      EXPECT_EQ(WithoutName(Call(outsider, row, name), name), expected) << row.method << " of " << name;
      ++compared;
    };
    const std::string rest = there.substr(tenant_.name.size());
    expect_same(no_tenant + rest);
    if (rest.empty()) continue;
    const size_t id = rest.find('/', 1) + 1;
    const size_t end = std::min(rest.find('/', id), rest.size());
    std::string absent = rest;
    absent.replace(id, end - id, std::string(end - id, 'z'));
    expect_same(tenant_.name + absent);
    // In its own tenant, where it may know that there is none.
    expect_same(outsider_.name + rest);
  }
  EXPECT_EQ(compared, 10 + 3 * 20);
}

}  // namespace
}  // namespace dpar::e2e
