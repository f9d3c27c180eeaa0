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
using testing::FixedRandom;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

// With every part that a plan can have.
Statement FullStatement() {
  v1::TrainingSpec spec = ExampleSpec();
  spec.set_method(v1::DPAR_GM);
  spec.mutable_options()->set_center(true);
  spec.mutable_evaluation()->set_held_out_share(0.25);
  spec.mutable_evaluation()->set_budget_share(0.1);
  return ExampleStatement(spec);
}

Json ExampleJson() { return Json::parse(StatementToJson(ExampleStatement())); }
Json FullJson() { return Json::parse(StatementToJson(FullStatement())); }

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

void ExpectRefused(const std::string& json, const std::string& field) {
  const absl::Status status = StatementFromJson(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), field);
}

// Every place in the document.
void CollectPaths(const Json& json, const std::string& path, std::vector<std::string>& paths) {
  if (!json.is_structured()) {
    return;
  }
  for (const auto& [key, value] : json.items()) {
    const std::string child = absl::StrCat(path, "/", key);
    paths.push_back(child);
    CollectPaths(value, child, paths);
  }
}

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
  EXPECT_THAT(features["released"], ElementsAre("the model's weights after the last step"));
  EXPECT_EQ(features["charged"].dump(), R"({"training":"event","tuning":"none","evaluation":"none"})");
  EXPECT_TRUE(features["evaluation"].is_null());

  const Json full = FullJson()["predicate"];
  EXPECT_EQ(full["mechanism"]["description"], FindMethod(v1::DPAR_GM)->description);
  EXPECT_THAT(full["released"], ElementsAre("the model's weights after the last step",
                                            "the noisy mean of the feature rows, as part of the model",
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
  ASSERT_EQ(list.size(), 12U);
  EXPECT_EQ(list[0], (Json{{"quantity", "node slots N"}, {"value", 2995}}));
  EXPECT_EQ(list[1], (Json{{"quantity", "feature width d"}, {"value", 2879}}));
  EXPECT_EQ(list[2], (Json{{"quantity", "class count c"}, {"value", 7}}));
  EXPECT_EQ(list[3], (Json{{"quantity", "training slots n"}, {"value", 2995}}));
  EXPECT_EQ(list[4], (Json{{"quantity", "held-out slots"}, {"value", 0}}));
  EXPECT_EQ(list[5]["value"], "every slot trains; none is held out");
  EXPECT_EQ(list[6], (Json{{"quantity", "steps"}, {"value", 97}}));
  EXPECT_EQ(list[8]["quantity"], "wall-clock time");
  EXPECT_EQ(list[10]["quantity"], "progress");
  EXPECT_EQ(list[11]["quantity"], "identical datasets");
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
  EXPECT_EQ(again.budget, statement.budget);
  EXPECT_EQ(again.ledger_sequence, 5);
  EXPECT_EQ(again.ledger_hash, statement.ledger_hash);
  EXPECT_EQ(again.cap_epsilon, 8);
  EXPECT_EQ(again.cap_delta, 3e-5);
  EXPECT_EQ(again.order, statement.order);
  EXPECT_EQ(again.units, statement.units);
  EXPECT_EQ(again.units_before, 1234567);
  EXPECT_EQ(again.cap_units, statement.cap_units);
  EXPECT_EQ(again.budget_id, "0123456789abcdef");
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
  ASSERT_EQ(predicate["unprotected"].size(), 14U);
  EXPECT_EQ(predicate["unprotected"][12], (Json{{"quantity", "degree promise D"}, {"value", 70}}));
  EXPECT_EQ(predicate["unprotected"][13],
            (Json{{"quantity", "smallest degree promise for this content"}, {"value", 50}}));
  EXPECT_THAT(predicate["ledger"]["cap_relation"].get<std::string>(),
              HasSubstr(", for graphs in which no node has more than 50 neighbours, the smallest degree promise"));
  EXPECT_EQ(predicate["neighbour_relation"], ExampleJson()["predicate"]["neighbour_relation"])
      << "the job's own epsilon needs no degree promise";
}

TEST(StatementTest, ListsAPromiseThatOnlyAnotherDatasetWithThisContentHas) {
  Statement statement = ExampleStatement();
  statement.cap_max_degree = 50;
  const Json list = Json::parse(StatementToJson(statement))["predicate"]["unprotected"];
  ASSERT_EQ(list.size(), 13U);
  EXPECT_EQ(list[12], (Json{{"quantity", "smallest degree promise for this content"}, {"value", 50}}));
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
  refused("predicate.ledger.cap_max_degree", 0, 2996);
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
              ElementsAre("budget", "scope", "cap_epsilon", "cap_delta", "cap_max_degree", "cap_relation", "order",
                          "cap_units", "units_before", "units", "units_after", "entry", "checkpoint"));
  EXPECT_EQ(ledger["units_after"], 1234567 + statement.units);
  EXPECT_THAT(Keys(ledger["entry"]), ElementsAre("sequence", "hash", "previous_hash", "budget_id", "time_microseconds",
                                                 "kind", "actor", "attempt", "event"));
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
  EXPECT_EQ(again.budget, "");
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

TEST(StatementTest, RefusesTheRemovalOfAnyField) {
  const auto can_be_without = [](const std::string& path) {
    // One file is enough, and an event with fewer stages is an event, if not the one of this plan.
    return path == "/subject/0" || path == "/subject/1" ||
           (absl::StartsWith(path, "/predicate/event/composition/events/") &&
            path.find('/', std::strlen("/predicate/event/composition/events/")) == std::string::npos);
  };
  const Json json = FullJson();
  std::vector<std::string> paths;
  CollectPaths(json, "", paths);
  EXPECT_GT(paths.size(), 130U);
  for (const std::string& path : paths) {
    const Json altered = json.patch(Json::array({Json{{"op", "remove"}, {"path", path}}}));
    EXPECT_EQ(StatementFromJson(altered.dump()).ok(), can_be_without(path)) << path;
  }
}

TEST(StatementTest, RefusesAnotherTypeInAnyField) {
  const Json json = FullJson();
  std::vector<std::string> paths;
  CollectPaths(json, "", paths);
  for (const std::string& path : paths) {
    for (const Json& other : {Json(nullptr), Json(true), Json("text"), Json(-1.5), Json::array(), Json::object()}) {
      Json altered = json;
      altered[Pointer(path)] = other;
      // Some text fields take any text, some numbers any number.
      const bool same_type = other.type() == json[Pointer(path)].type();
      if (!same_type) {
        EXPECT_FALSE(StatementFromJson(altered.dump()).ok()) << path << " " << other;
      }
    }
  }
}

TEST(StatementTest, RefusesAnUnknownFieldInAnyObject) {
  const Json json = FullJson();
  std::vector<std::string> paths;
  CollectPaths(json, "", paths);
  paths.emplace_back("");
  for (const std::string& path : paths) {
    if (json[Pointer(path)].is_object()) {
      Json altered = json;
      altered[Pointer(path)]["extra"] = 1;
      EXPECT_EQ(StatementFromJson(altered.dump()).status().code(), absl::StatusCode::kInvalidArgument) << path;
    }
  }
}

TEST(StatementTest, NamesAnUnknownFieldByItsPlace) {
  Json json = ExampleJson();
  json["predicate"]["dataset"]["extra"] = 1;
  ExpectRefused(json.dump(), "/predicate/dataset/extra");
  json = ExampleJson();
  json["predicate"]["mechanism"]["plan"]["extra"] = 1;
  ExpectRefused(json.dump(), "/predicate/mechanism/plan");
  json = ExampleJson();
  json["predicate"]["mechanism"]["plan"]["price_units"] = 1;
  ExpectRefused(json.dump(), "/predicate/mechanism/plan/price_units");
  json = ExampleJson();
  json["predicate"]["event"]["extra"] = 1;
  ExpectRefused(json.dump(), "/predicate/event");
}

TEST(StatementTest, RefusesRepeatedKeysAtAnyDepth) {
  const std::string text = StatementToJson(ExampleStatement());
  const auto doubled = [&](const std::string& key_and_value) {
    std::string altered = text;
    altered.insert(altered.find(key_and_value), absl::StrCat(key_and_value, ","));
    return altered;
  };
  ExpectRefused(doubled("\"predicateType\":\"urn:dpar:privacy-certificate:v1\""), "statement");
  ExpectRefused(doubled("\"epsilon\":1.0"), "statement");
  ExpectRefused(doubled("\"steps\":97"), "statement");
  ExpectRefused(doubled("\"name\":\"model.pt\""), "statement");
}

TEST(StatementTest, RefusesAnotherSpellingOfTheSame) {
  const std::string text = StatementToJson(ExampleStatement());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string altered = text;
    return altered.replace(altered.find(from), from.size(), to);
  };
  ExpectRefused(absl::StrCat(" ", text), "statement");
  ExpectRefused(absl::StrCat(text, "\n"), "statement");
  ExpectRefused(replaced("\"momentum\":0.9", "\"momentum\":0.90"), "statement");
  ExpectRefused(replaced("\"momentum\":0.9", "\"momentum\":9e-1"), "statement");
  ExpectRefused(replaced("\"steps\":97", "\"steps\": 97"), "statement");
  ExpectRefused(replaced("\"job\":", "\"\\u006aob\":"), "statement");
  // The same fields in another order.
  ExpectRefused(nlohmann::json::parse(text).dump(), "statement");
}

