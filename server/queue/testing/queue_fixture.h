#ifndef DPAR_SERVER_QUEUE_TESTING_QUEUE_FIXTURE_H_
#define DPAR_SERVER_QUEUE_TESTING_QUEUE_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/queue/queue.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/testing/temporary_store.h"

namespace dpar::testing {

inline const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
inline constexpr int64_t kManyJobs = 100;

inline constexpr absl::Duration kLease = absl::Seconds(30);

// A queue on each engine, with one tenant, acme.
class QueueFixture : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override { AddTenant("acme"); }

  void AddTenant(const std::string& tenant) {
    v1::Dataset dataset;
    dataset.set_name(absl::StrCat("tenants/", tenant, "/datasets/d"));
    dataset.set_is_public(true);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertTenant(t, tenant, "k", kNow));
                  return InsertDataset(t, dataset, 10);
                }).ok());
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  struct Wanted {
    std::string tenant = "acme";
    int32_t priority = 0;
    int64_t memory_bytes = 0;
    int64_t max_queued = kManyJobs;
  };
  // Queues tenants/{tenant}/jobs/{id}, created `order` seconds after the first.
  absl::Status Add(const std::string& id, int order, const Wanted& wanted) {
    StoredJob stored;
    stored.job.set_name(absl::StrCat("tenants/", wanted.tenant, "/jobs/", id));
    stored.job.mutable_spec()->set_dataset(absl::StrCat("tenants/", wanted.tenant, "/datasets/d"));
    stored.job.mutable_spec()->set_epsilon(0.1);
    stored.job.mutable_plan()->set_learning_rate(1.0 / 3.0);
    stored.job.set_priority(wanted.priority);
    stored.job.set_memory_bytes(wanted.memory_bytes);
    *stored.job.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(kNow + absl::Seconds(order)));
    return Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(CheckQueueLimit(t, stored.job.spec().dataset(), wanted.max_queued));
      return Enqueue(t, stored);
    });
  }
  absl::Status Add(const std::string& id, int order) { return Add(id, order, Wanted()); }

  static LeaseRequest Request(absl::Time now = kNow) { return {"server", now, kLease, 100, 1000, 1000}; }
  std::string LeaseNext(const LeaseRequest& request = Request()) {
    std::string name;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const std::optional<StoredJob> job, Lease(t, request));
                  name = job.has_value() ? job->job.name().substr(8) : "none";
                  return absl::OkStatus();
                }).ok());
    return name;
  }
  StoredJob Stored(const std::string& id) {
    StoredJob job;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(job, GetJob(t, absl::StrCat("tenants/acme/jobs/", id)));
                  return absl::OkStatus();
                }).ok());
    return job;
  }
  v1::Job Get(const std::string& id) { return Stored(id).job; }
  absl::Status PutBack(const std::string& id, bool count_attempt, absl::Time not_before = kNow) {
    return Write([&](Transaction& t) {
      return Requeue(t, absl::StrCat("tenants/acme/jobs/", id), count_attempt, /*opened=*/true, not_before);
    });
  }
  absl::Status Finish(const std::string& id, int64_t lease) {
    return Write([&](Transaction& t) {
      const JobOutput output = {{{"model.npz", {"a", 1}}, {"model.pt", {"b", 2}}}, "{}", std::nullopt, lease};
      return Succeed(t, absl::StrCat("tenants/acme/jobs/", id), output, kNow);
    });
  }
  absl::Status Hold(const std::string& id, int64_t lease) {
    return Write([&](Transaction& t) { return HoldLease(t, absl::StrCat("tenants/acme/jobs/", id), lease).status(); });
  }

  TemporaryStore store_{GetParam()};
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_QUEUE_TESTING_QUEUE_FIXTURE_H_
