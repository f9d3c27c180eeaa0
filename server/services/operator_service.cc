#include "server/services/operator_service.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/auth/token.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/observe/metrics.h"
#include "server/random_text.h"
#include "server/resource_name.h"
#include "server/services/page_size.h"
#include "server/services/subject.h"
#include "server/services/tenant_exists.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/once.h"
#include "server/store/read_from.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

constexpr size_t kContentKeyBytes = 32;
constexpr size_t kMaxPurpose = 200;
constexpr size_t kMaxReason = 500;
constexpr absl::Duration kMaxOverlap = absl::Hours(30 * 24);
constexpr absl::Duration kOwnOverlap = absl::Minutes(1);
constexpr int64_t kMaxNanos = 999'999'999;
constexpr int64_t kMaxTimestampSeconds = 253'402'300'799;  // the end of the year 9999

absl::Status ValidateWantedToken(const TenantName& parent, const v1::Token& token, absl::Time now) {
  const bool for_operator = parent.id.empty();
  const bool fits = for_operator
                        ? token.role() == v1::OPERATOR
                        : token.role() == v1::OWNER || token.role() == v1::MEMBER || token.role() == v1::READER;
  if (!fits) {
    return InvalidField("token.role", for_operator ? "a token of the parent operator has the role OPERATOR"
                                                   : "a tenant's token has the role OWNER, MEMBER or READER");
  }
  DPAR_RETURN_IF_ERROR(ValidateText("token.purpose", token.purpose(), 0, kMaxPurpose));
  if (token.has_expire_time()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("token.expire_time", token.expire_time().seconds(), absl::ToUnixSeconds(now) + 1,
                                       kMaxTimestampSeconds));
    DPAR_RETURN_IF_ERROR(
        ValidateRange("token.expire_time", int64_t{token.expire_time().nanos()}, int64_t{0}, kMaxNanos));
  }
  for (const int scope : token.scopes()) {
    if (!v1::Scope_IsValid(scope) || scope == v1::SCOPE_UNSPECIFIED) {
      return InvalidField("token.scopes",
                          "token.scopes are READ, UPLOAD, TRAIN, DOWNLOAD and ADMINISTER, or none for all");
    }
  }
  return token.certificate_uri().empty() ? absl::OkStatus()
                                         : ValidateCertificateUri("token.certificate_uri", token.certificate_uri());
}

absl::StatusOr<absl::Duration> ParseOverlap(const google::protobuf::Duration& overlap) {
  const absl::Duration duration = absl::Seconds(overlap.seconds()) + absl::Nanoseconds(overlap.nanos());
  if (overlap.nanos() < 0 || overlap.nanos() > kMaxNanos || duration < absl::ZeroDuration() || duration > kMaxOverlap) {
    return InvalidField("overlap", "overlap must be from 0 to 30 days");
  }
  return duration;
}

// Locked until the transaction ends. Ids are unique over all tenants; under another parent it is another resource.
absl::StatusOr<v1::Token> LockTokenNamed(Transaction& transaction, const ResourceName& name) {
  absl::StatusOr<StoredToken> stored = LockToken(transaction, name.id);
  if (absl::IsNotFound(stored.status()) || (stored.ok() && stored->token.name() != name.name)) {
    return ResourceNotFound(name.name);
  }
  DPAR_RETURN_IF_ERROR(stored.status());
  return std::move(stored->token);
}

// Before an operator is told that a budget's change holds; also when the answer is a remembered one.
absl::Status MarkChange(const ServiceParts& parts, const ResourceName& name) {
  return parts.witness.CoverAll(name.name);
}

// A frozen budget is refused: its change could not be marked. A merged one has ended.
absl::Status CheckChangeable(Transaction& transaction, const ResourceName& name) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LockAccount(transaction, name.name));
  if (!account.merged_into.empty()) {
    return PopulationClosed(name.name, account);
  }
  return account.frozen_reason.empty() ? absl::OkStatus() : BudgetFrozen(name.name, account.frozen_reason);
}

absl::Status ValidateRotation(const v1::Token& token, absl::Time now) {
  const auto refuse = [](absl::string_view message) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD, message, {{"field", "name"}});
  };
  if (!IsLive(token, now)) {
    return refuse("the token was revoked or has expired; make a new one instead");
  }
  if (!token.certificate_uri().empty()) {
    return refuse("the token belongs to a certificate and has no secret; renew the certificate under the same URI");
  }
  return absl::OkStatus();
}

