// What an owner declares about a dataset before its bytes are sent.
#ifndef DPAR_SERVER_UPLOADS_DECLARATION_H_
#define DPAR_SERVER_UPLOADS_DECLARATION_H_

#include "absl/status/status.h"
#include "dpar/v1/dataset.pb.h"
#include "server/limits.h"

namespace dpar {

// Whether every field is in its range and under its limit.
absl::Status ValidateDeclaration(const v1::OpenUploadRequest& request, const Limits& limits);

// Fills in the cap that holds: the server's default, or what the owner declared below it (FAILED_PRECONDITION /
// CAP_ABOVE_DEFAULT above it). Public data has none.
absl::Status SettleCap(v1::OpenUploadRequest& declared, double default_epsilon);

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_DECLARATION_H_
