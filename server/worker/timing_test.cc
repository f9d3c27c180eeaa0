// What a watcher learns from how long stages take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/mutex.h"
#include "core/plan/structure_work.h"
#include "server/worker/testing/worker_fixture.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

// Pairs of nodes, and node 0, which is null or every node's neighbour.
Graph PairsWithHub(bool hub) {
  constexpr int32_t kNodes = 3001;
  Graph graph;
  graph.sizes = {kNodes, 1, 2};
  for (int32_t node = 0; node < kNodes; ++node) {
    if (node == 0 && hub) {
      for (int32_t other = 1; other < kNodes; ++other) {
        graph.neighbours.push_back(other);
      }
    } else if (node > 0) {
      if (hub) {
        graph.neighbours.push_back(0);
      }
      graph.neighbours.push_back(node % 2 == 1 ? node + 1 : node - 1);
    }
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    if (node > 0 || hub) {
      graph.features.columns.push_back(0);
      graph.features.values.push_back(1);
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
    graph.labels.push_back(node > 0 || hub ? node % 2 : kUnlabelled);
  }
  return graph;
}

class TimingTest : public testing::WorkerFixture {
 protected:
  struct Trace {
    std::vector<std::string> stages;
    absl::Duration structure;  // how long it took
    double earliest_end = 0;
  };

  // Runs a job of its own on a graph with or without the hub.
  Trace RunJob(bool hub, const v1::TrainingOptions& options) {
    const std::string id = absl::StrCat("j", ++jobs_);
    const std::string dataset = absl::StrCat("tenants/acme/datasets/", id);
    job_ = absl::StrCat("tenants/acme/jobs/", id);
    AddDataset(dataset, PairsWithHub(hub), /*is_public=*/false);
    v1::TrainingSpec spec = Spec(0.2);
    spec.set_dataset(dataset);
    spec.set_method(v1::DPAR_GM);
    *spec.mutable_options() = options;
    spec.mutable_options()->set_steps(2);
    const absl::StatusOr<v1::Job> submitted = Submit(spec);
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    if (!submitted.ok()) {
      return {};
    }
    Trace trace;
    trace.earliest_end = WorkOfStructure(submitted->plan(), Options().threads).seconds;
    Mutex mutex;
    ProgressBoard board([&](const Progress& left, absl::Duration took) {
      const MutexLock lock(&mutex);
      trace.stages.push_back(left.stage);
      if (left.stage == "structure") {
        trace.structure = took;
      }
    });
    Worker worker(store_.database(), store_.directory(), Key(), board, Options());
    EXPECT_TRUE(worker.Start().ok());
    AwaitState(v1::Job::SUCCEEDED);
    worker.Stop();
    return trace;
  }

  int jobs_ = 0;
};

TEST_F(TimingTest, DpApprTakesAndShowsTheSameWithAHubAndWithout) {
  v1::TrainingOptions thorough;
  thorough.set_rho(1e-6);
  thorough.set_appr_nodes(20);
  for (const v1::TrainingOptions& options : {v1::TrainingOptions(), thorough}) {
    const Trace without = RunJob(/*hub=*/false, options);
    const Trace with = RunJob(/*hub=*/true, options);
    EXPECT_THAT(without.stages, ElementsAre("loading", "structure", "training", "saving"));
    EXPECT_EQ(with.stages, without.stages);
    EXPECT_EQ(with.earliest_end, without.earliest_end);
    // The times themselves are the machine's: only that none is below the public one can be required of any machine.
    EXPECT_GE(absl::ToDoubleSeconds(without.structure), without.earliest_end);
    EXPECT_GE(absl::ToDoubleSeconds(with.structure), with.earliest_end);
    const double ratio = absl::FDivDuration(with.structure, without.structure);
    std::printf("earliest end %.3f s; without a hub %.3f s, with one %.3f s, ratio %.3f\n", with.earliest_end,
                absl::ToDoubleSeconds(without.structure), absl::ToDoubleSeconds(with.structure), ratio);
    if (with.earliest_end > 0.5) {
      EXPECT_LT(std::abs(std::log(ratio)), 0.1);
    }
  }
}

}  // namespace
}  // namespace dpar
