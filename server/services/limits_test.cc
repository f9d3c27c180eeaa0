// The limits of the API, of the code and of docs/limits.md are the same.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/services/server_service.h"

namespace dpar {
namespace {

struct DocumentedLimit {
  std::string flag;
  std::string default_value;
};

// The rows of the first table of docs/limits.md.
std::map<std::string, DocumentedLimit> DocumentedLimits() {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  EXPECT_NE(source, nullptr) << "run it through ctest";
  std::ifstream file(absl::StrCat(source == nullptr ? "." : source, "/docs/limits.md"));
  std::map<std::string, DocumentedLimit> limits;
  std::string line;
  while (std::getline(file, line) && !(absl::StartsWith(line, "Limits of a tenant"))) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() == 6 && absl::StartsWith(cells[1], " `")) {
      const auto plain = [](absl::string_view cell) {
        return std::string(absl::StripAsciiWhitespace(absl::StrReplaceAll(cell, {{"`", ""}})));
      };
      limits[plain(cells[1])] = {plain(cells[2]), plain(cells[3])};
    }
  }
  return limits;
}

TEST(LimitsTest, TheDocumentHasEveryLimitWithItsFlagAndItsDefault) {
  const v1::Limits defaults = ToProto(Limits());
  const google::protobuf::Reflection& reflection = *defaults.GetReflection();
  const std::map<std::string, DocumentedLimit> documented = DocumentedLimits();
  const google::protobuf::Descriptor& descriptor = *v1::Limits::descriptor();
  EXPECT_EQ(documented.size(), static_cast<size_t>(descriptor.field_count()));
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = descriptor.field(i);
    const auto found = documented.find(field->name());
    ASSERT_NE(found, documented.end()) << field->name();
    if (field->name() == "max_job_bytes") {
      // The machine's own.
      EXPECT_EQ(found->second.default_value, "80% of the memory");
      continue;
    }
    const std::string value = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE
                                  ? absl::StrCat(reflection.GetDouble(defaults, field))
                                  : absl::StrCat(field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT32
                                                     ? reflection.GetInt32(defaults, field)
                                                     : reflection.GetInt64(defaults, field));
    EXPECT_EQ(found->second.default_value, value) << field->name();
    const std::string flag = absl::StrCat("--", absl::StrReplaceAll(field->name(), {{"_", "-"}}));
    if (field->name() != "max_message_bytes") {
      EXPECT_EQ(found->second.flag, flag);
    }
  }
}

}  // namespace
}  // namespace dpar
