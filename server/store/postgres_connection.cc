#include "server/store/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/unavailable.h"

namespace dpar {
namespace {

constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kFloat8 = 701;
constexpr Oid kVoid = 2278;
constexpr Oid kBool = 16;

constexpr char kConnectTimeoutSeconds[] = "5";
// Both sides give up a hanging connection: a lost or stalled client must not keep its locks.
constexpr char kSessionSettings[] =
    "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '60s'; "
    "SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; "
    "SET tcp_keepalives_count = 3; SET client_min_messages = warning";
using ResultPointer = std::unique_ptr<PGresult, decltype(&PQclear)>;

// PostgreSQL's message on one line. It names tables, constraints and violated keys: ids, no graph content.
std::string Words(const char* message) {
  std::string words(absl::StripAsciiWhitespace(message == nullptr ? "" : message));
  std::replace(words.begin(), words.end(), '\n', ' ');
  return absl::StrCat("PostgreSQL: ", words);
}

absl::Status StateError(absl::string_view state, const std::string& words) {
  if (state == "40001" || state == "40P01") {
    return absl::AbortedError(words);
  }
  if (absl::StartsWith(state, "23")) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS, words);
  }
  // 08 connection, 25P03 idle in transaction, 53 resources (disk, connections), 55P03 and 57 (lock and statement
  // timeouts, shutdown), 58 system; no state when the connection broke.
  if (state.empty() || absl::StartsWith(state, "08") || state == "25P03" || state == "25006" ||
      absl::StartsWith(state, "53") || state == "55P03" || absl::StartsWith(state, "57") ||
      absl::StartsWith(state, "58")) {
    return StoreUnavailable(words);
  }
  if (absl::StartsWith(state, "XX00")) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, words);
  }
  return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, words);
}

absl::Status ResultError(PGconn* connection, const PGresult* result) {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return StateError(state == nullptr ? "" : state, Words(primary != nullptr ? primary : PQerrorMessage(connection)));
}

// Parameters for libpq; null pointers for NULL. Points into the values.
struct Parameters {
  explicit Parameters(const std::vector<Value>& values) {
    numbers.reserve(values.size());
    pointers.reserve(values.size());
    for (const Value& value : values) {
      const char* pointer = nullptr;
      if (const auto* integer = std::get_if<int64_t>(&value)) {
        pointer = numbers.emplace_back(absl::StrCat(*integer)).c_str();
      } else if (const auto* real = std::get_if<double>(&value)) {
        pointer = numbers.emplace_back(absl::StrFormat("%.17g", *real)).c_str();
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        pointer = text->c_str();
      }
      pointers.push_back(pointer);
    }
  }

  std::vector<std::string> numbers;
  std::vector<const char*> pointers;
};

absl::StatusOr<Value> ToValue(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) {
    return std::monostate{};
  }
  const absl::string_view text(PQgetvalue(result, row, column), static_cast<size_t>(PQgetlength(result, row, column)));
  switch (PQftype(result, column)) {
    case kInt2:
    case kInt4:
    case kInt8:
      if (int64_t value = 0; absl::SimpleAtoi(text, &value)) {
        return Value(std::in_place_type<int64_t>, value);
      }
      break;
    case kBool:
      return Value(std::in_place_type<int64_t>, text == "t" ? 1 : 0);
    case kFloat8:
      if (double value = 0; absl::SimpleAtod(text, &value) && std::isfinite(value)) {
        return value;
      }
      break;
    case kText:
    case kVoid:
      return std::string(text);
    default:
      break;
  }
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                   absl::StrCat("the store holds an unexpected type in column ", column, " of a result"));
}

absl::StatusOr<PostgresConnection::Result> ToResult(PGresult* raw) {
  PostgresConnection::Result result;
  const int rows = PQntuples(raw);
  const int columns = PQnfields(raw);
  result.rows.resize(static_cast<size_t>(rows));
  for (int row = 0; row < rows; ++row) {
    Row& values = result.rows[static_cast<size_t>(row)];
    values.reserve(static_cast<size_t>(columns));
    for (int column = 0; column < columns; ++column) {
      DPAR_ASSIGN_OR_RETURN(Value value, ToValue(raw, row, column));
      values.push_back(std::move(value));
    }
  }
  // Empty when nothing was changed.
  if (const char* changed = PQcmdTuples(raw); *changed != '\0' && !absl::SimpleAtoi(changed, &result.changed)) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "PostgreSQL gave no count of rows");
  }
  result.command_tag = PQcmdStatus(raw);
  return result;
}

bool Succeeded(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(const std::string& uri) {
  // Later keywords win, so the URI may set another timeout.
  const char* const keywords[] = {"connect_timeout",
                                  "application_name",
                                  "keepalives_idle",
                                  "keepalives_interval",
                                  "keepalives_count",
                                  "tcp_user_timeout",
                                  "dbname",
                                  "client_encoding",
                                  nullptr};
  const char* const values[] = {kConnectTimeoutSeconds, "dpard", "10", "5", "3", "30000", uri.c_str(), "UTF8", nullptr};
  auto connection = std::make_unique<PostgresConnection>(PQconnectdbParams(keywords, values, /*expand_dbname=*/1));
  PGconn* const raw = connection->raw_.get();
  if (!connection->usable()) {
    return StoreUnavailable(Words(PQerrorMessage(raw)));
  }
  // Errors come as results; drops notices, which would go to stderr.
  PQsetNoticeProcessor(
      raw, [](void*, const char*) {}, nullptr);
  const ResultPointer settled(PQexec(raw, kSessionSettings), &PQclear);
  if (!Succeeded(settled.get())) {
    return ResultError(raw, settled.get());
  }
  return connection;
}

absl::StatusOr<const char*> PostgresConnection::Prepare(absl::string_view sql) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) {
    return known->second->c_str();
  }
  auto name = std::make_unique<const std::string>(absl::StrCat("s", statements_.size()));
  const std::string text(sql);
  const ResultPointer result(PQprepare(raw_.get(), name->c_str(), text.c_str(), 0, nullptr), &PQclear);
  if (!Succeeded(result.get())) {
    return ResultError(raw_.get(), result.get());
  }
  return statements_.emplace(text, std::move(name)).first->second->c_str();
}

absl::StatusOr<PostgresConnection::Result> PostgresConnection::Run(absl::string_view sql,
                                                                   const std::vector<Value>& parameters) {
  DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
  const Parameters texts(parameters);
  DPAR_ASSIGN_OR_RETURN(const char* const name, Prepare(sql));
  const ResultPointer result(
      PQexecPrepared(raw_.get(), name, static_cast<int>(texts.pointers.size()), texts.pointers.data(),
                     /*paramLengths=*/nullptr, /*paramFormats=*/nullptr, /*resultFormat=*/0),
      &PQclear);
  if (!Succeeded(result.get())) {
    return ResultError(raw_.get(), result.get());
  }
  return ToResult(result.get());
}

absl::StatusOr<std::vector<std::string>> PostgresConnection::AwaitNotices(absl::Duration patience,
                                                                          int wake_descriptor) {
  pollfd descriptors[] = {{PQsocket(raw_.get()), POLLIN, 0}, {wake_descriptor, POLLIN, 0}};
  poll(descriptors, 2, static_cast<int>(absl::ToInt64Milliseconds(patience)));
  if (PQconsumeInput(raw_.get()) == 0) {
    return ResultError(raw_.get(), nullptr);
  }
  std::vector<std::string> notices;
  while (PGnotify* notify = PQnotifies(raw_.get())) {
    notices.emplace_back(notify->extra);
    PQfreemem(notify);
  }
  return notices;
}

}  // namespace dpar