TEST(StatementTest, RefusesAStatedEpsilonThatIsNotThePlans) {
  Json json = ExampleJson();
  json["predicate"]["epsilon"] = 0.5;
  ExpectRefused(json.dump(), "/predicate/epsilon");
  json = ExampleJson();
  json["predicate"]["guarantee"] = "perfect secrecy";
  ExpectRefused(json.dump(), "/predicate/guarantee");
  json = ExampleJson();
  json["predicate"]["unprotected"][0]["value"] = 2994;
  ExpectRefused(json.dump(), "/predicate/unprotected/0/value");
}

TEST(StatementTest, RefusesMalformedValuesByName) {
  const struct {
    std::string field;
    std::function<void(Statement&)> spoil;
  } kCases[] = {
      {"subject", [](Statement& s) { s.subjects.clear(); }},
      {"subject.name", [](Statement& s) { s.subjects[""] = s.subjects["model.pt"]; }},
      {"subject.name", [](Statement& s) { s.subjects["a/b"] = s.subjects["model.pt"]; }},
      {"subject.digest.sha256", [](Statement& s) { s.subjects["model.pt"] = "abc"; }},
      {"subject.digest.sha256", [](Statement& s) { s.subjects["model.pt"] = std::string(64, 'A'); }},
      {"predicate.job", [](Statement& s) { s.job = "jobs/1"; }},
      {"predicate.job", [](Statement& s) { s.job = "tenants/acme/jobs/J_1"; }},
      {"predicate.job", [](Statement& s) { s.job = "tenants/other/jobs/1"; }},
      {"predicate.dataset.name", [](Statement& s) { s.dataset = "tenants/acme/jobs/x"; }},
      {"predicate.dataset.digest", [](Statement& s) { s.dataset_digest.clear(); }},
      {"predicate.dataset.node_count", [](Statement& s) { s.sizes.node_count = 0; }},
      {"predicate.dataset.feature_count", [](Statement& s) { s.sizes.feature_count = -1; }},
      {"predicate.dataset.class_count", [](Statement& s) { s.sizes.class_count = 0; }},
      {"predicate.ledger.budget", [](Statement& s) { s.budget.clear(); }},
      {"predicate.ledger.budget", [](Statement& s) { s.budget = s.dataset + "-2/budget"; }},
      {"predicate.ledger.entry.hash", [](Statement& s) { s.ledger_hash = "0123456789abcdef"; }},
      {"predicate.ledger.entry.sequence", [](Statement& s) { s.ledger_sequence = 0; }},
      {"predicate.ledger.entry.previous_hash", [](Statement& s) { s.previous_hash.clear(); }},
      {"predicate.ledger.entry.budget_id", [](Statement& s) { s.budget_id.clear(); }},
      {"predicate.ledger.entry.time_microseconds", [](Statement& s) { s.entry_time_microseconds = -1; }},
      {"predicate.ledger.entry.actor", [](Statement& s) { s.entry_actor = "line\nbreak"; }},
      {"predicate.ledger.entry.attempt", [](Statement& s) { s.entry_attempt = -1; }},
      {"predicate.ledger.entry.event", [](Statement& s) { s.entry_event.clear(); }},
      {"predicate.ledger.units_before", [](Statement& s) { s.units_before = -1; }},
      {"predicate.ledger.units_before", [](Statement& s) { s.units_before = int64_t{1} << 62; }},
      {"predicate.ledger.units", [](Statement& s) { s.units = -1; }},
      {"predicate.ledger.cap_units", [](Statement& s) { s.cap_units = -1; }},
      {"predicate.accountant.version", [](Statement& s) { s.accountant_version = 0; }},
      {"predicate.accountant.epsilon", [](Statement& s) { s.accountant_epsilon = -1; }},
      {"predicate.build", [](Statement& s) { s.build.clear(); }},
      {"predicate.software", [](Statement& s) { s.software.clear(); }},
      {"predicate.created_at", [](Statement& s) { s.created_at = "yesterday"; }},
      {"predicate.created_at", [](Statement& s) { s.created_at = "2026-01-02T03:04:05+01:00"; }},
      {"predicate.dataset.node_count", [](Statement& s) { s.sizes.node_count = (int64_t{1} << 31) + 1; }},
      {"predicate.mechanism.plan.method", [](Statement& s) { s.plan.set_method(v1::METHOD_UNSPECIFIED); }},
      {"predicate.mechanism.plan.method", [](Statement& s) { s.plan.set_method(v1::AUTO); }},
      {"predicate.mechanism.plan.method", [](Statement& s) { s.plan.set_method(static_cast<v1::Method>(99)); }},
      {"/predicate/mechanism/plan/accountant",
       [](Statement& s) { s.plan.set_accountant(static_cast<v1::Accountant>(99)); }},
      {"/predicate/mechanism/plan/learning_rate",
       [](Statement& s) { s.plan.set_learning_rate(std::numeric_limits<double>::quiet_NaN()); }},
      {"/predicate/epsilon", [](Statement& s) { s.plan.set_epsilon(std::numeric_limits<double>::infinity()); }},
  };
  for (const auto& test : kCases) {
    Statement statement = ExampleStatement();
    test.spoil(statement);
    ExpectRefused(StatementToJson(statement), test.field);
  }
}

