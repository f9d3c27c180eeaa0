// What someone other than the uploader sees of a private graph that is uploaded and trained on.
#ifndef DPAR_TESTS_NEIGHBOURS_VISIBLE_H_
#define DPAR_TESTS_NEIGHBOURS_VISIBLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/certificate/signing_key.h"
#include "core/graph/graph.h"
#include "core/mutex.h"
#include "core/random/testing/fixed_random.h"
#include "server/admission/submit.h"
#include "server/store/testing/temporary_store.h"
#include "server/uploads/uploads.h"
#include "server/witness/mark_directory.h"
#include "server/worker/worker.h"

namespace dpar::testing {

// A server without its network: every graph gets a tenant of its own, so that none is recognised as an earlier one.
class NeighbourServer {
 public:
  NeighbourServer();

  // Uploads the graph as private with the promise that no node has more than `max_degree` neighbours, asks for the
  // job's price, trains, and returns all answers as text. Names, times, random identities and what the noise decides
  // are replaced. The uploader's own answers are left out.
  std::string Visible(const Graph& graph, int64_t max_degree, const v1::TrainingSpec& asked);

  // The memory for jobs from now on; a job that is expected to need more is refused.
  void set_max_job_bytes(int64_t bytes) { job_limits_.max_job_bytes = bytes; }

 private:
  absl::Status Upload(const Graph& graph, int64_t max_degree, const std::string& tenant);
  std::string Standing(const std::string& tenant);
  std::string DryRun(const v1::TrainingSpec& spec);
  std::string Train(const v1::TrainingSpec& spec, const std::string& tenant);
  std::string Certificate(const std::string& job);
  std::string TakeStages();

  FixedRandom random_{29};
  int64_t tenants_ = 0;
  JobLimits job_limits_ = {.max_job_bytes = int64_t{8} << 30, .threads = 1};
  TemporaryStore store_;
  MarkDirectory marks_;
  Uploads uploads_;
  SigningKey key_;
  Mutex mutex_;
  std::vector<std::string> stages_ ABSL_GUARDED_BY(mutex_);  // that the running job has left, with their counters
  ProgressBoard board_;
  Worker worker_;
};

}  // namespace dpar::testing

#endif  // DPAR_TESTS_NEIGHBOURS_VISIBLE_H_
