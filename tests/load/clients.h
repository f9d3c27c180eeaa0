// Clients that keep a server busy: some submit jobs, some watch them, some upload. Each runs in a thread of its own.
#ifndef DPAR_TESTS_LOAD_CLIENTS_H_
#define DPAR_TESTS_LOAD_CLIENTS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "tests/end_to_end/workflow.h"
#include "tests/load/call_stats.h"

namespace dpar::load {

// Longer than anything takes on a busy machine: a call that meets it hangs.
inline constexpr absl::Duration kDeadline = absl::Minutes(3);

// A tenant under load, and what its clients tell each other. Thread-safe.
struct LoadedTenant {
  e2e::TenantAccess access;
  std::string dataset;

  // The job that was submitted last; empty before the first.
  [[nodiscard]] std::string newest_job() const {
    const std::lock_guard<std::mutex> lock(mutex);
    return newest;
  }
  void Submitted(const std::string& job) {
    const std::lock_guard<std::mutex> lock(mutex);
    newest = job;
  }

  mutable std::mutex mutex;
  std::string newest;
};

// What all clients share.
struct LoadSite {
  e2e::TestServer& server;
  CallStats& stats;
  std::atomic<bool> stop = false;
  // WatchJob calls that are open now, and the most that ever were.
  std::atomic<int> watching = 0;
  std::atomic<int> most_watching = 0;
};

// Submits jobs, keeps some in the queue, cancels a few, and looks at the others until they have ended.
class Submitter {
 public:
  Submitter(LoadSite& site, LoadedTenant& tenant) : site_(site), tenant_(tenant) {}
  // Until the site stops; then it waits until every job of its own has ended.
  void Run();

  // How many jobs ended in each state.
  [[nodiscard]] const std::map<v1::Job::State, int64_t>& ended() const { return ended_; }
  // Jobs that were accepted, and those among them that it asked to cancel.
  [[nodiscard]] int64_t accepted() const { return accepted_; }
  [[nodiscard]] int64_t cancelled() const { return cancelled_; }

 private:
  void Submit(const e2e::Client& client);
  void Cancel(const e2e::Client& client);
  // Forgets jobs that have ended, oldest first.
  void Poll(const e2e::Client& client);

  LoadSite& site_;
  LoadedTenant& tenant_;
  std::deque<std::string> live_;
  std::map<v1::Job::State, int64_t> ended_;
  int64_t accepted_ = 0;
  int64_t cancelled_ = 0;
};

// Follows the tenant's newest job to its end, again and again.
void WatchJobs(LoadSite& site, const LoadedTenant& tenant, const e2e::Client& client);

// Uploads a file, reads the dataset and deletes it, again and again. Every eighth file is damaged and refused.
void UploadFiles(LoadSite& site, const LoadedTenant& tenant, const std::string& bytes, const PublicSizes& sizes);

}  // namespace dpar::load

#endif  // DPAR_TESTS_LOAD_CLIENTS_H_
