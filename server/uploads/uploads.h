// The way of a file into the store: declared, appended, checked, sealed.
//
// The size of the file on disk is the committed offset, so a crash needs no repair. A graph is written before the
// transaction that makes it a dataset, and taken away again when that fails; Sweep removes what a crash left over.
#ifndef DPAR_SERVER_UPLOADS_UPLOADS_H_
#define DPAR_SERVER_UPLOADS_UPLOADS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/graph/graph.h"
#include "core/random/random.h"
#include "dpar/v1/dataset.pb.h"
#include "server/ledger/ledger.h"
#include "server/limits.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/datasets.h"
#include "server/uploads/upload_writer.h"

namespace dpar {

// Thread-safe. What is passed in outlives it. Resource names in requests were parsed, and the caller authorised.
class Uploads {
 public:
  Uploads(Database& database, const DataDirectory& directory, const Limits& limits)
      : database_(database), directory_(directory), limits_(limits) {}

  // Declares a dataset. The cap that holds is settled here: the server's default, or what the owner declared below it
  // (FAILED_PRECONDITION / CAP_ABOVE_DEFAULT above it).
  absl::StatusOr<v1::Upload> Open(const v1::OpenUploadRequest& request, absl::Time now, RandomSource& random);

  absl::StatusOr<v1::Upload> Get(const std::string& name);

  // OUT_OF_RANGE / UPLOAD_OFFSET_MISMATCH unless `offset` is the committed offset; FAILED_PRECONDITION /
  // UPLOAD_INCOMPLETE when the upload has ended.
  absl::StatusOr<std::unique_ptr<UploadWriter>> StartWriting(const std::string& name, int64_t offset);

  // Checks and seals. A file that is refused (wrong digest, not a graph, id taken meanwhile) ends the upload and leaves
  // nothing behind. A repeated request gets the same answer, without the import report, which is kept nowhere.
  absl::StatusOr<v1::FinishUploadResponse> Finish(const v1::FinishUploadRequest& request, const EntryContext& context,
                                                  RandomSource& random);

  // Removes files that belong to no open upload and no dataset, unless somebody works on them.
  absl::Status Sweep();

 private:
  struct Sealing;

  // One caller of all servers at a time works on an upload, or seals a dataset of that name.
  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name) const;
  absl::StatusOr<StoredUpload> Find(const std::string& name) const;
  v1::Upload Describe(const StoredUpload& stored) const;
  absl::Status CheckComplete(const StoredUpload& stored, const std::string& sha256) const;
  absl::Status Refuse(const std::string& name, absl::Status why);
  absl::Status RefuseAbandoned(const std::string& tenant, absl::Time now);
  absl::StatusOr<v1::FinishUploadResponse> Seal(Sealing& sealing, RandomSource& random);
  absl::Status Digest(const Graph& graph, Sealing& sealing, RandomSource& random) const;
  absl::Status Record(Transaction& transaction, const Sealing& sealing, v1::FinishUploadResponse& answer) const;
  absl::StatusOr<bool> IsTaken(const std::string& dataset) const;
  absl::Status RemoveUnlessSealed(const std::string& dataset) const;
  absl::Status SweepUpload(const std::string& name, const std::string& path) const;
  absl::Status SweepDataset(const std::string& name) const;

  Database& database_;
  const DataDirectory& directory_;
  const Limits limits_;
  // A graph, and a copy of it for its digests, are in memory while it is sealed, so only one is sealed at a time.
  std::mutex import_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_UPLOADS_H_
