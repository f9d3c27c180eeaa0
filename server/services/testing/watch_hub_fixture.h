// A hub of watchers whose time the test sets.
#ifndef DPAR_SERVER_SERVICES_TESTING_WATCH_HUB_FIXTURE_H_
#define DPAR_SERVER_SERVICES_TESTING_WATCH_HUB_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/queue/queue.h"
#include "server/services/watch_hub.h"
#include "server/store/datasets.h"

namespace dpar::testing {

inline constexpr char kTenant[] = "tenants/acme";
inline constexpr char kDataset[] = "tenants/acme/datasets/d";
inline constexpr char kJob[] = "tenants/acme/jobs/j";
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// A watcher that takes messages when the test says so.
class FakeSink : public WatchSink {
 public:
  void Send(std::shared_ptr<const v1::WatchJobResponse> message) override { messages.push_back(*message); }
  void Cancel() override { ++cancels; }
  void End(const absl::Status& status) override {
    EXPECT_FALSE(end.has_value());
    end = status;
  }

  std::vector<v1::WatchJobResponse> messages;
  int cancels = 0;
  std::optional<absl::Status> end;
};

// A store that counts what is read of it, and can be away.
class CountingDatabase : public Database {
 public:
  explicit CountingDatabase(Database& database) : database_(database) {}
  absl::Status Write(const Body& body) override { return database_.Write(body); }
  absl::Status Read(const Body& body) override {
    ++reads;
    return away.ok() ? database_.Read(body) : away;
  }
  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) override {
    return database_.Hold(name, patience);
  }
  void Listen(Listener listener) override { database_.Listen(std::move(listener)); }
  [[nodiscard]] bool shared() const override { return database_.shared(); }

  int reads = 0;
  absl::Status away;

 private:
  Database& database_;
};

struct Watcher {
  FakeSink sink;
  std::shared_ptr<Watch> watch = std::make_shared<Watch>(sink);
};

// The hub's thread is not started: the test looks in its place, at times of its own.
class WatchHubTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/watch_hub_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    sqlite_ = OpenSqlite(root_ + "/dpar.sqlite").value();
    ASSERT_TRUE(Migrate(*sqlite_).ok());
    database_ = std::make_unique<CountingDatabase>(*sqlite_);
    witness_ = std::make_unique<Witness>(*database_, root_ + "/witness");
    hub_ = std::make_unique<WatchHub>(*database_, board_, *witness_, kPatience);
    v1::Dataset dataset;
    dataset.set_name(kDataset);
    dataset.set_is_public(true);
    Write([&](Transaction& t) { return InsertTenant(t, "acme", "key", absl::Now()); });
    Write([&](Transaction& t) { return InsertDataset(t, dataset, 10); });
    AddJob(kJob);
  }
  void TearDown() override {
    hub_.reset();
    sqlite_.reset();
    std::filesystem::remove_all(root_);
  }

  void Write(const std::function<absl::Status(Transaction&)>& body) {
    const absl::Status status = sqlite_->Write(body);
    ASSERT_TRUE(status.ok()) << status;
  }
  void AddJob(const std::string& name) {
    StoredJob job;
    job.job.set_name(name);
    job.job.mutable_spec()->set_dataset(kDataset);
    job.job.mutable_plan()->set_steps(40);
    job.job.mutable_plan()->set_epsilon(1.5);
    Write([&](Transaction& t) { return Enqueue(t, job); });
  }
  void LeaseJob() {
    Write([](Transaction& t) { return Lease(t, {"server", absl::Now(), absl::Minutes(1), 1, 0, 0}).status(); });
  }
  void EndJob() {
    Write([](Transaction& t) { return End(t, kJob, v1::Job::CANCELLED, "", absl::Now()); });
    board_.Remove(kJob);
  }
  void Train(int64_t completed) {
    board_.Update(kJob, {"training", completed, 40, now_ - absl::Seconds(1), 0.1 * static_cast<double>(completed)});
  }
  // Lives longer than the hub, which ends those that are left.
  Watcher& New() { return watchers_.emplace_back(); }
  void Join(Watcher& watcher, int64_t after = 0) { hub_->Join(watcher.watch, kJob, after); }
  void Take(Watcher& watcher) { hub_->Sent(watcher.watch, true); }
  // Lets time pass, and the hub look.
  void After(absl::Duration duration) {
    now_ += duration;
    next_ = hub_->Look(now_, now_);
  }

  std::string root_;
  std::unique_ptr<Database> sqlite_;
  std::unique_ptr<CountingDatabase> database_;
  ProgressBoard board_;
  std::deque<Watcher> watchers_;
  std::unique_ptr<Witness> witness_;
  std::unique_ptr<WatchHub> hub_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  absl::Time next_;
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_SERVICES_TESTING_WATCH_HUB_FIXTURE_H_
