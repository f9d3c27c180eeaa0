// Early return on errors, for functions that return absl::Status or absl::StatusOr.
#ifndef DPAR_CORE_STATUS_MACROS_H_
#define DPAR_CORE_STATUS_MACROS_H_

#include "absl/status/status.h"

#define DPAR_CONCAT_INNER_(a, b) a##b
#define DPAR_CONCAT_(a, b) DPAR_CONCAT_INNER_(a, b)

#define DPAR_RETURN_IF_ERROR(expression) DPAR_RETURN_IF_ERROR_IMPL_(DPAR_CONCAT_(dpar_status_, __LINE__), expression)

#define DPAR_RETURN_IF_ERROR_IMPL_(status, expression)        \
  do {                                                        \
    if (absl::Status status = (expression); !(status).ok()) { \
      return status;                                          \
    }                                                         \
  } while (false)

#define DPAR_ASSIGN_OR_RETURN(target, expression) \
  DPAR_ASSIGN_OR_RETURN_IMPL_(DPAR_CONCAT_(dpar_status_or_, __LINE__), target, expression)

// The target may be a declaration, so it cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define DPAR_ASSIGN_OR_RETURN_IMPL_(status_or, target, expression) \
  auto status_or = (expression);                                   \
  if (!status_or.ok()) {                                           \
    return std::move(status_or).status();                          \
  }                                                                \
  target = std::move(status_or).value()
// NOLINTEND(bugprone-macro-parentheses)
#endif  // DPAR_CORE_STATUS_MACROS_H_
