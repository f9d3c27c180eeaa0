#include "core/certificate/certificate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/digest.h"
#include "core/certificate/ledger_entry.h"
#include "core/error.h"
#include "core/plan/options.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "core/strict_json.h"
#include "dpar/v1/budget.pb.h"
#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"

namespace dpar {
namespace {

constexpr double kRelativeTolerance = 1e-12;    // of a stated number against its recomputed value
constexpr double kEpsilonTolerance = 1e-9;      // by which a recomputed epsilon may exceed the stated one
constexpr double kSameVersionTolerance = 1e-6;  // of the accountant against the same version of itself
constexpr int64_t kMaxHiddenSize = int64_t{1} << 20;
constexpr int64_t kMaxWidth = int64_t{1} << 12;  // covered by the error bound of aggregated rows' clipping

struct Envelope {
  std::string payload;
  std::string key_id;
  std::string signature;
};

std::string EnvelopeToJson(const Envelope& envelope) {
  const Json signature = {{"keyid", envelope.key_id}, {"sig", Base64Encode(envelope.signature)}};
  return Json{{"payload", Base64Encode(envelope.payload)},
              {"payloadType", kPayloadType},
              {"signatures", Json::array({signature})}}
      .dump();
}

absl::StatusOr<Envelope> EnvelopeFromJson(absl::string_view text) {
  DPAR_ASSIGN_OR_RETURN(const Json json, ParseStrictJson("envelope", text));
  Envelope envelope;
  std::string payload;
  std::string signature;
  JsonFields fields("envelope", json);
  fields.Read("/payload", payload);
  fields.Read("/signatures/0/keyid", envelope.key_id);
  fields.Read("/signatures/0/sig", signature);
  DPAR_RETURN_IF_ERROR(fields.status());
  DPAR_ASSIGN_OR_RETURN(envelope.payload, Base64Decode(payload));
  DPAR_ASSIGN_OR_RETURN(envelope.signature, Base64Decode(signature));
  if (EnvelopeToJson(envelope) != text) {
    return InvalidField("envelope",
                        absl::StrCat("the envelope is not in the one byte form that certificates have, with "
                                     "one signature of a ",
                                     kPayloadType));
  }
  return envelope;
}

const KnownKey* FindKey(const Envelope& envelope, const std::vector<KnownKey>& trusted) {
  const auto found = std::find_if(trusted.begin(), trusted.end(),
                                  [&](const KnownKey& candidate) { return candidate.key.key_id() == envelope.key_id; });
  return found != trusted.end() ? &*found : nullptr;
}

Check CheckSignature(const Envelope& envelope, const KnownKey* known) {
  if (known == nullptr) {
    return {"signature", false, absl::StrCat("signed by a key that is not trusted here: ", envelope.key_id)};
  }
  if (!known->key.Verify(PreAuthenticationEncoding(kPayloadType, envelope.payload), envelope.signature)) {
    return {"signature", false, absl::StrCat("not a signature of key ", envelope.key_id)};
  }
  return {"signature", true,
          absl::StrCat("signed by key ", envelope.key_id,
                       known->retire_time.has_value() && !known->revoke_time.has_value()
                           ? absl::StrCat(", which was in use until ", KeyTimeText(*known->retire_time))
                           : "")};
}

// The other checks still run, so that an investigation of the key sees their results.
Check RevokedKey(const KnownKey& known) {
  return {"key", false,
          absl::StrCat("the key was revoked on ", KeyTimeText(*known.revoke_time), ": ", known.revoke_reason,
                       "; somebody else may have signed this")};
}

Check CheckFile(const Statement& statement, const std::string& path) {
  const std::string unmatched_name = absl::StrCat(std::filesystem::path(path).filename().string(), " digest");
  const absl::StatusOr<std::string> digest = Sha256File(path);
  if (!digest.ok()) {
    return {unmatched_name, false, std::string(digest.status().message())};
  }
  for (const auto& [name, expected] : statement.subjects) {
    if (*digest == expected) {
      return {absl::StrCat(name, " digest"), true, absl::StrCat(path, " is ", name, ", SHA-256 ", *digest)};
    }
  }
  return {unmatched_name, false, absl::StrCat(path, " is none of the certificate's files, SHA-256 ", *digest)};
}

bool Equal(double a, double b) {
  return std::fabs(a - b) <= kRelativeTolerance * std::fmax(std::fabs(a), std::fabs(b));
}

// Keeps recomputation from overflowing. Every plan of the planner is within these limits.
bool IsWithinLimits(const Statement& statement) {
  const v1::Plan& plan = statement.plan;
  const auto within = [](int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; };
  const int64_t slots = statement.sizes.node_count;
  const v1::StructurePlan& structure = plan.structure();
  const bool structure_within = within(structure.appr_nodes(), 1, slots) && within(structure.top_k(), 1, slots) &&
                                within(structure.max_occurrence(), 1, kMaxEventRows - 1);
  const v1::EvaluationPlan& evaluation = plan.evaluation();
  const bool evaluation_within = within(evaluation.held_out_slots(), 1, slots) &&  //
                                 evaluation.held_out_share() > 0 && evaluation.held_out_share() < 1;
  const v1::AggregationPlan& aggregation = plan.aggregation();
  const bool aggregation_within = within(aggregation.hops(), 1, kMaxHops) && within(plan.hidden_size(), 1, kMaxWidth) &&
                                  aggregation.clip() >= kMinAggregationClip &&
                                  aggregation.clip() <= kMaxAggregationClip;
  const double clip = plan.gradient_clip();
  return (!plan.has_max_degree() || within(plan.max_degree(), 1, slots)) &&
         (!plan.has_aggregation() || aggregation_within) &&
         (!plan.has_neighbours() || within(plan.neighbours(), 1, kMaxSampledNeighbours)) &&
         within(plan.training_slots(), 1, slots) && within(plan.hidden_size(), 0, kMaxHiddenSize) &&
         clip >= kMinGradientClip && clip <= kMaxGradientClip && (!plan.has_structure() || structure_within) &&
         (!plan.has_evaluation() || evaluation_within);
}

// What is wrong with derived parameters, or empty. The event is recomputed from the plan as stated, so this check keeps
// a plan from stating fewer rows or smaller errors than it has.
std::string DerivedFault(const Statement& statement) {
  const v1::Plan& plan = statement.plan;
  const int64_t slots = statement.sizes.node_count;
  if (plan.lattice_bits() != kPlanLatticeBits) {
    return "lattice_bits is not the lattice that noise is released on";
  }
  if (plan.rows_per_node() != RowsPerNode(plan)) {
    return "rows_per_node is not one row and those that max_occurrence, or the degree promise, allows";
  }
  const auto rows = static_cast<double>(RowCount(plan));
  if (!Equal(plan.sampling_rate() * plan.node_sampling_rate() * rows, plan.batch_size())) {
    return "sampling_rate is not batch_size over the expected number of rows";
  }
  if (!Equal(plan.summation_error(), TrainingSummationError(plan))) {
    return "summation_error is not the bound for the plan's sums";
  }
  if (plan.has_aggregation() && !Equal(plan.aggregation().row_error(), AggregationRowError(plan))) {
    return "aggregation.row_error is not the bound for a sum over neighbours";
  }
  if (plan.has_mean() && !Equal(plan.mean().summation_error(), UnitSummationError(plan))) {
    return "mean.summation_error is not the bound for the sum of the feature rows";
  }
  if (plan.has_class_shares() && !Equal(plan.class_shares().summation_error(), UnitSummationError(plan))) {
    return "class_shares.summation_error is not the bound for the sum of the predicted probabilities";
  }
  if (plan.has_mean() && plan.transform() != v1::UNIT && plan.transform() != v1::SQRT_UNIT) {
    return "a private mean needs rows of unit length";
  }
  if (plan.training_slots() + plan.evaluation().held_out_slots() != slots) {
    return "training and held-out slots are not all slots";
  }
  const double held_out = plan.evaluation().held_out_share() * static_cast<double>(slots);
  if (plan.evaluation().held_out_slots() != std::llround(held_out)) {
    return "evaluation.held_out_slots is not held_out_share of all slots";
  }
  return "";
}

// Equal but for last digits, which may differ between machines.
bool SameEvent(const v1::PrivacyEvent& a, const v1::PrivacyEvent& b) {
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_float_comparison(google::protobuf::util::DefaultFieldComparator::APPROXIMATE);
  comparator.SetDefaultFractionAndMargin(kRelativeTolerance, 0);
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  return differencer.Compare(a, b);
}

Check CheckMechanism(const Statement& statement) {
  const auto failed = [](std::string detail) { return Check{"mechanism", false, std::move(detail)}; };
  const v1::Plan& plan = statement.plan;
  const bool as_published = plan.accountant() == v1::AS_PUBLISHED;
  if ((plan.accountant() != v1::SOUND && !as_published) || plan.has_published_epsilon() != as_published) {
    return failed("the plan's accountant is not SOUND, with or without the published epsilon beside it");
  }
  if (!IsWithinLimits(statement)) {
    return failed("a parameter of the plan is out of range");
  }
  if (const std::string fault = DerivedFault(statement); !fault.empty()) {
    return failed(absl::StrCat("the plan contradicts itself: ", fault));
  }
  const absl::StatusOr<v1::PrivacyEvent> event = PlanEvent(plan, statement.sizes);
  if (!event.ok()) {
    return failed(absl::StrCat("the plan has no event: ", event.status().message()));
  }
  if (!SameEvent(plan.event(), *event)) {
    return failed("the event is not the one that follows from the plan");
  }
  return {"mechanism", true, "the event follows from the plan"};
}

Check CheckEpsilon(const Statement& statement, double& recomputed_epsilon) {
  const auto failed = [](std::string detail) { return Check{"epsilon", false, std::move(detail)}; };
  const double stated = statement.plan.epsilon();
  const absl::StatusOr<double> recomputed = EventEpsilon(statement.plan.event(), statement.plan.delta());
  if (!recomputed.ok()) {
    return failed(std::string(recomputed.status().message()));
  }
  recomputed_epsilon = *recomputed;
  std::string detail =
      absl::StrFormat("recomputed %.10g, stated %.10g at delta %.10g", *recomputed, stated, statement.plan.delta());
  if (!(*recomputed <= stated * (1 + kEpsilonTolerance))) {
    return failed(absl::StrCat(detail, ": the certificate understates the cost"));
  }
  const double given = statement.accountant_epsilon;
  if (!(given <= stated * (1 + kEpsilonTolerance))) {
    return failed(absl::StrFormat("the accountant gave %.10g, more than the stated %.10g", given, stated));
  }
  if (statement.accountant_version != kAccountantVersion) {
    return {"epsilon", true,
            absl::StrCat(detail, ", by version ", kAccountantVersion, " of the accountant; it was priced by version ",
                         statement.accountant_version)};
  }
  if (!(std::fabs(*recomputed - given) <= kSameVersionTolerance)) {
    return failed(absl::StrFormat("recomputed %.10g, but the certificate says that the same accountant gave %.10g",
                                  *recomputed, given));
  }
  return {"epsilon", true, std::move(detail)};
}

// Delta bounds how likely the guarantee is to fail for a node. At 1/N it permits publishing one node of N whole.
Check CheckDelta(const Statement& statement) {
  const double delta = statement.plan.delta();
  const double most = 1 / static_cast<double>(statement.sizes.node_count);
  const auto text = [&](absl::string_view what, double value) {
    return absl::StrFormat("%s %.10g is not below 1/N = %.10g for N = %d nodes: it permits publishing whole nodes",
                           what, value, most, statement.sizes.node_count);
  };
  if (!(delta < most)) {
    return {"delta", false, text("delta", delta)};
  }
  if (!(statement.cap_delta < most)) {
    return {"delta", false, text("the cap's delta", statement.cap_delta)};
  }
  if (!(delta <= statement.cap_delta)) {
    return {"delta", false, absl::StrFormat("delta %.10g is above the cap's delta %.10g", delta, statement.cap_delta)};
  }
  return {"delta", true,
          absl::StrFormat("%.10g, below 1/N = %.10g for N = %d nodes", delta, most, statement.sizes.node_count)};
}

Check CheckLedger(const Statement& statement) {
  const auto failed = [](std::string detail) { return Check{"ledger", false, std::move(detail)}; };
  const absl::StatusOr<int64_t> units = EventUnits(statement.plan.event(), statement.order);
  if (!units.ok()) {
    return failed(std::string(units.status().message()));
  }
  if (*units != statement.units) {
    return failed(absl::StrCat("the event costs ", *units, " units, the ledger charged ", statement.units));
  }
  const absl::StatusOr<int64_t> cap = CapUnits(statement.cap_epsilon, statement.cap_delta, statement.order);
  if (!cap.ok()) {
    return failed(std::string(cap.status().message()));
  }
  const BudgetTerms terms = {statement.cap_epsilon, statement.cap_delta, statement.order, *cap};
  const absl::StatusOr<EventPrice> cost = PriceOfEvent(statement.plan.event(), terms);
  const absl::StatusOr<bool> admitted = cost.ok() ? Admits(terms, 0, 0, *cost) : cost.status();
  if (!admitted.ok() || !*admitted) {
    return failed("the event alone exceeds the budget's cap");
  }
  std::string detail =
      absl::StrFormat("%d units at order %d, entry %d of %s, cap epsilon %.10g at delta %.10g", *units, statement.order,
                      statement.ledger_sequence, statement.population, statement.cap_epsilon, statement.cap_delta);
  if (*cap != statement.cap_units) {
    return failed(absl::StrCat("the cap is ", *cap, " units, the certificate says ", statement.cap_units));
  }
  const int64_t after = statement.units_before + statement.units;
  absl::StrAppendFormat(&detail, "; %d of %d units were used before, %d after%s", statement.units_before, *cap, after,
                        after > *cap ? ", which is beyond the cap" : "");
  return {"ledger", true, std::move(detail)};
}

bool IsStoredEvent(const std::string& text, const v1::PrivacyEvent& event) {
  v1::PrivacyEvent stored;
  // Refuses repeated keys, which readers understand differently; protobuf reads noise_stddev, however it is escaped, as
  // noiseStddev too.
  return !absl::StrContains(text, '_') && !absl::StrContains(text, '\\') && ParseStrictJson("event", text).ok() &&
         google::protobuf::util::JsonStringToMessage(text, &stored).ok() &&
         google::protobuf::util::MessageDifferencer::Equals(stored, event);
}

// Ties the job, its epsilon, units and event to the ledger's chain by the entry's hash.
Check CheckEntry(const Statement& statement) {
  if (!IsStoredEvent(statement.entry_event, statement.plan.event())) {
    return {"ledger entry", false, "the event of the ledger's entry is not the certificate's"};
  }
  const std::string hash = ChainedEntryHash({.population = statement.population,
                                             .previous_hash = statement.previous_hash,
                                             .sequence = statement.ledger_sequence,
                                             .time_microseconds = statement.entry_time_microseconds,
                                             .kind = v1::LedgerEntry::POST,
                                             .job = statement.job,
                                             .actor = statement.entry_actor,
                                             .units = statement.units,
                                             .epsilon = statement.plan.epsilon(),
                                             .delta = statement.plan.delta(),
                                             .event_text = statement.entry_event,
                                             .reason = "",
                                             .attempt = statement.entry_attempt});
  if (hash != statement.ledger_hash) {
    return {"ledger entry", false, "the hash of the ledger's entry is not that of this job, epsilon, units and event"};
  }
  return {"ledger entry", true, absl::StrCat("head of the chain when it was signed: ", hash)};
}

}  // namespace

std::string PreAuthenticationEncoding(absl::string_view payload_type, absl::string_view payload) {
  return absl::StrCat("DSSEv1 ", payload_type.size(), " ", payload_type, " ", payload.size(), " ", payload);
}

absl::StatusOr<std::string> SignStatement(const Statement& statement, const SigningKey& key) {
  Envelope envelope;
  envelope.payload = StatementToJson(statement);
  DPAR_RETURN_IF_ERROR(StatementFromJson(envelope.payload).status());
  envelope.key_id = key.verifying_key().key_id();
  DPAR_ASSIGN_OR_RETURN(envelope.signature, key.Sign(PreAuthenticationEncoding(kPayloadType, envelope.payload)));
  return EnvelopeToJson(envelope);
}

absl::StatusOr<Statement> OpenSigned(absl::string_view envelope, const std::vector<KnownKey>& trusted) {
  DPAR_ASSIGN_OR_RETURN(const Envelope opened, EnvelopeFromJson(envelope));
  if (const Check signature = CheckSignature(opened, FindKey(opened, trusted)); !signature.passed) {
    return absl::PermissionDeniedError(signature.detail);
  }
  return StatementFromJson(opened.payload);
}

bool Verification::passed() const {
  return !checks.empty() && std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed; });
}

