#include "server/uploads/uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/atomic_file.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/canonical_content.h"
#include "core/graph/sealed_graph.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/files.h"
#include "server/random_text.h"
#include "server/resource_name.h"
#include "server/store/message_text.h"
#include "server/store/once.h"
#include "server/store/read_from.h"
#include "server/uploads/declaration.h"
#include "server/uploads/declared_graph.h"
#include "server/uploads/membership.h"
#include "server/witness/pairing.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigestKeyBytes = 32;
// How long a writer waits for another to notice that its connection is gone.
constexpr absl::Duration kBusyWait = absl::Seconds(10);
// How often a waiting caller is checked for being there.
constexpr absl::Duration kAskPeriod = absl::Milliseconds(250);

bool AlwaysWanted() { return true; }

absl::Status ValidateSha256(absl::string_view text) {
  constexpr size_t kDigits = 64;
  if (text.size() == kDigits && HexDecode(text).ok()) {
    return absl::OkStatus();
  }
  return InvalidField("sha256", "sha256 must be 64 lower-case hex digits");
}

absl::Status UploadEnded(const StoredUpload& stored) {
  const bool finished = stored.state == v1::Upload::FINISHED;
  const int64_t size = stored.declared.size_bytes();
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::UPLOAD_INCOMPLETE,
                   finished ? "the upload is finished; its dataset exists"
                            : "the upload was refused and its bytes are gone; open another",
                   {{"committed_offset", absl::StrCat(finished ? size : 0)}, {"size", absl::StrCat(size)}});
}

std::string DatasetName(const StoredUpload& stored) {
  return absl::StrCat(stored.declared.parent(), "/datasets/", stored.declared.dataset_id());
}

v1::Dataset DescribeDataset(const StoredUpload& stored, absl::Time now) {
  v1::Dataset dataset;
  dataset.set_name(DatasetName(stored));
  *dataset.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(now));
  dataset.set_node_count(stored.declared.node_count());
  dataset.set_feature_count(stored.declared.feature_count());
  dataset.set_class_count(stored.declared.class_count());
  dataset.set_is_public(stored.declared.is_public());
  dataset.set_edge_bound(stored.declared.edge_bound());
  dataset.set_entry_bound(stored.declared.entry_bound());
  if (stored.declared.has_max_degree()) {
    dataset.set_max_degree(stored.declared.max_degree());
  }
  dataset.set_schema(stored.declared.schema());
  return dataset;
}

absl::Status IdTaken(const std::string& dataset) {
  return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS,
                   absl::StrCat(dataset, " exists, or did before it was deleted; choose another id"),
                   {{"resource", dataset}});
}

int64_t FileSize(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

// The size, after a sync: no crash takes these bytes away. 0 without a file.
absl::StatusOr<int64_t> DurableSize(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return errno == ENOENT ? absl::StatusOr<int64_t>(0) : CannotStore();
  }
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  struct stat facts = {};
  if (fstat(descriptor, &facts) != 0 || fdatasync(descriptor) != 0) {
    return CannotStore();
  }
  return int64_t{facts.st_size};
}

v1::ImportReport ToProto(const ImportReport& report) {
  v1::ImportReport proto;
  proto.set_edge_count(report.edge_count);
  proto.set_edges_symmetrised(report.edges_symmetrised);
  proto.set_duplicates_merged(report.duplicates_merged);
  proto.set_self_loops_dropped(report.self_loops_dropped);
  proto.set_unlabelled_nodes(report.unlabelled_nodes);
  proto.set_zero_features_dropped(report.zero_features_dropped);
  return proto;
}