// Its successor: the same, with the same lifetime.
v1::Token Successor(const v1::Token& token, absl::Time now) {
  v1::Token next = token;
  if (token.has_expire_time()) {
    const int64_t life = ToMicroseconds(token.expire_time()) - ToMicroseconds(token.create_time());
    *next.mutable_expire_time() =
        ToTimestamp(std::min(absl::ToUnixMicros(now) + life, kMaxTimestampSeconds * 1'000'000));
  }
  return next;
}

// The answer is remembered, so it has no secret.
absl::Status AddToken(Transaction& transaction, const TenantName& parent, const StoredToken& stored, int64_t max_tokens,
                      absl::Time now, v1::CreateTokenResponse& response) {
  if (!parent.id.empty()) {
    DPAR_RETURN_IF_ERROR(transaction.Lock(Guard::kTenant, parent.name));
    DPAR_RETURN_IF_ERROR(TenantExists(transaction, parent));
  }
  DPAR_RETURN_IF_ERROR(InsertToken(transaction, stored));
  DPAR_RETURN_IF_ERROR(CheckTokenCount(transaction, parent.name, max_tokens, now));
  *response.mutable_token() = stored.token;
  return absl::OkStatus();
}

// Adds the secret only to a fresh answer: a remembered one is of another token, whose secret is not kept.
void RevealSecret(const StoredToken& stored, const std::string& secret, v1::CreateTokenResponse& response) {
  if (response.token().name() == stored.token.name()) {
    response.set_secret(secret);
  }
}

}  // namespace

grpc::Status OperatorServiceImpl::AdmitOperator(grpc::ServerContextBase& context, absl::string_view method,
                                                const Gate::Handler& handler) const {
  return AdmitOperator(context, method, nullptr, handler);
}

grpc::Status OperatorServiceImpl::AdmitOperator(grpc::ServerContextBase& context, absl::string_view method,
                                                const Gate::SubjectOf& subject, const Gate::Handler& handler) const {
  return parts_.gate.Admit(context, method, subject, [&](const Identity& caller) -> absl::Status {
    DPAR_RETURN_IF_ERROR(RequireOperator(caller));
    return handler(caller);
  });
}

grpc::Status OperatorServiceImpl::CreateTenant(grpc::ServerContext* context, const v1::CreateTenantRequest* request,
                                               v1::Tenant* response) {
  return AdmitOperator(*context, "OperatorService/CreateTenant", About(*request, *response),
                       [&](const Identity&) { return MakeTenant(*request, *response); });
}

absl::Status OperatorServiceImpl::MakeTenant(const v1::CreateTenantRequest& request, v1::Tenant& response) {
  DPAR_RETURN_IF_ERROR(ValidateId("tenant_id", request.tenant_id()));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  SecureRandom random;
  absl::StatusOr<std::string> content_key = ReadFrom(parts_.database, [&](Transaction& transaction) {
    return TenantContentKey(transaction, absl::StrCat("tenants/", request.tenant_id()));
  });
  // An existing tenant is refused or was made by this request; its key is kept already.
  if (absl::IsNotFound(content_key.status())) {
    // A tenant that is made again after a rollback gets the key that its data was recognised by.
    content_key = parts_.witness.marks().KeepContentKey(absl::StrCat("tenants/", request.tenant_id()),
                                                        RandomBytes(random, kContentKeyBytes));
  }
  DPAR_RETURN_IF_ERROR(content_key.status());
  const absl::Time now = absl::Now();
  const RequestKey key = MakeRequestKey(kOperatorParent, "CreateTenant", request.request_id(), request);
  return Once(parts_.database, key, now, response, [&](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(InsertTenant(transaction, request.tenant_id(), *content_key, now));
    DPAR_RETURN_IF_ERROR(CheckTenantCount(transaction, parts_.limits.max_tenants));
    response.set_name(absl::StrCat("tenants/", request.tenant_id()));
    *response.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(now));
    return absl::OkStatus();
  });
}

