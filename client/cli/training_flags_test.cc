#include "client/cli/training_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "client/cli/format.h"
#include "client/cli/testing/command_run.h"
#include "core/error.h"

namespace dpar {
namespace {

using google::protobuf::FieldDescriptor;
using ::testing::HasSubstr;

// A value that the field's flag takes.
std::string SomeValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "on";
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.name() == "optimizer" ? "adam" : field.name() == "transform" ? "sqrt-unit" : "appr-only";
    default:
      return "3";
  }
}

absl::StatusOr<v1::TrainingOptions> Read(const std::vector<std::string>& arguments) {
  CLI::App app;
  Flags flags;
  AddTrainingFlags(app, flags);
  app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  return ReadTrainingFlags(flags);
}

TEST(TrainingFlags, EveryOptionHasAFlagThatSetsItAndAHelpText) {
  CLI::App app;
  Flags flags;
  AddTrainingFlags(app, flags);
  const google::protobuf::Descriptor* type = v1::TrainingOptions::descriptor();
  ASSERT_GE(type->field_count(), 22);
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor& field = *type->field(i);
    const std::string flag = "--" + TrainingFlagName(field);
    const CLI::Option* option = app.get_option_no_throw(flag);
    ASSERT_NE(option, nullptr) << flag;
    EXPECT_NE(option->get_description(), "") << flag;
    const absl::StatusOr<v1::TrainingOptions> options = Read({flag, SomeValue(field)});
    ASSERT_TRUE(options.ok()) << flag << ": " << options.status();
    EXPECT_TRUE(options->GetReflection()->HasField(*options, &field)) << flag;
    std::vector<const FieldDescriptor*> set;
    options->GetReflection()->ListFields(*options, &set);
    EXPECT_EQ(set.size(), 1U) << flag;
  }
}

TEST(TrainingFlags, WhatIsNotTypedIsNotSet) {
  const absl::StatusOr<v1::TrainingOptions> options = Read({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->ByteSizeLong(), 0U);
}

TEST(TrainingFlags, ValuesArriveAsTheyWereTyped) {
  const v1::TrainingOptions options =
      *Read({"--top-k", "7", "--gradient-clip", "0", "--rows", "appr-only", "--center", "off", "--transform", "raw",
             "--optimizer", "sgd", "--learning-rate", "1e-3"});
  EXPECT_EQ(options.top_k(), 7);
  EXPECT_TRUE(options.has_gradient_clip());
  EXPECT_EQ(options.gradient_clip(), 0);
  EXPECT_EQ(options.rows(), v1::APPR_ONLY);
  EXPECT_TRUE(options.has_center());
  EXPECT_FALSE(options.center());
  EXPECT_EQ(options.transform(), v1::RAW);
  EXPECT_EQ(options.optimizer(), v1::SGD);
  EXPECT_EQ(options.learning_rate(), 1e-3);
}

TEST(TrainingFlags, AMistypedValueNamesTheFlagWhatIsAllowedAndWhatWasTyped) {
  const auto message = [](const std::vector<std::string>& arguments) {
    const absl::Status status = Read(arguments).status();
    EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
    return std::string(status.message());
  };
  EXPECT_EQ(message({"--top-k", "2.5"}), "--top-k must be an integer, got 2.5");
  EXPECT_EQ(message({"--steps", "99999999999999999999"}), "--steps must be an integer, got 99999999999999999999");
  EXPECT_EQ(message({"--alpha", "much"}), "--alpha must be a number, got much");
  EXPECT_EQ(message({"--center", "yes"}), "--center must be on or off, got yes");
  EXPECT_EQ(message({"--optimizer", "newton"}), "--optimizer must be sgd or adam, got newton");
  EXPECT_EQ(message({"--transform", "transform-unspecified"}),
            "--transform must be raw or unit or sqrt-unit, got transform-unspecified");
}

TEST(TrainCommand, ItsHelpFitsIntoEightyColumnsAndHasGroups) {
  const testing::CommandRun run = testing::RunCommand({"train", "--help"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr(kStructureFlags));
  EXPECT_THAT(run.out, HasSubstr(kDescentFlags));
  EXPECT_THAT(run.out, HasSubstr("--evaluation-share"));
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(DisplayWidth(line), 80) << line;
  }
}

TEST(TrainCommand, WrongUsageIsRefusedBeforeTheServerIsAsked) {
  const auto refused = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"train", "demo"});
    const testing::CommandRun run = testing::RunCommand(arguments);
    EXPECT_EQ(run.exit_code, 2);
    return run.err;
  };
  EXPECT_THAT(refused({}), HasSubstr("--epsilon is needed"));
  EXPECT_THAT(refused({"--epsilon", "1", "--non-private"}), HasSubstr("exclude each other"));
  EXPECT_THAT(refused({"--epsilon", "much"}), HasSubstr("--epsilon must be a number, got much"));
  EXPECT_THAT(refused({"--epsilon", "nan"}), HasSubstr("--epsilon must be a number, got nan"));
  EXPECT_THAT(refused({"--epsilon", "1", "--preset", "mine"}), HasSubstr("--preset must be paper, got mine"));
  EXPECT_THAT(refused({"--epsilon", "1", "--accountant", "x"}),
              HasSubstr("--accountant must be sound or as-published, got x"));
  EXPECT_THAT(refused({"--epsilon", "1", "--evaluate", "some"}), HasSubstr("--evaluate must be a number, got some"));
  EXPECT_THAT(refused({"--epsilon", "1", "--evaluation-share", "0.2"}), HasSubstr("belongs to --evaluate"));
  EXPECT_THAT(refused({"--epsilon", "1", "--top-k", "x"}), HasSubstr("--top-k must be an integer, got x"));
  EXPECT_THAT(refused({"--epsilon", "1", "--method", "magic"}),
              HasSubstr("--method is one of auto, features, dpar-em0, dpar-em1, dpar-gm, gap, sage; not 'magic'"));
}

}  // namespace
}  // namespace dpar