TEST(StatementTest, RefusesWhatIsNotAJsonObject) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{"), deep, std::string("{\"a\":1e999}"),
        std::string("{\"a\":\"\xff\"}"), std::string((size_t{1} << 20) + 1, ' '), std::string("{}{}")}) {
    ExpectRefused(text, "statement");
  }
}

TEST(StatementTest, RefusesNumbersThatDoNotRoundTrip) {
  const std::string text = StatementToJson(ExampleStatement());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string altered = text;
    return altered.replace(altered.find(from), from.size(), to);
  };
  for (const std::string other : {"0.90", "0.9000000000000000222", "9e-1", "0.9e0", "+0.9", ".9", "00.9"}) {
    EXPECT_FALSE(StatementFromJson(replaced("\"momentum\":0.9", "\"momentum\":" + other)).ok()) << other;
  }
  for (const std::string other : {"97.0", "97e0", "9.7e1", "0097", "-0", "97000000000000000000000"}) {
    EXPECT_FALSE(StatementFromJson(replaced("\"steps\":97", "\"steps\":" + other)).ok()) << other;
  }
  for (const std::string other : {"1", "1.00", "1e0", "NaN", "Infinity", "1e999"}) {
    EXPECT_FALSE(StatementFromJson(replaced("\"epsilon\":1.0", "\"epsilon\":" + other)).ok()) << other;
  }
}

