// The operator's page over HTTP, without a browser: sessions, who may see what, and what is refused. tests/page has the
// page itself.
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/testing/http_client.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kWho[] = "/api/v1/ServerService/WhoAmI";

class PageTest : public SharedServerTest {
 protected:
  void SetUp() override {
    // For a connection that the server closed.
    std::signal(SIGPIPE, SIG_IGN);
    SharedServerTest::SetUp();
  }
  static HttpReply Send(const std::string& method, const std::string& path, const HttpHeaders& headers = {},
                        const std::string& body = "") {
    return SendHttp({server().page_address(), path, method, headers, body, HttpTls{.ca_file = server().ca_file()}});
  }
  static HttpReply Get(const std::string& path, const HttpHeaders& headers = {}) { return Send("GET", path, headers); }
  static HttpHeaders Bearer(const std::string& token) { return {{"Authorization", "Bearer " + token}}; }
  static std::string Origin() { return "https://" + server().page_address(); }
  // The cookie of a new session.
  static std::string SignIn(const std::string& token) {
    const HttpReply answer = Send("POST", "/session", Bearer(token));
    EXPECT_EQ(answer.status, 204);
    const std::vector<std::string> parts = absl::StrSplit(answer.header("Set-Cookie"), ';');
    return parts[0];
  }
  static int Status(const std::string& path, const HttpHeaders& headers) { return Get(path, headers).status; }
  static std::string ReasonOf(const std::string& path, const HttpHeaders& headers) {
    const HttpReply answer = Get(path, headers);
    return answer.status == 0 ? "" : Json::parse(answer.body)["error"]["reason"];
  }
};

TEST_F(PageTest, ATokenIsExchangedForACookieThatNoScriptReads) {
  HttpHeaders headers = Bearer(server().operator_token());
  headers.emplace_back("Origin", Origin());
  const HttpReply answer = Send("POST", "/session", headers);
  EXPECT_EQ(answer.status, 204);
  EXPECT_THAT(answer.header("Set-Cookie"),
              MatchesRegex("__Host-dpar_session=[0-9a-f]{64}; Path=/; Max-Age=28800; HttpOnly; Secure; "
                           "SameSite=Strict"));
  const std::string cookie = SignIn(server().operator_token());
  const HttpReply who = Get(kWho, {{"Cookie", cookie}});
  EXPECT_EQ(Json::parse(who.body)["role"], "OPERATOR");
  EXPECT_EQ(who.header("Cache-Control"), "no-store");
}

TEST_F(PageTest, OtherSitesAndWrongTokensOpenNoSession) {
  for (const char* origin : {"https://evil.example", "null", "http://127.0.0.1"}) {
    HttpHeaders headers = Bearer(server().operator_token());
    headers.emplace_back("Origin", origin);
    EXPECT_EQ(Send("POST", "/session", headers).status, 403) << origin;
  }
  for (const std::string& token : {std::string("nonsense"), absl::StrCat("dpar_nobody_", std::string(64, '0'))}) {
    const HttpReply answer = Send("POST", "/session", Bearer(token));
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("Set-Cookie"), "");
  }
  const HttpReply without = Send("POST", "/session");
  EXPECT_EQ(without.status, 401);
  // The answer comes before the body is read, so that a client may see no more than the end of the connection.
  const HttpReply with_body = Send("POST", "/session", Bearer(server().operator_token()), "x");
  EXPECT_TRUE(with_body.status == 0 || with_body.status == 413);
  EXPECT_EQ(Status("/session", Bearer(server().operator_token())), 405);
}

TEST_F(PageTest, ASessionEndsWithItsTokenOrWhenItIsClosed) {
  const std::string closed = SignIn(server().operator_token());
  EXPECT_EQ(Status(kWho, {{"Cookie", closed}}), 200);
  EXPECT_EQ(Status(kWho, {{"Cookie", closed}, {"Origin", "https://evil.example"}}), 403) << "reads are refused too";
  EXPECT_EQ(Send("DELETE", "/session", {{"Cookie", closed}, {"Origin", "https://evil.example"}}).status, 403);
  EXPECT_EQ(Status(kWho, {{"Cookie", closed}}), 200);
  EXPECT_EQ(Send("DELETE", "/session", {{"Cookie", closed}}).status, 204);
  EXPECT_EQ(Status(kWho, {{"Cookie", closed}}), 401);

  const auto made =
      server().Operator().Call(&v1::OperatorService::Stub::CreateToken, TokenRequest("operator", v1::OPERATOR));
  ASSERT_THAT(made.status, IsOk());
  const std::string revoked = SignIn(made.value.secret());
  EXPECT_EQ(Status(kWho, {{"Cookie", revoked}}), 200);
  v1::RevokeTokenRequest revoke;
  revoke.set_name(made.value.token().name());
  ASSERT_THAT(server().Operator().Call(&v1::OperatorService::Stub::RevokeToken, revoke).status, IsOk());
  EXPECT_EQ(Status(kWho, {{"Cookie", revoked}}), 401);
  EXPECT_EQ(Status(kWho, {{"Cookie", "__Host-dpar_session=" + std::string(64, '0')}}), 401);
}

