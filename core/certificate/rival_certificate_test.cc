// Certificates of methods whose price rests on a degree promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/certificate/certificate.h"
#include "core/certificate/testing/example_statement.h"
#include "core/plan/plan_event.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;

Statement RivalStatement(v1::Method method) {
  v1::TrainingSpec spec;
  spec.set_epsilon(1);
  spec.set_method(method);
  spec.mutable_options()->set_steps(5);
  spec.mutable_options()->set_batch_size(2995);
  return ExampleStatement(spec);
}

Verification Verify(const Statement& statement) {
  const SigningKey key = SigningKey::Generate().value();
  return VerifyCertificate(SignPayload(StatementToJson(statement), key), {key.verifying_key()}, {}).value();
}

// What the check of the mechanism says of a changed statement whose price was made to fit.
std::string MechanismOf(Statement statement, const std::function<void(v1::Plan&)>& change) {
  change(statement.plan);
  if (statement.plan.has_max_degree()) {
    statement.max_degree = statement.cap_max_degree = statement.plan.max_degree();
  }
  for (const Check& check : Verify(statement).checks) {
    if (check.name == "mechanism") {
      return check.passed ? "passed" : check.detail;
    }
  }
  return "no such check";
}

TEST(RivalCertificate, VerifiesAndNamesThePromiseInItsRelation) {
  for (const v1::Method method : {v1::GAP, v1::SAGE}) {
    const Statement statement = RivalStatement(method);
    const Verification verification = Verify(statement);
    for (const Check& check : verification.checks) {
      EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    }
    EXPECT_EQ(verification.statement.plan.max_degree(), kExampleMaxDegree);
    const auto json = nlohmann::ordered_json::parse(StatementToJson(statement));
    const auto& predicate = json["predicate"];
    EXPECT_THAT(predicate["neighbour_relation"].get<std::string>(),
                HasSubstr("; no node of either graph has more than 50 neighbours, which the dataset's owner declared"));
    EXPECT_EQ(predicate["unprotected"][13]["quantity"], "degree promise D");
    EXPECT_EQ(predicate["unprotected"][13]["value"], kExampleMaxDegree);
    EXPECT_EQ(predicate["not_released"].size(), 7U);
  }
}

TEST(RivalCertificate, PromisesNoOtherDegreesThanItsDataset) {
  Statement statement = RivalStatement(v1::GAP);
  statement.max_degree = kExampleMaxDegree + 1;
  EXPECT_EQ(ValidateStatement(statement).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Verify(statement).passed());
}

TEST(RivalCertificate, OfAnotherMethodRestsOnNoPromise) {
  const auto json = nlohmann::ordered_json::parse(StatementToJson(ExampleStatement()));
  EXPECT_EQ(json["predicate"]["neighbour_relation"].get<std::string>().find("neighbours"), std::string::npos);
  EXPECT_FALSE(json["predicate"]["mechanism"]["plan"].contains("max_degree"));
  EXPECT_EQ(json["predicate"]["not_released"].size(), 6U);
}

TEST(RivalCertificate, APromiseAHopOrANoiseThatDoesNotGiveTheEventIsFound) {
  const Statement gap = RivalStatement(v1::GAP);
  EXPECT_THAT(MechanismOf(gap, [](v1::Plan& p) { p.set_max_degree(60); }), HasSubstr("row_error"));
  EXPECT_THAT(MechanismOf(gap,
                          [](v1::Plan& p) {
                            p.set_max_degree(60);
                            p.mutable_aggregation()->set_row_error(AggregationRowError(p));
                          }),
              HasSubstr("not the one that follows from the plan"));
  EXPECT_THAT(MechanismOf(gap, [](v1::Plan& p) { p.mutable_aggregation()->set_hops(1); }),
              HasSubstr("not the one that follows from the plan"));
  EXPECT_THAT(MechanismOf(gap, [](v1::Plan& p) { p.mutable_aggregation()->set_noise_stddev(1e3); }),
              HasSubstr("not the one that follows from the plan"));
  EXPECT_THAT(MechanismOf(gap, [](v1::Plan& p) { p.mutable_aggregation()->set_hops(6); }), HasSubstr("out of range"));
  EXPECT_THAT(MechanismOf(gap, [](v1::Plan& p) { p.mutable_aggregation()->set_row_error(0); }), HasSubstr("row_error"));
  EXPECT_THAT(MechanismOf(gap, [](v1::Plan& p) { p.clear_max_degree(); }), HasSubstr("row_error"));
  const Statement sage = RivalStatement(v1::SAGE);
  EXPECT_THAT(MechanismOf(sage, [](v1::Plan& p) { p.set_max_degree(51); }), HasSubstr("rows_per_node"));
  EXPECT_THAT(MechanismOf(sage, [](v1::Plan& p) { p.clear_max_degree(); }), HasSubstr("rows_per_node"));
  EXPECT_THAT(MechanismOf(sage, [](v1::Plan& p) { p.clear_neighbours(); }), HasSubstr("the plan has no event"));
  EXPECT_THAT(MechanismOf(sage, [](v1::Plan& p) { p.set_max_degree(0); }), HasSubstr("out of range"));
}

}  // namespace
}  // namespace dpar
