// The operator's page: its files, its sessions, and the API's methods that it reads with, as JSON over HTTP.
//
//   GET    /                             the page; its other files beside it
//   POST   /session                      exchanges `Authorization: Bearer <token>` for a session cookie
//   DELETE /session                      ends it
//   GET    /api/v1/{Service}/{Method}    a method that only reads; the request's fields are the query's parameters
//
// See docs/page.md. Everything goes through the gate that gRPC calls use and is answered by the same functions.
#ifndef DPAR_SERVER_PAGE_PAGE_SERVER_H_
#define DPAR_SERVER_PAGE_PAGE_SERVER_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/random/secure_random.h"
#include "google/protobuf/message.h"
#include "server/http/http_server.h"
#include "server/page/overview_service.h"
#include "server/page/sessions.h"
#include "server/services/budget_service.h"
#include "server/services/gate.h"
#include "server/services/server_service.h"
#include "server/services/training_service.h"

namespace dpar {

struct PageServices {
  const ServerServiceImpl& server;
  const OverviewServiceImpl& overview;
  const BudgetServiceImpl& budgets;
  const TrainingServiceImpl& training;
};

// Thread-safe. The gate and the services outlive it.
class PageServer {
 public:
  PageServer(const Gate& gate, const PageServices& services, SessionOptions options = {});

  HttpAnswer Answer(const HttpRequest& request);

 private:
  using Query = std::multimap<std::string, std::string>;
  using Route = std::function<absl::Status(const WebCall& call, const Query& query, std::string& json)>;

  template <typename Request, typename Response, typename Service>
  void AddRoute(const std::string& method, const Service& service);
  HttpAnswer AnswerFile(const HttpRequest& request) const;
  HttpAnswer AnswerSession(const HttpRequest& request);
  HttpAnswer AnswerCall(const HttpRequest& request, const std::string& method);
  WebCall CallOf(const HttpRequest& request, absl::Time now);

  const Gate& gate_;
  Sessions sessions_;
  std::map<std::string, Route> routes_;  // by Service/Method
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_PAGE_SERVER_H_
