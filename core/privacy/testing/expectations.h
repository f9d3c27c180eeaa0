// What tests of the accountant expect, and where they take golden values from.
#ifndef DPAR_CORE_PRIVACY_TESTING_EXPECTATIONS_H_
#define DPAR_CORE_PRIVACY_TESTING_EXPECTATIONS_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace dpar::testing {

// INVALID_ARGUMENT / INVALID_FIELD about this field.
void ExpectInvalidField(const absl::Status& status, const std::string& field);

void ExpectRelative(double actual, double expected, double tolerance);

// From `exact` up to `above` times it; below it by rounding only.
void ExpectRoundedUp(double actual, long double exact, double above);

// The golden file of a public accountant, where it is at hand; otherwise null, and the output says so.
nlohmann::json GoldenFile();

}  // namespace dpar::testing

#endif  // DPAR_CORE_PRIVACY_TESTING_EXPECTATIONS_H_
