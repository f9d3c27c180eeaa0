#include "core/message_json.h"

#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "dpar/v1/privacy.pb.h"
#include "dpar/v1/training.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const std::set<std::string> kLeftOut = {"event", "price_units", "left_units"};

v1::Plan FullPlan() {
  v1::Plan plan;
  plan.set_method(v1::DPAR_EM1);
  plan.set_training_slots(int64_t{1} << 60);
  plan.set_epsilon(0.1 + 0.2);
  plan.set_lattice_bits(-24);
  plan.set_published_epsilon(0);
  plan.set_non_private(true);
  plan.mutable_mean()->set_noise_stddev(5e-324);
  plan.mutable_structure()->set_rows(v1::APPR_ONLY);
  plan.mutable_evaluation()->set_held_out_slots(7);
  plan.set_max_degree(5);
  plan.mutable_aggregation()->set_hops(2);
  plan.set_neighbours(3);
  return plan;
}

v1::PrivacyEvent StagedEvent() {
  v1::PrivacyEvent event;
  v1::StageEvent& stage = *event.mutable_composition()->add_events()->mutable_stage();
  stage.set_name("dp-sgd");
  stage.mutable_event()->mutable_laplace()->set_scale(2);
  event.mutable_composition()->add_events()->mutable_bounded_range()->set_range(0.5);
  return event;
}

void ExpectRefused(const Json& json, google::protobuf::Message& message, const std::string& field,
                   const std::string& text) {
  message.Clear();
  const absl::Status status = MessageFromJson(json, "plan", message, kLeftOut);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), field);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

TEST(MessageToJsonTest, WritesEveryKindOfFieldUnderItsName) {
  const Json json = MessageToJson(FullPlan());
  EXPECT_EQ(json["method"], "DPAR_EM1");
  EXPECT_EQ(json["training_slots"], int64_t{1} << 60);
  EXPECT_EQ(json["epsilon"], 0.1 + 0.2);
  EXPECT_EQ(json["lattice_bits"], -24);
  EXPECT_EQ(json["non_private"], true);
  EXPECT_EQ(json["mean"].dump(), R"({"noise_stddev":5e-324,"summation_error":0.0})");
  EXPECT_EQ(json["structure"]["rows"], "APPR_ONLY");
  EXPECT_EQ(MessageToJson(StagedEvent()).dump(),
            R"({"composition":{"events":[{"stage":{"name":"dp-sgd","event":{"laplace":)"
            R"({"sensitivity":0.0,"scale":2.0}}}},{"bounded_range":{"range":0.5}}]}})");
}

TEST(MessageToJsonTest, WritesZerosAndLeavesOutWhatIsAbsent) {
  const Json empty = MessageToJson(v1::Plan());
  EXPECT_EQ(empty["steps"], 0);
  EXPECT_EQ(empty["method"], "METHOD_UNSPECIFIED");
  EXPECT_EQ(empty["non_private"], false);
  for (const char* name : {"published_epsilon", "mean", "structure", "evaluation"}) {
    EXPECT_FALSE(empty.contains(name)) << name;
  }
  EXPECT_EQ(MessageToJson(FullPlan())["published_epsilon"], 0.0) << "present, though zero";
  EXPECT_EQ(MessageToJson(v1::PrivacyEvent()).dump(), "{}");
}

TEST(MessageToJsonTest, KeepsTheOrderOfTheDefinitionAndLeavesOutWhatItIsTold) {
  EXPECT_THAT(Keys(MessageToJson(v1::GaussianEvent())), ElementsAre("sensitivity", "noise_stddev", "count"));
  EXPECT_THAT(Keys(MessageToJson(v1::GaussianEvent(), {"noise_stddev"})), ElementsAre("sensitivity", "count"));
}

TEST(WriteMessageTest, WritesWhatTheTreeWouldBeWrittenAs) {
  const auto text = [](const google::protobuf::Message& message, const std::set<std::string>& left_out = {}) {
    JsonText json;
    WriteMessage(message, json, left_out);
    return json.Take();
  };
  EXPECT_EQ(text(FullPlan()), MessageToJson(FullPlan()).dump());
  EXPECT_EQ(text(FullPlan(), kLeftOut), MessageToJson(FullPlan(), kLeftOut).dump());
  EXPECT_EQ(text(v1::Plan()), MessageToJson(v1::Plan()).dump());
  EXPECT_EQ(text(StagedEvent()), MessageToJson(StagedEvent()).dump());
  EXPECT_EQ(text(v1::PrivacyEvent()), "{}");
  v1::Plan unknown;
  unknown.set_method(static_cast<v1::Method>(9999));
  EXPECT_EQ(text(unknown), MessageToJson(unknown).dump());
}

TEST(MessageFromJsonTest, GivesBackTheSameMessage) {
  v1::Plan plan;
  const absl::Status read = MessageFromJson(MessageToJson(FullPlan(), kLeftOut), "plan", plan, kLeftOut);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_TRUE(MessageDifferencer::Equals(plan, FullPlan())) << plan.DebugString();
  v1::Plan empty;
  ASSERT_TRUE(MessageFromJson(MessageToJson(v1::Plan(), kLeftOut), "plan", empty, kLeftOut).ok());
  EXPECT_FALSE(empty.has_published_epsilon());
  EXPECT_FALSE(empty.has_mean());
  v1::PrivacyEvent event;
  ASSERT_TRUE(MessageFromJson(MessageToJson(StagedEvent()), "event", event).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(event, StagedEvent())) << event.DebugString();
}

