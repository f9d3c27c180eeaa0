// What the ledger's benchmark runs on: a real store with tenants, datasets and budgets, and what its clients do again
// and again.
#ifndef DPAR_TESTS_BENCHMARK_LEDGER_WORLD_H_
#define DPAR_TESTS_BENCHMARK_LEDGER_WORLD_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/certificate/signing_key.h"
#include "server/admission/submit.h"
#include "server/queue/queue.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {

// Ends the program, with what was refused, when anything fails. Functions that take a client's number are for many
// threads at once, each with a number of its own.
class LedgerWorld {
 public:
  // A tenant with a dataset and its population for every client.
  LedgerWorld(testing::Engine engine, int clients);

  // What CreateJob does to the store, on the client's own dataset. The plan and its price were made before, as the
  // service makes them before its transaction.
  void Reserve(int client);
  // The same, rolled back instead of committed: what the disk takes is no part of it.
  void ReserveInVain(int client);
  // A job from CreateJob to its released model, without the training: submits one, leases whichever is next and
  // releases that; its name.
  std::string RunJob(int client);

  // Empties the queue.
  void CancelAll();
  // Gives the client's dataset a past of `entries` ledger entries, and of the jobs that they were for.
  void Fill(int client, int64_t entries);

 private:
  struct Client {
    std::string tenant;
    std::string population;
    PlannedJob planned;
    v1::CreateJobRequest request;
  };

  void AddDataset(const std::string& tenant_id, int number);
  void Write(const Database::Body& body);
  // An id that was not used before.
  std::string NextId();
  void Submit(const Client& client);

  testing::TemporaryStore store_;
  const SigningKey key_;
  JobOutput output_;
  double epsilon_ = 0;  // that the accountant gives for each of the jobs, which are alike
  std::vector<Client> clients_;
  std::atomic<int64_t> ids_ = 0;
};

}  // namespace dpar

#endif  // DPAR_TESTS_BENCHMARK_LEDGER_WORLD_H_
