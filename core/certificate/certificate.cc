#include "core/certificate/certificate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/digest.h"
#include "core/certificate/strict_json.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/privacy/event.h"
#include "core/random/lattice.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// How far a product of stated numbers may be from a stated product.
constexpr double kRelativeTolerance = 1e-12;
// How far a recomputed epsilon may exceed the stated one.
constexpr double kEpsilonTolerance = 1e-9;
constexpr int32_t kMaxLatticeBits = 1000;

struct Envelope {
  std::string payload;
  std::string key_id;
  std::string signature;
};

std::string EnvelopeToJson(const Envelope& envelope) {
  return DumpJson(
      {{"payload", Base64Encode(envelope.payload)},
       {"payloadType", std::string(kPayloadType)},
       {"signatures", Json::array({Json{{"keyid", envelope.key_id}, {"sig", Base64Encode(envelope.signature)}}})}});
}

absl::StatusOr<Envelope> EnvelopeFromJson(absl::string_view text) {
  DPAR_ASSIGN_OR_RETURN(const Json json, ParseStrictJson("envelope", text));
  absl::Status status;
  const JsonReader reader(json, "envelope", status);
  const std::string payload = reader.Text("payload");
  if (reader.Text("payloadType") != kPayloadType) {
    reader.Fail("payloadType", kPayloadType);
  }
  const Json& signatures = reader.Array("signatures");
  if (signatures.size() != 1 || !signatures.front().is_object()) {
    reader.Fail("signatures", "a list of one signature");
  }
  DPAR_RETURN_IF_ERROR(status);
  const JsonReader signature(signatures.front(), "envelope.signatures", status);
  Envelope envelope;
  envelope.key_id = signature.Text("keyid");
  const std::string encoded_signature = signature.Text("sig");
  DPAR_RETURN_IF_ERROR(status);
  DPAR_ASSIGN_OR_RETURN(envelope.payload, Base64Decode(payload));
  DPAR_ASSIGN_OR_RETURN(envelope.signature, Base64Decode(encoded_signature));
  if (EnvelopeToJson(envelope) != text) {
    return InvalidField("envelope", "the envelope is not in the one byte form that certificates have");
  }
  return envelope;
}