bool IsInUse(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() && info->reason() == v1::ErrorReason_Name(v1::POPULATION_IN_USE);
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NameHold>> Uploads::Hold(const std::string& name,
                                                        const std::function<bool()>& wanted) const {
  for (absl::Duration waited = absl::ZeroDuration();; waited += kAskPeriod) {
    absl::StatusOr<std::unique_ptr<NameHold>> hold = database_.Hold(name, kAskPeriod);
    if (!absl::IsUnavailable(hold.status()) || waited >= kBusyWait) {
      return hold;
    }
    if (!wanted()) {
      return absl::CancelledError("the caller went away");
    }
  }
}

absl::StatusOr<StoredUpload> Uploads::Find(const std::string& name) const {
  return ReadFrom(database_, [&](Transaction& transaction) { return GetUpload(transaction, name); });
}

v1::Upload Uploads::Describe(const StoredUpload& stored) const {
  v1::Upload upload;
  upload.set_name(stored.name);
  upload.set_dataset(DatasetName(stored));
  upload.set_size_bytes(stored.declared.size_bytes());
  upload.set_state(stored.state);
  *upload.mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(stored.create_time + UploadLife()));
  if (stored.state == v1::Upload::FINISHED) {
    upload.set_committed_offset(stored.declared.size_bytes());
  }
  return upload;
}

absl::StatusOr<v1::Upload> Uploads::Open(const v1::OpenUploadRequest& request, absl::Time now, RandomSource& random) {
  DPAR_RETURN_IF_ERROR(ValidateDeclaration(request, limits_));
  StoredUpload stored;
  stored.name = absl::StrCat(request.parent(), "/uploads/", RandomId(random));
  stored.declared = request;
  stored.create_time = now;
  if (request.dataset_id().empty()) {
    stored.declared.set_dataset_id(RandomId(random));
  }
  DPAR_RETURN_IF_ERROR(SettleCap(stored.declared, limits_.default_cap_epsilon));
  SettleBounds(stored.declared, limits_);
  DPAR_RETURN_IF_ERROR(RefuseExpired(request.parent(), now));
  const std::string dataset = DatasetName(stored);
  v1::Upload upload;
  const RequestKey key = MakeRequestKey(request.parent(), "OpenUpload", request.request_id(), request);
  DPAR_RETURN_IF_ERROR(Once(database_, key, now, upload, [&](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(transaction.Lock(Guard::kTenant, request.parent()));
    DPAR_ASSIGN_OR_RETURN(const bool taken, DatasetIdTaken(transaction, dataset));
    if (taken) {
      return IdTaken(dataset);
    }
    if (!request.population().empty()) {
      // Once more when it is sealed; here before any byte is sent.
      DPAR_RETURN_IF_ERROR(CheckVersion(transaction, request.population(), request.node_count()));
    }
    DPAR_RETURN_IF_ERROR(InsertUpload(transaction, stored, limits_.max_open_uploads));
    upload = Describe(stored);
    return absl::OkStatus();
  }));
  // A repeated request is answered with the upload's current state.
  return Get(upload.name());
}

absl::StatusOr<v1::Upload> Uploads::Get(const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const StoredUpload stored, Find(name));
  v1::Upload upload = Describe(stored);
  if (stored.state == v1::Upload::OPEN) {
    DPAR_ASSIGN_OR_RETURN(const int64_t committed, DurableSize(directory_.UploadFile(name)));
    upload.set_committed_offset(committed);
    if (std::optional<v1::UploadCheck> check = checks_.Find(name); check.has_value()) {
      *upload.mutable_check() = *std::move(check);
    }
  }
  return upload;
}

