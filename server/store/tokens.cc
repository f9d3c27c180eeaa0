#include "server/store/tokens.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/resource_name.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"

namespace dpar {
namespace {

constexpr absl::string_view kTokenColumns =
    "id, parent, role, purpose, salt, hash, create_time, expire_time, revoke_time, scopes, last_use_time, "
    "COALESCE(certificate_uri, '')";

std::string ScopesText(const v1::Token& token) {
  return absl::StrJoin(token.scopes(), ",", [](std::string* out, int scope) {
    absl::StrAppend(out, v1::Scope_Name(static_cast<v1::Scope>(scope)));
  });
}

// False for an unknown name. It must not be skipped: no scope at all means every scope.
bool ParseScopes(const std::string& text, v1::Token& token) {
  for (const absl::string_view name : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    v1::Scope scope = v1::SCOPE_UNSPECIFIED;
    if (!v1::Scope_Parse(std::string(name), &scope) || scope == v1::SCOPE_UNSPECIFIED) {
      return false;
    }
    token.add_scopes(scope);
  }
  return token.scopes().empty() == text.empty();
}

absl::Status Corrupt(const v1::Token& token, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, absl::StrCat("a stored token has ", what),
                   {{"resource", token.name()}});
}

absl::StatusOr<StoredToken> ReadToken(const Row& row) {
  StoredToken stored;
  RowReader reader(row);
  const std::string id = reader.Text();
  const std::string parent = reader.Text();
  v1::Token& token = stored.token;
  token.set_name(parent + "/tokens/" + id);
  token.set_role(static_cast<v1::Role>(reader.Int32()));
  token.set_purpose(reader.Text());
  stored.salt = reader.Text();
  stored.hash = reader.Text();
  *token.mutable_create_time() = ToTimestamp(reader.Int());
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *token.mutable_expire_time() = ToTimestamp(*time);
  }
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *token.mutable_revoke_time() = ToTimestamp(*time);
  }
  const std::string scopes = reader.Text();
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *token.mutable_last_use_time() = ToTimestamp(*time);
  }
  token.set_certificate_uri(reader.Text());
  DPAR_RETURN_IF_ERROR(reader.status());
  const bool is_operator = parent == kOperatorParent;
  if (!v1::Role_IsValid(token.role()) || is_operator != (token.role() == v1::OPERATOR)) {
    return Corrupt(token, "a role it cannot have");
  }
  if (!ParseScopes(scopes, token)) {
    return Corrupt(token, "scopes that this program does not know");
  }
  stored.tenant = is_operator ? "" : parent;
  return stored;
}

absl::StatusOr<StoredToken> QueryToken(Transaction& transaction, const std::string& token_id, absl::string_view lock) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kTokenColumns, " FROM tokens WHERE id = $1", lock), {token_id}));
  if (rows.empty()) {
    return ResourceNotFound("tokens/" + token_id);
  }
  return ReadToken(rows[0]);
}

}  // namespace

std::string TokenId(const std::string& token_name) { return token_name.substr(token_name.rfind('/') + 1); }

absl::Status InsertToken(Transaction& transaction, const StoredToken& stored) {
  const v1::Token& token = stored.token;
  const std::string parent = stored.tenant.empty() ? std::string(kOperatorParent) : stored.tenant;
  const int64_t create_time = ToMicroseconds(token.create_time());
  if (!token.certificate_uri().empty()) {
    // An expired token gives its URI up; the index excludes revoked ones only.
    DPAR_RETURN_IF_ERROR(
        transaction
            .Execute("UPDATE tokens SET revoke_time = $1 WHERE certificate_uri = $2 AND revoke_time IS NULL AND "
                     "expire_time <= $1",
                     {create_time, token.certificate_uri()})
            .status());
  }
  DPAR_ASSIGN_OR_RETURN(
      const int64_t inserted,
      transaction.Execute(
          "INSERT INTO tokens (id, parent, role, purpose, salt, hash, create_time, expire_time, scopes, "
          "certificate_uri) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
          {TokenId(token.name()), parent, int64_t{token.role()}, token.purpose(), stored.salt, stored.hash, create_time,
           TimeOrNull(token.has_expire_time(), token.expire_time()), ScopesText(token),
           TextOrNull(token.certificate_uri())}));
  if (inserted == 0) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS,
                     "a live token has this certificate_uri; revoke it first, or give the certificate another URI",
                     {{"resource", token.certificate_uri()}});
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredToken> GetToken(Transaction& transaction, const std::string& token_id) {
  return QueryToken(transaction, token_id, "");
}

