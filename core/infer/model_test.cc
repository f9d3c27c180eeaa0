#include "core/infer/model.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::BytesOf;
using ::dpar::testing::RawNpyOf;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::VectorArray;
using ::dpar::testing::WriteArrays;
using ::dpar::testing::WriteBytes;
using ::dpar::testing::WriteRawZip;
using ::testing::HasSubstr;

constexpr char kBadModel[] = "INVALID_ARGUMENT INVALID_FIELD field=model";
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Two features, three classes.
Model Linear() {
  Model model;
  model.transform = v1::UNIT;
  model.feature_count = 2;
  model.class_count = 3;
  model.weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  model.logit_noise = 0.1;
  model.plan = R"({"method":"FEATURES","steps":"30"})";
  return model;
}

// Two features, two hidden units, one class, and a center.
Model Hidden() {
  Model model;
  model.feature_count = 2;
  model.class_count = 1;
  model.hidden_size = 2;
  model.center = {0.25, -0.5};
  model.weights = {1, 2, 3, 4, 5, 6};
  model.output_weights = {7, 8};
  return model;
}

std::map<std::string, NpyArray> LinearArrays() {
  return {{"weights", NpyArray{{3, 3}, Linear().weights}}, {"header", NpyArray{{}, ModelHeader(Linear())}}};
}

std::map<std::string, NpyArray> HiddenArrays() {
  return {{"weights", NpyArray{{3, 2}, Hidden().weights}},
          {"output_weights", NpyArray{{2, 1}, Hidden().output_weights}},
          {"center", NpyArray{{2}, Hidden().center}},
          {"header", NpyArray{{}, ModelHeader(Hidden())}}};
}

std::string ReadWith(std::map<std::string, NpyArray> arrays, const std::map<std::string, NpyArray>& changes) {
  const std::string path = TestPath("model.npz");
  for (const auto& [name, array] : changes) {
    arrays[name] = array;
  }
  EXPECT_TRUE(WriteArrays(path, arrays).ok());
  return Summary(ReadModelFile(path).status());
}

std::string ReadWithHeader(const std::string& header) {
  return ReadWith(LinearArrays(), {{"header", NpyArray{{}, header}}});
}

// A model whose files say it is good, and one change that makes it bad.
template <typename Change>
std::string ValidateWith(Model model, const Change& change) {
  change(model);
  std::string summary = Summary(ValidateModel(model));
  EXPECT_EQ(Summary(WriteModelFile(TestPath("bad.npz"), model)), summary);
  return summary;
}

void ExpectSame(const Model& model, const Model& expected) {
  EXPECT_EQ(model.transform, expected.transform);
  EXPECT_EQ(model.feature_count, expected.feature_count);
  EXPECT_EQ(model.class_count, expected.class_count);
  EXPECT_EQ(model.hidden_size, expected.hidden_size);
  EXPECT_EQ(model.center, expected.center);
  EXPECT_EQ(model.weights, expected.weights);
  EXPECT_EQ(model.output_weights, expected.output_weights);
  EXPECT_EQ(model.logit_noise, expected.logit_noise);
  EXPECT_EQ(model.class_shares, expected.class_shares);
  EXPECT_EQ(model.share_noise, expected.share_noise);
  EXPECT_EQ(model.plan, expected.plan);
}

TEST(ModelHeaderTest, NamesTheFormatTheTransformTheNoiseAndThePlan) {
  EXPECT_EQ(
      ModelHeader(Linear()),
      R"({"format":1,"transform":"UNIT","logit_noise":0.1,"share_noise":0.0,"reads":"features","hops":0,"plan":{"method":"FEATURES","steps":"30"}})");
  EXPECT_EQ(
      ModelHeader(Hidden()),
      R"({"format":1,"transform":"SQRT_UNIT","logit_noise":0.0,"share_noise":0.0,"reads":"features","hops":0,"plan":{}})");
}