TEST(StatementTest, RefusesTextThatIsNotPrintableAscii) {
  for (const std::string text : {"dpar \xff", "dpar \xc3\xa9", "dpar\n"}) {
    Statement statement = ExampleStatement();
    statement.software = text;
    EXPECT_EQ(ValidateStatement(statement).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(StatementFromJson(StatementToJson(statement)).ok());
  }
}

int Draw(FixedRandom& random, int bound) {
  return static_cast<int>(UniformBelow(random, static_cast<uint64_t>(bound)));
}

// One field of a message, at any depth, becomes something that a fault could leave there.
void SpoilMessage(google::protobuf::Message& message, FixedRandom& random) {
  const auto* reflection = message.GetReflection();
  const auto* descriptor = message.GetDescriptor();
  const auto draw = [&random](int bound) { return Draw(random, bound); };
  const auto* field = descriptor->field(draw(descriptor->field_count()));
  if (field->is_repeated()) {
    const int size = reflection->FieldSize(message, field);
    if (size > 0) {
      SpoilMessage(*reflection->MutableRepeatedMessage(&message, field, draw(size)), random);
    }
    return;
  }
  const double doubles[] = {0, -0.0, 1e-320, -1, 1e308, std::numeric_limits<double>::infinity(), std::nan("")};
  const int64_t integers[] = {0, -1, 1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  switch (field->cpp_type()) {
    case google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE:
      reflection->SetDouble(&message, field, doubles[draw(7)]);
      break;
    case google::protobuf::FieldDescriptor::CPPTYPE_INT64:
      reflection->SetInt64(&message, field, integers[draw(5)]);
      break;
    case google::protobuf::FieldDescriptor::CPPTYPE_INT32:
      reflection->SetInt32(&message, field, static_cast<int32_t>(integers[draw(3)]));
      break;
    case google::protobuf::FieldDescriptor::CPPTYPE_BOOL:
      reflection->SetBool(&message, field, draw(2) == 1);
      break;
    case google::protobuf::FieldDescriptor::CPPTYPE_ENUM:
      reflection->SetEnumValue(&message, field, draw(12) - 1);
      break;
    case google::protobuf::FieldDescriptor::CPPTYPE_STRING:
      reflection->SetString(&message, field, draw(2) == 1 ? "\xff" : "text");
      break;
    default:
      if (draw(4) == 0) {
        reflection->ClearField(&message, field);
      } else {
        SpoilMessage(*reflection->MutableMessage(&message, field), random);
      }
  }
}

void SpoilText(std::string& text, FixedRandom& random) {
  const std::string texts[] = {"",
                               "\xff",
                               "\xc3\xa9",
                               "\"quoted\\",
                               std::string("a\0b", 3),
                               "\x7f",
                               std::string(100000, 'a'),
                               "tenants/a/jobs/b",
                               std::string(64, 'a')};
  text = texts[Draw(random, static_cast<int>(std::size(texts)))];
}

TEST(StatementTest, WhateverIsTakenBackKeepsTheRulesAndIsWrittenAsItWas) {
  FixedRandom random(20260102);
  const Statement examples[] = {ExampleStatement(), FullStatement(), ExamplePublicStatement()};
  int accepted = 0;
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    Statement s = examples[i % 3];
    for (int faults = 1 + Draw(random, 3); faults > 0; --faults) {
      std::string* texts[] = {&s.job,
                              &s.dataset,
                              &s.dataset_digest,
                              &s.budget,
                              &s.ledger_hash,
                              &s.budget_id,
                              &s.previous_hash,
                              &s.entry_actor,
                              &s.entry_event,
                              &s.software,
                              &s.build,
                              &s.created_at,
                              &s.subjects["model.pt"],
                              &s.subjects["model.pt"]};
      int64_t* integers[] = {&s.ledger_sequence, &s.order,
                             &s.units,           &s.units_before,
                             &s.cap_units,       &s.entry_time_microseconds,
                             &s.entry_attempt,   &s.accountant_version,
                             &s.sizes.node_count};
      double* doubles[] = {&s.cap_epsilon, &s.cap_delta, &s.accountant_epsilon};
      switch (Draw(random, 6)) {
        case 0:
          SpoilText(*texts[Draw(random, static_cast<int>(std::size(texts)))], random);
          break;
        case 1:
          *integers[Draw(random, static_cast<int>(std::size(integers)))] = static_cast<int64_t>(UniformBits(random));
          break;
        case 2:
          *doubles[Draw(random, 3)] = Draw(random, 2) == 0 ? std::nan("") : 1e300;
          break;
        case 3:
          s.is_public = !s.is_public;
          break;
        default:
          SpoilMessage(s.plan, random);
      }
    }
    const std::string json = StatementToJson(s);
    const absl::StatusOr<Statement> again = StatementFromJson(json);
    ++(again.ok() ? accepted : refused);
    if (again.ok()) {
      EXPECT_TRUE(ValidateStatement(s).ok()) << json;
      EXPECT_EQ(StatementToJson(*again), json);
    }
  }
  EXPECT_GT(accepted, 250);
  EXPECT_GT(refused, 250);
}

}  // namespace
}  // namespace dpar