absl::StatusOr<std::unique_ptr<UploadWriter>> Uploads::StartWriting(const std::string& name, int64_t offset) {
  DPAR_RETURN_IF_ERROR(Find(name).status());
  DPAR_ASSIGN_OR_RETURN(std::unique_ptr<NameHold> hold, Hold(name, AlwaysWanted));
  DPAR_ASSIGN_OR_RETURN(const StoredUpload stored, Find(name));
  if (stored.state != v1::Upload::OPEN) {
    return UploadEnded(stored);
  }
  const std::string path = directory_.UploadFile(name);
  DPAR_ASSIGN_OR_RETURN(const int64_t committed, DurableSize(path));
  if (offset != committed) {
    return MakeError(
        absl::StatusCode::kOutOfRange, v1::UPLOAD_OFFSET_MISMATCH,
        absl::StrCat("the chunk starts at ", offset, ", but the server holds ", committed, " bytes; go on from there"),
        {{"offset", absl::StrCat(offset)}, {"committed_offset", absl::StrCat(committed)}});
  }
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(path));
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return CannotStore();
  }
  absl::Cleanup close_it = [descriptor] { close(descriptor); };
  if (!SyncDirectory(fs::path(path).parent_path().string()).ok()) {
    return CannotStore();
  }
  std::move(close_it).Cancel();
  return std::make_unique<UploadWriter>(std::move(hold), descriptor, committed, stored.declared.size_bytes(),
                                        limits_.max_chunk_bytes);
}

absl::Status Uploads::CheckComplete(const StoredUpload& stored) const {
  const int64_t committed = FileSize(directory_.UploadFile(stored.name));
  const int64_t size = stored.declared.size_bytes();
  if (committed != size) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::UPLOAD_INCOMPLETE,
                     absl::StrCat("the server holds ", committed, " of ", size, " bytes; send the rest first"),
                     {{"committed_offset", absl::StrCat(committed)}, {"size", absl::StrCat(size)}});
  }
  return absl::OkStatus();
}

absl::Status Uploads::Refuse(const std::string& name, absl::Status why) {
  DPAR_RETURN_IF_ERROR(database_.Write(
      [&](Transaction& transaction) { return SetUploadState(transaction, name, v1::Upload::REFUSED); }));
  DPAR_RETURN_IF_ERROR(RemoveTree(directory_.UploadFile(name)));
  return why;
}

struct Uploads::Sealing {
  const StoredUpload& stored;
  CheckBoard::Check& check;
  const RequestKey& key;
  const EntryContext& context;
  v1::Dataset dataset;
  std::string digest_key;  // hex
  Recognised content;
};

absl::StatusOr<v1::FinishUploadResponse> Uploads::Finish(const v1::FinishUploadRequest& request,
                                                         const EntryContext& context, RandomSource& random,
                                                         const std::function<bool()>& wanted) {
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  DPAR_RETURN_IF_ERROR(ValidateSha256(request.sha256()));
  DPAR_RETURN_IF_ERROR(Find(request.name()).status());
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold, Hold(request.name(), wanted));
  DPAR_ASSIGN_OR_RETURN(const StoredUpload stored, Find(request.name()));
  v1::FinishUploadResponse answer;
  const RequestKey key = MakeRequestKey(stored.declared.parent(), "FinishUpload", request.request_id(), request);
  DPAR_ASSIGN_OR_RETURN(const bool recalled, ReadFrom(database_, [&](Transaction& transaction) {
                          return Recall(transaction, key, answer);
                        }));
  if (recalled) {
    return answer;
  }
  if (stored.state != v1::Upload::OPEN) {
    return UploadEnded(stored);
  }
  DPAR_RETURN_IF_ERROR(CheckComplete(stored));
  CheckBoard::Check check(checks_, stored.name, context.time, wanted);
  DPAR_RETURN_IF_ERROR(check.AwaitTurn());
  Sealing sealing{stored, check, key, context, DescribeDataset(stored, context.time), {}, {}};
  return Seal(sealing, request.sha256(), random);
}

// A file at fault ends its upload, if its caller is still there.
absl::Status Uploads::Judge(Sealing& sealing, absl::Status found) {
  if (absl::IsCancelled(found)) {
    return found;
  }
  if (!IsRefusal(found)) {
    spdlog::error("uploads: a file cannot be read: {}", std::string(found.message()));
    return CannotStore();
  }
  DPAR_RETURN_IF_ERROR(sealing.check.Wanted());
  return Refuse(sealing.stored.name, std::move(found));
}

