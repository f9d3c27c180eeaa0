// What a call is about, for the audit log, out of its request and its answer.
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

// The name of what an answer holds; empty when it names nothing.
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

// For Gate::Admit: `name` as it is when the call ends.
inline Gate::SubjectOf About(const std::string& name) {
  return [&name](bool) { return Subject{name, ""}; };
}

// For Gate::Admit: what was made or answered, or, where nothing was or it has no name, what was asked for.
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
