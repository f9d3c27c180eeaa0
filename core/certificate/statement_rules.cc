// The rules of a well-formed statement, for what StatementFromJson read and what SignStatement is about to write.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/certificate/digest.h"
#include "core/certificate/statement.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "core/table/schema.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr size_t kSha256HexLength = 64;
constexpr size_t kMaxSubjects = 16;
constexpr int64_t kMaxSize = int64_t{1} << 31;
constexpr size_t kMaxTextLength = size_t{1} << 16;     // far above any event's text, far below the limit on a statement
constexpr int64_t kMaxUnits = (int64_t{1} << 62) - 1;  // sums of two stay in range
constexpr int64_t kMaxAccountantVersion = 1000;
constexpr double kMaxEpsilon = 1e9;

absl::Status ValidateSha256(absl::string_view field, absl::string_view digest) {
  if (digest.size() != kSha256HexLength || !HexDecode(digest).ok()) {
    return InvalidField(field, absl::StrCat(field, " must be 64 digits 0-9 and a-f"));
  }
  return absl::OkStatus();
}

// `pattern` is a resource name in which "*" stands for an id.
absl::Status ValidateName(absl::string_view field, absl::string_view name, absl::string_view pattern) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  const std::vector<std::string> expected = absl::StrSplit(pattern, '/');
  bool valid = parts.size() == expected.size();
  for (size_t i = 0; valid && i < parts.size(); ++i) {
    valid = expected[i] == "*" ? ValidateId(field, parts[i]).ok() : parts[i] == expected[i];
  }
  return valid ? absl::OkStatus() : InvalidField(field, absl::StrCat(field, " must be a name like ", pattern));
}

// Printable ASCII, so that texts look like what they are.
absl::Status ValidateText(absl::string_view field, absl::string_view text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (text.empty() || text.size() > kMaxTextLength || !printable) {
    return InvalidField(field, absl::StrCat(field, " must be 1 to ", kMaxTextLength, " printable ASCII characters"));
  }
  return absl::OkStatus();
}

absl::string_view TenantOf(absl::string_view name) { return name.substr(0, name.find('/', name.find('/') + 1)); }

absl::Status ValidateSubjects(const std::map<std::string, std::string>& subjects) {
  if (subjects.empty() || subjects.size() > kMaxSubjects) {
    return InvalidField("subject", absl::StrCat("subject must be a list of 1 to ", kMaxSubjects, " files"));
  }
  for (const auto& [name, digest] : subjects) {
    if (!ValidateText("subject.name", name).ok() || name.find('/') != std::string::npos) {
      return InvalidField("subject.name", "subject.name must be the name of a file");
    }
    DPAR_RETURN_IF_ERROR(ValidateSha256("subject.digest.sha256", digest));
  }
  return absl::OkStatus();
}

absl::Status ValidateEvaluation(const v1::Evaluation& evaluation, const v1::EvaluationPlan& plan) {
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.evaluation.accuracy", evaluation.accuracy(), 0.0, 1.0));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.evaluation.low", evaluation.low(), 0.0, 1.0));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.evaluation.high", evaluation.high(), evaluation.low(), 1.0));
  if (evaluation.held_out_slots() != plan.held_out_slots()) {
    return InvalidField("predicate.evaluation.held_out_slots",
                        "predicate.evaluation.held_out_slots must be those of mechanism.plan.evaluation");
  }
  return absl::OkStatus();
}

absl::Status ValidatePlan(const Statement& statement) {
  const v1::Plan& plan = statement.plan;
  if (FindMethod(plan.method()) == nullptr) {
    return InvalidField("predicate.mechanism.plan.method",
                        absl::StrCat("predicate.mechanism.plan.method is ", v1::Method_Name(plan.method()),
                                     ", which this version cannot recompute"));
  }
  if (plan.non_private() && !statement.is_public) {
    return InvalidField("predicate.mechanism.plan.non_private",
                        "predicate.mechanism.plan.non_private may be true for public data only");
  }
  if (plan.has_event() == plan.non_private()) {
    return InvalidField("predicate.event",
                        "predicate.event must be null for a plan that is non_private, and only then");
  }
  if (plan.has_event()) {
    if (const absl::Status valid = ValidateEvent(plan.event()); !valid.ok()) {
      return InvalidField("predicate.event", absl::StrCat("predicate.event must be a valid event: ", valid.message()));
    }
  }
  if (statement.evaluation.has_value() != plan.has_evaluation()) {
    return InvalidField("predicate.evaluation",
                        "predicate.evaluation must be null for a plan without an evaluation, and only then");
  }
  return plan.has_evaluation() ? ValidateEvaluation(*statement.evaluation, plan.evaluation()) : absl::OkStatus();
}

absl::Status ValidateAccountant(const Statement& statement) {
  DPAR_RETURN_IF_ERROR(
      ValidateRange("predicate.accountant.version", statement.accountant_version, 1, kMaxAccountantVersion));
  return statement.is_public
             ? absl::OkStatus()
             : ValidateRange("predicate.accountant.epsilon", statement.accountant_epsilon, 0.0, kMaxEpsilon);
}

