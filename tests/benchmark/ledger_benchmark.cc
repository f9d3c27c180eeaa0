// How fast money and jobs move: build/release/bin/ledger_benchmark [seconds [sqlite|postgres [clients]]]
//
// For each engine: reservations (what CreateJob does to the store) and jobs (submitted, leased, released, without the
// training) per second, by 1, 8 and 64 clients on distinct datasets, as ratios to bare durable commits by as many
// clients on the same store, each a transaction of one statement; and the time to admit a job on datasets with a longer
// and longer past, with the commit and without it, since a slow disk would hide what grows. The measurements take
// turns, because others share the machine, and the median of the turns counts, of rates and of ratios each. A client is
// a thread of this program; what planning, TLS and gRPC cost is no part of it.
//
// Admission counts a tenant's live jobs, which a server limits to 100 unless told otherwise. The queue is emptied, off
// the clock, when a tenant has as many.
//
// One job needs three durable commits: its reservation, its lease, its release. A job that runs for longer needs one
// more each second, which renews its lease. So jobs at half the speed of commits are 0.5 / 3 of them per second.
//
// The first argument is about how long one measurement takes, 0.5 unless given; the second leaves out the other engine,
// and the third everything but the rates of that many clients.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "server/store/testing/temporary_store.h"
#include "tests/benchmark/ledger_world.h"

