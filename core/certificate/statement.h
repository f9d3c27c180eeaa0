// What a privacy certificate states, as an in-toto Statement v1 (docs/certificate.md).
#ifndef DPAR_CORE_CERTIFICATE_STATEMENT_H_
#define DPAR_CORE_CERTIFICATE_STATEMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"
#include "core/graph/size_bounds.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr absl::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr absl::string_view kPredicateType = "urn:dpar:privacy-certificate:v1";
// A change that can give another epsilon for the same event needs a new version.
inline constexpr int64_t kAccountantVersion = 1;

// All of it is public.
struct Statement {
  // The model's files: name to SHA-256 (lower-case hex).
  std::map<std::string, std::string> subjects;

  std::string job;             // tenants/{t}/jobs/{j}
  std::string dataset;         // tenants/{t}/datasets/{d}
  std::string dataset_digest;  // under the dataset's own key
  PublicSizes sizes;
  SizeBounds bounds;
  int64_t max_degree = 0;  // the owner's degree promise, whatever the method; 0: none
  std::string schema;      // how the owner's tables became the graph, in canonical form (core/table); empty: not stated
  bool is_public = false;  // then nothing is guaranteed, and the first field says so
  v1::Plan plan;           // as executed
  // For plan.event at plan.delta: at most plan.epsilon. Unused for public data.
  double accountant_epsilon = 0;
  int64_t accountant_version = kAccountantVersion;
  std::optional<v1::Evaluation> evaluation;  // exactly when plan.evaluation is

  // The ledger entry that paid for it. Empty population for public data.
  std::string population;  // tenants/{t}/populations/{p}
  int64_t ledger_sequence = 0;
  std::string ledger_hash;
  double cap_epsilon = 0;
  double cap_delta = 0;
  // The smallest degree promise of the population's datasets; 0: none. The cap is about graphs that keep it.
  int64_t cap_max_degree = 0;
  int64_t order = 0;
  int64_t units = 0;  // the job's price; plan.price_units repeats it
  // What the population's jobs had spent before this one, and what they may spend; then what else the entry's hash
  // covers.
  int64_t units_before = 0;
  int64_t cap_units = 0;
  std::string previous_hash;
  int64_t entry_time_microseconds = 0;
  std::string entry_actor;
  int64_t entry_attempt = 0;
  std::string entry_event;  // plan.event as the ledger stores it

  std::string software;    // "dpar 0.2.0"
  std::string build;       // what it was built from and with
  std::string created_at;  // RFC 3339, UTC
};

// Fixed key order, numbers that round-trip. plan.left_units is not part of it.
std::string StatementToJson(const Statement& statement);

absl::Status ValidateStatement(const Statement& statement);  // INVALID_ARGUMENT naming the field

// Accepts exactly what StatementToJson gives for a valid statement: reads it, writes it again and compares.
// INVALID_ARGUMENT names a missing, unknown, mistyped, repeated, misplaced or differently spelled field.
absl::StatusOr<Statement> StatementFromJson(absl::string_view json);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_STATEMENT_H_
