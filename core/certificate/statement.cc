#include "core/certificate/statement.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/certificate/digest.h"
#include "core/certificate/strict_json.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "core/validate.h"

// The fixed texts below are part of kPredicateType: changing one means a new version of it, since certificates that
// were signed with the old text must keep verifying.
namespace dpar {
namespace {

constexpr size_t kSha256HexLength = 64;
constexpr size_t kMaxSubjects = 16;
constexpr int kAccountantVersion = 1;

constexpr const char* kPromise = "node-level differential privacy";
constexpr const char* kNoPromise = "none: the dataset was declared public";
constexpr const char* kUnit = "one node: its feature row, its label and every edge that touches it";
constexpr const char* kRelation =
    "node removal in zero-out form: one node loses its features, its label and its edges while its slot stays; both "
    "directions count and the larger is charged";
constexpr const char* kAccountantMethod =
    "exact Gaussian profile: delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) with mu = sqrt(count) * "
    "sensitivity / noise_stddev, the same in both directions; epsilon rounded up";
constexpr const char* kMechanism =
    "full-batch gradient descent on the nodes' own features: each node's gradient is clipped, the sum is rounded to a "
    "lattice and Gaussian noise rounded to the same lattice is added at every step; no training edge is read";
constexpr const char* kRandomSource =
    "AES-256 in counter mode, keyed from the kernel's generator and re-keyed as it runs; normals by Box-Muller from "
    "a 64-bit radius and a 53-bit angle, which leaves out a mass of 2^-64 a pair of draws";
constexpr const char* kPublicRandomSource =
    "not private: for a dataset declared public the caller may have fixed the random stream or turned noise off";
constexpr const char* kTrustModel =
    "central: the server's operator sees the data and is trusted to run the stated mechanism; the promise holds "
    "against everybody who sees only what was released";
constexpr const char* kDigestScope = "HMAC-SHA-256 of the canonical content under a key given to the dataset's owner";
constexpr const char* kBudgetScope =
    "one budget for all identical content of the tenant; content that differs in any way has a budget of its own";

Json Unprotected(const Statement& statement) {
  const auto entry = [](const char* quantity, Json value) {
    return Json{{"quantity", quantity}, {"value", std::move(value)}};
  };
  return Json::array({
      entry("node slots N", statement.sizes.node_count),
      entry("feature width d", statement.sizes.feature_count),
      entry("class count c", statement.sizes.class_count),
      entry("training slots n", statement.plan.training_slots()),
      entry("steps", statement.plan.steps()),
      entry("split over slots", "every slot trains; none is held out"),
      entry("job parameters", "all of mechanism.plan and event"),
      entry("wall-clock time", "when the job was queued, started and ended, and how often it was started"),
      entry("stored size", "the dataset's size in storage, rounded up to a power of two"),
  });
}

// Every field of v1::Plan but event, which has its own place, price_units, which is ledger.units, and left_units, which
// is about other jobs.
Json PlanJson(const v1::Plan& plan) {
  Json json = {
      {"method", v1::Method_Name(plan.method())},
      {"training_slots", plan.training_slots()},
      {"epsilon", plan.epsilon()},
      {"delta", plan.delta()},
      {"accountant", v1::Accountant_Name(plan.accountant())},
      {"steps", plan.steps()},
      {"learning_rate", plan.learning_rate()},
      {"momentum", plan.momentum()},
      {"gradient_clip", plan.gradient_clip()},
      {"noise_multiplier", plan.noise_multiplier()},
      {"lattice_bits", plan.lattice_bits()},
      {"summation_error", plan.summation_error()},
      {"logit_noise", plan.logit_noise()},
  };
  if (plan.has_published_epsilon()) {
    json["published_epsilon"] = plan.published_epsilon();
  }
  return json;
}

Json EventJson(const v1::Plan& plan) { return plan.has_event() ? EventToJson(plan.event()) : Json(nullptr); }

Json LedgerJson(const Statement& statement) {
  if (statement.is_public) {
    return nullptr;
  }
  return {{"budget", statement.budget},
          {"scope", kBudgetScope},
          {"sequence", statement.ledger_sequence},
          {"hash", statement.ledger_hash},
          {"cap_epsilon", statement.cap_epsilon},
          {"cap_delta", statement.cap_delta},
          {"order", statement.order},
          {"units", statement.units}};
}

Json PredicateJson(const Statement& statement) {
  const bool is_public = statement.is_public;
  return {
      {"promise", is_public ? kNoPromise : kPromise},
      {"unit_of_privacy", kUnit},
      {"neighbour_relation", kRelation},
      {"epsilon", is_public ? Json(nullptr) : Json(statement.plan.epsilon())},
      {"delta", is_public ? Json(nullptr) : Json(statement.plan.delta())},
      {"accountant", {{"name", "SOUND"}, {"method", kAccountantMethod}, {"version", kAccountantVersion}}},
      {"mechanism", {{"description", kMechanism}, {"plan", PlanJson(statement.plan)}}},
      {"event", EventJson(statement.plan)},
      {"unprotected", Unprotected(statement)},
      {"random_source", is_public ? kPublicRandomSource : kRandomSource},
      {"trust_model", kTrustModel},
      {"released", Json::array({"the model's weights after the last step"})},
      {"not_released", Json::array({"the data", "losses, gradients and accuracies", "weights before the last step"})},
      {"charged", {{"training", "event"}, {"tuning", "none"}, {"evaluation", "none"}}},
      {"dataset",
       {{"name", statement.dataset},
        {"public", is_public},
        {"digest", statement.dataset_digest},
        {"digest_scope", kDigestScope},
        {"node_count", statement.sizes.node_count},
        {"feature_count", statement.sizes.feature_count},
        {"class_count", statement.sizes.class_count}}},
      {"ledger", LedgerJson(statement)},
      {"software", statement.software},
      {"created_at", statement.created_at},
      {"job", statement.job},
  };
}

void ReadSubjects(const JsonReader& reader, Statement& statement, absl::Status& status) {
  const Json& subjects = reader.Array("subject");
  if (subjects.empty() || subjects.size() > kMaxSubjects) {
    reader.Fail("subject", absl::StrCat("a list of 1 to ", kMaxSubjects, " files"));
  }
  for (const Json& element : subjects) {
    if (!element.is_object()) {
      reader.Fail("subject", "a list of objects");
      return;
    }
    const JsonReader subject(element, "subject", status);
    statement.subjects[subject.Text("name")] = subject.Object("digest").Text("sha256");
  }
}

void ReadPlan(const JsonReader& reader, v1::Plan& plan) {
  v1::Method method = v1::METHOD_UNSPECIFIED;
  if (!v1::Method_Parse(reader.Text("method"), &method)) {
    reader.Fail("method", "the name of a method");
  }
  v1::Accountant accountant = v1::ACCOUNTANT_UNSPECIFIED;
  if (!v1::Accountant_Parse(reader.Text("accountant"), &accountant)) {
    reader.Fail("accountant", "the name of an accountant");
  }
  const int64_t lattice_bits = reader.Integer("lattice_bits");
  if (lattice_bits < 0 || lattice_bits > std::numeric_limits<int32_t>::max()) {
    reader.Fail("lattice_bits", "an integer of at least 0");
    return;
  }
  plan.set_method(method);
  plan.set_accountant(accountant);
  plan.set_lattice_bits(static_cast<int32_t>(lattice_bits));
  plan.set_training_slots(reader.Integer("training_slots"));
  plan.set_epsilon(reader.Number("epsilon"));
  plan.set_delta(reader.Number("delta"));
  plan.set_steps(reader.Integer("steps"));
  plan.set_learning_rate(reader.Number("learning_rate"));
  plan.set_momentum(reader.Number("momentum"));
  plan.set_gradient_clip(reader.Number("gradient_clip"));
  plan.set_noise_multiplier(reader.Number("noise_multiplier"));
  plan.set_summation_error(reader.Number("summation_error"));
  plan.set_logit_noise(reader.Number("logit_noise"));
  if (reader.Has("published_epsilon")) {
    plan.set_published_epsilon(reader.Number("published_epsilon"));
  }
}

void ReadEvent(const JsonReader& predicate, v1::Plan& plan) {
  if (!predicate.Has("event")) {
    return;
  }
  const absl::StatusOr<v1::PrivacyEvent> event = EventFromJson(predicate.RawObject("event"));
  if (event.ok()) {
    *plan.mutable_event() = *event;
  } else {
    predicate.Fail("event", absl::StrCat("a valid event: ", event.status().message()));
  }
}

void ReadLedger(const JsonReader& reader, Statement& statement) {
  statement.budget = reader.Text("budget");
  statement.ledger_sequence = reader.Integer("sequence");
  statement.ledger_hash = reader.Text("hash");
  statement.cap_epsilon = reader.Number("cap_epsilon");
  statement.cap_delta = reader.Number("cap_delta");
  statement.order = reader.Integer("order");
  statement.units = reader.Integer("units");
  statement.plan.set_price_units(statement.units);
}

absl::StatusOr<Statement> ReadStatement(const Json& json) {
  absl::Status status;
  Statement statement;
  const JsonReader root(json, "", status);
  ReadSubjects(root, statement, status);
  const JsonReader predicate = root.Object("predicate");
  ReadPlan(predicate.Object("mechanism").Object("plan"), statement.plan);
  ReadEvent(predicate, statement.plan);
  const JsonReader dataset = predicate.Object("dataset");
  statement.dataset = dataset.Text("name");
  statement.is_public = dataset.Boolean("public");
  statement.dataset_digest = dataset.Text("digest");
  statement.sizes.node_count = dataset.Integer("node_count");
  statement.sizes.feature_count = dataset.Integer("feature_count");
  statement.sizes.class_count = dataset.Integer("class_count");
  if (!statement.is_public) {
    ReadLedger(predicate.Object("ledger"), statement);
  }
  statement.software = predicate.Text("software");
  statement.created_at = predicate.Text("created_at");
  statement.job = predicate.Text("job");
  DPAR_RETURN_IF_ERROR(status);
  return statement;
}

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

absl::Status ValidateStatement(const Statement& statement) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  for (const auto& [name, digest] : statement.subjects) {
    if (name.empty() || name.find('/') != std::string::npos) {
      return InvalidField("subject.name", "subject.name must be the name of a file");
    }
    DPAR_RETURN_IF_ERROR(ValidateSha256("subject.digest.sha256", digest));
  }
  DPAR_RETURN_IF_ERROR(ValidateName("predicate.job", statement.job, "tenants/*/jobs/*"));
  DPAR_RETURN_IF_ERROR(ValidateName("predicate.dataset.name", statement.dataset, "tenants/*/datasets/*"));
  DPAR_RETURN_IF_ERROR(ValidateSha256("predicate.dataset.digest", statement.dataset_digest));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.node_count", statement.sizes.node_count, 1, kLargest));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.feature_count", statement.sizes.feature_count, 1, kLargest));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.class_count", statement.sizes.class_count, 1, kLargest));
  if (!statement.is_public) {
    DPAR_RETURN_IF_ERROR(ValidateName("predicate.ledger.budget", statement.budget, "tenants/*/datasets/*/budget"));
    DPAR_RETURN_IF_ERROR(ValidateSha256("predicate.ledger.hash", statement.ledger_hash));
    DPAR_RETURN_IF_ERROR(ValidateRange("predicate.ledger.sequence", statement.ledger_sequence, 1, kLargest));
    if (!statement.plan.has_event()) {
      return InvalidField("predicate.event", "predicate.event may be null for public data only");
    }
  }
  if (statement.software.empty()) {
    return InvalidField("predicate.software", "predicate.software must not be empty");
  }
  absl::Time time;
  std::string error;
  if (!absl::EndsWith(statement.created_at, "Z") ||
      !absl::ParseTime(absl::RFC3339_full, statement.created_at, &time, &error)) {
    return InvalidField("predicate.created_at", "predicate.created_at must be an RFC 3339 time in UTC, ending in Z");
  }
  return absl::OkStatus();
}

