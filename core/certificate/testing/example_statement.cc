#include "core/certificate/testing/example_statement.h"

#include <cmath>

#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/certificate/strict_json.h"
#include "core/privacy/budget.h"
#include "core/privacy/gaussian.h"

namespace dpar {
namespace {

v1::Plan ExamplePlan(const PublicSizes& sizes, double epsilon, double delta) {
  constexpr int kSteps = 97;
  constexpr double kClip = 0.3;
  v1::Plan plan;
  plan.set_method(v1::FEATURES);
  plan.set_training_slots(sizes.node_count);
  plan.set_epsilon(epsilon);
  plan.set_delta(delta);
  plan.set_accountant(v1::SOUND);
  plan.set_steps(kSteps);
  plan.set_learning_rate(35.6789012345);
  plan.set_momentum(0.9);
  plan.set_gradient_clip(kClip);
  plan.set_lattice_bits(20);
  plan.set_summation_error(1e-9);
  plan.set_logit_noise(0.1 + 0.2);
  const double width = std::sqrt(static_cast<double>((sizes.feature_count + 1) * sizes.class_count));
  const double mu = GaussianMu(epsilon, delta).value();
  // sensitivity = C + sigma 2^-bits sqrt(D) + 2E, and sigma = sqrt(T) sensitivity / mu.
  const double ratio = std::sqrt(static_cast<double>(kSteps)) / mu;
  const double sensitivity = (kClip + 2 * plan.summation_error()) / (1 - ratio * std::ldexp(width, -20));
  plan.set_noise_multiplier(ratio * sensitivity / kClip);
  v1::GaussianEvent& event = *plan.mutable_event()->mutable_gaussian();
  event.set_noise_stddev(plan.noise_multiplier() * kClip);
  event.set_sensitivity(sensitivity);
  event.set_count(kSteps);
  return plan;
}

}  // namespace

Statement ExampleStatement() {
  Statement statement;
  statement.subjects = {{"model.npz", Sha256Hex("npz")}, {"model.pt", Sha256Hex("pt")}};
  statement.job = "tenants/acme/jobs/j-1";
  statement.dataset = "tenants/acme/datasets/cora";
  statement.dataset_digest = HmacSha256Hex("key", "content");
  statement.sizes = {.node_count = 2995, .feature_count = 2879, .class_count = 7};
  const BudgetTerms terms = MakeBudgetTerms(8, 3e-5).value();
  statement.plan = ExamplePlan(statement.sizes, 1, terms.cap_delta);
  statement.budget = "tenants/acme/datasets/cora/budget";
  statement.ledger_sequence = 3;
  statement.ledger_hash = Sha256Hex("entry");
  statement.cap_epsilon = terms.cap_epsilon;
  statement.cap_delta = terms.cap_delta;
  statement.order = terms.order;
  statement.units = EventUnits(statement.plan.event(), terms.order).value();
  statement.plan.set_price_units(statement.units);
  statement.software = "dpar 0.1.0";
  statement.created_at = "2026-01-02T03:04:05Z";
  return statement;
}

Statement ExamplePublicStatement() {
  Statement statement = ExampleStatement();
  statement.is_public = true;
  statement.budget.clear();
  statement.ledger_sequence = 0;
  statement.ledger_hash.clear();
  statement.cap_epsilon = 0;
  statement.cap_delta = 0;
  statement.order = 0;
  statement.units = 0;
  statement.plan.set_price_units(0);
  return statement;
}

std::string SignPayload(const std::string& payload, const SigningKey& key) {
  const std::string signature = key.Sign(PreAuthenticationEncoding(kPayloadType, payload)).value();
  return DumpJson(
      {{"payload", Base64Encode(payload)},
       {"payloadType", std::string(kPayloadType)},
       {"signatures", Json::array({Json{{"keyid", key.verifying_key().key_id()}, {"sig", Base64Encode(signature)}}})}});
}

}  // namespace dpar
