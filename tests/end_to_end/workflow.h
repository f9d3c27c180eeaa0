// The steps that many tests take on their way: make a graph, upload it, train, follow the job, read the ledger.
#ifndef DPAR_TESTS_END_TO_END_WORKFLOW_H_
#define DPAR_TESTS_END_TO_END_WORKFLOW_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/generate.h"
#include "core/graph/graph.h"
#include "core/graph/npz.h"
#include "tests/end_to_end/harness.h"

namespace dpar::e2e {

// A generated graph from a fixed seed.
Graph MakeGraph(uint64_t seed, const GeneratorOptions& options = {.nodes = 120, .classes = 3, .features = 30});

// A graph on which training takes some seconds: long enough to be interrupted in the middle.
Graph MakeSlowGraph(uint64_t seed);

// The bytes of an npz file.
std::string GraphBytes(const Graph& graph);
std::string NpzBytes(const std::map<std::string, NpyArray>& arrays);
// The arrays of a graph's file, for a test to spoil.
std::map<std::string, NpyArray> GraphArrays(const Graph& graph);

// An OpenUpload request for a file of `bytes` that declares `sizes`.
v1::OpenUploadRequest OpenRequest(const std::string& tenant, const std::string& bytes, const PublicSizes& sizes);

// Sends bytes from `offset` on in messages of 64 KiB.
Answer<v1::WriteUploadResponse> WriteBytes(const Client& client, const std::string& upload, int64_t offset,
                                           const std::string& bytes);

// FinishUpload with the bytes' true digest.
Answer<v1::FinishUploadResponse> Finish(const Client& client, const std::string& upload, const std::string& bytes,
                                        const std::string& request_id);

// Open, write and finish; the first error that came up.
Answer<v1::FinishUploadResponse> UploadFile(const Client& client, const v1::OpenUploadRequest& request,
                                            const std::string& bytes);
// The same for a graph with everything at its default; the dataset's name, or empty and a test failure.
std::string UploadGraph(const Client& client, const std::string& tenant, const Graph& graph);

// A request for a job on `dataset`.
v1::CreateJobRequest JobRequest(const std::string& dataset, double epsilon);
Answer<v1::Job> CreateJob(const Client& client, const v1::CreateJobRequest& request);
Answer<v1::Job> GetJob(const Client& client, const std::string& job);
Answer<v1::Job> CancelJob(const Client& client, const std::string& job);

// Every message of WatchJob until `enough` says true of one, the stream ends, or the time is up.
struct Watched {
  std::vector<v1::WatchJobResponse> messages;
  grpc::Status status;  // OK also when `enough` ended it
};
Watched WatchUntil(const Client& client, const std::string& job, bool (*enough)(const v1::WatchJobResponse&),
                   absl::Duration timeout = kJobTimeout);
// For WatchUntil.
bool IsTraining(const v1::WatchJobResponse& message);
bool IsTerminal(const v1::WatchJobResponse& message);

// Follows a job to its end.
v1::Job WaitForJob(const Client& client, const std::string& job);

// The population that a dataset opened, whose id is its own.
std::string OwnPopulation(const std::string& dataset);
// The one that the dataset belongs to; its own once it is deleted.
std::string PopulationOf(const Client& client, const std::string& dataset);
// Of the dataset's population, as are the next.
v1::Budget GetBudget(const Client& client, const std::string& dataset);
std::vector<v1::LedgerEntry> LedgerEntries(const Client& client, const std::string& dataset);
int64_t CountEntries(const std::vector<v1::LedgerEntry>& entries, v1::LedgerEntry::Kind kind);
v1::VerifyChainResponse VerifyChain(const Client& client, const std::string& dataset);

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_WORKFLOW_H_
