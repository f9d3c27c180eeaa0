// Every limit of the server, in one place. Over a limit is RESOURCE_EXHAUSTED / LIMIT_EXCEEDED with the field's name.
#ifndef DPAR_SERVER_LIMITS_H_
#define DPAR_SERVER_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace dpar {

struct Limits {
  int64_t max_upload_bytes = int64_t{4} << 30;
  int64_t max_chunk_bytes = int64_t{1} << 20;  // data in one WriteUpload message
  int64_t max_nodes = 20'000'000;
  int64_t max_features = 1'000'000;
  int64_t max_classes = 10'000;
  int64_t max_edges = 400'000'000;  // directed entries of a file
  int64_t max_feature_entries = 2'000'000'000;

  // Per tenant.
  int64_t max_datasets = 1'000;
  int64_t max_open_uploads = 16;
  int64_t max_queued_jobs = 100;
  int64_t max_running_jobs = 16;  // on all servers of a fleet together
  int64_t max_streams = 64;       // WriteUpload and DownloadModel calls at once
  int64_t max_watches = 1'000;    // WatchJob calls at once
  int64_t max_tokens = 100;       // neither revoked nor expired; of the operators as many

  int64_t max_tenants = 10'000;
  // A stream whose caller sends or takes nothing for as long is ended.
  int64_t max_idle_seconds = 60;
  // How long the answer to a request_id is remembered.
  int64_t request_memory_days = 7;
  // After how long an upload that was not finished is refused.
  int64_t upload_life_days = 7;

  // The cap of a dataset whose owner declares none; owners may only go below it.
  double default_cap_epsilon = 8;
  // How often a job is started before an infrastructure failure ends it.
  int64_t max_attempts = 3;
  // Memory for the jobs of one server together, and so for each. The default is 80% of the machine's.
  int64_t max_job_bytes = 0;
};

inline constexpr int64_t kMessageOverheadBytes = 64 << 10;
inline constexpr int64_t kDownloadChunkBytes = 256 << 10;
// Open calls of one connection. A call without a request takes memory until its connection ends.
inline constexpr int kMaxCallsPerConnection = 2'000;
// Watches of all callers that are open and not yet authenticated.
inline constexpr size_t kMaxAdmissionsWaiting = 4'096;
// Bytes that a caller may send ahead of a stream's handler, and in one frame.
inline constexpr int kStreamWindowBytes = 8 << 20;
inline constexpr int kMaxFrameBytes = 1 << 20;
// Connections to the gRPC port: of all callers together, but no more than half of the descriptors, and from one
// address.
inline constexpr size_t kMaxConnections = 4'096;
inline constexpr size_t kMaxConnectionsOfAddress = 1'024;
inline constexpr int kMaxServerThreads = 512;
// Bytes that gRPC holds for all connections together. Beyond it, streams are cut off.
inline constexpr size_t kMaxCallBytes = 256 << 20;

}  // namespace dpar

#endif  // DPAR_SERVER_LIMITS_H_
