// The quick audit, as anybody runs it: dpar-lab audit --quick.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/end_to_end/process.h"

namespace dpar::audit {
namespace {

e2e::CommandResult Audit(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {e2e::BinaryPath("dpar-lab"), "audit"});
  return e2e::RunCommand(flags, {}, absl::Minutes(12));
}

int64_t LinesThatEnd(const std::string& text, const std::string& end) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return absl::EndsWith(line, end); });
}

TEST(QuickAudit, NoClaimIsExceededNoAttackIsWeakAndEveryPlantedFaultIsCaught) {
  const e2e::CommandResult result = Audit({"--quick"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(LinesThatEnd(result.out, "holds"), 43) << result.out;  // 41 cases and two checks
  EXPECT_EQ(LinesThatEnd(result.out, "caught"), 21) << result.out;
  EXPECT_THAT(result.err, ::testing::HasSubstr("the audit passed"));
}

TEST(AuditCommand, RefusesFlagsThatContradictOrAreOutOfRange) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--quick", "--full"}, {"--quick", "--threads", "0"}, {"--quick", "--seed", "x"}}) {
    const e2e::CommandResult result = Audit(flags);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, ::testing::StartsWith("dpar-lab: "));
  }
}

TEST(PlantedFaults, AreInNoProgramButTheirOwn) {
  EXPECT_NE(e2e::ReadFile(e2e::BinaryPath("dpar-audit-faults")).find("planted_fault"), std::string::npos);
  for (const char* program : {"dpar-audit", "dpar-lab", "dpard"}) {
    const std::string bytes = e2e::ReadFile(e2e::BinaryPath(program));
    ASSERT_FALSE(bytes.empty()) << program;
    EXPECT_EQ(bytes.find("planted_fault"), std::string::npos) << program;
  }
}

}  // namespace
}  // namespace dpar::audit
