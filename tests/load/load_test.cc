// A server under many clients at once: watchers, uploaders and submitters, on loopback, for a bounded time.
//   load_test                            a few clients for some seconds: only errors and states are asserted
//   DPAR_LOAD_SECONDS=60 load_test       200 watchers, 32 uploaders, 8 submitters for a minute; memory must stay flat
// Both print a table of calls, errors, times, memory and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/load/clients.h"

namespace dpar::load {
namespace {

// How many of each kind, and for how long.
struct Shape {
  int tenants = 2;
  int watchers = 40;
  int uploaders = 8;
  int submitters = 2;
  absl::Duration time = absl::Seconds(8);
  bool measured = false;  // whether memory is asserted, too
};

Shape ShapeFromEnvironment() {
  const char* text = std::getenv("DPAR_LOAD_SECONDS");
  int seconds = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &seconds)) return {};
  return {.tenants = 8,
          .watchers = 200,
          .uploaders = 32,
          .submitters = 8,
          .time = absl::Seconds(seconds),
          .measured = true};
}

// The first third of the time is warm-up. From its end to the end of all, the server may grow by this much.
constexpr int kWarmUpShare = 3;
constexpr int64_t kMostGrowthKib = 32 << 10;
// What a few calls hold at one moment is not growth: figures are medians over this many samples, a second apart.
constexpr size_t kWindow = 5;
constexpr size_t kWatchersOfAChannel = 10;

// Of a process, from /proc.
struct Usage {
  int64_t resident_kib = 0;
  int64_t threads = 0;
};

