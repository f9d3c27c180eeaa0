// The way of a file into the store: declared, appended, checked, sealed.
// A file's size on disk is the committed offset, and its bytes are synced before a caller is told: no repair after a
// crash. A graph is written before the transaction that makes it a dataset; Sweep removes what a crash left.
#ifndef DPAR_SERVER_UPLOADS_UPLOADS_H_
#define DPAR_SERVER_UPLOADS_UPLOADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/graph/graph.h"
#include "core/graph/graph_file.h"
#include "core/random/random.h"
#include "dpar/v1/dataset.pb.h"
#include "server/ledger/ledger.h"
#include "server/limits.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/datasets.h"
#include "server/uploads/check_board.h"
#include "server/uploads/upload_writer.h"
#include "server/witness/mark_directory.h"

namespace dpar {

// Thread-safe; arguments outlive it. Resource names are parsed, and callers authorised.
class Uploads {
 public:
  Uploads(Database& database, const DataDirectory& directory, const MarkDirectory& marks, const Limits& limits)
      : database_(database), directory_(directory), marks_(marks), limits_(limits) {}

  // Declares a dataset and settles its cap and its bounds (declaration.h).
  absl::StatusOr<v1::Upload> Open(const v1::OpenUploadRequest& request, absl::Time now, RandomSource& random);

  // With the progress of its check, if one runs on this server.
  absl::StatusOr<v1::Upload> Get(const std::string& name);

  // OUT_OF_RANGE / UPLOAD_OFFSET_MISMATCH unless `offset` is the committed one; FAILED_PRECONDITION / UPLOAD_INCOMPLETE
  // when the upload has ended.
  absl::StatusOr<std::unique_ptr<UploadWriter>> StartWriting(const std::string& name, int64_t offset);

  // Checks and seals. A refused file (wrong digest, no graph, id taken) ends the upload and leaves nothing. A repeated
  // request gets the same answer without the import report. When `wanted` says no, the check stops within a second with
  // CANCELLED and the upload stays open; once recording has begun, it completes and its answer is remembered.
  absl::StatusOr<v1::FinishUploadResponse> Finish(const v1::FinishUploadRequest& request, const EntryContext& context,
                                                  RandomSource& random, const std::function<bool()>& wanted);

  // Removes files of no open upload and no dataset, unless in use.
  absl::Status Sweep();
  // Refuses uploads past upload_life_days, of a tenant or, when empty, of all, unless in use, and removes their bytes.
  absl::Status RefuseExpired(const std::string& tenant, absl::Time now);

 private:
  struct Sealing;

  // Over all servers, one caller at a time works on an upload or seals a dataset. CANCELLED once `wanted` says no.
  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, const std::function<bool()>& wanted) const;
  absl::StatusOr<StoredUpload> Find(const std::string& name) const;
  v1::Upload Describe(const StoredUpload& stored) const;
  [[nodiscard]] absl::Duration UploadLife() const { return absl::Hours(24 * limits_.upload_life_days); }
  absl::Status CheckComplete(const StoredUpload& stored) const;
  absl::Status Refuse(const std::string& name, absl::Status why);
  absl::Status RefuseIfIdle(const std::string& name);
  absl::Status Judge(Sealing& sealing, absl::Status found);
  absl::StatusOr<ImportedGraph> Import(Sealing& sealing, const std::string& sha256) const;
  absl::StatusOr<v1::FinishUploadResponse> Seal(Sealing& sealing, const std::string& sha256, RandomSource& random);
  absl::Status Digest(const Graph& graph, Sealing& sealing, RandomSource& random) const;
  absl::Status CheckNeverPublic(Transaction& transaction, const Sealing& sealing) const;
  absl::Status Record(Transaction& transaction, const Sealing& sealing, v1::FinishUploadResponse& answer) const;
  absl::StatusOr<bool> IsTaken(const std::string& dataset) const;
  absl::Status RemoveUnlessSealed(const std::string& dataset) const;
  absl::Status SweepUpload(const std::string& name, const std::string& path) const;
  absl::Status SweepDataset(const std::string& name) const;

  Database& database_;
  const DataDirectory& directory_;
  const MarkDirectory& marks_;
  const Limits limits_;
  CheckBoard checks_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_UPLOADS_H_
