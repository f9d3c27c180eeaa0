#include "tests/end_to_end/watchers.h"

#include "absl/time/clock.h"

namespace dpar::e2e {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(90);

}  // namespace

class Watchers::Stream : public grpc::ClientReadReactor<v1::WatchJobResponse> {
 public:
  Stream(Watchers& watchers, const Client& client, const std::string& job)
      : watchers_(watchers), context_(MakeContext(client.token(), absl::Minutes(5))) {
    request_.set_name(job);
    client.stub<v1::TrainingService::Stub>().async()->WatchJob(context_.get(), &request_, this);
    StartRead(&message_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      const MutexLock lock(&watchers_.mutex_);
      watchers_.totals_.heard += heard_ ? 0 : 1;
      watchers_.totals_.terminal += message_.terminal() ? 1 : 0;
    }
    heard_ = true;
    StartRead(&message_);
  }
  void OnDone(const grpc::Status& status) override {
    const MutexLock lock(&watchers_.mutex_);
    ++watchers_.totals_.ended;
    watchers_.totals_.statuses.push_back(status);
  }
  void Cancel() { context_->TryCancel(); }

 private:
  Watchers& watchers_;
  const std::unique_ptr<grpc::ClientContext> context_;
  v1::WatchJobRequest request_;
  v1::WatchJobResponse message_;
  bool heard_ = false;
};

Watchers::Watchers() = default;

Watchers::~Watchers() {
  CancelAll();
  EXPECT_TRUE(Await([](const Totals& totals) { return totals.ended == totals.opened; }));
}

void Watchers::Open(const Client& client, const std::string& job) {
  {
    const MutexLock lock(&mutex_);
    ++totals_.opened;
  }
  streams_.push_back(std::make_unique<Stream>(*this, client, job));
}

void Watchers::CancelAll() {
  for (const std::unique_ptr<Stream>& stream : streams_) stream->Cancel();
}

bool Watchers::Await(const std::function<bool(const Totals&)>& reached) {
  const MutexLock lock(&mutex_);
  const auto condition = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return reached(totals_); };
  return mutex_.AwaitWithTimeout(Condition(&condition), kPatience);
}

Watchers::Totals Watchers::totals() const {
  const MutexLock lock(&mutex_);
  return totals_;
}

}  // namespace dpar::e2e
