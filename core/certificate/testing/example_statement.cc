#include "core/certificate/testing/example_statement.h"

#include <cstdlib>

#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/certificate/ledger_entry.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/strict_json.h"
#include "dpar/v1/budget.pb.h"
#include "google/protobuf/util/json_util.h"

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
  statement.bounds = {.edges = 200'000, .feature_entries = 800'000};
  const BudgetTerms terms = MakeBudgetTerms(8, 3e-5).value();
  spec.set_delta(terms.cap_delta);
  const MethodTraits* const method = FindMethod(spec.method());
  statement.max_degree = method != nullptr && method->reads_edges ? kExampleMaxDegree : 0;
  statement.plan = MakePlan(spec, statement.sizes, kExampleMaxDegree).value();
  if (statement.plan.has_evaluation()) {
    statement.evaluation = ExampleEvaluation(statement.plan.evaluation());
  }
  statement.software = "dpar 0.2.0";
  statement.build = "commit 0123456789ab, GNU 12.2.0, Release";
  statement.created_at = "2026-01-02T03:04:05Z";
  statement.is_public = spec.non_private();
  if (statement.is_public) {
    return statement;
  }
  statement.population = "tenants/acme/populations/citations";
  statement.ledger_sequence = 5;
  statement.cap_epsilon = terms.cap_epsilon;
  statement.cap_delta = terms.cap_delta;
  statement.cap_max_degree = statement.max_degree;
  statement.order = terms.order;
  statement.cap_units = terms.cap_units;
  statement.units_before = 1234567;
  statement.accountant_epsilon = EventEpsilon(statement.plan.event(), statement.plan.delta()).value();
  statement.previous_hash = Sha256Hex("the entry before");
  statement.entry_time_microseconds = 1767323045123456;
  statement.entry_actor = "worker";
  statement.entry_attempt = 1;
  Reprice(statement);
  return statement;
}

void Reprice(Statement& statement) {
  statement.units = EventUnits(statement.plan.event(), statement.order).value();
  statement.plan.set_price_units(statement.units);
  statement.entry_event.clear();
  // As the ledger stores it.
  if (!google::protobuf::util::MessageToJsonString(statement.plan.event(), &statement.entry_event).ok()) {
    std::abort();
  }
  RehashEntry(statement);
}

void RehashEntry(Statement& statement) {
  statement.ledger_hash = ChainedEntryHash({.population = statement.population,
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
}

Statement ExamplePublicStatement() {
  const Statement priced = ExampleStatement();
  Statement statement;
  statement.subjects = priced.subjects;
  statement.job = priced.job;
  statement.dataset = priced.dataset;
  statement.dataset_digest = priced.dataset_digest;
  statement.sizes = priced.sizes;
  statement.bounds = priced.bounds;
  statement.is_public = true;
  statement.plan = priced.plan;
  statement.plan.set_price_units(0);
  statement.software = priced.software;
  statement.build = priced.build;
  statement.created_at = priced.created_at;
  return statement;
}

std::string SignPayload(const std::string& payload, const SigningKey& key) {
  const std::string signature = key.Sign(PreAuthenticationEncoding(kPayloadType, payload)).value();
  const Json envelope = {
      {"payload", Base64Encode(payload)},
      {"payloadType", std::string(kPayloadType)},
      {"signatures", Json::array({Json{{"keyid", key.verifying_key().key_id()}, {"sig", Base64Encode(signature)}}})}};
  return envelope.dump();
}

}  // namespace dpar
