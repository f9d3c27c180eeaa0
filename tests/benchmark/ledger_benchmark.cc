// How fast jobs are admitted and end: build/release/bin/ledger_benchmark [seconds [sqlite|postgres]]
//
// For each engine and 1, 8 and 64 clients on distinct datasets: how long an admission takes (what CreateJob does to the
// store: reserve and queue), half of them and all but one of a hundred, how many there are a second, and how many jobs
// a second are submitted, leased and released, without the training. Then the time to admit a job on datasets with a
// longer and longer past, with the commit and without it, since a slow disk would hide what grows. A client is a thread
// of this program; what planning, TLS and gRPC cost is no part of it.
//
// Admission counts a tenant's live jobs, which a server limits to 100 unless told otherwise. The queue is emptied, off
// the clock, when a tenant has as many.
//
// The first argument is about how long one measurement takes, 2 unless given; the second leaves out the other engine.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "server/store/testing/temporary_store.h"
#include "tests/benchmark/ledger_world.h"

namespace dpar {
namespace {

constexpr int kPastTurns = 21;
constexpr int kAdmissionsInTurn = 20;
constexpr int64_t kLongestQueue = 100;  // of a tenant

double SecondsOf(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The smallest value that `share` of all values are not above.
double Quantile(std::vector<double> values, double share) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// What clients did, one after the other each.
struct Pace {
  double seconds = 0;
  std::vector<double> latencies;  // in seconds

  [[nodiscard]] double rate() const { return static_cast<double>(latencies.size()) / seconds; }
};

// Has `clients` threads do something again and again for a while, or `most` times each.
Pace Run(int clients, double seconds, int64_t most, const std::function<void(int client)>& work) {
  std::barrier begin(clients + 1);
  std::vector<std::vector<double>> latencies(static_cast<size_t>(clients));
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      begin.arrive_and_wait();
      const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
      for (int64_t i = 0; i < most && std::chrono::steady_clock::now() < end; ++i) {
        latencies[static_cast<size_t>(client)].push_back(SecondsOf([&] { work(client); }));
      }
    });
  }
  begin.arrive_and_wait();
  Pace pace;
  pace.seconds = SecondsOf([&] {
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
  for (const std::vector<double>& own : latencies) {
    pace.latencies.insert(pace.latencies.end(), own.begin(), own.end());
  }
  return pace;
}

Pace Admissions(LedgerWorld& world, int clients, double seconds) {
  Pace pace;
  while (pace.seconds < seconds) {
    const Pace round = Run(clients, seconds - pace.seconds, kLongestQueue, [&](int client) { world.Reserve(client); });
    pace.seconds += round.seconds;
    pace.latencies.insert(pace.latencies.end(), round.latencies.begin(), round.latencies.end());
    world.CancelAll();
  }
  return pace;
}

void PrintRates(testing::Engine engine, int clients, double seconds) {
  LedgerWorld world(engine, clients);
  const Pace admissions = Admissions(world, clients, seconds);
  const Pace jobs = Run(clients, seconds, kLongestQueue * 1000, [&](int client) { world.RunJob(client); });
  absl::PrintF("%7d %12.2f %12.2f %14.0f %8.0f\n", clients, 1e3 * Quantile(admissions.latencies, 0.5),
               1e3 * Quantile(admissions.latencies, 0.99), admissions.rate(), jobs.rate());
  std::cout.flush();
}

void PrintPasts(testing::Engine engine) {
  const std::vector<int64_t> sizes = {10, 1'000, 100'000};
  LedgerWorld world(engine, static_cast<int>(sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    world.Fill(static_cast<int>(i), sizes[i]);
  }
  std::vector<std::vector<double>> times(sizes.size());
  std::vector<std::vector<double>> uncommitted(sizes.size());
  // The sizes take turns, because others share the machine.
  for (int turn = 0; turn < kPastTurns; ++turn) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (int k = 0; k < kAdmissionsInTurn; ++k) {
        times[i].push_back(SecondsOf([&] { world.Reserve(static_cast<int>(i)); }));
        uncommitted[i].push_back(SecondsOf([&] { world.ReserveInVain(static_cast<int>(i)); }));
      }
    }
    world.CancelAll();
  }
  absl::PrintF("%16s %12s %18s\n", "ledger entries", "ms to admit", "without the commit");
  for (size_t i = 0; i < sizes.size(); ++i) {
    absl::PrintF("%16d %12.3f %18.3f\n", sizes[i], 1e3 * Quantile(times[i], 0.5), 1e3 * Quantile(uncommitted[i], 0.5));
  }
  std::cout.flush();
}

std::string NameOf(testing::Engine engine) { return engine == testing::Engine::kSqlite ? "sqlite" : "postgres"; }

void RunAll(double seconds, const std::string& only) {
  for (const testing::Engine engine : testing::Engines()) {
    if (!only.empty() && only != NameOf(engine)) {
      continue;
    }
    absl::PrintF("\n%s\n%7s %12s %12s %14s %8s\n", NameOf(engine), "clients", "admit p50 ms", "admit p99 ms",
                 "admissions/s", "jobs/s");
    for (const int clients : {1, 8, 64}) {
      PrintRates(engine, clients, seconds);
    }
    PrintPasts(engine);
  }
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) {
  double seconds = 2;
  const std::string only = argc > 2 ? argv[2] : "";
  const bool bad_engine = !only.empty() && only != "sqlite" && only != "postgres";
  if (argc > 3 || bad_engine || (argc > 1 && (!absl::SimpleAtod(argv[1], &seconds) || seconds <= 0))) {
    std::cerr << "usage: ledger_benchmark [seconds of one measurement [sqlite|postgres]]\n";
    return EXIT_FAILURE;
  }
  dpar::RunAll(seconds, only);
  return EXIT_SUCCESS;
}
