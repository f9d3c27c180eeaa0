// What a privacy certificate states, as an in-toto Statement v1. docs/certificate.md describes every field.
#ifndef DPAR_CORE_CERTIFICATE_STATEMENT_H_
#define DPAR_CORE_CERTIFICATE_STATEMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr absl::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr absl::string_view kPredicateType = "urn:dpar:privacy-certificate:v2";

// What a certificate states. All of it is public.
struct Statement {
  // File name to SHA-256 (lower-case hex): model.pt and model.npz.
  std::map<std::string, std::string> subjects;

  std::string job;             // tenants/{t}/jobs/{j}
  std::string dataset;         // tenants/{t}/datasets/{d}
  std::string dataset_digest;  // under the dataset's own key
  PublicSizes sizes;
  bool is_public = false;  // then nothing is promised, and the first field says so
  v1::Plan plan;           // as executed
  // What was released of the held-out slots; there exactly when plan.evaluation is.
  std::optional<v1::Evaluation> evaluation;

  // The ledger entry that paid for it. Empty budget for public data.
  std::string budget;  // tenants/{t}/datasets/{d}/budget
  int64_t ledger_sequence = 0;
  std::string ledger_hash;
  double cap_epsilon = 0;
  double cap_delta = 0;
  int64_t order = 0;
  int64_t units = 0;  // the job's price; plan.price_units repeats it

  std::string software;    // "dpar 0.2.0"
  std::string created_at;  // RFC 3339, UTC
};

// The statement as JSON bytes: fixed key order, numbers that round-trip. plan.left_units is not part of it.
std::string StatementToJson(const Statement& statement);

// Accepts exactly what StatementToJson gives for a well-formed statement: a field that is missing, unknown, mistyped,
// repeated or out of order, a changed fixed text, or another spelling of a number is INVALID_ARGUMENT naming the field.
// So is a statement of the first version of the predicate, which dpar 0.1 reads.
absl::StatusOr<Statement> StatementFromJson(absl::string_view json);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_STATEMENT_H_
