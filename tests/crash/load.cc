#include "tests/crash/load.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace dpar::crash {
namespace {

// The first client asks for so much that its budget runs out, and refusals mix with releases.
constexpr double kEpsilons[] = {1.5, 0.1, 0.05, 0.02};

}  // namespace

Load::Load(CrashSite& site, RandomSource& random) : site_(site) {
  for (const double epsilon : kEpsilons) {
    clients_.push_back(
        std::make_unique<LoadClient>(site, site.NewTenant(UniformBits(random)), epsilon, UniformBits(random)));
  }
  for (const std::unique_ptr<LoadClient>& client : clients_) {
    threads_.emplace_back([this, &client] { client->Run(stop_); });
  }
}

void Load::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

std::string Load::Describe() const {
  LoadTally sum;
  for (const std::unique_ptr<LoadClient>& client : clients_) {
    sum.jobs += client->tally().jobs;
    sum.refusals += client->tally().refusals;
    sum.repeats += client->tally().repeats;
    sum.cancels += client->tally().cancels;
    sum.watches += client->tally().watches;
    sum.uploads += client->tally().uploads;
  }
  const Snapshot& snapshot = site_.snapshot();
  return absl::StrCat(sum.jobs, " jobs: ", snapshot.CountJobs(v1::Job::SUCCEEDED), " succeeded, ",
                      snapshot.CountJobs(v1::Job::CANCELLED), " cancelled, ", snapshot.CountJobs(v1::Job::FAILED),
                      " failed, ", snapshot.CountRetried(), " started more than once, ",
                      absl::FormatDuration(absl::Trunc(snapshot.BusyTime(), absl::Milliseconds(1))), " of work; ",
                      sum.refusals, " refused, ", sum.repeats, " requests repeated, ", sum.cancels, " cancels, ",
                      sum.watches, " watches, ", sum.uploads, " uploads");
}

}  // namespace dpar::crash