TEST_F(PageTest, ATenantSeesItsOwnAndNothingElse) {
  const TenantAccess tenant = server().NewTenant();
  const TenantAccess other = server().NewTenant();
  const std::string dataset = UploadGraph(server().Owner(tenant), tenant.name, MakeGraph(700));
  UploadGraph(server().Owner(other), other.name, MakeGraph(701));
  const HttpHeaders session = {{"Cookie", SignIn(other.owner_token)}};
  for (const char* method : {"GetOverview", "ListUsage", "GetSpendHistory", "ListRecentJobs", "ListLedgerTail"}) {
    const std::string path = absl::StrCat("/api/v1/OverviewService/", method);
    EXPECT_EQ(ReasonOf(path, session), "ROLE_INSUFFICIENT") << method;
    EXPECT_EQ(ReasonOf(path + "?parent=" + tenant.name, session), "RESOURCE_NOT_FOUND") << method;
    EXPECT_EQ(ReasonOf(path + "?parent=tenants/nobody", session), "RESOURCE_NOT_FOUND") << method;
    const HttpReply own = Get(path + "?parent=" + other.name, session);
    EXPECT_EQ(own.status, 200) << own.body;
    EXPECT_FALSE(absl::StrContains(own.body, tenant.name)) << method;
  }
  const std::string budget = "?name=" + OwnPopulation(dataset);
  EXPECT_EQ(ReasonOf("/api/v1/BudgetService/GetBudget" + budget, session), "RESOURCE_NOT_FOUND");
  const HttpReply shown = Get("/api/v1/BudgetService/GetBudget" + budget, Bearer(tenant.owner_token));
  const v1::Budget expected = GetBudget(server().Owner(tenant), dataset);
  EXPECT_EQ(Json::parse(shown.body)["left_units"], absl::StrCat(expected.left_units()));
  EXPECT_EQ(Json::parse(shown.body)["equivalent_epsilon"], expected.equivalent_epsilon());
}

TEST_F(PageTest, OnlyWhatReadsIsThereAndBadInputIsRefused) {
  const HttpHeaders bearer = Bearer(server().operator_token());
  for (const char* path : {"/api/v1/TrainingService/CreateJob", "/api/v1/OperatorService/CreateTenant", "/api/v1/",
                           "/api/v1/Page/OpenSession", "/metrics", "/page", "/..%2fpage.js", "/page.js%00"}) {
    EXPECT_EQ(Status(path, bearer), 404) << path;
  }
  for (const char* query :
       {"ListUsage?filter=%25", "ListUsage?filter=A", "ListUsage?page_size=1001", "ListUsage?page_size=x",
        "ListUsage?page_token=-1", "ListUsage?nonsense=1", "ListUsage?parent=a&parent=b", "GetOverview?parent=acme",
        "ListRecentJobs?page_size=101", "ListLedgerTail?page_token=7", "GetSpendHistory?parent=tenants/a/datasets/b"}) {
    EXPECT_EQ(ReasonOf(absl::StrCat("/api/v1/OverviewService/", query), bearer), "INVALID_FIELD") << query;
  }
  for (const HttpReply& answer : {Send("DELETE", kWho, bearer), Send("OPTIONS", kWho, bearer)}) {
    EXPECT_EQ(answer.status, 405);
  }
}

TEST_F(PageTest, FilesComeWithAPolicyThatLetsNothingElseIn) {
  for (const char* path : {"/", "/page.js", "/page.css", "/favicon.svg", "/nothing", kWho}) {
    const HttpReply answer = Get(path);
    EXPECT_EQ(answer.header("Content-Security-Policy"),
              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
              "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer.header("Referrer-Policy"), "no-referrer");
  }
  const HttpReply page = Get("/");
  EXPECT_EQ(page.status, 200);
  const HttpReply again = Get("/", {{"If-None-Match", page.header("ETag")}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(SendHttp({.address = server().page_address()}).status, 0) << "nothing of it is there without TLS";
  EXPECT_EQ(SendHttp({.address = server().metrics_address()}).status, 404) << "nor where metrics are";
  EXPECT_EQ(SendHttp({.address = server().metrics_address(), .path = kWho}).status, 404);
}

TEST_F(PageTest, SigningInAndOutIsAudited) {
  const std::string cookie = SignIn(server().operator_token());
  EXPECT_EQ(Send("DELETE", "/session", {{"Cookie", cookie}}).status, 204);
  const std::string log = ReadFile(server().data_directory() + "/audit.log");
  EXPECT_THAT(log, HasSubstr("\"action\":\"Page/OpenSession\""));
  EXPECT_THAT(log, HasSubstr("\"action\":\"Page/CloseSession\""));
  EXPECT_FALSE(absl::StrContains(log, cookie.substr(cookie.find('=') + 1)));
}

}  // namespace
}  // namespace dpar::e2e