bool Verification::has_statement() const {
  return std::any_of(checks.begin(), checks.end(),
                     [](const Check& check) { return check.name == "statement" && check.passed; });
}

absl::StatusOr<Verification> VerifyCertificate(absl::string_view envelope, const std::vector<KnownKey>& trusted,
                                               const std::vector<std::string>& files) {
  DPAR_ASSIGN_OR_RETURN(const Envelope opened, EnvelopeFromJson(envelope));
  Verification verification;
  verification.key_id = opened.key_id;
  std::vector<Check>& checks = verification.checks;
  const KnownKey* const known = FindKey(opened, trusted);
  checks.push_back(CheckSignature(opened, known));
  if (!verification.passed()) {
    return verification;
  }
  if (known->revoke_time.has_value()) {
    checks.push_back(RevokedKey(*known));
  }
  absl::StatusOr<Statement> parsed = StatementFromJson(opened.payload);
  if (!parsed.ok()) {
    checks.push_back({"statement", false, std::string(parsed.status().message())});
    return verification;
  }
  verification.statement = *std::move(parsed);
  const Statement& statement = verification.statement;
  checks.push_back({"statement", true, absl::StrCat("a ", kPredicateType)});
  for (const std::string& path : files) {
    checks.push_back(CheckFile(statement, path));
  }
  if (statement.is_public) {
    checks.push_back(
        {"guarantee", true, "nothing is guaranteed: the dataset was declared public, so no privacy is claimed"});
    return verification;
  }
  checks.push_back(CheckMechanism(statement));
  checks.push_back(CheckEpsilon(statement, verification.recomputed_epsilon));
  checks.push_back(CheckDelta(statement));
  checks.push_back(CheckLedger(statement));
  checks.push_back(CheckEntry(statement));
  return verification;
}

}  // namespace dpar
