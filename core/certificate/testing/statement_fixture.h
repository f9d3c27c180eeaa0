// Statements for tests, and what refusing one looks like.
#ifndef DPAR_CORE_CERTIFICATE_TESTING_STATEMENT_FIXTURE_H_
#define DPAR_CORE_CERTIFICATE_TESTING_STATEMENT_FIXTURE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/statement.h"
#include "core/certificate/testing/example_statement.h"
#include "core/error.h"
#include "gtest/gtest.h"

namespace dpar::testing {

using Json = nlohmann::ordered_json;

// With every part that a plan can have.
inline Statement FullStatement() {
  v1::TrainingSpec spec = ExampleSpec();
  spec.set_method(v1::DPAR_GM);
  spec.mutable_options()->set_center(true);
  spec.mutable_evaluation()->set_held_out_share(0.25);
  spec.mutable_evaluation()->set_budget_share(0.1);
  return ExampleStatement(spec);
}

inline Json ExampleJson() { return Json::parse(StatementToJson(ExampleStatement())); }
inline Json FullJson() { return Json::parse(StatementToJson(FullStatement())); }

inline std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

inline void ExpectRefused(const std::string& json, const std::string& field) {
  const absl::Status status = StatementFromJson(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), field);
}

// Every place in the document.
inline void CollectPaths(const Json& json, const std::string& path, std::vector<std::string>& paths) {
  if (!json.is_structured()) {
    return;
  }
  for (const auto& [key, value] : json.items()) {
    const std::string child = absl::StrCat(path, "/", key);
    paths.push_back(child);
    CollectPaths(value, child, paths);
  }
}

}  // namespace dpar::testing

#endif  // DPAR_CORE_CERTIFICATE_TESTING_STATEMENT_FIXTURE_H_
