// What a privacy certificate states, as an in-toto Statement v1. docs/certificate.md describes every field.
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
#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr absl::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr absl::string_view kPredicateType = "urn:dpar:privacy-certificate:v1";
// Of the accountant that this program has. A change that can give another epsilon for the same event is a new one.
inline constexpr int64_t kAccountantVersion = 1;

// What a certificate states. All of it is public.
struct Statement {
  // File name to SHA-256 (lower-case hex): model.pt and model.npz.
  std::map<std::string, std::string> subjects;

  std::string job;             // tenants/{t}/jobs/{j}
  std::string dataset;         // tenants/{t}/datasets/{d}
  std::string dataset_digest;  // under the dataset's own key
  PublicSizes sizes;
  // The degree promise that the dataset's owner made, whatever the method; 0: none.
  int64_t max_degree = 0;
  bool is_public = false;  // then nothing is guaranteed, and the first field says so
  v1::Plan plan;           // as executed
  // What the accountant gives for plan.event at plan.delta: at most plan.epsilon. Unused for public data.
  double accountant_epsilon = 0;
  int64_t accountant_version = kAccountantVersion;
  // What was released of the held-out slots; there exactly when plan.evaluation is.
  std::optional<v1::Evaluation> evaluation;

  // The ledger entry that paid for it. Empty budget for public data.
  std::string budget;  // tenants/{t}/datasets/{d}/budget
  int64_t ledger_sequence = 0;
  std::string ledger_hash;
  double cap_epsilon = 0;
  double cap_delta = 0;
  // The smallest degree promise of a dataset with this budget; 0: none. The cap is about graphs that keep it.
  int64_t cap_max_degree = 0;
  int64_t order = 0;
  int64_t units = 0;  // the job's price; plan.price_units repeats it
  // What the budget's jobs had spent before this one, and what they may spend; then what else the entry's hash covers.
  int64_t units_before = 0;
  int64_t cap_units = 0;
  std::string budget_id;
  std::string previous_hash;
  int64_t entry_time_microseconds = 0;
  std::string entry_actor;
  int64_t entry_attempt = 0;
  std::string entry_event;  // plan.event as the ledger stores it

  std::string software;    // "dpar 0.2.0"
  std::string build;       // what it was built from and with
  std::string created_at;  // RFC 3339, UTC
};

// The statement as JSON bytes: fixed key order, numbers that round-trip. plan.left_units is not part of it.
std::string StatementToJson(const Statement& statement);

// The rules that names, digests, texts and numbers of a statement keep. INVALID_ARGUMENT naming the field.
absl::Status ValidateStatement(const Statement& statement);

// Accepts exactly what StatementToJson gives for a statement that keeps the rules: it is read, written again and
// compared. A field that is missing, unknown, mistyped, repeated or out of order, a changed fixed text, or another
// spelling of a number is INVALID_ARGUMENT naming the field.
absl::StatusOr<Statement> StatementFromJson(absl::string_view json);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_STATEMENT_H_
