#include "core/certificate/statement.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/strict_json.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/plan/method.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"

// The fixed texts below are part of kPredicateType: changing one means a new version of it, since certificates that
// were signed with the old text must keep verifying.
namespace dpar {
namespace {

constexpr absl::string_view kPredicatePrefix = "urn:dpar:privacy-certificate:v";

constexpr const char* kPromise = "node-level differential privacy";
constexpr const char* kNoPromise = "none: the dataset was declared public";
constexpr const char* kNoPromiseWithoutNoise =
    "none: the dataset was declared public, and the model was trained without any noise";
constexpr const char* kUnit = "one node: its feature row, its label and every edge that touches it";
constexpr const char* kRelation =
    "node removal in zero-out form: one node loses its features, its label and its edges while its slot stays; both "
    "directions count and the larger is charged";
// Behind kRelation where the price rests on a degree promise, with the promise between the two.
constexpr const char* kPromisedDegree = "; no node of either graph has more than ";
constexpr const char* kPromiseOrigin =
    " neighbours, which the dataset's owner declared before the upload and the server checked before sealing it: about "
    "graphs in which a node has more, nothing is promised";
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
constexpr const char* kPublishedClaim =
    "the claim of the published paper for the same noise, by its own theorems; it is not a bound and not the promise, "
    "which is epsilon above";
constexpr const char* kCheckpoint =
    "hash is the head of the ledger's chain when this certificate was signed: the signature over this statement is the "
    "signed checkpoint of every entry up to this one";
constexpr const char* kProgress =
    "the stage and the share of it that was done, while the job ran; both follow from the plan and the clock alone";
constexpr const char* kIdenticalDatasets =
    "ledger shows which datasets of the tenant have the same content, because those share a budget";
constexpr const char* kBudgetScope =
    "one budget for all identical content of the tenant; content that differs in any way has a budget of its own";

std::string Relation(const v1::Plan& plan) {
  return plan.has_max_degree() ? absl::StrCat(kRelation, kPromisedDegree, plan.max_degree(), kPromiseOrigin)
                               : kRelation;
}

// What graphs the cap is about: the promise stands between the two.
constexpr const char* kCapRelation =
    "all jobs charged to this budget together, under the relation of node removal in zero-out form";
constexpr const char* kEveryGraph =
    ", for every graph; a degree promise that is declared for the same content later narrows that to graphs that keep "
    "it";
constexpr const char* kPromisedGraphs = ", for graphs in which no node has more than ";
constexpr const char* kCapPromiseOrigin =
    " neighbours, the smallest degree promise that was declared for this content: jobs that read training edges are "
    "priced under such promises, and may be charged before this one or after it. About other graphs the cap says "
    "something only while none is charged; a smaller promise that is declared later narrows it further";

std::string CapRelation(const Statement& statement) {
  return statement.cap_max_degree > 0
             ? absl::StrCat(kCapRelation, kPromisedGraphs, statement.cap_max_degree, kCapPromiseOrigin)
             : absl::StrCat(kCapRelation, kEveryGraph);
}

bool IsSecondVersion(const Statement& statement) { return statement.predicate_version == 2; }
bool IsBeforeFourth(const Statement& statement) { return statement.predicate_version < 4; }

// The degree promise of the dataset that is listed as public.
int64_t ListedPromise(const Statement& statement) {
  if (IsSecondVersion(statement)) {
    return 0;
  }
  return IsBeforeFourth(statement) ? statement.plan.max_degree() : statement.max_degree;
}

// A promise that there may be none of.
Json PromiseJson(int64_t max_degree) { return max_degree > 0 ? Json(max_degree) : Json(nullptr); }

Json Unprotected(const Statement& statement) {
  const auto entry = [](const char* quantity, Json value) {
    return Json{{"quantity", quantity}, {"value", std::move(value)}};
  };
  Json list = Json::array({
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
  if (!IsSecondVersion(statement)) {
    list.push_back(entry("progress", kProgress));
    list.push_back(entry("identical datasets", kIdenticalDatasets));
  }
  if (const int64_t promise = ListedPromise(statement); promise > 0) {
    list.push_back(entry("degree promise D", promise));
  }
  // Also where this dataset has none: the same content was checked against it. Earlier versions never have it.
  if (statement.cap_max_degree > 0) {
    list.push_back(entry("smallest degree promise for this content", statement.cap_max_degree));
  }
  return list;
}

// event has its own place, price_units is ledger.units, and left_units is about other jobs.
std::set<std::string> NotOfThePlan() { return {"event", "price_units", "left_units"}; }

// A plan of DPAR without DP-APPR trains on the nodes' own features, whatever its method was named after.
std::string Description(const v1::Plan& plan) {
  const MethodTraits* traits = FindMethod(plan.method());
  if (traits != nullptr && traits->structure.has_value() && !plan.has_structure()) {
    traits = FindMethod(v1::FEATURES);
  }
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
  if (plan.has_aggregation()) {
    released.push_back("the encoder's weights after its last step, as part of the model");
  }
  if (plan.has_mean()) {
    released.push_back(absl::StrCat("the ", noisy, "mean of the feature rows, as part of the model"));
  }
  if (plan.has_evaluation()) {
    released.push_back(absl::StrCat("the ", noisy, "accuracy on the held-out slots, under evaluation"));
  }
  return released;
}

Json NotReleased(const v1::Plan& plan) {
  Json list = Json::array({"the data", "losses and gradients", "any other accuracy", "weights before the last step",
                           "DP-APPR rows and their seeds", "which nodes were sampled"});
  if (plan.has_aggregation()) {
    list.push_back("sums over neighbours, though the noisy ones are charged as if they were");
  }
  if (plan.has_neighbours()) {
    list.push_back("which neighbours were sampled");
  }
  return list;
}

Json Charged(const v1::Plan& plan) {
  const char* training = plan.has_event() ? "event" : "none";
  return {{"training", training}, {"tuning", "none"}, {"evaluation", plan.has_evaluation() ? training : "none"}};
}

Json EventJson(const v1::Plan& plan) { return plan.has_event() ? EventToJson(plan.event()) : Json(nullptr); }

Json SecondLedgerJson(const Statement& statement) {
  return {{"budget", statement.budget},
          {"scope", kBudgetScope},
          {"sequence", statement.ledger_sequence},
          {"hash", statement.ledger_hash},
          {"cap_epsilon", statement.cap_epsilon},
          {"cap_delta", statement.cap_delta},
          {"order", statement.order},
          {"units", statement.units}};
}

Json LedgerJson(const Statement& statement) {
  if (statement.is_public) {
    return nullptr;
  }
  if (IsSecondVersion(statement)) {
    return SecondLedgerJson(statement);
  }
  Json json = {{"budget", statement.budget},
               {"scope", kBudgetScope},
               {"cap_epsilon", statement.cap_epsilon},
               {"cap_delta", statement.cap_delta}};
  if (!IsBeforeFourth(statement)) {
    json["cap_max_degree"] = PromiseJson(statement.cap_max_degree);
    json["cap_relation"] = CapRelation(statement);
  }
  json.update({{"order", statement.order},
               {"cap_units", statement.cap_units},
               {"units_before", statement.units_before},
               {"units", statement.units},
               {"units_after", statement.units_before + statement.units},
               {"entry",
                {{"sequence", statement.ledger_sequence},
                 {"hash", statement.ledger_hash},
                 {"previous_hash", statement.previous_hash},
                 {"budget_id", statement.budget_id},
                 {"time_microseconds", statement.entry_time_microseconds},
                 {"kind", "POST"},
                 {"actor", statement.entry_actor},
                 {"attempt", statement.entry_attempt},
                 {"event", statement.entry_event}}},
               {"checkpoint", kCheckpoint}});
  return json;
}

const char* Promise(const Statement& statement) {
  if (!statement.is_public) {
    return kPromise;
  }
  return statement.plan.non_private() && !IsSecondVersion(statement) ? kNoPromiseWithoutNoise : kNoPromise;
}

Json AccountantJson(const Statement& statement) {
  Json json = {{"name", "SOUND"}, {"method", kAccountantMethod}, {"version", statement.accountant_version}};
  if (!IsSecondVersion(statement)) {
    json["epsilon"] = statement.is_public ? Json(nullptr) : Json(statement.accountant_epsilon);
  }
  return json;
}

Json PublishedJson(const v1::Plan& plan) {
  return plan.has_published_epsilon() ? Json{{"epsilon", plan.published_epsilon()}, {"claim", kPublishedClaim}}
                                      : Json(nullptr);
}

Json DatasetJson(const Statement& statement) {
  Json json = {{"name", statement.dataset},
               {"public", statement.is_public},
               {"digest", statement.dataset_digest},
               {"digest_scope", kDigestScope},
               {"node_count", statement.sizes.node_count},
               {"feature_count", statement.sizes.feature_count},
               {"class_count", statement.sizes.class_count}};
  if (!IsBeforeFourth(statement)) {
    json["max_degree"] = PromiseJson(statement.max_degree);
  }
  return json;
}

Json PredicateJson(const Statement& statement) {
  const bool is_public = statement.is_public;
  const bool second = IsSecondVersion(statement);
  Json json = Json::object();
  // Straight into the vector behind the object: its operator[] looks through all keys for one that is new.
  const auto add = [&json](const char* key, Json value) {
    json.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
  };
  add("promise", Promise(statement));
  add("unit_of_privacy", kUnit);
  add("neighbour_relation", Relation(statement.plan));
  add("epsilon", is_public ? Json(nullptr) : Json(statement.plan.epsilon()));
  add("delta", is_public ? Json(nullptr) : Json(statement.plan.delta()));
  add("accountant", AccountantJson(statement));
  if (!second) {
    add("published", PublishedJson(statement.plan));
  }
  add("mechanism",
      {{"description", Description(statement.plan)}, {"plan", MessageToJson(statement.plan, NotOfThePlan())}});
  add("event", EventJson(statement.plan));
  add("unprotected", Unprotected(statement));
  add("random_source", RandomSource(statement));
  add("trust_model", kTrustModel);
  add("released", Released(statement.plan));
  add("not_released", NotReleased(statement.plan));
  add("evaluation", statement.evaluation.has_value() ? MessageToJson(*statement.evaluation) : Json(nullptr));
  add("charged", Charged(statement.plan));
  add("dataset", DatasetJson(statement));
  add("ledger", LedgerJson(statement));
  add("software", statement.software);
  if (!second) {
    add("build", statement.build);
  }
  add("created_at", statement.created_at);
  add("job", statement.job);
  return json;
}

void ReadSubjects(const JsonReader& reader, Statement& statement, absl::Status& status) {
  const Json& subjects = reader.Array("subject");
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

void ReadEntry(const JsonReader& reader, Statement& statement) {
  statement.ledger_sequence = reader.Integer("sequence");
  statement.ledger_hash = reader.Text("hash");
  if (IsSecondVersion(statement)) {
    return;
  }
  statement.previous_hash = reader.Text("previous_hash");
  statement.budget_id = reader.Text("budget_id");
  statement.entry_time_microseconds = reader.Integer("time_microseconds");
  statement.entry_actor = reader.Text("actor");
  statement.entry_attempt = reader.Integer("attempt");
  statement.entry_event = reader.Text("event");
}

void ReadLedger(const JsonReader& reader, Statement& statement) {
  statement.budget = reader.Text("budget");
  statement.cap_epsilon = reader.Number("cap_epsilon");
  statement.cap_delta = reader.Number("cap_delta");
  if (!IsBeforeFourth(statement) && reader.Has("cap_max_degree")) {
    statement.cap_max_degree = reader.Integer("cap_max_degree");
  }
  statement.order = reader.Integer("order");
  statement.units = reader.Integer("units");
  statement.plan.set_price_units(statement.units);
  if (IsSecondVersion(statement)) {
    ReadEntry(reader, statement);
    return;
  }
  statement.cap_units = reader.Integer("cap_units");
  statement.units_before = reader.Integer("units_before");
  ReadEntry(reader.Object("entry"), statement);
}

void ReadAccountant(const JsonReader& reader, Statement& statement) {
  statement.accountant_version = reader.Integer("version");
  if (!statement.is_public && !IsSecondVersion(statement)) {
    statement.accountant_epsilon = reader.Number("epsilon");
  }
}

absl::StatusOr<Statement> ReadStatement(const Json& json, int predicate_version) {
  absl::Status status;
  Statement statement;
  statement.predicate_version = predicate_version;
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
  if (!IsBeforeFourth(statement) && dataset.Has("max_degree")) {
    statement.max_degree = dataset.Integer("max_degree");
  }
  ReadAccountant(predicate.Object("accountant"), statement);
  if (!statement.is_public) {
    ReadLedger(predicate.Object("ledger"), statement);
  }
  statement.software = predicate.Text("software");
  if (!IsSecondVersion(statement)) {
    statement.build = predicate.Text("build");
  }
  statement.created_at = predicate.Text("created_at");
  statement.job = predicate.Text("job");
  DPAR_RETURN_IF_ERROR(status);
  return statement;
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
      {"predicateType", absl::StrCat(kPredicatePrefix, statement.predicate_version)},
      {"predicate", PredicateJson(statement)},
  };
}

// The version of the predicate, if this program reads it.
absl::StatusOr<int> PredicateVersion(const Json& json) {
  const auto type = json.find("predicateType");
  if (type == json.end() || !type->is_string()) {
    return InvalidField("predicateType", "predicateType must be a string");
  }
  const auto text = type->get<std::string>();
  for (int version = kOldestPredicateVersion; version <= kPredicateVersion; ++version) {
    if (text == absl::StrCat(kPredicatePrefix, version)) {
      return version;
    }
  }
  if (text == absl::StrCat(kPredicatePrefix, 1)) {
    return InvalidField("predicateType",
                        absl::StrCat("the certificate is a ", text,
                                     ", which dpar 0.1 made; check it with dpar verify of that version"));
  }
  if (absl::StartsWith(text, kPredicatePrefix)) {
    return InvalidField("predicateType", absl::StrCat("the certificate is a ", text,
                                                      ", which this version does not know; use a newer dpar"));
  }
  return InvalidField("predicateType", absl::StrCat("predicateType must be ", kPredicateType));
}

}  // namespace

std::string StatementToJson(const Statement& statement) { return DumpJson(StatementJson(statement)); }

absl::StatusOr<Statement> StatementFromJson(absl::string_view json) {
  DPAR_ASSIGN_OR_RETURN(const Json parsed, ParseStrictJson("statement", json));
  DPAR_ASSIGN_OR_RETURN(const int version, PredicateVersion(parsed));
  DPAR_ASSIGN_OR_RETURN(Statement statement, ReadStatement(parsed, version));
  DPAR_RETURN_IF_ERROR(ValidateStatement(statement));
  const Json written = StatementJson(statement);
  if (DumpJson(written) != json) {
    return NotAsWritten(parsed, written);
  }
  return statement;
}

}  // namespace dpar
