#include "core/certificate/statement.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/testing/example_statement.h"
#include "core/certificate/testing/statement_fixture.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::ExampleJson;
using testing::ExpectRefused;
using testing::FullJson;
using testing::FullStatement;
using ::testing::HasSubstr;
using testing::Keys;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

TEST(StatementTest, IsAnInTotoStatementWithThePromiseFirst) {
  const std::string text = StatementToJson(ExampleStatement());
  EXPECT_THAT(text, StartsWith("{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"model.npz\","
                               "\"digest\":{\"sha256\":\""));
  EXPECT_THAT(text, HasSubstr("\"predicateType\":\"urn:dpar:privacy-certificate:v1\",\"predicate\":{\"guarantee\":"
                              "\"node-level differential privacy\",\"unit_of_privacy\":"));
  const Json json = Json::parse(text);
  EXPECT_THAT(Keys(json), ElementsAre("_type", "subject", "predicateType", "predicate"));
  EXPECT_THAT(
      Keys(json["predicate"]),
      ElementsAre("guarantee", "unit_of_privacy", "neighbour_relation", "epsilon", "delta", "accountant", "published",
                  "mechanism", "event", "unprotected", "random_source", "trust_model", "released", "not_released",
                  "evaluation", "charged", "dataset", "ledger", "software", "build", "created_at", "job"));
  EXPECT_EQ(json["predicate"]["epsilon"], 1.0);
  EXPECT_EQ(json["predicate"]["accountant"]["name"], "SOUND");
  EXPECT_EQ(json["predicate"]["accountant"]["version"], 1);
}

TEST(StatementTest, DescribesEachMethodAndWhatItReleases) {
  const Json features = ExampleJson()["predicate"];
  EXPECT_THAT(features["mechanism"]["description"].get<std::string>(), HasSubstr("no training edge is read"));
  EXPECT_THAT(features["released"],
              ElementsAre("the model's weights after the last step",
                          "the noisy shares of the classes that the model predicts on the training rows, as part of "
                          "the model"));
  EXPECT_EQ(features["charged"].dump(), R"({"training":"event","tuning":"none","evaluation":"none"})");
  EXPECT_TRUE(features["evaluation"].is_null());

  const Json full = FullJson()["predicate"];
  EXPECT_EQ(full["mechanism"]["description"], FindMethod(v1::DPAR_GM)->description);
  EXPECT_THAT(full["released"], ElementsAre("the model's weights after the last step",
                                            "the noisy mean of the feature rows, as part of the model",
                                            "the noisy shares of the classes that the model predicts on the training "
                                            "rows, as part of the model",
                                            "the noisy accuracy on the held-out slots, under evaluation"));
  EXPECT_EQ(full["charged"].dump(), R"({"training":"event","tuning":"none","evaluation":"event"})");
  EXPECT_EQ(full["evaluation"].dump(), R"({"accuracy":0.8125,"low":0.78,"high":0.84,"held_out_slots":749})");
  EXPECT_THAT(full["not_released"], Contains("DP-APPR rows and their seeds"));
  EXPECT_THAT(full["not_released"], Contains("which nodes were sampled"));
}

TEST(StatementTest, DescribesAMethodWithoutItsStructureAsWhatItIs) {
  v1::TrainingSpec spec = ExampleSpec();
  spec.set_method(v1::DPAR_GM);
  spec.mutable_options()->set_structure_share(0);
  const Json json = Json::parse(StatementToJson(ExampleStatement(spec)));
  EXPECT_EQ(json["predicate"]["mechanism"]["plan"]["method"], "DPAR_GM");
  EXPECT_EQ(json["predicate"]["mechanism"]["description"], FindMethod(v1::FEATURES)->description);
}

