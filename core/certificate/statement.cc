#include "core/certificate/statement.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/certificate/digest.h"
#include "core/certificate/strict_json.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/plan/method.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "core/validate.h"

// The fixed texts below are part of kPredicateType: changing one means a new version of it, since certificates that
// were signed with the old text must keep verifying.
namespace dpar {
namespace {

constexpr size_t kSha256HexLength = 64;
constexpr size_t kMaxSubjects = 16;
constexpr int kAccountantVersion = 2;
constexpr int64_t kMaxSize = int64_t{1} << 31;
constexpr const char* kFirstPredicateType = "urn:dpar:privacy-certificate:v1";

constexpr const char* kPromise = "node-level differential privacy";
constexpr const char* kNoPromise = "none: the dataset was declared public";
constexpr const char* kUnit = "one node: its feature row, its label and every edge that touches it";
constexpr const char* kRelation =
    "node removal in zero-out form: one node loses its features, its label and its edges while its slot stays; both "
    "directions count and the larger is charged";
constexpr const char* kAccountantMethod =
    "the event is a composition of stages and costs what they cost together; Gaussian mechanisms alone exactly: "
    "delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) with mu^2 the sum of count * (sensitivity / "
    "noise_stddev)^2; everything else by privacy-loss distributions, or by Renyi divergences where they give less; "
    "both "
    "directions, the larger; epsilon rounded up";
constexpr const char* kWithoutNoise = "without clipping and without noise, what is otherwise this: ";
constexpr const char* kRandomSource =
    "AES-256 in counter mode, keyed from the kernel's generator and re-keyed as it runs; normals by Box-Muller from "
    "a 64-bit radius and a 53-bit angle, which leaves out a mass of 2^-64 a pair of draws";
constexpr const char* kPublicRandomSource =
    "not private: for a dataset declared public the caller may have fixed the random stream";
constexpr const char* kNoNoise = "not private: noise was off, which only a dataset declared public allows";
constexpr const char* kNoSplit = "every slot trains; none is held out";
constexpr const char* kSplit =
    "the held-out slots are drawn uniformly over all slots and are absent from training with all their edges; every "
    "other slot trains";
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
      entry("held-out slots", statement.plan.evaluation().held_out_slots()),
      entry("split over slots", statement.plan.has_evaluation() ? kSplit : kNoSplit),
      entry("steps", statement.plan.steps()),
      entry("job parameters", "all of mechanism.plan and event"),
      entry("wall-clock time", "when the job was queued, started and ended, and how often it was started"),
      entry("stored size", "the dataset's size in storage, rounded up to a power of two"),
  });
}

// event has its own place, price_units is ledger.units, and left_units is about other jobs.
std::set<std::string> NotOfThePlan() { return {"event", "price_units", "left_units"}; }

// A plan without DP-APPR trains on the nodes' own features, whatever its method was named after.
std::string Description(const v1::Plan& plan) {
  const MethodTraits* traits = FindMethod(plan.has_structure() ? plan.method() : v1::FEATURES);
  return absl::StrCat(plan.non_private() ? kWithoutNoise : "", traits != nullptr ? traits->description : "");
}

const char* RandomSource(const Statement& statement) {
  if (statement.plan.non_private()) {
    return kNoNoise;
  }
  return statement.is_public ? kPublicRandomSource : kRandomSource;
}

Json Released(const v1::Plan& plan) {
  const char* noisy = plan.non_private() ? "" : "noisy ";
  Json released = Json::array({"the model's weights after the last step"});
  if (plan.has_mean()) {
    released.push_back(absl::StrCat("the ", noisy, "mean of the feature rows, as part of the model"));
  }
  if (plan.has_evaluation()) {
    released.push_back(absl::StrCat("the ", noisy, "accuracy on the held-out slots, under evaluation"));
  }
  return released;
}

Json NotReleased() {
  return Json::array({"the data", "losses and gradients", "any other accuracy", "weights before the last step",
                      "DP-APPR rows and their seeds", "which nodes were sampled"});
}

Json Charged(const v1::Plan& plan) {
  const char* training = plan.has_event() ? "event" : "none";
  return {{"training", training}, {"tuning", "none"}, {"evaluation", plan.has_evaluation() ? training : "none"}};
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
      {"mechanism",
       {{"description", Description(statement.plan)}, {"plan", MessageToJson(statement.plan, NotOfThePlan())}}},
      {"event", EventJson(statement.plan)},
      {"unprotected", Unprotected(statement)},
      {"random_source", RandomSource(statement)},
      {"trust_model", kTrustModel},
      {"released", Released(statement.plan)},
      {"not_released", NotReleased()},
      {"evaluation", statement.evaluation.has_value() ? MessageToJson(*statement.evaluation) : Json(nullptr)},
      {"charged", Charged(statement.plan)},
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

absl::Status ReadPlan(const JsonReader& mechanism, v1::Plan& plan) {
  return MessageFromJson(mechanism.RawObject("plan"), "predicate.mechanism.plan", plan, NotOfThePlan());
}

absl::Status ReadEvaluation(const JsonReader& predicate, Statement& statement) {
  if (!predicate.Has("evaluation")) {
    return absl::OkStatus();
  }
  return MessageFromJson(predicate.RawObject("evaluation"), "predicate.evaluation", statement.evaluation.emplace());
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
  status.Update(ReadPlan(predicate.Object("mechanism"), statement.plan));
  ReadEvent(predicate, statement.plan);
  status.Update(ReadEvaluation(predicate, statement));
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
  if (statement.evaluation.has_value() != plan.has_evaluation()) {
    return InvalidField("predicate.evaluation",
                        "predicate.evaluation must be null for a plan without an evaluation, and only then");
  }
  return plan.has_evaluation() ? ValidateEvaluation(*statement.evaluation, plan.evaluation()) : absl::OkStatus();
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
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.node_count", statement.sizes.node_count, 1, kMaxSize));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.feature_count", statement.sizes.feature_count, 1, kMaxSize));
  DPAR_RETURN_IF_ERROR(ValidateRange("predicate.dataset.class_count", statement.sizes.class_count, 1, kMaxSize));
  if (!statement.is_public) {
    DPAR_RETURN_IF_ERROR(ValidateName("predicate.ledger.budget", statement.budget, "tenants/*/datasets/*/budget"));
    DPAR_RETURN_IF_ERROR(ValidateSha256("predicate.ledger.hash", statement.ledger_hash));
    DPAR_RETURN_IF_ERROR(ValidateRange("predicate.ledger.sequence", statement.ledger_sequence, 1, kLargest));
  }
  DPAR_RETURN_IF_ERROR(ValidatePlan(statement));
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
  if (parsed.value("predicateType", Json()) == Json(kFirstPredicateType)) {
    return InvalidField("predicateType",
                        absl::StrCat("the certificate is a ", kFirstPredicateType,
                                     ", which dpar 0.1 made; check it with dpar verify of that version"));
  }
  DPAR_ASSIGN_OR_RETURN(Statement statement, ReadStatement(parsed));
  DPAR_RETURN_IF_ERROR(ValidateStatement(statement));
  const Json written = StatementJson(statement);
  if (DumpJson(written) != json) {
    return NotAsWritten(parsed, written);
  }
  return statement;
}

}  // namespace dpar