TEST(ModelHeaderTest, GivesTheNoiseBackExactly) {
  for (const double noise : {0.1 + 0.2, 1e-300, 1.7976931348623157e308, 1.0 / 3}) {
    Model model = Linear();
    model.logit_noise = noise;
    ASSERT_TRUE(WriteModelFile(TestPath("noise.npz"), model).ok());
    const auto read = ReadModelFile(TestPath("noise.npz"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->logit_noise, noise);
  }
}

TEST(ModelHeaderTest, DoesNotDependOnHowThePlanIsLaidOut) {
  Model model = Linear();
  model.plan = "{ \"method\" : \"FEATURES\",\n  \"steps\" : \"30\" }";
  EXPECT_EQ(ModelHeader(model), ModelHeader(Linear()));
}

TEST(ModelFileTest, GivesBackTheModelAndTheSameBytes) {
  Model raw = Linear();
  raw.transform = v1::RAW;
  for (const Model& model : {Linear(), Hidden(), raw}) {
    const std::string path = TestPath("model.npz");
    ASSERT_TRUE(WriteModelFile(path, model).ok());
    const auto read = ReadModelFile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    ExpectSame(*read, model);
    ASSERT_TRUE(WriteModelFile(TestPath("again.npz"), *read).ok());
    EXPECT_EQ(ReadBytes(TestPath("again.npz")), ReadBytes(path));
  }
}

Model Shared() {
  Model model = Linear();
  model.class_shares = {0.5, 0.25, 0.25};
  model.share_noise = 0.01;
  return model;
}

TEST(ModelFileTest, GivesBackTheClassShares) {
  ASSERT_TRUE(WriteModelFile(TestPath("shares.npz"), Shared()).ok());
  const auto read = ReadModelFile(TestPath("shares.npz"));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(*read, Shared());
}

TEST(ModelTest, RefusesClassSharesThatAreNone) {
  EXPECT_EQ(Summary(ValidateModel(Shared())), "OK");
  for (const std::vector<float>& shares :
       {std::vector<float>{0.5, 0.5}, {0.5, 0.25, 0.5}, {0.75, 0.25, 0}, {1.5, -0.25, -0.25}, {NAN, 0.5, 0.5}, {}}) {
    EXPECT_EQ(ValidateWith(Shared(), [&](Model& model) { model.class_shares = shares; }), kBadModel);
  }
  for (const double noise : {-1e-9, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(ValidateWith(Shared(), [&](Model& model) { model.share_noise = noise; }), kBadModel);
  }
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.share_noise = 0.1; }), kBadModel) << "noise of none";
}

TEST(ModelFileTest, ReadsAHeaderThatNumpyWroteAsText) {
  const std::string header = ModelHeader(Hidden());
  const std::string path = TestPath("numpy.npz");
  WriteRawZip(path, {{"weights.npy", RawNpyOf("<f4", "(2, 1)", BytesOf<float>({1, 2}))},
                     {"header.npy", RawNpyOf(absl::StrCat("<U", header.size()), "()",
                                             BytesOf(std::vector<uint32_t>(header.begin(), header.end())))}});
  const auto model = ReadModelFile(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->feature_count, 1);
  EXPECT_EQ(model->transform, v1::SQRT_UNIT);
}

TEST(ModelTest, RefusesSizesThatDisagree) {
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.weights.pop_back(); }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.weights.clear(); }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.feature_count = 3; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.class_count = 0; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.hidden_size = 3; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.hidden_size = -1; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.output_weights = {1, 2, 3}; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.center = {1}; }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.output_weights.push_back(1); }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.center.push_back(1); }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.hidden_size = 0; }), kBadModel);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.feature_count = kMost; }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.hidden_size = kMost; }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.class_count = kMost; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& /*model*/) {}), "OK");
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& /*model*/) {}), "OK");
}

TEST(ModelTest, RefusesNumbersThatAreNotFinite) {
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.weights[4] = kInfinity; }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.output_weights[1] = kNan; }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.center[0] = -kInfinity; }), kBadModel);
  for (const double noise : {-0.1, std::nan(""), static_cast<double>(kInfinity)}) {
    EXPECT_EQ(ValidateWith(Linear(), [noise](Model& model) { model.logit_noise = noise; }), kBadModel);
  }
}

TEST(ModelTest, RefusesATransformThatIsNone) {
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.transform = v1::TRANSFORM_UNSPECIFIED; }), kBadModel);
  EXPECT_EQ(ValidateWith(Linear(), [](Model& model) { model.transform = static_cast<v1::Transform>(9); }), kBadModel);
  EXPECT_EQ(ValidateWith(Hidden(), [](Model& model) { model.transform = v1::RAW; }), kBadModel);
}

TEST(ModelTest, RefusesAPlanThatIsNotAJsonObject) {
  for (const std::string& plan : {std::string(), std::string("FEATURES"), std::string("[]"), std::string("{} {}"),
                                  "{\"a\":" + std::string(110, '[') + std::string(110, ']') + "}",
                                  "{\"a\":\"" + std::string(1 << 20, 'a') + "\"}"}) {
    EXPECT_EQ(ValidateWith(Linear(), [&plan](Model& model) { model.plan = plan; }), kBadModel);
  }
}

