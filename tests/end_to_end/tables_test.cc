// A data owner's way: two tables in, predictions with ids and class names out, in six commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/certificate/digest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/harness.h"
#include "tests/end_to_end/json_output.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TablesTest : public SharedServerTest {
 protected:
  static CommandResult Must(const std::string& token, const std::vector<std::string>& arguments) {
    CommandResult result = server().Dpar(token, arguments);
    EXPECT_EQ(result.exit_code, 0) << "dpar " << arguments[0] << "\n" << result.out << result.err;
    return result;
  }
  static std::string MakeTenant(const std::string& id) {
    Must(server().operator_token(), {"tenant", "create", id});
    const CommandResult made =
        Must(server().operator_token(), {"token", "create", "--tenant", id, "--role", "owner", "--json"});
    return FindText(JsonLines(made, "token create").back(), "dpar_");
  }
  // The statement of a downloaded certificate.
  static std::string Statement(const std::string& directory) {
    const auto envelope = nlohmann::json::parse(ReadFile(directory + "/certificate.json"));
    return Base64Decode(envelope["payload"].get<std::string>()).value_or("");
  }
};

TEST_F(TablesTest, TwoTablesBecomePredictionsWithIdsAndClassNames) {
  const std::string owner = MakeTenant("bank");
  const std::string bank = server().Scratch("bank");
  Must("", {"graph", "generate", "--tables", bank, "--nodes", "50000", "--seed", "1"});
  Must("", {"graph", "split", "--schema", bank + "/accounts.schema.yaml", "--nodes", bank + "/accounts.csv", "--edges",
            bank + "/transfers.csv", "--train", bank + "/train", "--test", bank + "/test"});
  const CommandResult uploaded =
      Must(owner, {"upload", "--name", "accounts", "--schema", bank + "/accounts.schema.yaml", "--nodes",
                   bank + "/train/accounts.csv", "--edges", bank + "/train/transfers.csv"});
  EXPECT_THAT(uploaded.err, HasSubstr("is not among its 10 categories; it becomes 'other'"));
  const CommandResult trained = Must(owner, {"train", "accounts", "--epsilon", "1", "--json"});
  const std::string job = FindText(JsonLines(trained, "train").back(), "tenants/bank/jobs/");
  const std::string model = server().Scratch("bank-model");
  Must(owner, {"download", job, "-o", model});
  const std::string predictions = server().Scratch("predictions.csv");
  const CommandResult predicted =
      Must("", {"predict", "--model", model + "/model.npz", "--nodes", bank + "/test/accounts.csv", "--edges",
                bank + "/test/transfers.csv", "-o", predictions, "--json"});
  // The largest class has 0.55 of the accounts.
  EXPECT_GT(FindMember(JsonLines(predicted, "predict").back(), "accuracy"), 0.7);

  const std::vector<std::string> rows = absl::StrSplit(ReadFile(bank + "/test/accounts.csv"), '\n', absl::SkipEmpty());
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(predictions), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), rows.size());
  EXPECT_EQ(lines[0], "id,class,probability");
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i], ',');
    ASSERT_EQ(fields.size(), 3U);
    EXPECT_EQ(fields[0], rows[i].substr(0, rows[i].find(','))) << "in the order of the table";
    EXPECT_TRUE(fields[1] == "private" || fields[1] == "business" || fields[1] == "dormant") << fields[1];
  }
  const CommandResult evaluated = Must("", {"evaluate", "--predictions", predictions, "--nodes",
                                            bank + "/test/accounts.csv", "--model", model + "/model.npz"});
  EXPECT_THAT(evaluated.out, HasSubstr("business"));
  // Public: the schema. Not public: ids.
  EXPECT_THAT(Statement(model), HasSubstr("\"classes\":[\"private\",\"business\",\"dormant\"]"));
  EXPECT_THAT(Statement(model), Not(HasSubstr("accepted_observed")));
  Must("", {"verify", model + "/certificate.json", "--model", model + "/model.npz"});
  EXPECT_EQ(server()
                .Dpar("", {"predict", "--model", model + "/model.npz", "--nodes", bank + "/test/transfers.csv",
                           "--edges", bank + "/test/transfers.csv"})
                .exit_code,
            1);
}

TEST_F(TablesTest, ADraftNeedsItsAnswersAndTheCertificateSaysWhatWasReadOffTheData) {
  const std::string owner = MakeTenant("hasty");
  const std::string bank = server().Scratch("hasty");
  Must("", {"graph", "generate", "--tables", bank, "--nodes", "300", "--seed", "2"});
  const std::string draft = bank + "/draft.yaml";
  Must("", {"graph", "schema", bank + "/accounts.csv", bank + "/transfers.csv", "-o", draft});
  const std::vector<std::string> upload = {"upload",
                                           "--name",
                                           "hasty",
                                           "--schema",
                                           draft,
                                           "--nodes",
                                           bank + "/accounts.csv",
                                           "--edges",
                                           bank + "/transfers.csv"};
  const CommandResult refused = server().Dpar(owner, upload);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("open questions"));
  std::vector<std::string> accepting = upload;
  accepting.emplace_back("--accept-observed");
  Must(owner, accepting);
  const CommandResult trained = Must(owner, {"train", "hasty", "--epsilon", "1", "--json"});
  const std::string model = server().Scratch("hasty-model");
  Must(owner, {"download", FindText(JsonLines(trained, "train").back(), "tenants/hasty/jobs/"), "-o", model});
  EXPECT_THAT(Statement(model), HasSubstr("\"accepted_observed\":[\"segment\",\"age\""));
  EXPECT_THAT(Must("", {"verify", model + "/certificate.json", "--model", model + "/model.npz"}).out,
              HasSubstr("\nread off the data: segment, age, "));
}

TEST_F(TablesTest, AGraphFileWithIdsGoesUpWithoutThemAndWithItsSchema) {
  const std::string owner = MakeTenant("file");
  const std::string bank = server().Scratch("file");
  Must("", {"graph", "generate", "--tables", bank, "--nodes", "300", "--seed", "3"});
  const std::string graph = bank + "/graph.npz";
  Must("", {"graph", "convert", "--schema", bank + "/accounts.schema.yaml", "--nodes", bank + "/accounts.csv",
            "--edges", bank + "/transfers.csv", "-o", graph});
  const CommandResult uploaded = Must(owner, {"upload", graph, "--name", "plain", "--json"});
  EXPECT_THAT(uploaded.out, HasSubstr("dormant"));
  EXPECT_THAT(uploaded.out, Not(HasSubstr("AC-")));
}

}  // namespace
}  // namespace dpar::e2e