// Why `json`, which parsed, is not what it would be written as.
absl::Status NotAsWritten(const Json& json, const Json& written) {
  const Json difference = Json::diff(written, json);
  if (difference.empty()) {
    return InvalidField("statement", "the statement is not in the byte form that this version writes");
  }
  const auto path = difference.front().value("path", "");
  return InvalidField(path, absl::StrCat("the statement differs at ", path, " from what this version writes"));
}

Json StatementJson(const Statement& statement) {
  Json subjects = Json::array();
  for (const auto& [name, digest] : statement.subjects) {
    subjects.push_back({{"name", name}, {"digest", {{"sha256", digest}}}});
  }
  return {
      {"_type", std::string(kStatementType)},
      {"subject", std::move(subjects)},
      {"predicateType", std::string(kPredicateType)},
      {"predicate", PredicateJson(statement)},
  };
}

}  // namespace

std::string StatementToJson(const Statement& statement) { return DumpJson(StatementJson(statement)); }

absl::StatusOr<Statement> StatementFromJson(absl::string_view json) {
  DPAR_ASSIGN_OR_RETURN(const Json parsed, ParseStrictJson("statement", json));
  DPAR_ASSIGN_OR_RETURN(Statement statement, ReadStatement(parsed));
  DPAR_RETURN_IF_ERROR(ValidateStatement(statement));
  const Json written = StatementJson(statement);
  if (DumpJson(written) != json) {
    return NotAsWritten(parsed, written);
  }
  return statement;
}

}  // namespace dpar