absl::StatusOr<StoredToken> GetCertificateToken(Transaction& transaction, const std::string& certificate_uri) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT " + std::string(kTokenColumns) +
                                              " FROM tokens WHERE certificate_uri = $1 AND revoke_time IS NULL",
                                          {certificate_uri}));
  if (rows.empty()) {
    return ResourceNotFound(certificate_uri);
  }
  return ReadToken(rows[0]);
}

absl::StatusOr<StoredToken> LockToken(Transaction& transaction, const std::string& token_id) {
  return QueryToken(transaction, token_id, transaction.for_update());
}

absl::StatusOr<TokenPage> ListTokens(Transaction& transaction, const std::string& parent, int64_t page_size,
                                     const std::string& page_token) {
  DPAR_ASSIGN_OR_RETURN(const PagePosition after, ParsePageToken(page_token));
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT " + std::string(kTokenColumns) +
                                              " FROM tokens WHERE parent = $1 AND (create_time, id) > ($2, $3) "
                                              "ORDER BY create_time, id LIMIT $4",
                                          {parent, after.time, after.name, page_size + 1}));
  TokenPage page;
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(StoredToken stored, ReadToken(row));
    if (static_cast<int64_t>(page.tokens.size()) == page_size) {
      const v1::Token& last = page.tokens.back();
      page.next_page_token = MakePageToken({ToMicroseconds(last.create_time()), TokenId(last.name())});
      break;
    }
    page.tokens.push_back(std::move(stored.token));
  }
  return page;
}

absl::Status CheckTokenCount(Transaction& transaction, const std::string& parent, int64_t max_tokens, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t live,
      transaction.QueryInt("SELECT COUNT(*) FROM tokens WHERE parent = $1 AND revoke_time IS NULL AND "
                           "(expire_time IS NULL OR expire_time > $2)",
                           {parent, absl::ToUnixMicros(now)}));
  if (live > max_tokens) {
    return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                     absl::StrCat(parent, " may have at most ", max_tokens, " live tokens; revoke one first"),
                     {{"limit", "max_tokens"}, {"maximum", absl::StrCat(max_tokens)}});
  }
  return absl::OkStatus();
}

absl::StatusOr<ExpiringTokens> ListExpiringTokens(Transaction& transaction, const std::string& parent, absl::Time now,
                                                  absl::Time until, int64_t limit) {
  constexpr absl::string_view kWhere =
      " FROM tokens WHERE ($1 = '' OR parent = $1) AND revoke_time IS NULL AND expire_time > $2 AND expire_time < $3";
  const std::vector<Value> condition = {parent, absl::ToUnixMicros(now), absl::ToUnixMicros(until)};
  ExpiringTokens expiring;
  DPAR_ASSIGN_OR_RETURN(expiring.count, transaction.QueryInt(absl::StrCat("SELECT COUNT(*)", kWhere), condition));
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kTokenColumns, kWhere, " ORDER BY expire_time, id LIMIT $4"),
                        {parent, absl::ToUnixMicros(now), absl::ToUnixMicros(until), limit}));
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(StoredToken stored, ReadToken(row));
    expiring.tokens.push_back(std::move(stored.token));
  }
  return expiring;
}

absl::Status RevokeToken(Transaction& transaction, const std::string& token_id, absl::Time now) {
  DPAR_RETURN_IF_ERROR(GetToken(transaction, token_id).status());
  return transaction
      .Execute("UPDATE tokens SET revoke_time = $1 WHERE id = $2 AND revoke_time IS NULL",
               {absl::ToUnixMicros(now), token_id})
      .status();
}

absl::Status ExpireToken(Transaction& transaction, const std::string& token_id, absl::Time time) {
  return transaction
      .Execute("UPDATE tokens SET expire_time = $1 WHERE id = $2 AND (expire_time IS NULL OR expire_time > $1)",
               {absl::ToUnixMicros(time), token_id})
      .status();
}

absl::Status SetLastUse(Transaction& transaction, const std::string& token_id, absl::Time time) {
  return transaction
      .Execute("UPDATE tokens SET last_use_time = $1 WHERE id = $2 AND (last_use_time IS NULL OR last_use_time < $1)",
               {absl::ToUnixMicros(time), token_id})
      .status();
}

}  // namespace dpar
