// What `dpar --json` prints, as tests read it.
#ifndef DPAR_TESTS_END_TO_END_JSON_OUTPUT_H_
#define DPAR_TESTS_END_TO_END_JSON_OUTPUT_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/process.h"

namespace dpar::e2e {

// The objects on stdout, one a line when there are several; a failure when anything else is there or an object lacks
// the envelope {"version": 1, "command": ...}.
inline std::vector<nlohmann::json> JsonLines(const CommandResult& result, const std::string& command) {
  std::vector<nlohmann::json> objects;
  const nlohmann::json whole = nlohmann::json::parse(result.out, nullptr, false);
  if (!whole.is_discarded()) {
    objects.push_back(whole);
  } else {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(result.out, '\n', absl::SkipEmpty()))) {
      objects.push_back(nlohmann::json::parse(line, nullptr, false));
    }
  }
  for (const nlohmann::json& object : objects) {
    EXPECT_TRUE(object.is_object()) << command << ": " << result.out;
    if (!object.is_object()) return {};
    EXPECT_EQ(object.value("version", 0), 1) << object;
    EXPECT_EQ(object.value("command", ""), command) << object;
  }
  return objects;
}

// The value of the first member called `key`, at any depth; null when there is none.
inline nlohmann::json FindMember(const nlohmann::json& value, const std::string& key) {
  if (value.is_object() && value.contains(key)) return value.at(key);
  if (value.is_structured()) {
    for (const nlohmann::json& child : value) {
      if (nlohmann::json found = FindMember(child, key); !found.is_null()) return found;
    }
  }
  return nullptr;
}

// The first string, at any depth, that holds `part`; empty when there is none.
inline std::string FindText(const nlohmann::json& value, const std::string& part) {
  if (value.is_string() && value.get<std::string>().find(part) != std::string::npos) return value.get<std::string>();
  if (value.is_structured()) {
    for (const nlohmann::json& child : value) {
      if (std::string found = FindText(child, part); !found.empty()) return found;
    }
  }
  return "";
}

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_JSON_OUTPUT_H_
