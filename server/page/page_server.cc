#include "server/page/page_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "core/status_macros.h"
#include "server/page/page_files.h"
#include "server/page/web_message.h"
#include "server/services/subject.h"
#include "server/steady_time.h"

namespace dpar {
namespace {

constexpr char kSessionPath[] = "/session";
constexpr absl::string_view kApiPrefix = "/api/v1/";
// With this prefix browsers require Secure, Path=/ and no Domain, so no other host can set it.
constexpr absl::string_view kCookie = "__Host-dpar_session";
constexpr char kJson[] = "application/json; charset=utf-8";
constexpr size_t kEtagDigits = 32;

constexpr int kNoContent = 204;
constexpr int kNotModified = 304;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kUnavailable = 503;

// Loads, sends and frames nothing from elsewhere; no inline script or style.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpAnswer Refused(int status, const std::string& why) { return {.status = status, .body = why + "\n"}; }

HttpAnswer ErrorAnswer(const absl::Status& status) {
  HttpAnswer answer{.status = HttpStatusOf(status), .content_type = kJson, .body = ErrorJson(status)};
  if (answer.status == kUnavailable) {
    answer.headers.emplace_back("Retry-After", "1");
  }
  return answer;
}

HttpAnswer Tagged(const HttpRequest& request, HttpAnswer answer, const std::string& caching) {
  const std::string tag = absl::StrCat("\"", Sha256Hex(answer.body).substr(0, kEtagDigits), "\"");
  if (request.header("If-None-Match") == tag) {
    answer.status = kNotModified;
    answer.body.clear();
  }
  answer.headers.emplace_back("ETag", tag);
  answer.headers.emplace_back("Cache-Control", caching);
  return answer;
}

// Browsers send Origin; a request without it comes from no browser, so no other site is behind it.
bool FromHere(const HttpRequest& request) {
  const std::string origin = request.header("Origin");
  const std::string site = request.header("Sec-Fetch-Site");
  return (origin.empty() || origin == absl::StrCat("https://", request.header("Host"))) &&
         (site.empty() || site == "same-origin");
}

// Empty unless there is exactly one session cookie.
std::string SessionSecret(const HttpRequest& request) {
  std::string secret;
  for (absl::string_view cookie : absl::StrSplit(request.header("Cookie"), ';')) {
    cookie = absl::StripAsciiWhitespace(cookie);
    if (absl::ConsumePrefix(&cookie, kCookie) && absl::ConsumePrefix(&cookie, "=")) {
      if (!secret.empty()) {
        return "";
      }
      secret = std::string(cookie);
    }
  }
  return secret;
}

std::string SetCookie(const std::string& secret, absl::Duration life) {
  return absl::StrCat(kCookie, "=", secret, "; Path=/; Max-Age=", absl::ToInt64Seconds(life),
                      "; HttpOnly; Secure; SameSite=Strict");
}

}  // namespace

template <typename Request, typename Response, typename Service>
void PageServer::AddRoute(const std::string& method, const Service& service) {
  routes_[method] = [this, method, &service](const WebCall& call, const Query& query, std::string& json) {
    Request request;
    Response response;
    const absl::Status read = ReadQuery(query, request);
    Gate::SubjectOf subject;
    if constexpr (requires { request.name(); }) {
      subject = About(request.name());
    }
    return gate_.Admit(call, method, subject, [&](const Identity& caller) -> absl::Status {
      DPAR_RETURN_IF_ERROR(read);
      DPAR_RETURN_IF_ERROR(service.Answer(caller, request, response));
      DPAR_ASSIGN_OR_RETURN(json, WriteJson(response));
      return absl::OkStatus();
    });
  };
}

PageServer::PageServer(const Gate& gate, const PageServices& services, SessionOptions options)
    : gate_(gate), sessions_(options) {
  AddRoute<v1::WhoAmIRequest, v1::Identity>("ServerService/WhoAmI", services.server);
  AddRoute<v1::GetOverviewRequest, v1::Overview>("OverviewService/GetOverview", services.overview);
  AddRoute<v1::ListUsageRequest, v1::ListUsageResponse>("OverviewService/ListUsage", services.overview);
  AddRoute<v1::GetSpendHistoryRequest, v1::SpendHistory>("OverviewService/GetSpendHistory", services.overview);
  AddRoute<v1::ListRecentJobsRequest, v1::ListRecentJobsResponse>("OverviewService/ListRecentJobs", services.overview);
  AddRoute<v1::ListLedgerTailRequest, v1::ListLedgerTailResponse>("OverviewService/ListLedgerTail", services.overview);
  AddRoute<v1::GetBudgetRequest, v1::Budget>("BudgetService/GetBudget", services.budgets);
  AddRoute<v1::ListLedgerEntriesRequest, v1::ListLedgerEntriesResponse>("BudgetService/ListLedgerEntries",
                                                                        services.budgets);
  AddRoute<v1::GetCertificateRequest, v1::Certificate>("TrainingService/GetCertificate", services.training);
}

HttpAnswer PageServer::Answer(const HttpRequest& request) {
  absl::string_view path = request.path;
  HttpAnswer answer;
  if ((path == kSessionPath || absl::StartsWith(path, kApiPrefix)) && !FromHere(request)) {
    answer = Refused(kForbidden, "the request comes from another site");
  } else if (path == kSessionPath) {
    answer = AnswerSession(request);
  } else if (request.method != "GET") {
    answer = Refused(kMethodNotAllowed, "only GET is answered here");
    answer.headers.emplace_back("Allow", "GET");
  } else if (absl::ConsumePrefix(&path, kApiPrefix)) {
    answer = AnswerCall(request, std::string(path));
  } else {
    answer = AnswerFile(request);
  }
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Content-Security-Policy", kPolicy},
                                                                  {"Referrer-Policy", "no-referrer"},
                                                                  {"Cross-Origin-Opener-Policy", "same-origin"},
                                                                  {"Cross-Origin-Resource-Policy", "same-origin"}}) {
    answer.headers.emplace_back(name, value);
  }
  return answer;
}