namespace dpar {
namespace {

constexpr int kTurns = 7;
constexpr int kAdmissionTurns = 21;
constexpr int kAdmissionsInTurn = 20;
constexpr double kCommitsOfJob = 3;
// Jobs of a tenant that wait at once: what a server admits unless it is told otherwise. Admission counts them.
constexpr int64_t kLongestQueue = 100;
constexpr double kWantedReservations = 0.5;
constexpr double kWantedJobs = 0.5 / kCommitsOfJob;
// The longest past may cost that much more than the shortest and still be called flat: noise and the depth of an index.
constexpr double kFlat = 1.25;

double SecondsOf(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What was done and how long it took.
struct Pace {
  int64_t done = 0;
  double seconds = 0;

  [[nodiscard]] double rate() const { return static_cast<double>(done) / seconds; }
};

// Has `clients` threads do something again and again for a while, or `most` times altogether.
Pace Run(int clients, double seconds, int64_t most, const std::function<void(int client)>& work) {
  std::barrier begin(clients + 1);
  std::atomic<int64_t> started = 0;
  std::atomic<int64_t> done = 0;
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      begin.arrive_and_wait();
      const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
      while (started++ < most) {
        work(client);
        ++done;
        if (std::chrono::steady_clock::now() >= end) {
          break;
        }
      }
    });
  }
  begin.arrive_and_wait();
  const double elapsed = SecondsOf([&] {
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
  return {done, elapsed};
}

double RateOf(int clients, double seconds, const std::function<void(int client)>& work) {
  return Run(clients, seconds, std::numeric_limits<int64_t>::max(), work).rate();
}

// Reservations, with the queue emptied, off the clock, before it is longer than any that a server would take.
double ReservationRate(LedgerWorld& world, int clients, Tenants tenants, double seconds) {
  const int64_t most = kLongestQueue * (tenants == Tenants::kOne ? 1 : clients);
  Pace pace;
  while (pace.seconds < seconds) {
    const Pace round = Run(clients, seconds - pace.seconds, most, [&](int client) { world.Reserve(client); });
    pace.done += round.done;
    pace.seconds += round.seconds;
    world.CancelAll();
  }
  return pace.rate();
}

struct Rates {
  double commits = 0;
  double reservations = 0;
  double jobs = 0;
  double reservation_ratio = 0;
  double job_ratio = 0;
};

Rates MeasureOnce(LedgerWorld& world, int clients, Tenants tenants, double seconds) {
  Rates rates;
  rates.commits = RateOf(clients, seconds / 2, [&](int client) { world.Commit(client); });
  rates.reservations = ReservationRate(world, clients, tenants, seconds);
  rates.jobs = RateOf(clients, seconds, [&](int client) { world.RunJob(client); });
  // Half before and half after, so that a machine that gets slower or faster meanwhile favours nobody.
  rates.commits = (rates.commits + RateOf(clients, seconds / 2, [&](int client) { world.Commit(client); })) / 2;
  rates.reservation_ratio = rates.reservations / rates.commits;
  rates.job_ratio = rates.jobs / rates.commits;
  return rates;
}

// Whether both ratios are at or above the ones wanted.
bool PrintRates(testing::Engine engine, int clients, Tenants tenants, double seconds) {
  LedgerWorld world(engine, clients, tenants);
  std::vector<Rates> turns;
  for (int turn = 0; turn < kTurns; ++turn) {
    turns.push_back(MeasureOnce(world, clients, tenants, seconds));
  }
  const auto median = [&turns](double Rates::*member) {
    std::vector<double> values;
    for (const Rates& rates : turns) {
      values.push_back(rates.*member);
    }
    return Median(values);
  };
  const double reservation_ratio = median(&Rates::reservation_ratio);
  const double job_ratio = median(&Rates::job_ratio);
  const bool met = reservation_ratio >= kWantedReservations && job_ratio >= kWantedJobs;
  absl::PrintF("%7d %8s %10.0f %14.0f %6.2f %7.2f %8.0f %6.3f %7.3f%s\n", clients,
               tenants == Tenants::kOne ? "one" : "each", median(&Rates::commits), median(&Rates::reservations),
               reservation_ratio, kWantedReservations, median(&Rates::jobs), job_ratio, kWantedJobs,
               met ? "" : "  MISSED");
  std::cout.flush();
  return met;
}

// Whether the time is flat.
bool PrintAdmissions(testing::Engine engine) {
  const std::vector<int64_t> sizes = {10, 1'000, 100'000};
  LedgerWorld world(engine, static_cast<int>(sizes.size()), Tenants::kOneEach);
  for (size_t i = 0; i < sizes.size(); ++i) {
    world.Fill(static_cast<int>(i), sizes[i]);
  }
  std::vector<std::vector<double>> times(sizes.size());
  std::vector<std::vector<double>> uncommitted(sizes.size());
  for (int turn = 0; turn < kAdmissionTurns; ++turn) {
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
    absl::PrintF("%16d %12.3f %18.3f\n", sizes[i], Median(times[i]) * 1e3, Median(uncommitted[i]) * 1e3);
  }
  const double ratio = Median(times.back()) / Median(times.front());
  const double uncommitted_ratio = Median(uncommitted.back()) / Median(uncommitted.front());
  const bool flat = std::max(ratio, uncommitted_ratio) <= kFlat;
  absl::PrintF("largest to smallest %.2f and %.2f, wanted at most %.2f%s\n", ratio, uncommitted_ratio, kFlat,
               flat ? "" : "  MISSED");
  std::cout.flush();
  return flat;
}

std::string NameOf(testing::Engine engine) { return engine == testing::Engine::kSqlite ? "sqlite" : "postgres"; }

int RunAll(double seconds, const std::string& only, int only_clients) {
  bool all_met = true;
  for (const testing::Engine engine : testing::Engines()) {
    if (!only.empty() && only != NameOf(engine)) {
      continue;
    }
    absl::PrintF("\n%s\n%7s %8s %10s %14s %6s %7s %8s %6s %7s\n", NameOf(engine), "clients", "tenants", "commits/s",
                 "reservations/s", "ratio", "wanted", "jobs/s", "ratio", "wanted");
    const std::vector<int> counts = only_clients > 0 ? std::vector<int>{only_clients} : std::vector<int>{1, 8, 64};
    for (const int clients : counts) {
      all_met = PrintRates(engine, clients, Tenants::kOneEach, seconds) && all_met;
    }
    for (const int clients : counts) {
      all_met = (clients == 1 || PrintRates(engine, clients, Tenants::kOne, seconds)) && all_met;
    }
    all_met = (only_clients > 0 || PrintAdmissions(engine)) && all_met;
  }
  absl::PrintF("\n%s\n", all_met ? "everything is as wanted" : "SOMETHING IS NOT AS WANTED");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) {
  double seconds = 0.5;
  const std::string only = argc > 2 ? argv[2] : "";
  int only_clients = 0;
  const bool bad_engine = !only.empty() && only != "sqlite" && only != "postgres";
  const bool bad_clients = argc > 3 && (!absl::SimpleAtoi(argv[3], &only_clients) || only_clients < 1);
  if (argc > 4 || bad_engine || bad_clients || (argc > 1 && (!absl::SimpleAtod(argv[1], &seconds) || seconds <= 0))) {
    std::cerr << "usage: ledger_benchmark [seconds of one measurement [sqlite|postgres [clients]]]\n";
    return EXIT_FAILURE;
  }
  return dpar::RunAll(seconds, only, only_clients);
}
