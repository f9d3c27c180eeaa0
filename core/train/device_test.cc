#include "core/train/device.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace dpar {
namespace {

TEST(AvailableDevices, EndsWithTheCpu) { EXPECT_EQ(AvailableDevices().back(), "cpu"); }

TEST(ChooseDevice, TakesTheBestOrTheOneThatIsNamed) {
  EXPECT_EQ(*ChooseDevice("auto"), AvailableDevices().front());
  EXPECT_EQ(*ChooseDevice("cpu"), "cpu");
  if (AvailableDevices().size() > 1) {
    EXPECT_EQ(*ChooseDevice("cuda"), "cuda:0");
    EXPECT_EQ(*ChooseDevice("cuda:0"), "cuda:0");
  }
}

TEST(ChooseDevice, SaysWhichAreThereWhenTheWantedOneIsNot) {
  for (const char* wanted : {"cuda:99", "tpu", "", "cpu:0"}) {
    const absl::Status status = ChooseDevice(wanted).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << wanted;
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "device");
    EXPECT_NE(std::string(status.message()).find("cpu"), std::string::npos);
  }
}

}  // namespace
}  // namespace dpar