// Such a plan is a good one by itself, but with the rest around it no reader would take it.
TEST(ModelFileTest, WritesNoModelThatCouldNotBeRead) {
  Model model = Linear();
  model.plan = "{\"a\":\"" + std::string((1 << 20) - 20, 'a') + "\"}";
  EXPECT_EQ(Summary(WriteModelFile(TestPath("bad.npz"), model)), kBadModel);
  for (int depth = 90; depth < 110; ++depth) {
    const auto levels = static_cast<size_t>(depth);
    model.plan = "{\"a\":" + std::string(levels, '[') + std::string(levels, ']') + "}";
    const std::string written = Summary(WriteModelFile(TestPath("deep.npz"), model));
    EXPECT_EQ(Summary(ReadModelFile(TestPath("deep.npz")).status()), "OK");
    EXPECT_EQ(written, depth <= 99 ? "OK" : kBadModel) << depth;
  }
}

TEST(ModelFileTest, SaysWhenThereIsNoSuchFile) {
  EXPECT_TRUE(absl::IsNotFound(ReadModelFile("/nonexistent/model.npz").status()));
}

TEST(ModelFileTest, RefusesWeightsOfTheWrongKindOrShape) {
  const auto read = [](const NpyArray& weights) { return ReadWith(LinearArrays(), {{"weights", weights}}); };
  EXPECT_EQ(read(NpyArray{{3, 3}, std::vector<double>(9, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{9}, std::vector<float>(9, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{1, 9}, std::vector<float>(9, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{0, 9}, std::vector<float>()}), kBadModel);
  EXPECT_EQ(read(NpyArray{{9, 0}, std::vector<float>()}), kBadModel);
  EXPECT_EQ(read(NpyArray{{3, 3, 1}, std::vector<float>(9, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{9, 1}, std::vector<float>(9, 1)}), "OK");
}

TEST(ModelFileTest, RefusesOutputWeightsOfTheWrongKindOrShape) {
  const auto read = [](const NpyArray& weights) { return ReadWith(HiddenArrays(), {{"output_weights", weights}}); };
  EXPECT_EQ(read(NpyArray{{2, 1}, std::vector<double>(2, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{2}, std::vector<float>(2, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{1, 2}, std::vector<float>(2, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{3, 1}, std::vector<float>(3, 1)}), kBadModel);
  EXPECT_EQ(read(NpyArray{{2, 0}, std::vector<float>()}), kBadModel);
  EXPECT_EQ(read(NpyArray{{0, 2}, std::vector<float>()}), kBadModel);
  EXPECT_EQ(read(NpyArray{{2, 1}, std::vector<float>{1, kNan}}), kBadModel);
  EXPECT_EQ(read(NpyArray{{2, 5}, std::vector<float>(10, 1)}), "OK");
}

TEST(ModelFileTest, RefusesACenterOfTheWrongKindOrShape) {
  const auto read = [](const NpyArray& center) { return ReadWith(LinearArrays(), {{"center", center}}); };
  EXPECT_EQ(read(VectorArray<double>({1, 2})), kBadModel);
  EXPECT_EQ(read(VectorArray<float>({})), kBadModel);
  EXPECT_EQ(read(VectorArray<float>({1})), kBadModel);
  EXPECT_EQ(read(VectorArray<float>({1, 2, 3})), kBadModel);
  EXPECT_EQ(read(NpyArray{{2, 1}, std::vector<float>{1, 2}}), kBadModel);
  EXPECT_EQ(read(VectorArray<float>({1, kInfinity})), kBadModel);
  EXPECT_EQ(read(VectorArray<float>({1, 2})), "OK");
}

TEST(ModelFileTest, RefusesWeightsThatAreNotFinite) {
  std::vector<float> weights(9, 1);
  weights[8] = kNan;
  EXPECT_EQ(ReadWith(LinearArrays(), {{"weights", NpyArray{{3, 3}, weights}}}), kBadModel);
}

TEST(ModelFileTest, RefusesHeadersThatAreNotAJsonObject) {
  const std::string deep(100'000, '[');
  const std::string closing(100'000, ']');
  for (const std::string& header :
       {std::string(), std::string("[]"), std::string("null"), std::string("{"), std::string("{\"a\": \"\xff\"}"),
        ModelHeader(Linear()) + " trailing", deep,
        R"({"format":1,"transform":"RAW","logit_noise":0,"plan":{"a":)" + deep,
        R"({"format":1,"transform":"RAW","logit_noise":0,"plan":{"a":)" + deep + closing + "}}",
        "\"" + std::string(2 << 20, 'a') + "\""}) {
    EXPECT_EQ(ReadWithHeader(header), kBadModel) << header.substr(0, 100);
  }
  EXPECT_EQ(ReadWith(LinearArrays(), {{"header", VectorArray<float>({1, 2})}}), kBadModel);
}

TEST(ModelFileTest, RefusesHeadersWithFieldsThatAreMissingOrOfTheWrongKind) {
  for (
      const char* header : {
          R"({})",
          R"({"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":0,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":2,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":"1","transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"unit","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"TRANSFORM_UNSPECIFIED","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"sqrt-unit-bias","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":2,"logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":"0","share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":-1e-9,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":1e999,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":null,"share_noise":0,"reads":"features","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":[]})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":"{}"})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{},"bias":1})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"edges","hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":0,"hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"hops":0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0.0,"plan":{}})",
          R"({"format":1,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"hops":0,"plan":{}})",
      }) {
    EXPECT_EQ(ReadWithHeader(header), kBadModel) << header;
  }
  EXPECT_EQ(
      ReadWithHeader(
          R"({"plan":{},"logit_noise":0,"share_noise":0,"reads":"features","hops":0,"transform":"UNIT","format":1})"),
      "OK");
}

TEST(ModelFileTest, SaysWhatAHeaderIs) {
  EXPECT_EQ(
      ReadWithHeader(
          R"({"format":2,"transform":"UNIT","logit_noise":0,"share_noise":0,"reads":"features","hops":0,"plan":{}})"),
      kBadModel);
  EXPECT_THAT(
      std::string(ReadModelFile(TestPath("model.npz")).status().message()),
      HasSubstr("not a model: its header has the fields format (1; a later one needs a later version of dpar)"));
}

TEST(ModelFileTest, RefusesHostileFilesAsABadModel) {
  const std::string path = TestPath("hostile.npz");
  const std::string header = ModelHeader(Linear());
  const std::string header_npy = RawNpyOf(absl::StrCat("|S", header.size()), "()", header);
  WriteBytes(path, "not a model");
  EXPECT_EQ(Summary(ReadModelFile(path).status()), kBadModel);
  WriteRawZip(path, {{"weights.npy", RawNpyOf("<f4", "(2, 1)", BytesOf<float>({1, 2}))}});
  EXPECT_EQ(Summary(ReadModelFile(path).status()), kBadModel);
  WriteRawZip(path, {{"header.npy", header_npy}});
  EXPECT_EQ(Summary(ReadModelFile(path).status()), kBadModel);
  WriteRawZip(path, {{"weights.npy", RawNpyOf("<f4", "(4611686018427387905, 4)", BytesOf<float>({1, 2, 3, 4}))},
                     {"header.npy", header_npy}});
  EXPECT_EQ(Summary(ReadModelFile(path).status()), kBadModel);
  WriteRawZip(path, {{"weights.npy", RawNpyOf("|O", "(2, 1)", "pickle")}, {"header.npy", header_npy}});
  const absl::Status status = ReadModelFile(path).status();
  EXPECT_EQ(Summary(status), kBadModel);
  EXPECT_THAT(std::string(status.message()), HasSubstr("never unpickled"));
}

TEST(ModelFileTest, RefusesMoreArraysThanAModelCanHave) {
  std::map<std::string, NpyArray> more;
  for (int i = 0; i < 7; ++i) {
    more[absl::StrCat("array", i)] = VectorArray<float>({1});
  }
  EXPECT_EQ(ReadWith(LinearArrays(), more), kBadModel);
}

TEST(ModelFileTest, NeverCrashesWhicheverByteChangesOrWhereverItIsCutOff) {
  const std::string path = TestPath("damaged.npz");
  ASSERT_TRUE(WriteModelFile(path, Hidden()).ok());
  const std::string whole = ReadBytes(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    WriteBytes(path, whole.substr(0, at));
    ASSERT_EQ(Summary(ReadModelFile(path).status()), kBadModel) << at;
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    WriteBytes(path, bytes);
    const auto model = ReadModelFile(path);
    ASSERT_TRUE(model.ok() ? model->weights == Hidden().weights : Summary(model.status()) == kBadModel) << at;
  }
}

}  // namespace
}  // namespace dpar