HttpAnswer PageServer::AnswerFile(const HttpRequest& request) const {
  const PageFile* const file = FindPageFile(request.path);
  if (file == nullptr) {
    return Refused(kNotFound, "there is nothing at this path");
  }
  return Tagged(request, {.content_type = std::string(file->content_type), .body = std::string(file->content)},
                "no-cache");
}

WebCall PageServer::CallOf(const HttpRequest& request, absl::Time now) {
  WebCall call{.peer = request.peer,
               .request_id = request.header("X-Request-Id"),
               .authorization = request.header("Authorization")};
  const std::string secret = SessionSecret(request);
  if (call.authorization.empty() && !secret.empty()) {
    call.has_session = true;
    call.session_token = sessions_.Find(secret, now).value_or("");
  }
  return call;
}

HttpAnswer PageServer::AnswerSession(const HttpRequest& request) {
  if (request.method != "POST" && request.method != "DELETE") {
    HttpAnswer answer = Refused(kMethodNotAllowed, "POST opens a session, DELETE ends it");
    answer.headers.emplace_back("Allow", "POST, DELETE");
    return answer;
  }
  WebCall call = CallOf(request, SteadyNow());
  const std::string secret = SessionSecret(request);
  HttpAnswer answer{.status = kNoContent};
  if (request.method == "DELETE") {
    call.authorization.clear();
    call.has_session = true;
    call.session_token = sessions_.Find(secret, SteadyNow()).value_or("");
    // The cookie suffices, also when its token has expired. The answer does not reveal whether a session existed.
    if (!call.session_token.empty()) {
      gate_.Admit(call, "Page/CloseSession", nullptr, [](const Identity&) { return absl::OkStatus(); }).IgnoreError();
    }
    sessions_.Close(secret);
    answer.headers.emplace_back("Set-Cookie", SetCookie("", absl::ZeroDuration()));
    return answer;
  }
  // A session must not open another: only a token does.
  call.session_token.clear();
  const absl::Status status = gate_.Admit(call, "Page/OpenSession", nullptr, [&](const Identity& caller) {
    SecureRandom random;
    sessions_.Close(secret);
    answer.headers.emplace_back("Set-Cookie",
                                SetCookie(sessions_.Open(caller.token, SteadyNow(), random), sessions_.options().life));
    return absl::OkStatus();
  });
  return status.ok() ? answer : ErrorAnswer(status);
}

HttpAnswer PageServer::AnswerCall(const HttpRequest& request, const std::string& method) {
  const auto route = routes_.find(method);
  if (route == routes_.end()) {
    return Refused(kNotFound, "there is no such method here");
  }
  HttpAnswer answer{.content_type = kJson};
  const absl::Status status = route->second(CallOf(request, SteadyNow()), request.query, answer.body);
  return status.ok() ? Tagged(request, std::move(answer), "no-store") : ErrorAnswer(status);
}

}  // namespace dpar