Check CheckSignature(const Envelope& envelope, const std::vector<VerifyingKey>& trusted) {
  const auto key = std::find_if(trusted.begin(), trusted.end(),
                                [&](const VerifyingKey& candidate) { return candidate.key_id() == envelope.key_id; });
  if (key == trusted.end()) {
    return {"signature", false, absl::StrCat("signed by a key that is not trusted here: ", envelope.key_id)};
  }
  if (!key->Verify(PreAuthenticationEncoding(kPayloadType, envelope.payload), envelope.signature)) {
    return {"signature", false, absl::StrCat("not a signature of key ", envelope.key_id)};
  }
  return {"signature", true, absl::StrCat("signed by key ", envelope.key_id)};
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

// The sensitivity that the plan's clipping, lattice and summation error amount to.
double PlannedSensitivity(const Statement& statement, double noise_stddev) {
  const double length = (static_cast<double>(statement.sizes.feature_count) + 1) *  //
                        static_cast<double>(statement.sizes.class_count);
  return statement.plan.gradient_clip() + LatticeStep(noise_stddev, statement.plan.lattice_bits()) * std::sqrt(length) +
         2 * statement.plan.summation_error();
}

Check CheckMechanism(const Statement& statement) {
  const auto failed = [](std::string detail) { return Check{"mechanism", false, std::move(detail)}; };
  const v1::Plan& plan = statement.plan;
  const v1::GaussianEvent& event = plan.event().gaussian();
  if (plan.method() != v1::FEATURES) {
    return failed(absl::StrCat("this version cannot recompute the method ", v1::Method_Name(plan.method())));
  }
  if (!plan.event().has_gaussian()) {
    return failed("the method FEATURES is a Gaussian event, and this is another");
  }
  if (plan.accountant() != v1::SOUND) {
    return failed("the plan's epsilon does not come from the accountant SOUND");
  }
  if (!ValidateEvent(plan.event()).ok() || !(plan.gradient_clip() > 0) || !(plan.summation_error() >= 0) ||
      plan.lattice_bits() > kMaxLatticeBits) {
    return failed("a parameter of the plan or the event is out of range");
  }
  const double noise_stddev = plan.noise_multiplier() * plan.gradient_clip();
  if (!(std::fabs(event.noise_stddev() - noise_stddev) <= kRelativeTolerance * noise_stddev)) {
    return failed("the event's noise is not the plan's noise_multiplier times gradient_clip");
  }
  if (event.count() != plan.steps()) {
    return failed("the event does not count every step of the plan");
  }
  if (!(event.sensitivity() >= PlannedSensitivity(statement, event.noise_stddev()) * (1 - kRelativeTolerance))) {
    return failed("the event's sensitivity is below the plan's clip bound with lattice and summation error");
  }
  return {"mechanism", true, "the event follows from the plan"};
}

Check CheckEpsilon(const Statement& statement, double& recomputed_epsilon) {
  const double stated = statement.plan.epsilon();
  const absl::StatusOr<double> recomputed = EventEpsilon(statement.plan.event(), statement.plan.delta());
  if (!recomputed.ok()) {
    return {"epsilon", false, std::string(recomputed.status().message())};
  }
  recomputed_epsilon = *recomputed;
  const bool passed = *recomputed <= stated * (1 + kEpsilonTolerance);
  return {"epsilon", passed,
          absl::StrFormat("recomputed %.10g, stated %.10g at delta %.10g%s", *recomputed, stated,
                          statement.plan.delta(), passed ? "" : ": the certificate understates the cost")};
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
  const absl::StatusOr<bool> admitted = Admits(terms, 0, 0, statement.plan.event());
  if (!admitted.ok() || !*admitted) {
    return failed("the event alone exceeds the budget's cap");
  }
  return {
      "ledger", true,
      absl::StrFormat("%d units at order %d, entry %d of %s, cap epsilon %.10g at delta %.10g", *units, statement.order,
                      statement.ledger_sequence, statement.budget, statement.cap_epsilon, statement.cap_delta)};
}

}  // namespace

std::string PreAuthenticationEncoding(absl::string_view payload_type, absl::string_view payload) {
  return absl::StrCat("DSSEv1 ", payload_type.size(), " ", payload_type, " ", payload.size(), " ", payload);
}

absl::StatusOr<std::string> SignStatement(const Statement& statement, const SigningKey& key) {
  Envelope envelope;
  envelope.payload = StatementToJson(statement);
  envelope.key_id = key.verifying_key().key_id();
  DPAR_RETURN_IF_ERROR(StatementFromJson(envelope.payload).status());
  DPAR_ASSIGN_OR_RETURN(envelope.signature, key.Sign(PreAuthenticationEncoding(kPayloadType, envelope.payload)));
  return EnvelopeToJson(envelope);
}

bool Verification::passed() const {
  return !checks.empty() && std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed; });
}

absl::StatusOr<Verification> VerifyCertificate(absl::string_view envelope, const std::vector<VerifyingKey>& trusted,
                                               const std::vector<std::string>& files) {
  DPAR_ASSIGN_OR_RETURN(const Envelope opened, EnvelopeFromJson(envelope));
  Verification verification;
  verification.checks.push_back(CheckSignature(opened, trusted));
  if (!verification.passed()) {
    return verification;
  }
  absl::StatusOr<Statement> statement = StatementFromJson(opened.payload);
  if (!statement.ok()) {
    verification.checks.push_back({"statement", false, std::string(statement.status().message())});
    return verification;
  }
  verification.checks.push_back({"statement", true, absl::StrCat("a ", kPredicateType)});
  verification.statement = *std::move(statement);
  for (const std::string& path : files) {
    verification.checks.push_back(CheckFile(verification.statement, path));
  }
  if (verification.statement.is_public) {
    verification.checks.push_back(
        {"promise", true, "nothing is promised: the dataset was declared public, so no privacy is claimed"});
    return verification;
  }
  verification.checks.push_back(CheckMechanism(verification.statement));
  verification.checks.push_back(CheckEpsilon(verification.statement, verification.recomputed_epsilon));
  verification.checks.push_back(CheckLedger(verification.statement));
  return verification;
}

}  // namespace dpar