grpc::Status OperatorServiceImpl::ListTenants(grpc::ServerContext* context, const v1::ListTenantsRequest* request,
                                              v1::ListTenantsResponse* response) {
  return AdmitOperator(*context, "OperatorService/ListTenants", [&](const Identity&) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request->page_size()));
    DPAR_ASSIGN_OR_RETURN(const TenantPage page, ReadFrom(parts_.database, [&](Transaction& transaction) {
                            return dpar::ListTenants(transaction, page_size, request->page_token());
                          }));
    response->mutable_tenants()->Assign(page.tenants.begin(), page.tenants.end());
    response->set_next_page_token(page.next_page_token);
    return absl::OkStatus();
  });
}

grpc::Status OperatorServiceImpl::CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                                              v1::CreateTokenResponse* response) {
  return parts_.gate.Admit(*context, "OperatorService/CreateToken", About(*request, *response),
                           [&](const Identity& caller) { return MakeToken(caller, *request, *response); });
}

absl::Status OperatorServiceImpl::MakeToken(const Identity& caller, const v1::CreateTokenRequest& request,
                                            v1::CreateTokenResponse& response) {
  const absl::Time now = absl::Now();
  const v1::Token& wanted = request.token();
  DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTokenParent("parent", request.parent()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, parent.name, parent.name));
  DPAR_RETURN_IF_ERROR(ValidateWantedToken(parent, wanted, now));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  DPAR_RETURN_IF_ERROR(RequireScopesOf(caller, parent.name, wanted));
  const bool for_certificate = !wanted.certificate_uri().empty();
  if (for_certificate) {
    // URIs are one namespace for all tenants: an owner could take another's or probe which are taken.
    DPAR_RETURN_IF_ERROR(RequireOperator(caller));
  }
  SecureRandom random;
  const BearerToken bearer = MakeBearerToken(random);
  const StoredToken stored = for_certificate ? SealCertificateToken(bearer.id, parent.name, wanted, now)
                                             : SealToken(bearer, parent.name, wanted, now, random);
  const RequestKey key = MakeRequestKey(parent.name, "CreateToken", request.request_id(), request);
  DPAR_RETURN_IF_ERROR(Once(parts_.database, key, now, response, [&](Transaction& transaction) {
    return AddToken(transaction, parent, stored, parts_.limits.max_tokens, now, response);
  }));
  RevealSecret(stored, for_certificate ? "" : FormatBearerToken(bearer), response);
  return absl::OkStatus();
}

grpc::Status OperatorServiceImpl::RotateToken(grpc::ServerContext* context, const v1::RotateTokenRequest* request,
                                              v1::CreateTokenResponse* response) {
  return parts_.gate.Admit(*context, "OperatorService/RotateToken", About(*request, *response),
                           [&](const Identity& caller) { return Rotate(caller, *request, *response); });
}

absl::Status OperatorServiceImpl::Rotate(const Identity& caller, const v1::RotateTokenRequest& request,
                                         v1::CreateTokenResponse& response) {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseTokenName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTokenParent("name", name.tenant));
  DPAR_ASSIGN_OR_RETURN(const absl::Duration overlap, ParseOverlap(request.overlap()));
  if (name.name == caller.token && overlap < kOwnOverlap) {
    // If the answer were lost, no live token would be left to ask again with.
    return InvalidField("overlap", "a token that rotates itself needs an overlap of at least a minute");
  }
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const absl::Time now = absl::Now();
  SecureRandom random;
  const BearerToken bearer = MakeBearerToken(random);
  StoredToken stored;
  const RequestKey key = MakeRequestKey(name.tenant, "RotateToken", request.request_id(), request);
  DPAR_RETURN_IF_ERROR(Once(parts_.database, key, now, response, [&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const v1::Token old, LockTokenNamed(transaction, name));
    DPAR_RETURN_IF_ERROR(ValidateRotation(old, now));
    // The caller gets the next token.
    DPAR_RETURN_IF_ERROR(RequireScopesOf(caller, name.tenant, old));
    stored = SealToken(bearer, name.tenant, Successor(old, now), now, random);
    DPAR_RETURN_IF_ERROR(ExpireToken(transaction, name.id, now + overlap));
    return AddToken(transaction, parent, stored, parts_.limits.max_tokens, now, response);
  }));
  RevealSecret(stored, FormatBearerToken(bearer), response);
  return absl::OkStatus();
}

