// What is not a statement of ours is refused, with the place.
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

using testing::CollectPaths;
using testing::ExampleJson;
using testing::ExpectRefused;
using testing::FixedRandom;
using testing::FullJson;
using testing::FullStatement;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

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
      {"predicate.dataset.edge_bound", [](Statement& s) { s.bounds.edges = 0; }},
      {"predicate.dataset.entry_bound", [](Statement& s) { s.bounds.feature_entries = -1; }},
      {"predicate.ledger.population", [](Statement& s) { s.population.clear(); }},
      {"predicate.ledger.population", [](Statement& s) { s.population = s.dataset; }},
      {"predicate.ledger.population", [](Statement& s) { s.population = "tenants/other/populations/cora"; }},
      {"predicate.ledger.entry.hash", [](Statement& s) { s.ledger_hash = "0123456789abcdef"; }},
      {"predicate.ledger.entry.sequence", [](Statement& s) { s.ledger_sequence = 0; }},
      {"predicate.ledger.entry.previous_hash", [](Statement& s) { s.previous_hash.clear(); }},
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
                              &s.ledger_hash,
                              &s.population,
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