absl::Status ValidateEntry(const Statement& statement) {
  const std::string path = "predicate.ledger.entry";
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  DPAR_RETURN_IF_ERROR(ValidateSha256(path + ".hash", statement.ledger_hash));
  DPAR_RETURN_IF_ERROR(ValidateRange(path + ".sequence", statement.ledger_sequence, 1, kLargest));
  DPAR_RETURN_IF_ERROR(ValidateSha256(path + ".previous_hash", statement.previous_hash));
  DPAR_RETURN_IF_ERROR(ValidateRange(path + ".time_microseconds", statement.entry_time_microseconds, 0, kLargest));
  DPAR_RETURN_IF_ERROR(ValidateText(path + ".actor", statement.entry_actor));
  DPAR_RETURN_IF_ERROR(ValidateRange(path + ".attempt", statement.entry_attempt, 0, kLargest));
  return ValidateText(path + ".event", statement.entry_event);
}

absl::Status ValidateBounds(const SizeBounds& bounds) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.edge_bound", bounds.edges, 1, kLargest));
  return ValidateRange("predicate.dataset.entry_bound", bounds.feature_entries, 1, kLargest);
}

// 0 stands for no degree promise.
absl::Status ValidatePromises(const Statement& statement) {
  const int64_t slots = statement.sizes.node_count;
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.max_degree", statement.max_degree, 0, slots));
  if (statement.plan.has_max_degree() && statement.plan.max_degree() != statement.max_degree) {
    return InvalidField("predicate.mechanism.plan.max_degree",
                        "predicate.mechanism.plan.max_degree must be that of dataset.max_degree");
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.ledger.cap_max_degree", statement.cap_max_degree, 0,
                                     statement.is_public ? 0 : kMaxSize));
  const bool within =
      statement.max_degree == 0 || (statement.cap_max_degree > 0 && statement.cap_max_degree <= statement.max_degree);
  if (!statement.is_public && !within) {
    return InvalidField("predicate.ledger.cap_max_degree",
                        "predicate.ledger.cap_max_degree must be at most dataset.max_degree, where there is one");
  }
  return absl::OkStatus();
}

absl::Status ValidateLedger(const Statement& statement) {
  DPAR_RETURN_IF_ERROR(ValidateName("predicate.ledger.population", statement.population, "tenants/*/populations/*"));
  if (TenantOf(statement.population) != TenantOf(statement.dataset)) {
    return InvalidField("predicate.ledger.population",
                        "predicate.ledger.population must be of the tenant of dataset.name");
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.ledger.cap_units", statement.cap_units, 0, kMaxUnits));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.ledger.units", statement.units, 0, kMaxUnits));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.ledger.units_before", statement.units_before, 0, kMaxUnits));
  return ValidateEntry(statement);
}

absl::Status ValidateSoftware(const Statement& statement) {
  DPAR_RETURN_IF_ERROR(ValidateText("predicate.software", statement.software));
  DPAR_RETURN_IF_ERROR(ValidateText("predicate.build", statement.build));
  absl::Time time;
  std::string error;
  if (!ValidateText("predicate.created_at", statement.created_at).ok() || !absl::EndsWith(statement.created_at, "Z") ||
      !absl::ParseTime(absl::RFC3339_full, statement.created_at, &time, &error) ||
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()) != statement.created_at) {
    return InvalidField("predicate.created_at", "predicate.created_at must be an RFC 3339 time in UTC, ending in Z");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateStatement(const Statement& statement) {
  DPAR_RETURN_IF_ERROR(ValidateSubjects(statement.subjects));
  DPAR_RETURN_IF_ERROR(ValidateName("predicate.job", statement.job, "tenants/*/jobs/*"));
  DPAR_RETURN_IF_ERROR(ValidateName("predicate.dataset.name", statement.dataset, "tenants/*/datasets/*"));
  if (TenantOf(statement.job) != TenantOf(statement.dataset)) {
    return InvalidField("predicate.job", "predicate.job must be of the tenant of dataset.name");
  }
  DPAR_RETURN_IF_ERROR(ValidateSha256("predicate.dataset.digest", statement.dataset_digest));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.node_count", statement.sizes.node_count, 1, kMaxSize));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.feature_count", statement.sizes.feature_count, 1, kMaxSize));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.class_count", statement.sizes.class_count, 1, kMaxSize));
  if (!statement.schema.empty() &&
      !CheckDeclaredSchema(statement.schema, statement.sizes.feature_count, statement.sizes.class_count).ok()) {
    return InvalidField("predicate.unprotected",
                        "the schema in predicate.unprotected must be a schema of dataset.feature_count features and "
                        "dataset.class_count classes");
  }
  DPAR_RETURN_IF_ERROR(ValidateAccountant(statement));
  if (!statement.is_public) {
    DPAR_RETURN_IF_ERROR(ValidateLedger(statement));
  }
  DPAR_RETURN_IF_ERROR(ValidatePlan(statement));
  DPAR_RETURN_IF_ERROR(ValidateBounds(statement.bounds));
  DPAR_RETURN_IF_ERROR(ValidatePromises(statement));
  return ValidateSoftware(statement);
}

}  // namespace dpar