TEST(StatementTest, ListsWhatIsUnprotectedWithItsValues) {
  const Json list = ExampleJson()["predicate"]["unprotected"];
  ASSERT_EQ(list.size(), 14U);
  EXPECT_EQ(list[0], (Json{{"quantity", "node slots N"}, {"value", 2995}}));
  EXPECT_EQ(list[1], (Json{{"quantity", "feature width d"}, {"value", 2879}}));
  EXPECT_EQ(list[2], (Json{{"quantity", "class count c"}, {"value", 7}}));
  EXPECT_EQ(list[3], (Json{{"quantity", "training slots n"}, {"value", 2995}}));
  EXPECT_EQ(list[4], (Json{{"quantity", "held-out slots"}, {"value", 0}}));
  EXPECT_EQ(list[5]["value"], "every slot trains; none is held out");
  EXPECT_EQ(list[6], (Json{{"quantity", "steps"}, {"value", 97}}));
  EXPECT_EQ(list[8]["quantity"], "wall-clock time");
  EXPECT_EQ(list[9], (Json{{"quantity", "edge bound"}, {"value", 200'000}}));
  EXPECT_EQ(list[10], (Json{{"quantity", "entry bound"}, {"value", 800'000}}));
  EXPECT_EQ(list[11]["quantity"], "progress");
  EXPECT_EQ(list[12]["quantity"], "identical datasets");
  EXPECT_THAT(list[12]["value"].get<std::string>(), HasSubstr("none whose content the tenant declared public before"));
  EXPECT_EQ(list[13], (Json{{"quantity", "schema"}, {"value", nullptr}}));
}

TEST(StatementTest, ShowsTheSchemaAndWhatItTookFromTheData) {
  const std::string schema =
      R"({"nodes":{"id":"a","label":{"column":"l","classes":["x","y"]},"columns":{"f":{"type":"flag"},)"
      R"("n":{"type":"number","range":[0.0,1e+15],"scale":"log"}}},"edges":{"source":"s","target":"t"},)"
      R"("accepted_observed":["n"]})";
  Statement statement = ExampleStatement();
  statement.schema = schema;
  EXPECT_FALSE(ValidateStatement(statement).ok()) << "a schema of other sizes";
  statement.sizes.feature_count = 22;
  statement.sizes.class_count = 2;
  ASSERT_TRUE(ValidateStatement(statement).ok()) << ValidateStatement(statement);
  const std::string json = StatementToJson(statement);
  EXPECT_THAT(json, HasSubstr(R"({"quantity":"schema","value":)" + schema + "}"));
  const auto read = StatementFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->schema, schema);
}

TEST(StatementTest, SaysHowTheHeldOutSlotsWereDrawn) {
  const Json list = FullJson()["predicate"]["unprotected"];
  EXPECT_EQ(list[3]["value"], 2995 - 749);
  EXPECT_EQ(list[4]["value"], 749);
  EXPECT_THAT(list[5]["value"].get<std::string>(), StartsWith("the held-out slots are drawn uniformly over all slots"));
}

TEST(StatementTest, HoldsEveryFieldOfThePlanExceptWhatIsLeft) {
  // event and price_units stand elsewhere in the certificate; left_units is about other jobs.
  Statement statement = FullStatement();
  statement.plan.set_published_epsilon(0.25);
  statement.plan.set_max_degree(50);
  statement.plan.mutable_aggregation()->set_hops(2);
  statement.plan.set_neighbours(5);
  const Json plan = Json::parse(StatementToJson(statement))["predicate"]["mechanism"]["plan"];
  const auto* descriptor = v1::Plan::descriptor();
  size_t expected = 0;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string& name = descriptor->field(i)->name();
    if (name == "event" || name == "price_units" || name == "left_units") {
      EXPECT_FALSE(plan.contains(name));
      continue;
    }
    EXPECT_TRUE(plan.contains(name)) << name << " is executed but not certified";
    ++expected;
  }
  EXPECT_EQ(plan.size(), expected);
}

TEST(StatementTest, ComesBackTheSameBitForBit) {
  Statement statement = ExampleStatement();
  for (const double value : {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 123456789.0, 1e22}) {
    statement.plan.set_learning_rate(value);
    statement.plan.set_published_epsilon(-value);
    const Statement again = StatementFromJson(StatementToJson(statement)).value();
    EXPECT_TRUE(MessageDifferencer::Equals(again.plan, statement.plan)) << value;
    EXPECT_EQ(StatementToJson(again), StatementToJson(statement));
  }
}

TEST(StatementTest, ComesBackWithEveryField) {
  const Statement statement = ExampleStatement();
  const Statement again = StatementFromJson(StatementToJson(statement)).value();
  EXPECT_EQ(again.subjects, statement.subjects);
  EXPECT_EQ(again.job, statement.job);
  EXPECT_EQ(again.dataset, statement.dataset);
  EXPECT_EQ(again.dataset_digest, statement.dataset_digest);
  EXPECT_EQ(again.sizes, statement.sizes);
  EXPECT_FALSE(again.is_public);
  EXPECT_EQ(again.ledger_sequence, 5);
  EXPECT_EQ(again.ledger_hash, statement.ledger_hash);
  EXPECT_EQ(again.cap_epsilon, 8);
  EXPECT_EQ(again.cap_delta, 3e-5);
  EXPECT_EQ(again.order, statement.order);
  EXPECT_EQ(again.units, statement.units);
  EXPECT_EQ(again.units_before, 1234567);
  EXPECT_EQ(again.cap_units, statement.cap_units);
  EXPECT_EQ(again.population, "tenants/acme/populations/citations");
  EXPECT_EQ(again.previous_hash, statement.previous_hash);
  EXPECT_EQ(again.entry_time_microseconds, 1767323045123456);
  EXPECT_EQ(again.entry_actor, "worker");
  EXPECT_EQ(again.entry_attempt, 1);
  EXPECT_EQ(again.entry_event, statement.entry_event);
  EXPECT_EQ(again.accountant_epsilon, statement.accountant_epsilon);
  EXPECT_EQ(again.accountant_version, 1);
  EXPECT_EQ(again.software, "dpar 0.2.0");
  EXPECT_EQ(again.build, "commit 0123456789ab, GNU 12.2.0, Release");
  EXPECT_EQ(again.created_at, "2026-01-02T03:04:05Z");
}

TEST(StatementTest, ComesBackWithItsEvaluation) {
  const Statement statement = FullStatement();
  const Statement again = StatementFromJson(StatementToJson(statement)).value();
  ASSERT_TRUE(again.evaluation.has_value());
  EXPECT_TRUE(MessageDifferencer::Equals(*again.evaluation, *statement.evaluation));
  EXPECT_TRUE(MessageDifferencer::Equals(again.plan, statement.plan));
  EXPECT_EQ(StatementToJson(again), StatementToJson(statement));
}

TEST(StatementTest, HasAnEvaluationExactlyWhenThePlanHas) {
  Statement statement = FullStatement();
  statement.evaluation.reset();
  ExpectRefused(StatementToJson(statement), "predicate.evaluation");
  statement = ExampleStatement();
  statement.evaluation.emplace();
  ExpectRefused(StatementToJson(statement), "predicate.evaluation");
}

TEST(StatementTest, RefusesAnEvaluationThatCannotBe) {
  const struct {
    std::string field;
    std::function<void(v1::Evaluation&)> spoil;
  } kCases[] = {
      {"predicate.evaluation.accuracy", [](v1::Evaluation& e) { e.set_accuracy(1.1); }},
      {"predicate.evaluation.low", [](v1::Evaluation& e) { e.set_low(-0.1); }},
      {"predicate.evaluation.high", [](v1::Evaluation& e) { e.set_high(0.7); }},
      {"predicate.evaluation.held_out_slots", [](v1::Evaluation& e) { e.set_held_out_slots(748); }},
      {"/predicate/evaluation/accuracy",
       [](v1::Evaluation& e) { e.set_accuracy(std::numeric_limits<double>::quiet_NaN()); }},
  };
  for (const auto& test : kCases) {
    Statement statement = FullStatement();
    test.spoil(*statement.evaluation);
    ExpectRefused(StatementToJson(statement), test.field);
  }
}

TEST(StatementTest, RefusesOtherTypesOfPredicate) {
  Json json = ExampleJson();
  for (const Json& other : {Json("urn:dpar:privacy-certificate:v2"), Json("urn:dpar:privacy-certificate:v01"),
                            Json("text"), Json(1), Json(nullptr)}) {
    json["predicateType"] = other;
    ExpectRefused(json.dump(), "predicateType");
    EXPECT_THAT(std::string(StatementFromJson(json.dump()).status().message()),
                HasSubstr("the certificate is not a urn:dpar:privacy-certificate:v1"));
  }
  json.erase("predicateType");
  ExpectRefused(json.dump(), "predicateType");
}

TEST(StatementTest, NamesTheDatasetsPromiseWhateverTheMethod) {
  Statement statement = ExampleStatement();
  EXPECT_TRUE(ExampleJson()["predicate"]["dataset"]["max_degree"].is_null());
  EXPECT_TRUE(ExampleJson()["predicate"]["ledger"]["cap_max_degree"].is_null());
  EXPECT_THAT(ExampleJson()["predicate"]["ledger"]["cap_relation"].get<std::string>(),
              HasSubstr(", for every graph; "));
  statement.max_degree = 70;
  statement.cap_max_degree = 50;
  const std::string text = StatementToJson(statement);
  const Statement again = StatementFromJson(text).value();
  EXPECT_EQ(again.max_degree, 70);
  EXPECT_EQ(again.cap_max_degree, 50);
  const Json predicate = Json::parse(text)["predicate"];
  EXPECT_EQ(predicate["dataset"]["max_degree"], 70);
  ASSERT_EQ(predicate["unprotected"].size(), 16U);
  EXPECT_EQ(predicate["unprotected"][14], (Json{{"quantity", "degree promise D"}, {"value", 70}}));
  EXPECT_EQ(predicate["unprotected"][15],
            (Json{{"quantity", "smallest degree promise for this population"}, {"value", 50}}));
  EXPECT_THAT(predicate["ledger"]["cap_relation"].get<std::string>(),
              HasSubstr(", for graphs in which no node has more than 50 neighbours, the smallest degree promise"));
  EXPECT_EQ(predicate["neighbour_relation"], ExampleJson()["predicate"]["neighbour_relation"])
      << "the job's own epsilon needs no degree promise";
}

TEST(StatementTest, ListsAPromiseThatOnlyAnotherDatasetWithThisContentHas) {
  Statement statement = ExampleStatement();
  statement.cap_max_degree = 50;
  const Json list = Json::parse(StatementToJson(statement))["predicate"]["unprotected"];
  ASSERT_EQ(list.size(), 15U);
  EXPECT_EQ(list[14], (Json{{"quantity", "smallest degree promise for this population"}, {"value", 50}}));
  // Public data has no budget that would know of others.
  Statement open = ExamplePublicStatement();
  open.max_degree = 50;
  EXPECT_EQ(Json::parse(StatementToJson(open))["predicate"]["unprotected"].back(),
            (Json{{"quantity", "degree promise D"}, {"value", 50}}));
}

TEST(StatementTest, RefusesPromisesThatContradictOneAnother) {
  const auto refused = [](const std::string& field, int64_t dataset, int64_t cap) {
    Statement statement = ExampleStatement();
    statement.max_degree = dataset;
    statement.cap_max_degree = cap;
    ExpectRefused(StatementToJson(statement), field);
  };
  refused("predicate.ledger.cap_max_degree", 70, 71);
  refused("predicate.ledger.cap_max_degree", 70, 0);
  refused("predicate.ledger.cap_max_degree", 0, (int64_t{1} << 31) + 1);
  refused("predicate.dataset.max_degree", 2996, 50);
  // Another dataset with this content may have one.
  Statement other = ExampleStatement();
  other.cap_max_degree = 50;
  EXPECT_TRUE(StatementFromJson(StatementToJson(other)).ok());
  // Public data has no cap.
  Statement open = ExamplePublicStatement();
  open.max_degree = 50;
  EXPECT_TRUE(StatementFromJson(StatementToJson(open)).ok());
  open.cap_max_degree = 50;
  EXPECT_EQ(ValidateStatement(open).code(), absl::StatusCode::kInvalidArgument);
}

TEST(StatementTest, StatesWhatWasUsedOfTheCapAndWhatTheEntrysHashCovers) {
  const Statement statement = ExampleStatement();
  const Json ledger = ExampleJson()["predicate"]["ledger"];
  EXPECT_THAT(Keys(ledger),
              ElementsAre("population", "scope", "cap_epsilon", "cap_delta", "cap_max_degree", "cap_relation", "order",
                          "cap_units", "units_before", "units", "units_after", "entry", "checkpoint"));
  EXPECT_THAT(ledger["scope"].get<std::string>(),
              HasSubstr("stays within the cap, unless an operator raises it or the ledger shows more than 100% used"));
  EXPECT_EQ(ledger["units_after"], 1234567 + statement.units);
  EXPECT_THAT(Keys(ledger["entry"]), ElementsAre("sequence", "hash", "previous_hash", "time_microseconds", "kind",
                                                 "actor", "attempt", "event"));
  EXPECT_EQ(ledger["entry"]["kind"], "POST");
  EXPECT_THAT(ledger["entry"]["event"].get<std::string>(), HasSubstr("\"noiseStddev\":"));
  Json json = ExampleJson();
  json["predicate"]["ledger"]["units_after"] = 1;
  ExpectRefused(json.dump(), "/predicate/ledger/units_after");
  json = ExampleJson();
  json["predicate"]["ledger"]["entry"]["kind"] = "VOID";
  ExpectRefused(json.dump(), "/predicate/ledger/entry/kind");
}

TEST(StatementTest, MarksThePublishedEpsilonAsThePapersClaim) {
  EXPECT_TRUE(ExampleJson()["predicate"]["published"].is_null());
  v1::TrainingSpec spec;
  spec.set_epsilon(0.5);
  spec.set_method(v1::FEATURES);
  spec.set_preset(v1::PAPER);
  const Statement statement = ExampleStatement(spec);
  const Json predicate = Json::parse(StatementToJson(statement))["predicate"];
  EXPECT_EQ(predicate["published"]["epsilon"], statement.plan.published_epsilon());
  EXPECT_THAT(predicate["published"]["claim"].get<std::string>(), StartsWith("the claim of the published paper"));
  EXPECT_GT(predicate["epsilon"].get<double>(), 0.5);
}

TEST(StatementTest, PromisesNothingForPublicData) {
  const Statement statement = ExamplePublicStatement();
  const Json json = Json::parse(StatementToJson(statement));
  EXPECT_EQ(json["predicate"]["guarantee"], "none: the dataset was declared public");
  EXPECT_TRUE(json["predicate"]["epsilon"].is_null());
  EXPECT_TRUE(json["predicate"]["delta"].is_null());
  EXPECT_TRUE(json["predicate"]["ledger"].is_null());
  EXPECT_THAT(json["predicate"]["random_source"].get<std::string>(), StartsWith("not private"));
  const Statement again = StatementFromJson(StatementToJson(statement)).value();
  EXPECT_TRUE(again.is_public);
  EXPECT_EQ(again.population, "");
}

TEST(StatementTest, SaysThatNoiseWasOffAndTakesItForPublicDataOnly) {
  v1::TrainingSpec spec = ExampleSpec();
  spec.set_epsilon(0);
  spec.set_non_private(true);
  spec.mutable_evaluation()->set_held_out_share(0.25);
  spec.mutable_evaluation()->set_budget_share(0.1);
  Statement statement = ExampleStatement(spec);
  const Json predicate = Json::parse(StatementToJson(statement))["predicate"];
  EXPECT_EQ(predicate["guarantee"],
            "none: the dataset was declared public, and the model was trained without any noise");
  EXPECT_TRUE(predicate["event"].is_null());
  EXPECT_THAT(predicate["random_source"].get<std::string>(), StartsWith("not private: noise was off"));
  EXPECT_THAT(predicate["mechanism"]["description"].get<std::string>(),
              StartsWith("without clipping and without noise"));
  EXPECT_THAT(predicate["released"], Contains("the accuracy on the held-out slots, under evaluation"));
  EXPECT_EQ(predicate["charged"].dump(), R"({"training":"none","tuning":"none","evaluation":"none"})");
  const Statement again = StatementFromJson(StatementToJson(statement)).value();
  EXPECT_TRUE(again.plan.non_private());
  EXPECT_FALSE(again.plan.has_event());

  statement.plan.set_non_private(false);
  ExpectRefused(StatementToJson(statement), "predicate.event");
  statement = ExamplePublicStatement();
  statement.plan.set_non_private(true);
  ExpectRefused(StatementToJson(statement), "predicate.event");
  statement = ExampleStatement();
  statement.plan.set_non_private(true);
  ExpectRefused(StatementToJson(statement), "predicate.mechanism.plan.non_private");
  statement = ExampleStatement();
  statement.plan.clear_event();
  ExpectRefused(StatementToJson(statement), "predicate.event");
}

}  // namespace
}  // namespace dpar
