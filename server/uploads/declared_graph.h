#ifndef DPAR_SERVER_UPLOADS_DECLARED_GRAPH_H_
#define DPAR_SERVER_UPLOADS_DECLARED_GRAPH_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/graph/graph_file.h"
#include "dpar/v1/dataset.pb.h"
#include "server/limits.h"

namespace dpar {

// Reads and checks an upload's graph. INVALID_ARGUMENT or RESOURCE_EXHAUSTED when the file is no graph, differs from
// the declared sizes, exceeds limits or its bounds, or breaks the degree promise. Whether a declared class occurs is
// not asked: what is accepted stays so with any node made null, else that a dataset exists would tell of the node.
absl::StatusOr<ImportedGraph> ReadDeclaredGraph(const std::string& path, const v1::OpenUploadRequest& declared,
                                                const Limits& limits, const ReadReports& reports);

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_DECLARED_GRAPH_H_
