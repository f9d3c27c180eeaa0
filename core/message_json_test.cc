#include "core/message_json.h"

#include <limits>
#include <string>
#include <vector>

#include "dpar/v1/privacy.pb.h"
#include "dpar/v1/training.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::google::protobuf::util::JsonStringToMessage;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using Json = nlohmann::ordered_json;

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

TEST(MessageToJsonTest, IsTakenBackByProtobufsReader) {
  v1::Plan plan;
  ASSERT_TRUE(JsonStringToMessage(MessageToJson(FullPlan(), {"event"}).dump(), &plan).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(plan, FullPlan()));
  v1::PrivacyEvent event;
  ASSERT_TRUE(JsonStringToMessage(MessageToJson(StagedEvent()).dump(), &event).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(event, StagedEvent()));
}

TEST(MessageToJsonTest, WritesNullForWhatJsonOrTheEnumerationCannotSay) {
  v1::Plan plan;
  plan.set_method(static_cast<v1::Method>(99));
  plan.set_epsilon(std::numeric_limits<double>::infinity());
  const Json json = Json::parse(MessageToJson(plan).dump());
  EXPECT_TRUE(json["method"].is_null());
  EXPECT_TRUE(json["epsilon"].is_null());
}

}  // namespace
}  // namespace dpar
