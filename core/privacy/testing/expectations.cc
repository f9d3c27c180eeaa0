#include "core/privacy/testing/expectations.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "core/error.h"
#include "gtest/gtest.h"

namespace dpar::testing {

void ExpectInvalidField(const absl::Status& status, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), field);
}

void ExpectRelative(double actual, double expected, double tolerance) {
  EXPECT_NEAR(actual, expected, tolerance * std::fabs(expected));
}

void ExpectRoundedUp(double actual, long double exact, double above) {
  EXPECT_GE(static_cast<long double>(actual), exact * (1 - 1e-13L));
  EXPECT_LE(static_cast<long double>(actual), exact * (1 + static_cast<long double>(above)));
}

nlohmann::json GoldenFile() {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  if (source != nullptr) {
    std::ifstream file(std::string(source) + "/../shared/golden/accountant.json");
    if (file) {
      const nlohmann::json golden = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(golden.is_object());
      return golden;
    }
  }
  std::cout << "golden/accountant.json is not there; the values in the test cover the same ground\n";
  return {};
}

}  // namespace dpar::testing
