#ifndef DPAR_SERVER_UPLOADS_DECLARATION_H_
#define DPAR_SERVER_UPLOADS_DECLARATION_H_

#include "absl/status/status.h"
#include "dpar/v1/dataset.pb.h"
#include "server/limits.h"

namespace dpar {

absl::Status ValidateDeclaration(const v1::OpenUploadRequest& request, const Limits& limits);

// Fills in a private dataset's cap: the default or a lower declared one; FAILED_PRECONDITION / CAP_ABOVE_DEFAULT above.
absl::Status SettleCap(v1::OpenUploadRequest& declared, double default_epsilon);

// Fills in the bounds that were not declared (DefaultSizeBounds).
void SettleBounds(v1::OpenUploadRequest& declared, const Limits& limits);

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_DECLARATION_H_