std::optional<Usage> UsageOf(pid_t pid) {
  Usage usage;
  for (const absl::string_view line : absl::StrSplit(e2e::ReadFile(absl::StrCat("/proc/", pid, "/status")), '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (parts.size() < 2) continue;
    if (parts[0] == "VmRSS:" && !absl::SimpleAtoi(parts[1], &usage.resident_kib)) return std::nullopt;
    if (parts[0] == "Threads:" && !absl::SimpleAtoi(parts[1], &usage.threads)) return std::nullopt;
  }
  return usage.resident_kib > 0 ? std::optional(usage) : std::nullopt;
}

// The median over the window that ends before `end`.
Usage MedianBefore(const std::vector<Usage>& samples, size_t end) {
  const size_t begin = end > kWindow ? end - kWindow : 0;
  const auto median = [&](int64_t Usage::*field) {
    std::vector<int64_t> values;
    for (size_t i = begin; i < end; ++i) values.push_back(samples[i].*field);
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
  };
  return {median(&Usage::resident_kib), median(&Usage::threads)};
}

class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start());
    graph_ = e2e::MakeGraph(1300);
    bytes_ = e2e::GraphBytes(graph_);
    for (int i = 0; i < shape_.tenants; ++i) {
      auto tenant = std::make_unique<LoadedTenant>();
      tenant->access = server_.NewTenant();
      tenant->dataset = e2e::UploadGraph(server_.Owner(tenant->access), tenant->access.name, graph_);
      ASSERT_FALSE(tenant->dataset.empty());
      tenants_.push_back(std::move(tenant));
    }
  }

  LoadedTenant& TenantOf(int client) { return *tenants_[static_cast<size_t>(client) % tenants_.size()]; }

  void StartClients() {
    for (int i = 0; i < shape_.submitters; ++i) {
      submitters_.push_back(std::make_unique<Submitter>(site_, TenantOf(i)));
      threads_.emplace_back([submitter = submitters_.back().get()] { submitter->Run(); });
    }
    std::shared_ptr<grpc::Channel> channel;
    for (int i = 0; i < shape_.watchers; ++i) {
      if (static_cast<size_t>(i) % kWatchersOfAChannel == 0) channel = server_.MakeChannel();
      threads_.emplace_back([this, channel, tenant = &TenantOf(i)] {
        WatchJobs(site_, *tenant, e2e::Client(channel, tenant->access.owner_token));
      });
    }
    for (int i = 0; i < shape_.uploaders; ++i) {
      threads_.emplace_back([this, tenant = &TenantOf(i)] { UploadFiles(site_, *tenant, bytes_, graph_.sizes); });
    }
  }

  // Lets them run for the time, and looks at the server every second.
  void Observe() {
    const absl::Time end = absl::Now() + shape_.time;
    while (absl::Now() < end) {
      absl::SleepFor(absl::Seconds(1));
      if (const std::optional<Usage> usage = UsageOf(server_.pid())) samples_.push_back(*usage);
    }
    site_.stop = true;
    for (std::thread& thread : threads_) thread.join();
  }

  void CheckJobs() const {
    int64_t accepted = 0;
    int64_t succeeded = 0;
    for (const std::unique_ptr<Submitter>& submitter : submitters_) {
      const auto ended = [&](v1::Job::State state) {
        const auto found = submitter->ended().find(state);
        return found == submitter->ended().end() ? 0 : found->second;
      };
      EXPECT_EQ(ended(v1::Job::FAILED), 0);
      EXPECT_LE(ended(v1::Job::CANCELLED), submitter->cancelled());
      EXPECT_EQ(ended(v1::Job::SUCCEEDED) + ended(v1::Job::CANCELLED), submitter->accepted());
      accepted += submitter->accepted();
      succeeded += ended(v1::Job::SUCCEEDED);
    }
    EXPECT_GT(succeeded, 0);
    std::cout << "  " << accepted << " jobs accepted, " << succeeded << " succeeded, the others were cancelled\n";
    for (const std::unique_ptr<LoadedTenant>& tenant : tenants_) {
      const e2e::Client owner = server_.Owner(tenant->access);
      EXPECT_TRUE(e2e::VerifyChain(owner, tenant->dataset).intact());
      EXPECT_EQ(e2e::GetBudget(owner, tenant->dataset).reserved_units(), 0);
    }
  }

  void CheckMemory() const {
    ASSERT_GE(samples_.size(), kWarmUpShare * kWindow / 2) << "too few samples";
    const Usage warm = MedianBefore(samples_, samples_.size() / kWarmUpShare);
    const Usage middle = MedianBefore(samples_, samples_.size() * 2 / kWarmUpShare);
    const Usage end = MedianBefore(samples_, samples_.size());
    std::cout << absl::StrFormat("  memory: %.1f MiB after warm-up, %.1f MiB in the middle, %.1f MiB at the end\n",
                                 static_cast<double>(warm.resident_kib) / 1024,
                                 static_cast<double>(middle.resident_kib) / 1024,
                                 static_cast<double>(end.resident_kib) / 1024);
    std::cout << absl::StrFormat("  threads: %d after warm-up, %d in the middle, %d at the end\n", warm.threads,
                                 middle.threads, end.threads);
    if (shape_.measured) {
      EXPECT_LT(end.resident_kib - warm.resident_kib, kMostGrowthKib) << "the server grows under a steady load";
    }
  }

  const Shape shape_ = ShapeFromEnvironment();
  e2e::TestServer server_;
  CallStats stats_;
  LoadSite site_{server_, stats_};
  Graph graph_;
  std::string bytes_;
  std::vector<std::unique_ptr<LoadedTenant>> tenants_;
  std::vector<std::unique_ptr<Submitter>> submitters_;
  std::vector<std::thread> threads_;
  std::vector<Usage> samples_;
};

TEST_F(LoadTest, ManyClientsMeetNoErrorButDocumentedLimitsAndEveryJobEnds) {
  StartClients();
  Observe();
  std::cout << shape_.watchers << " watchers, " << shape_.uploaders << " uploaders and " << shape_.submitters
            << " submitters for " << absl::FormatDuration(shape_.time) << "\n"
            << stats_.Table() << "  at most " << site_.most_watching << " watches open at once\n";
  CheckJobs();
  CheckMemory();
  EXPECT_TRUE(stats_.Undocumented().empty()) << ::testing::PrintToString(stats_.Undocumented());
  for (const char* method : {"OpenUpload", "WriteUpload", "FinishUpload", "CreateJob", "GetJob", "WatchJob"}) {
    EXPECT_GT(stats_.Count(method), 0) << method << " was never called";
  }
  if (shape_.measured) {
    EXPECT_EQ(site_.most_watching, shape_.watchers);
  }
  EXPECT_EQ(server_.Terminate(absl::Seconds(60)), std::optional<int>(0));
}

}  // namespace
}  // namespace dpar::load