absl::StatusOr<ImportedGraph> Uploads::Import(Sealing& sealing, const std::string& sha256) const {
  const std::string path = directory_.UploadFile(sealing.stored.name);
  DPAR_ASSIGN_OR_RETURN(const std::string actual, Sha256File(path, sealing.check.Stage("digest")));
  if (actual != sha256) {
    return MakeError(absl::StatusCode::kInvalidArgument, v1::UPLOAD_DIGEST_MISMATCH,
                     "the SHA-256 is not that of the bytes received. The bytes were discarded; open another upload and "
                     "send the file again");
  }
  return ReadDeclaredGraph(
      path, sealing.stored.declared, limits_,
      {.parsing = sealing.check.Stage("parsing"), .validating = sealing.check.Stage("validating")});
}

// The content's two digests, and the key of the one that leaves the server.
absl::Status Uploads::Digest(const Graph& graph, Sealing& sealing, RandomSource& random) const {
  const v1::OpenUploadRequest& declared = sealing.stored.declared;
  const std::string key = RandomBytes(random, kDigestKeyBytes);
  DPAR_ASSIGN_OR_RETURN(const std::string tenant_key, ReadFrom(database_, [&](Transaction& transaction) {
                          return TenantContentKey(transaction, declared.parent());
                        }));
  HmacSha256Stream shown(key);
  HmacSha256Stream kept(tenant_key);
  const auto add = [&](std::span<const std::byte> piece) {
    shown.Add(piece);
    kept.Add(piece);
  };
  DPAR_RETURN_IF_ERROR(VisitCanonicalContent(graph, add, sealing.check.Stage("fingerprint")));
  sealing.digest_key = absl::BytesToHexString(key);
  sealing.dataset.set_content_digest(shown.Hex());
  sealing.content.digest = kept.Hex();
  return absl::OkStatus();
}

absl::StatusOr<v1::FinishUploadResponse> Uploads::Seal(Sealing& sealing, const std::string& sha256,
                                                       RandomSource& random) {
  const StoredUpload& stored = sealing.stored;
  const std::string& name = sealing.dataset.name();
  // Of two uploads for one id, the first to get here has it, and its file is not overwritten.
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold,
                        Hold(name, [&sealing] { return sealing.check.Wanted().ok(); }));
  DPAR_ASSIGN_OR_RETURN(const bool taken, IsTaken(name));
  if (taken) {
    return Refuse(stored.name, IdTaken(name));
  }
  const absl::StatusOr<ImportedGraph> imported = Import(sealing, sha256);
  if (!imported.ok()) {
    return Judge(sealing, imported.status());
  }
  DPAR_RETURN_IF_ERROR(Digest(imported->graph, sealing, random));
  DPAR_RETURN_IF_ERROR(Recognise(marks_, stored.declared, sealing.content));
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(directory_.DatasetFile(name)));
  absl::Status status = WriteSealedGraph(directory_.DatasetFile(name), imported->graph, sealing.check.Stage("sealing"));
  if (!status.ok() && !absl::IsCancelled(status)) {
    spdlog::error("uploads: a dataset cannot be sealed: {}", std::string(status.message()));
    status = CannotStore();
  }
  v1::FinishUploadResponse answer;
  if (status.ok()) {
    // The last check: from here on it is recorded even if the caller leaves.
    status = sealing.check.Wanted();
  }
  if (status.ok()) {
    status = database_.Write([&](Transaction& transaction) { return Record(transaction, sealing, answer); });
  }
  if (!status.ok()) {
    DPAR_RETURN_IF_ERROR(RemoveUnlessSealed(name));
    // Content that cannot be declared so will not be accepted later either. Jobs of its population end, and then it is.
    return absl::IsFailedPrecondition(status) && !IsInUse(status) ? Refuse(stored.name, status) : status;
  }
  DPAR_RETURN_IF_ERROR(RemoveTree(directory_.UploadFile(stored.name)));
  *answer.mutable_report() = ToProto(imported->report);
  return answer;
}

