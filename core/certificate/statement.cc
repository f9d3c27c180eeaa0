#include "core/certificate/statement.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/plan/method.h"
#include "core/status_macros.h"
#include "core/strict_json.h"

// The fixed texts are part of kPredicateType: changing one needs a new version, since old certificates must still
// verify.
namespace dpar {
namespace {

// Fields not under mechanism.plan: event has its own place, price_units is ledger.units, left_units is other jobs'.
const std::set<std::string>& FieldsBesideThePlan() {
  static const auto* const fields = new std::set<std::string>{"event", "price_units", "left_units"};
  return *fields;
}

constexpr const char* kGuarantee = "node-level differential privacy";
constexpr const char* kNoGuarantee = "none: the dataset was declared public";
constexpr const char* kNoGuaranteeWithoutNoise =
    "none: the dataset was declared public, and the model was trained without any noise";
constexpr const char* kUnit = "one node: its feature row, its label and every edge that touches it";
constexpr const char* kRelation =
    "node removal in zero-out form: one node loses its features, its label and its edges while its slot stays; both "
    "directions count and the larger is charged";
// Follow kRelation where the price rests on a degree promise, which stands between the two.
constexpr const char* kPromisedDegree = "; no node of either graph has more than ";
constexpr const char* kPromiseOrigin =
    " neighbours, which the dataset's owner declared before the upload and the server checked before sealing it: about "
    "graphs in which a node has more, nothing is guaranteed";
constexpr const char* kAccountantMethod =
    "the event is a composition of stages and costs what they cost together; Gaussian mechanisms alone exactly: "
    "delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2) with mu^2 the sum of count * (sensitivity / "
    "noise_stddev)^2; everything else by privacy-loss distributions, or by Renyi divergences where they give less; "
    "both "
    "directions, the larger; epsilon rounded up";
constexpr const char* kWithoutNoise = "without clipping and without noise, what is otherwise this: ";
constexpr const char* kRandomSource =
    "AES-256 in counter mode, keyed from the kernel's generator and re-keyed as it runs; given uniform bits, noise is "
    "exactly an ideal variate rounded to its lattice, and selections and samples have exactly their probabilities: "
    "bits are drawn until they decide";
constexpr const char* kPublicRandomSource =
    "not private: for a dataset declared public the caller may have fixed the random stream";
constexpr const char* kNoNoise = "not private: noise was off, which only a dataset declared public allows";
constexpr const char* kNoSplit = "every slot trains; none is held out";
constexpr const char* kSplit =
    "the held-out slots are drawn uniformly over all slots and are absent from training with all their edges; every "
    "other slot trains";
constexpr const char* kTrustModel =
    "central: the server's operator sees the data and is trusted to run the stated mechanism; the guarantee holds "
    "against everybody who sees only what was released";
constexpr const char* kDigestScope = "HMAC-SHA-256 of the canonical content under a key given to the dataset's owner";
constexpr const char* kPublishedClaim =
    "the claim of the published paper for the same noise, by its own theorems; it is not a bound and not the "
    "guarantee, "
    "which is epsilon above";
constexpr const char* kCheckpoint =
    "hash is the head of the ledger's chain when this certificate was signed: the signature over this statement is the "
    "signed checkpoint of every entry up to this one";
constexpr const char* kProgress =
    "the stage and the share of it that was done, while the job ran; what is shown follows from the plan alone, when "
    "it "
    "is shown is wall-clock time";
constexpr const char* kIdenticalDatasets =
    "ledger shows which datasets of the tenant are about the same people, as its owner declared or because their "
    "content is the same; a private dataset is none whose content the tenant declared public before";
constexpr const char* kBudgetScope =
    "one budget for all people of the population as of this entry, each of whom is at most one node in each version of "
    "the data that its owner placed in it: what is learnt about a person from all of these versions together stays "
    "within the cap, unless an operator raises it or the ledger shows more than 100% used, as later entries say; "
    "whoever "
    "is in another population has a budget of its own there";

std::string Relation(const v1::Plan& plan) {
  return plan.has_max_degree() ? absl::StrCat(kRelation, kPromisedDegree, plan.max_degree(), kPromiseOrigin)
                               : kRelation;
}

// The degree promise stands between the two.
constexpr const char* kCapRelation =
    "all jobs charged to this population together, under the relation of node removal in zero-out form, applied to one "
    "person in every version at once";
constexpr const char* kEveryGraph =
    ", for every graph; a degree promise that is declared for the same population later narrows that to graphs that "
    "keep it";
constexpr const char* kPromisedGraphs = ", for graphs in which no node has more than ";
constexpr const char* kCapPromiseOrigin =
    " neighbours, the smallest degree promise that was declared for this population: jobs that read training edges are "
    "priced under such degree promises, and may be charged before this one or after it. About other graphs the cap "
    "says "
    "something only while none is charged; a smaller degree promise that is declared later narrows it further";

std::string CapRelation(const Statement& statement) {
  return statement.cap_max_degree > 0
             ? absl::StrCat(kCapRelation, kPromisedGraphs, statement.cap_max_degree, kCapPromiseOrigin)
             : absl::StrCat(kCapRelation, kEveryGraph);
}

Json Promised(int64_t max_degree) { return max_degree > 0 ? Json(max_degree) : Json(nullptr); }

Json Unprotected(const Statement& statement) {
  const v1::Plan& plan = statement.plan;
  Json list = Json::array();
  const auto add = [&list](const char* quantity, Json value) {
    list.push_back(Json{{"quantity", quantity}, {"value", std::move(value)}});
  };
  add("node slots N", statement.sizes.node_count);
  add("feature width d", statement.sizes.feature_count);
  add("class count c", statement.sizes.class_count);
  add("training slots n", plan.training_slots());
  add("held-out slots", plan.evaluation().held_out_slots());
  add("split over slots", plan.has_evaluation() ? kSplit : kNoSplit);
  add("steps", plan.steps());
  add("job parameters", "all of mechanism.plan and event");
  add("wall-clock time", "when the job was queued, started and ended, and how often it was started");
  add("edge bound", statement.bounds.edges);
  add("entry bound", statement.bounds.feature_entries);
  add("progress", kProgress);
  add("identical datasets", kIdenticalDatasets);
  add("schema", statement.schema.empty() ? Json(nullptr) : Json::parse(statement.schema, nullptr, false));
  if (statement.max_degree > 0) {
    add("degree promise D", statement.max_degree);
  }
  // Also where this dataset has no degree promise: it is another version's.
  if (statement.cap_max_degree > 0) {
    add("smallest degree promise for this population", statement.cap_max_degree);
  }
  return list;
}

// Without DP-APPR, a plan of DPAR trains on the nodes' own features, whatever its method's name.
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
  Json list = {"the model's weights after the last step"};
  if (plan.has_aggregation()) {
    list.push_back("the encoder's weights after its last step, as part of the model");
  }
  if (plan.has_mean()) {
    list.push_back(absl::StrCat("the ", noisy, "mean of the feature rows, as part of the model"));
  }
  if (plan.has_class_shares()) {
    list.push_back(absl::StrCat("the ", noisy,
                                "shares of the classes that the model predicts on the training rows, as part of the "
                                "model"));
  }
  if (plan.has_evaluation()) {
    list.push_back(absl::StrCat("the ", noisy, "accuracy on the held-out slots, under evaluation"));
  }
  return list;
}

Json NotReleased(const v1::Plan& plan) {
  Json list = {"the data",
               "losses and gradients",
               "any other accuracy",
               "weights before the last step",
               "DP-APPR rows and their seeds",
               "which nodes were sampled"};
  if (plan.has_aggregation()) {
    list.push_back("sums over neighbours, though the noisy ones are charged as if they were");
  }
  if (plan.has_neighbours()) {
    list.push_back("which neighbours were sampled");
  }
  return list;
}

Json Ledger(const Statement& statement) {
  if (statement.is_public) {
    return nullptr;
  }
  return {{"population", statement.population},
          {"scope", kBudgetScope},
          {"cap_epsilon", statement.cap_epsilon},
          {"cap_delta", statement.cap_delta},
          {"cap_max_degree", Promised(statement.cap_max_degree)},
          {"cap_relation", CapRelation(statement)},
          {"order", statement.order},
          {"cap_units", statement.cap_units},
          {"units_before", statement.units_before},
          {"units", statement.units},
          {"units_after", statement.units_before + statement.units},
          {"entry",
           {{"sequence", statement.ledger_sequence},
            {"hash", statement.ledger_hash},
            {"previous_hash", statement.previous_hash},
            {"time_microseconds", statement.entry_time_microseconds},
            {"kind", "POST"},
            {"actor", statement.entry_actor},
            {"attempt", statement.entry_attempt},
            {"event", statement.entry_event}}},
          {"checkpoint", kCheckpoint}};
}

const char* Guarantee(const Statement& statement) {
  if (!statement.is_public) {
    return kGuarantee;
  }
  return statement.plan.non_private() ? kNoGuaranteeWithoutNoise : kNoGuarantee;
}

Json Predicate(const Statement& statement) {
  const v1::Plan& plan = statement.plan;
  const auto if_private = [&](double number) { return statement.is_public ? Json(nullptr) : Json(number); };
  const char* const charged = plan.has_event() ? "event" : "none";
  return {{"guarantee", Guarantee(statement)},
          {"unit_of_privacy", kUnit},
          {"neighbour_relation", Relation(plan)},
          {"epsilon", if_private(plan.epsilon())},
          {"delta", if_private(plan.delta())},
          {"accountant",
           {{"name", "SOUND"},
            {"method", kAccountantMethod},
            {"version", statement.accountant_version},
            {"epsilon", if_private(statement.accountant_epsilon)}}},
          {"published", plan.has_published_epsilon()
                            ? Json{{"epsilon", plan.published_epsilon()}, {"claim", kPublishedClaim}}
                            : Json(nullptr)},
          {"mechanism", {{"description", Description(plan)}, {"plan", MessageToJson(plan, FieldsBesideThePlan())}}},
          {"event", plan.has_event() ? MessageToJson(plan.event()) : Json(nullptr)},
          {"unprotected", Unprotected(statement)},
          {"random_source", RandomSource(statement)},
          {"trust_model", kTrustModel},
          {"released", Released(plan)},
          {"not_released", NotReleased(plan)},
          {"evaluation", statement.evaluation.has_value() ? MessageToJson(*statement.evaluation) : Json(nullptr)},
          {"charged",
           {{"training", charged}, {"tuning", "none"}, {"evaluation", plan.has_evaluation() ? charged : "none"}}},
          {"dataset",
           {{"name", statement.dataset},
            {"public", statement.is_public},
            {"digest", statement.dataset_digest},
            {"digest_scope", kDigestScope},
            {"node_count", statement.sizes.node_count},
            {"feature_count", statement.sizes.feature_count},
            {"class_count", statement.sizes.class_count},
            {"edge_bound", statement.bounds.edges},
            {"entry_bound", statement.bounds.feature_entries},
            {"max_degree", Promised(statement.max_degree)}}},
          {"ledger", Ledger(statement)},
          {"software", statement.software},
          {"build", statement.build},
          {"created_at", statement.created_at},
          {"job", statement.job}};
}

void ReadLedger(JsonFields& fields, Statement& statement) {
  fields.Read("/predicate/accountant/epsilon", statement.accountant_epsilon);
  fields.Read("/predicate/ledger/population", statement.population);
  fields.Read("/predicate/ledger/cap_epsilon", statement.cap_epsilon);
  fields.Read("/predicate/ledger/cap_delta", statement.cap_delta);
  if (!fields.IsNull("/predicate/ledger/cap_max_degree")) {
    fields.Read("/predicate/ledger/cap_max_degree", statement.cap_max_degree);
  }
  fields.Read("/predicate/ledger/order", statement.order);
  fields.Read("/predicate/ledger/cap_units", statement.cap_units);
  fields.Read("/predicate/ledger/units_before", statement.units_before);
  fields.Read("/predicate/ledger/units", statement.units);
  statement.plan.set_price_units(statement.units);
  fields.Read("/predicate/ledger/entry/sequence", statement.ledger_sequence);
  fields.Read("/predicate/ledger/entry/hash", statement.ledger_hash);
  fields.Read("/predicate/ledger/entry/previous_hash", statement.previous_hash);
  fields.Read("/predicate/ledger/entry/time_microseconds", statement.entry_time_microseconds);
  fields.Read("/predicate/ledger/entry/actor", statement.entry_actor);
  fields.Read("/predicate/ledger/entry/attempt", statement.entry_attempt);
  fields.Read("/predicate/ledger/entry/event", statement.entry_event);
}

// The schema stands among what is unprotected.
void ReadSchema(const Json& json, Statement& statement) {
  const Json::json_pointer place("/predicate/unprotected");
  if (!json.contains(place) || !json[place].is_array()) {
    return;
  }
  for (const Json& entry : json[place]) {
    if (entry.is_object() && entry.contains("quantity") && entry["quantity"] == "schema" && entry.contains("value") &&
        entry["value"].is_object()) {
      statement.schema = entry["value"].dump();
    }
  }
}

void ReadDataset(JsonFields& fields, Statement& statement) {
  fields.Read("/predicate/dataset/name", statement.dataset);
  fields.Read("/predicate/dataset/public", statement.is_public);
  fields.Read("/predicate/dataset/digest", statement.dataset_digest);
  fields.Read("/predicate/dataset/node_count", statement.sizes.node_count);
  fields.Read("/predicate/dataset/feature_count", statement.sizes.feature_count);
  fields.Read("/predicate/dataset/class_count", statement.sizes.class_count);
  fields.Read("/predicate/dataset/edge_bound", statement.bounds.edges);
  fields.Read("/predicate/dataset/entry_bound", statement.bounds.feature_entries);
  if (!fields.IsNull("/predicate/dataset/max_degree")) {
    fields.Read("/predicate/dataset/max_degree", statement.max_degree);
  }
}

absl::StatusOr<Statement> ReadStatement(const Json& json) {
  Statement statement;
  JsonFields fields("statement", json);
  for (size_t i = 0; json.contains("subject") && i < json["subject"].size(); ++i) {
    std::string name;
    fields.Read(absl::StrCat("/subject/", i, "/name"), name);
    fields.Read(absl::StrCat("/subject/", i, "/digest/sha256"), statement.subjects[name]);
  }
  fields.ReadMessage("/predicate/mechanism/plan", statement.plan);
  if (!fields.IsNull("/predicate/event")) {
    fields.ReadMessage("/predicate/event", *statement.plan.mutable_event());
  }
  if (!fields.IsNull("/predicate/evaluation")) {
    fields.ReadMessage("/predicate/evaluation", statement.evaluation.emplace());
  }
  ReadDataset(fields, statement);
  ReadSchema(json, statement);
  fields.Read("/predicate/accountant/version", statement.accountant_version);
  if (!statement.is_public) {
    ReadLedger(fields, statement);
  }
  fields.Read("/predicate/software", statement.software);
  fields.Read("/predicate/build", statement.build);
  fields.Read("/predicate/created_at", statement.created_at);
  fields.Read("/predicate/job", statement.job);
  DPAR_RETURN_IF_ERROR(fields.status());
  return statement;
}

Json StatementTree(const Statement& statement) {
  Json subjects = Json::array();
  for (const auto& [name, digest] : statement.subjects) {
    subjects.push_back(Json{{"name", name}, {"digest", {{"sha256", digest}}}});
  }
  return {{"_type", kStatementType},
          {"subject", std::move(subjects)},
          {"predicateType", kPredicateType},
          {"predicate", Predicate(statement)}};
}

}  // namespace

std::string StatementToJson(const Statement& statement) {
  return StatementTree(statement).dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

absl::StatusOr<Statement> StatementFromJson(absl::string_view json) {
  DPAR_ASSIGN_OR_RETURN(const Json parsed, ParseStrictJson("statement", json));
  if (const auto type = parsed.find("predicateType"); type == parsed.end() || *type != Json(kPredicateType)) {
    return InvalidField("predicateType", absl::StrCat("the certificate is not a ", kPredicateType,
                                                      ", which is all that this version of dpar reads"));
  }
  DPAR_ASSIGN_OR_RETURN(Statement statement, ReadStatement(parsed));
  DPAR_RETURN_IF_ERROR(ValidateStatement(statement));
  if (StatementToJson(statement) == json) {
    return statement;
  }
  const Json difference = Json::diff(StatementTree(statement), parsed);
  const std::string place = difference.empty() ? "statement" : difference.front().value("path", "");
  return InvalidField(place, absl::StrCat("the statement is not what this version writes: it differs at ",
                                          difference.empty() ? "its spelling" : place));
}

}  // namespace dpar