grpc::Status OperatorServiceImpl::ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                                             v1::ListTokensResponse* response) {
  return parts_.gate.Admit(*context, "OperatorService/ListTokens", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTokenParent("parent", request->parent()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, parent.name, parent.name));
    DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request->page_size()));
    DPAR_ASSIGN_OR_RETURN(const TokenPage page,
                          ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<TokenPage> {
                            if (!parent.id.empty()) {
                              DPAR_RETURN_IF_ERROR(TenantExists(transaction, parent));
                            }
                            return dpar::ListTokens(transaction, parent.name, page_size, request->page_token());
                          }));
    response->mutable_tokens()->Assign(page.tokens.begin(), page.tokens.end());
    response->set_next_page_token(page.next_page_token);
    return absl::OkStatus();
  });
}

grpc::Status OperatorServiceImpl::RevokeToken(grpc::ServerContext* context, const v1::RevokeTokenRequest* request,
                                              v1::Token* response) {
  const Gate::SubjectOf about = About(*request, *response);
  return parts_.gate.Admit(*context, "OperatorService/RevokeToken", about, [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseTokenName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    const absl::Time now = absl::Now();
    return parts_.database.Write([&](Transaction& transaction) -> absl::Status {
      DPAR_RETURN_IF_ERROR(LockTokenNamed(transaction, name).status());
      DPAR_RETURN_IF_ERROR(dpar::RevokeToken(transaction, name.id, now));
      DPAR_ASSIGN_OR_RETURN(*response, LockTokenNamed(transaction, name));
      return absl::OkStatus();
    });
  });
}

grpc::Status OperatorServiceImpl::SetBudgetCap(grpc::ServerContext* context, const v1::SetBudgetCapRequest* request,
                                               v1::Budget* response) {
  return AdmitOperator(*context, "OperatorService/SetBudgetCap", About(*request, *response),
                       [&](const Identity& caller) { return SetCapOf(caller, *request, *response); });
}

absl::Status OperatorServiceImpl::SetCapOf(const Identity& caller, const v1::SetBudgetCapRequest& request,
                                           v1::Budget& response) {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("name", request.name()));
  DPAR_RETURN_IF_ERROR(ValidatePositive("cap_epsilon", request.cap_epsilon()));
  DPAR_RETURN_IF_ERROR(ValidateText("reason", request.reason(), 1, kMaxReason));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const absl::Time now = absl::Now();
  const RequestKey key = MakeRequestKey(kOperatorParent, "SetBudgetCap", request.request_id(), request);
  DPAR_RETURN_IF_ERROR(TimeLedgerCommit(parts_.metrics, LedgerCommit::kOperator, [&] {
    return Once(parts_.database, key, now, response, [&](Transaction& transaction) -> absl::Status {
      DPAR_RETURN_IF_ERROR(CheckChangeable(transaction, name));
      DPAR_RETURN_IF_ERROR(
          SetCap(transaction, name.name, request.cap_epsilon(), request.reason(), {caller.token, now}));
      DPAR_ASSIGN_OR_RETURN(response, GetBudget(transaction, name.name));
      return absl::OkStatus();
    });
  }));
  return MarkChange(parts_, name);
}

grpc::Status OperatorServiceImpl::AdjustLedger(grpc::ServerContext* context, const v1::AdjustLedgerRequest* request,
                                               v1::LedgerEntry* response) {
  return AdmitOperator(*context, "OperatorService/AdjustLedger", About(*request, *response),
                       [&](const Identity& caller) { return DebitBudget(caller, *request, *response); });
}

absl::Status OperatorServiceImpl::DebitBudget(const Identity& caller, const v1::AdjustLedgerRequest& request,
                                              v1::LedgerEntry& response) {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("name", request.name()));
  DPAR_RETURN_IF_ERROR(ValidateText("reason", request.reason(), 1, kMaxReason));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const absl::Time now = absl::Now();
  const RequestKey key = MakeRequestKey(kOperatorParent, "AdjustLedger", request.request_id(), request);
  DPAR_RETURN_IF_ERROR(TimeLedgerCommit(parts_.metrics, LedgerCommit::kOperator, [&] {
    return Once(parts_.database, key, now, response, [&](Transaction& transaction) -> absl::Status {
      DPAR_RETURN_IF_ERROR(CheckChangeable(transaction, name));
      DPAR_ASSIGN_OR_RETURN(
          response, Debit(transaction, name.name, request.debit_units(), request.reason(), {caller.token, now}));
      return absl::OkStatus();
    });
  }));
  return MarkChange(parts_, name);
}

}  // namespace dpar