TEST(MessageFromJsonTest, MissesEveryFieldThatIsNotOptional) {
  const Json json = MessageToJson(FullPlan(), kLeftOut);
  for (const std::string& key : Keys(json)) {
    Json altered = json;
    altered.erase(key);
    v1::Plan plan;
    if (v1::Plan::descriptor()->FindFieldByName(key)->has_optional_keyword()) {
      EXPECT_TRUE(MessageFromJson(altered, "plan", plan, kLeftOut).ok()) << key;
    } else {
      ExpectRefused(altered, plan, "plan", "with the field " + key);
    }
  }
}

TEST(MessageFromJsonTest, RefusesAnotherTypeInEveryField) {
  const Json json = MessageToJson(FullPlan(), kLeftOut);
  for (const std::string& key : Keys(json)) {
    for (const Json& other : {Json(nullptr), Json(true), Json("text"), Json(1.5), Json::array(), Json::object()}) {
      Json altered = json;
      altered[key] = other;
      v1::Plan plan;
      // An enum is text too, but not any text; an object takes only its own fields.
      const bool acceptable = other.type() == json[key].type() && !other.is_string() && !other.is_object();
      if (!acceptable) {
        const absl::Status status = MessageFromJson(altered, "plan", plan, kLeftOut);
        ASSERT_FALSE(status.ok()) << key << " " << other;
        EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "plan." + key);
      }
    }
  }
}

TEST(MessageFromJsonTest, SaysWhatIsAllowed) {
  const Json json = MessageToJson(FullPlan(), kLeftOut);
  const auto with = [&](const char* pointer, const Json& value) {
    Json altered = json;
    altered[Json::json_pointer(pointer)] = value;
    return altered;
  };
  v1::Plan plan;
  ExpectRefused(with("/lattice_bits", int64_t{1} << 31), plan, "plan.lattice_bits", "32 bits");
  ExpectRefused(with("/lattice_bits", -(int64_t{1} << 31) - 1), plan, "plan.lattice_bits", "32 bits");
  ExpectRefused(with("/steps", std::numeric_limits<uint64_t>::max()), plan, "plan.steps", "an integer");
  ExpectRefused(with("/steps", 1.0), plan, "plan.steps", "an integer");
  ExpectRefused(with("/optimizer", "RMSPROP"), plan, "plan.optimizer", "one of OPTIMIZER_UNSPECIFIED, SGD, ADAM");
  ExpectRefused(with("/optimizer", 1), plan, "plan.optimizer", "one of");
  ExpectRefused(with("/non_private", 1), plan, "plan.non_private", "true or false");
  ExpectRefused(with("/mean/noise_stddev", "1"), plan, "plan.mean.noise_stddev", "a number");
  ExpectRefused(with("/mean/colour", 1), plan, "plan.mean", "at most 2 fields");
  ExpectRefused(with("/colour", 1), plan, "plan", "at most");
  for (const std::string& name : kLeftOut) {
    Json altered = json;
    altered.erase("mean");
    altered[name] = 1;
    ExpectRefused(altered, plan, "plan." + name, "not known");
  }
}

TEST(MessageFromJsonTest, TakesExactlyOneOfAChoice) {
  v1::PrivacyEvent event;
  const Json stage = {{"name", "a"}, {"event", {{"bounded_range", {{"range", 1}}}}}};
  ExpectRefused(Json{{"stage", stage}, {"bounded_range", {{"range", 1}}}}, event, "plan", "one of gaussian, laplace");
  ExpectRefused(Json::object(), event, "plan", "one of gaussian, laplace");
  Json nameless = stage;
  nameless["name"] = 7;
  ExpectRefused(Json{{"stage", nameless}}, event, "plan.stage.name", "a string");
}

TEST(MessageFromJsonTest, ReadsNoMoreThanItsLimits) {
  Json list = {{"events", Json::array()}};
  for (size_t i = 0; i <= kMaxListedMessages; ++i) {
    list["events"].push_back({{"composition", {{"events", Json::array()}}}});
  }
  v1::CompositionEvent composition;
  ExpectRefused(list, composition, "plan.events", "at most 4096");
  list["events"].erase(0);
  composition.Clear();
  EXPECT_TRUE(MessageFromJson(list, "list", composition).ok());

  Json deep = {{"bounded_range", {{"range", 1}}}};
  for (int depth = 2; depth + 2 <= kMaxMessageDepth; depth += 2) {
    deep = {{"repetition", {{"count", 1}, {"event", deep}}}};
  }
  v1::PrivacyEvent event;
  EXPECT_TRUE(MessageFromJson(deep, "event", event).ok());
  event.Clear();
  EXPECT_FALSE(MessageFromJson(Json{{"repetition", {{"count", 1}, {"event", deep}}}}, "event", event).ok());
}

}  // namespace
}  // namespace dpar
