#include "core/certificate/testing/example_statement.h"

#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/certificate/strict_json.h"
#include "core/plan/plan.h"
#include "core/privacy/budget.h"

namespace dpar {
namespace {

v1::Evaluation ExampleEvaluation(const v1::EvaluationPlan& plan) {
  v1::Evaluation evaluation;
  evaluation.set_accuracy(0.8125);
  evaluation.set_low(0.78);
  evaluation.set_high(0.84);
  evaluation.set_held_out_slots(plan.held_out_slots());
  return evaluation;
}

}  // namespace

v1::TrainingSpec ExampleSpec() {
  v1::TrainingSpec spec;
  spec.set_epsilon(1);
  spec.mutable_options()->set_steps(97);
  spec.mutable_options()->set_learning_rate(35.6789012345);
  return spec;
}

Statement ExampleStatement(v1::TrainingSpec spec) {
  Statement statement;
  statement.subjects = {{"model.npz", Sha256Hex("npz")}, {"model.pt", Sha256Hex("pt")}};
  statement.job = "tenants/acme/jobs/j-1";
  statement.dataset = "tenants/acme/datasets/cora";
  statement.dataset_digest = HmacSha256Hex("key", "content");
  statement.sizes = {.node_count = 2995, .feature_count = 2879, .class_count = 7};
  const BudgetTerms terms = MakeBudgetTerms(8, 3e-5).value();
  spec.set_delta(terms.cap_delta);
  statement.plan = MakePlan(spec, statement.sizes).value();
  if (statement.plan.has_evaluation()) {
    statement.evaluation = ExampleEvaluation(statement.plan.evaluation());
  }
  statement.software = "dpar 0.2.0";
  statement.created_at = "2026-01-02T03:04:05Z";
  statement.is_public = spec.non_private();
  if (statement.is_public) {
    return statement;
  }
  statement.budget = "tenants/acme/datasets/cora/budget";
  statement.ledger_sequence = 3;
  statement.ledger_hash = Sha256Hex("entry");
  statement.cap_epsilon = terms.cap_epsilon;
  statement.cap_delta = terms.cap_delta;
  statement.order = terms.order;
  statement.units = EventUnits(statement.plan.event(), terms.order).value();
  statement.plan.set_price_units(statement.units);
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
