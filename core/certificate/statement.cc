#include "core/certificate/statement.h"

#include "absl/strings/str_cat.h"
#include "core/json_text.h"
#include "core/message_json.h"
#include "core/plan/method.h"

// The fixed texts below are part of kPredicateType: changing one means a new version of it, since certificates that
// were signed with the old text must keep verifying.
namespace dpar {
namespace {

// Most statements are shorter.
constexpr size_t kUsualLength = 8'000;

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

// The degree promise of the dataset that is listed as public.
int64_t ListedPromise(const Statement& statement) {
  if (IsSecondVersion(statement)) {
    return 0;
  }
  return IsBeforeFourth(statement) ? statement.plan.max_degree() : statement.max_degree;
}

// A promise that there may be none of.
void AddPromise(absl::string_view key, int64_t max_degree, JsonText& json) {
  if (max_degree > 0) {
    json.Add(key, max_degree);
  } else {
    json.Add(key, nullptr);
  }
}

// A number that only private data has.
void AddPrivate(absl::string_view key, const Statement& statement, double number, JsonText& json) {
  if (statement.is_public) {
    json.Add(key, nullptr);
  } else {
    json.Add(key, number);
  }
}

void WriteUnprotected(const Statement& statement, JsonText& json) {
  const auto entry = [&json](const char* quantity, const auto& value) {
    json.BeginObject();
    json.Add("quantity", quantity);
    json.Add("value", value);
    json.EndObject();
  };
  json.BeginList();
  entry("node slots N", statement.sizes.node_count);
  entry("feature width d", statement.sizes.feature_count);
  entry("class count c", statement.sizes.class_count);
  entry("training slots n", statement.plan.training_slots());
  entry("held-out slots", statement.plan.evaluation().held_out_slots());
  entry("split over slots", statement.plan.has_evaluation() ? kSplit : kNoSplit);
  entry("steps", statement.plan.steps());
  entry("job parameters", "all of mechanism.plan and event");
  entry("wall-clock time", "when the job was queued, started and ended, and how often it was started");
  entry("stored size", "the dataset's size in storage, rounded up to a power of two");
  if (!IsSecondVersion(statement)) {
    entry("progress", kProgress);
    entry("identical datasets", kIdenticalDatasets);
  }
  if (const int64_t promise = ListedPromise(statement); promise > 0) {
    entry("degree promise D", promise);
  }
  // Also where this dataset has none: the same content was checked against it. Earlier versions never have it.
  if (statement.cap_max_degree > 0) {
    entry("smallest degree promise for this content", statement.cap_max_degree);
  }
  json.EndList();
}

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

void WriteReleased(const v1::Plan& plan, JsonText& json) {
  const char* noisy = plan.non_private() ? "" : "noisy ";
  json.BeginList();
  json.Value("the model's weights after the last step");
  if (plan.has_aggregation()) {
    json.Value("the encoder's weights after its last step, as part of the model");
  }
  if (plan.has_mean()) {
    json.Value(absl::StrCat("the ", noisy, "mean of the feature rows, as part of the model"));
  }
  if (plan.has_evaluation()) {
    json.Value(absl::StrCat("the ", noisy, "accuracy on the held-out slots, under evaluation"));
  }
  json.EndList();
}

void WriteNotReleased(const v1::Plan& plan, JsonText& json) {
  json.BeginList();
  for (const char* const what :
       {"the data", "losses and gradients", "any other accuracy", "weights before the last step",
        "DP-APPR rows and their seeds", "which nodes were sampled"}) {
    json.Value(what);
  }
  if (plan.has_aggregation()) {
    json.Value("sums over neighbours, though the noisy ones are charged as if they were");
  }
  if (plan.has_neighbours()) {
    json.Value("which neighbours were sampled");
  }
  json.EndList();
}

void WriteCharged(const v1::Plan& plan, JsonText& json) {
  const char* training = plan.has_event() ? "event" : "none";
  json.BeginObject();
  json.Add("training", training);
  json.Add("tuning", "none");
  json.Add("evaluation", plan.has_evaluation() ? training : "none");
  json.EndObject();
}

void WriteSecondLedger(const Statement& statement, JsonText& json) {
  json.BeginObject();
  json.Add("budget", statement.budget);
  json.Add("scope", kBudgetScope);
  json.Add("sequence", statement.ledger_sequence);
  json.Add("hash", statement.ledger_hash);
  json.Add("cap_epsilon", statement.cap_epsilon);
  json.Add("cap_delta", statement.cap_delta);
  json.Add("order", statement.order);
  json.Add("units", statement.units);
  json.EndObject();
}

void WriteEntry(const Statement& statement, JsonText& json) {
  json.BeginObject();
  json.Add("sequence", statement.ledger_sequence);
  json.Add("hash", statement.ledger_hash);
  json.Add("previous_hash", statement.previous_hash);
  json.Add("budget_id", statement.budget_id);
  json.Add("time_microseconds", statement.entry_time_microseconds);
  json.Add("kind", "POST");
  json.Add("actor", statement.entry_actor);
  json.Add("attempt", statement.entry_attempt);
  json.Add("event", statement.entry_event);
  json.EndObject();
}

void WriteLedger(const Statement& statement, JsonText& json) {
  if (statement.is_public) {
    json.Value(nullptr);
    return;
  }
  if (IsSecondVersion(statement)) {
    WriteSecondLedger(statement, json);
    return;
  }
  json.BeginObject();
  json.Add("budget", statement.budget);
  json.Add("scope", kBudgetScope);
  json.Add("cap_epsilon", statement.cap_epsilon);
  json.Add("cap_delta", statement.cap_delta);
  if (!IsBeforeFourth(statement)) {
    AddPromise("cap_max_degree", statement.cap_max_degree, json);
    json.Add("cap_relation", CapRelation(statement));
  }
  json.Add("order", statement.order);
  json.Add("cap_units", statement.cap_units);
  json.Add("units_before", statement.units_before);
  json.Add("units", statement.units);
  json.Add("units_after", statement.units_before + statement.units);
  json.Key("entry");
  WriteEntry(statement, json);
  json.Add("checkpoint", kCheckpoint);
  json.EndObject();
}

const char* Promise(const Statement& statement) {
  if (!statement.is_public) {
    return kPromise;
  }
  return statement.plan.non_private() && !IsSecondVersion(statement) ? kNoPromiseWithoutNoise : kNoPromise;
}

void WriteAccountant(const Statement& statement, JsonText& json) {
  json.BeginObject();
  json.Add("name", "SOUND");
  json.Add("method", kAccountantMethod);
  json.Add("version", statement.accountant_version);
  if (!IsSecondVersion(statement)) {
    AddPrivate("epsilon", statement, statement.accountant_epsilon, json);
  }
  json.EndObject();
}

void WritePublished(const v1::Plan& plan, JsonText& json) {
  if (!plan.has_published_epsilon()) {
    json.Value(nullptr);
    return;
  }
  json.BeginObject();
  json.Add("epsilon", plan.published_epsilon());
  json.Add("claim", kPublishedClaim);
  json.EndObject();
}

void WriteMechanism(const v1::Plan& plan, JsonText& json) {
  json.BeginObject();
  json.Add("description", Description(plan));
  json.Key("plan");
  WriteMessage(plan, json, FieldsBesideThePlan());
  json.EndObject();
}

void WriteDataset(const Statement& statement, JsonText& json) {
  json.BeginObject();
  json.Add("name", statement.dataset);
  json.Add("public", statement.is_public);
  json.Add("digest", statement.dataset_digest);
  json.Add("digest_scope", kDigestScope);
  json.Add("node_count", statement.sizes.node_count);
  json.Add("feature_count", statement.sizes.feature_count);
  json.Add("class_count", statement.sizes.class_count);
  if (!IsBeforeFourth(statement)) {
    AddPromise("max_degree", statement.max_degree, json);
  }
  json.EndObject();
}

// A message, or null where there is none.
void AddMessage(absl::string_view key, const google::protobuf::Message* message, JsonText& json) {
  json.Key(key);
  if (message != nullptr) {
    WriteMessage(*message, json);
  } else {
    json.Value(nullptr);
  }
}

void WritePredicate(const Statement& statement, JsonText& json) {
  const v1::Plan& plan = statement.plan;
  const bool second = IsSecondVersion(statement);
  json.BeginObject();
  json.Add("promise", Promise(statement));
  json.Add("unit_of_privacy", kUnit);
  json.Add("neighbour_relation", Relation(plan));
  AddPrivate("epsilon", statement, plan.epsilon(), json);
  AddPrivate("delta", statement, plan.delta(), json);
  json.Key("accountant");
  WriteAccountant(statement, json);
  if (!second) {
    json.Key("published");
    WritePublished(plan, json);
  }
  json.Key("mechanism");
  WriteMechanism(plan, json);
  AddMessage("event", plan.has_event() ? &plan.event() : nullptr, json);
  json.Key("unprotected");
  WriteUnprotected(statement, json);
  json.Add("random_source", RandomSource(statement));
  json.Add("trust_model", kTrustModel);
  json.Key("released");
  WriteReleased(plan, json);
  json.Key("not_released");
  WriteNotReleased(plan, json);
  AddMessage("evaluation", statement.evaluation.has_value() ? &*statement.evaluation : nullptr, json);
  json.Key("charged");
  WriteCharged(plan, json);
  json.Key("dataset");
  WriteDataset(statement, json);
  json.Key("ledger");
  WriteLedger(statement, json);
  json.Add("software", statement.software);
  if (!second) {
    json.Add("build", statement.build);
  }
  json.Add("created_at", statement.created_at);
  json.Add("job", statement.job);
  json.EndObject();
}

}  // namespace

const std::set<std::string>& FieldsBesideThePlan() {
  static const auto* const fields = new std::set<std::string>{"event", "price_units", "left_units"};
  return *fields;
}

std::string StatementToJson(const Statement& statement) {
  JsonText json;
  json.Reserve(kUsualLength);
  json.BeginObject();
  json.Add("_type", kStatementType);
  json.Key("subject");
  json.BeginList();
  for (const auto& [name, digest] : statement.subjects) {
    json.BeginObject();
    json.Add("name", name);
    json.Key("digest");
    json.BeginObject();
    json.Add("sha256", digest);
    json.EndObject();
    json.EndObject();
  }
  json.EndList();
  json.Add("predicateType", absl::StrCat(kPredicatePrefix, statement.predicate_version));
  json.Key("predicate");
  WritePredicate(statement, json);
  json.EndObject();
  return json.Take();
}

}  // namespace dpar
