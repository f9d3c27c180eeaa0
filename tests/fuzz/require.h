// What must hold whatever the input: a fuzzer ends with an abort, which libFuzzer reports with the input, when it does
// not.
#ifndef DPAR_TESTS_FUZZ_REQUIRE_H_
#define DPAR_TESTS_FUZZ_REQUIRE_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dpar::fuzz {

void Require(bool holds, absl::string_view what);

// That an error is of one of these codes and carries a reason of the API and a message. OK passes.
void RequireJudged(const absl::Status& status, std::initializer_list<absl::StatusCode> allowed);

}  // namespace dpar::fuzz

#endif  // DPAR_TESTS_FUZZ_REQUIRE_H_
