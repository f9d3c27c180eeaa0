#include "server/store/tokens.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"

namespace dpar {
namespace {

constexpr absl::string_view kOperatorParent = "operator";

std::string TokenId(const std::string& token_name) { return token_name.substr(token_name.rfind('/') + 1); }

constexpr absl::string_view kTokenColumns =
    "id, parent, role, purpose, salt, hash, create_time, expire_time, revoke_time";

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
  DPAR_RETURN_IF_ERROR(reader.status());
  const bool is_operator = parent == kOperatorParent;
  if (!v1::Role_IsValid(token.role()) || is_operator != (token.role() == v1::OPERATOR)) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a stored token has a role it cannot have",
                     {{"resource", token.name()}});
  }
  stored.tenant = is_operator ? "" : parent;
  return stored;
}

}  // namespace

absl::Status InsertToken(Transaction& transaction, const StoredToken& stored) {
  const v1::Token& token = stored.token;
  const std::string parent = stored.tenant.empty() ? std::string(kOperatorParent) : stored.tenant;
  return transaction
      .Execute(
          "INSERT INTO tokens (id, parent, role, purpose, salt, hash, create_time, expire_time) "
          "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
          {TokenId(token.name()), parent, int64_t{token.role()}, token.purpose(), stored.salt, stored.hash,
           ToMicroseconds(token.create_time()), TimeOrNull(token.has_expire_time(), token.expire_time())})
      .status();
}

absl::StatusOr<StoredToken> GetToken(Transaction& transaction, const std::string& token_id) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT " + std::string(kTokenColumns) + " FROM tokens WHERE id = $1", {token_id}));
  if (rows.empty()) {
    return ResourceNotFound("tokens/" + token_id);
  }
  return ReadToken(rows[0]);
}

absl::StatusOr<TokenPage> ListTokens(Transaction& transaction, const std::string& parent, int64_t page_size,
                                     const std::string& page_token) {
  PagePosition after;
  if (!page_token.empty()) {
    DPAR_ASSIGN_OR_RETURN(after, ParsePageToken(page_token));
  }
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

absl::Status RevokeToken(Transaction& transaction, const std::string& token_id, absl::Time now) {
  DPAR_RETURN_IF_ERROR(GetToken(transaction, token_id).status());
  return transaction
      .Execute("UPDATE tokens SET revoke_time = $1 WHERE id = $2 AND revoke_time IS NULL",
               {absl::ToUnixMicros(now), token_id})
      .status();
}

}  // namespace dpar
