#ifndef DPAR_SERVER_SERVICES_SUBJECT_H_
#define DPAR_SERVER_SERVICES_SUBJECT_H_

#include <string>

#include "server/services/gate.h"

namespace dpar {

// The name that a request asks for, or the parent of what it makes.
template <typename Request>
std::string RequestedName(const Request& request) {
  if constexpr (requires { request.name(); }) {
    return request.name();
  } else if constexpr (requires { request.tenant_id(); }) {
    return "tenants/" + request.tenant_id();
  } else {
    return request.parent();
  }
}

template <typename Response>
std::string AnsweredName(const Response& response) {
  if constexpr (requires { response.token().name(); }) {
    return response.token().name();
  } else if constexpr (requires { response.dataset().name(); }) {
    return response.dataset().name();
  } else if constexpr (requires { response.name(); }) {
    return response.name();
  } else {
    return "";
  }
}

// The value of `name` when the call ends.
inline Gate::SubjectOf About(const std::string& name) {
  return [&name](bool) { return Subject{name, ""}; };
}

// The answer's name, or, without one, the request's.
template <typename Request, typename Response>
Gate::SubjectOf About(const Request& request, const Response& response) {
  return [&request, &response](bool ok) {
    const std::string answered = ok ? AnsweredName(response) : "";
    Subject subject{answered.empty() ? RequestedName(request) : answered, ""};
    if constexpr (requires { request.is_public(); }) {
      subject.note = request.is_public() ? "declared public" : "";
    } else if constexpr (requires { response.dataset().is_public(); }) {
      subject.note = ok && response.dataset().is_public() ? "public dataset" : "";
    } else if constexpr (requires { request.validate_only(); }) {
      subject.note = request.validate_only() ? "dry run" : "";
    }
    return subject;
  };
}

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_SUBJECT_H_