// Models may have been trained on public content without noise, so that no cap could be promised for it. The witness
// remembers what a store that was rolled back forgot.
absl::Status Uploads::CheckNeverPublic(Transaction& transaction, const Sealing& sealing) const {
  const v1::OpenUploadRequest& declared = sealing.stored.declared;
  if (declared.is_public()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const bool stored, WasPublic(transaction, declared.parent(), sealing.content.digest));
  const absl::StatusOr<bool> marked = marks_.WasPublic({declared.parent(), sealing.content.digest});
  DPAR_RETURN_IF_ERROR(FromWitness(marked.status()));
  if (!stored && !*marked) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::CONTENT_WAS_PUBLIC,
                   "the same content was declared public before, and what was learnt from it then has no bound, so no "
                   "budget can protect it now. Upload it with is_public, or upload other data");
}

absl::Status Uploads::Record(Transaction& transaction, const Sealing& sealing, v1::FinishUploadResponse& answer) const {
  const v1::OpenUploadRequest& declared = sealing.stored.declared;
  const Content content = {declared.parent(), sealing.content.digest};
  answer.Clear();
  DPAR_RETURN_IF_ERROR(transaction.Lock(Guard::kTenant, declared.parent()));
  // What was read from a replaced directory may be too little, and what is kept there nobody reads.
  DPAR_RETURN_IF_ERROR(FromWitness(CheckStillPaired(transaction, marks_)));
  v1::Dataset dataset = sealing.dataset;
  DPAR_ASSIGN_OR_RETURN(const std::optional<std::string> first,
                        FirstPopulation(transaction, declared, sealing.content));
  DPAR_RETURN_IF_ERROR(CheckNeverPublic(transaction, sealing));
  if (declared.is_public() && first.has_value()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::CONTENT_HAS_BUDGET,
                     "the same content was uploaded as private before, so it cannot be declared public; upload it "
                     "without is_public and its budget goes on");
  }
  if (declared.is_public()) {
    // A file of an upload whose commit fails refuses the content as private: its uploader gave it up.
    DPAR_RETURN_IF_ERROR(FromWitness(marks_.KeepPublic(content)));
    DPAR_RETURN_IF_ERROR(RememberPublic(transaction, declared.parent(), sealing.content.digest));
  } else {
    DPAR_RETURN_IF_ERROR(Join(transaction, declared, sealing.content, first, sealing.context, dataset, answer));
  }
  DPAR_RETURN_IF_ERROR(InsertDataset(transaction, dataset, limits_.max_datasets));
  DPAR_RETURN_IF_ERROR(SetUploadState(transaction, sealing.stored.name, v1::Upload::FINISHED));
  *answer.mutable_dataset() = dataset;
  answer.set_digest_key(sealing.digest_key);
  DPAR_RETURN_IF_ERROR(Remember(transaction, sealing.key, answer, sealing.context.time));
  // Last, since only a commit that fails now leaves a file: of content that then belongs to this population when it is
  // uploaded again.
  return declared.is_public() ? absl::OkStatus() : FromWitness(marks_.KeepPopulation(content, dataset.population()));
}

absl::StatusOr<bool> Uploads::IsTaken(const std::string& dataset) const {
  return ReadFrom(database_, [&](Transaction& transaction) { return DatasetIdTaken(transaction, dataset); });
}

// A commit can succeed and report an error, or happen after its server died. So before removing, ask the store, once no
// transaction holds the tenant: Record's does until it has ended.
absl::Status Uploads::RemoveUnlessSealed(const std::string& dataset) const {
  absl::Status found;
  DPAR_RETURN_IF_ERROR(database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(transaction.Lock(Guard::kTenant, TenantOf(dataset)));
    found = GetDataset(transaction, dataset).status();
    return absl::IsNotFound(found) ? absl::OkStatus() : found;
  }));
  return absl::IsNotFound(found) ? RemoveTree(fs::path(directory_.DatasetFile(dataset)).parent_path().string())
                                 : absl::OkStatus();
}

}  // namespace dpar
