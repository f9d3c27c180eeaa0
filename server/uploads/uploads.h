// The way of a file into the store: declared, appended, checked, sealed.
//
// The size of the file on disk is the committed offset, so a crash needs no repair; whoever is told a committed offset
// can rely on it, because the bytes were synced before. A graph is written before the transaction that makes it a
// dataset, and taken away again when that fails; Sweep removes what a crash left over.
#ifndef DPAR_SERVER_UPLOADS_UPLOADS_H_
#define DPAR_SERVER_UPLOADS_UPLOADS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// Thread-safe. What is passed in outlives it. Resource names in requests were parsed, and the caller authorised.
class Uploads {
 public:
  Uploads(Database& database, const DataDirectory& directory, const MarkDirectory& marks, const Limits& limits)
      : database_(database), directory_(directory), marks_(marks), limits_(limits) {}

  // Declares a dataset. The cap that holds is settled here: the server's default, or what the owner declared below it
  // (FAILED_PRECONDITION / CAP_ABOVE_DEFAULT above it).
  absl::StatusOr<v1::Upload> Open(const v1::OpenUploadRequest& request, absl::Time now, RandomSource& random);

  // With how far its check is, when one runs on this server.
  absl::StatusOr<v1::Upload> Get(const std::string& name);

  // OUT_OF_RANGE / UPLOAD_OFFSET_MISMATCH unless `offset` is the committed offset; FAILED_PRECONDITION /
  // UPLOAD_INCOMPLETE when the upload has ended.
  absl::StatusOr<std::unique_ptr<UploadWriter>> StartWriting(const std::string& name, int64_t offset);

  // Checks and seals. A file that is refused (wrong digest, not a graph, id taken meanwhile) ends the upload and leaves
  // nothing behind. A repeated request gets the same answer, without the import report, which is kept nowhere. Once
  // `wanted` says that nobody waits for the answer, the check stops within a second with CANCELLED and the upload stays
  // open; but what has begun to be recorded is recorded, and its answer remembered.
  absl::StatusOr<v1::FinishUploadResponse> Finish(const v1::FinishUploadRequest& request, const EntryContext& context,
                                                  RandomSource& random, const std::function<bool()>& wanted);

  // Removes files that belong to no open upload and no dataset, unless somebody works on them.
  absl::Status Sweep();
  // Refuses the uploads that were opened longer ago than Limits.upload_life_days, of a tenant or, when it is empty, of
  // all, and removes their bytes; but none that somebody works on right now.
  absl::Status RefuseExpired(const std::string& tenant, absl::Time now);

 private:
  struct Sealing;

  // One caller of all servers at a time works on an upload, or seals a dataset of that name. CANCELLED once `wanted`
  // says no.
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
  absl::Status Recognise(Sealing& sealing) const;
  static absl::Status Open(Transaction& transaction, const Sealing& sealing, const std::string& budget);
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
