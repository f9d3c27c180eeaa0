#include "tests/lab/cell_runner.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/infer/predict.h"
#include "core/parallel.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/train.h"
#include "tests/lab/graph_split.h"
#include "tests/lab/progress_line.h"

namespace dpar::lab {
namespace {

struct PlannedCell {
  const Cell* cell;
  const StudyGraph* graph;
  const SlotSplit* split;
  const v1::Plan* plan;
  double work;  // roughly proportional to time
};

// The first error of work on several threads, after which the rest is skipped.
class FirstError {
 public:
  void Note(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) {
      status_ = status;
    }
  }
  [[nodiscard]] absl::Status status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  absl::Status status_;
};

// Multiplications of training, without what a row of DP-APPR adds.
double WorkOf(const v1::Plan& plan, const StudyGraph& graph) {
  const GraphView& view = graph.view;
  const double entries = static_cast<double>(view.features.values.size()) / static_cast<double>(view.sizes.node_count);
  const int64_t width = plan.hidden_size() > 0 ? plan.hidden_size() : view.sizes.class_count;
  const double rows = 1 + static_cast<double>(plan.neighbours());
  return static_cast<double>(TotalSteps(plan)) *
         (static_cast<double>(ParameterCount(plan, view.sizes) + EncoderParameterCount(plan, view.sizes)) +
          plan.batch_size() * rows * entries * static_cast<double>(width));
}

absl::StatusOr<double> Score(const Model& model, const Graph& query, Propagation propagation) {
  PredictOptions options;
  options.propagation = propagation;
  DPAR_ASSIGN_OR_RETURN(const std::vector<Prediction> predictions, Predict(model, query, options));
  return Accuracy(predictions, query.labels);
}

absl::StatusOr<CellResult> Measure(const PlannedCell& planned) {
  const absl::Time start = absl::Now();
  const Graph training = InducedSubgraph(planned.graph->view, planned.split->train);
  const Graph query = InducedSubgraph(planned.graph->view, planned.split->test);
  SecureRandom random;
  DPAR_ASSIGN_OR_RETURN(const TrainedModel trained,
                        Train(*planned.plan, training, {"cpu", /*threads=*/1}, random,
                              {[] { return true; }, [](TrainingStage, int64_t, int64_t) {}}));
  CellResult result;
  DPAR_ASSIGN_OR_RETURN(result.none, Score(trained.model, query, Propagation::kNone));
  DPAR_ASSIGN_OR_RETURN(result.power, Score(trained.model, query, Propagation::kPower));
  DPAR_ASSIGN_OR_RETURN(result.mean_field, Score(trained.model, query, Propagation::kMeanField));
  if (!planned.plan->non_private()) {
    result.sound_epsilon = planned.plan->epsilon();
  }
  if (planned.plan->has_published_epsilon()) {
    result.published_epsilon = planned.plan->published_epsilon();
  }
  result.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

class Runner {
 public:
  Runner(const std::vector<StudyGraph>& graphs, int threads, ResultsFile& file)
      : graphs_(graphs), threads_(threads), file_(file) {}

  absl::Status Run(const std::vector<Cell>& cells) {
    std::set<std::string> seen;
    for (const Cell& cell : cells) {
      if (file_.Find(cell) == nullptr && seen.insert(CellKey(cell).dump()).second) {
        missing_.push_back({.cell = &cell, .graph = &GraphOf(cell), .split = nullptr, .plan = nullptr, .work = 0});
      }
    }
    DPAR_RETURN_IF_ERROR(Split());
    DPAR_RETURN_IF_ERROR(Plan());
    return Measure();
  }

 private:
  [[nodiscard]] const StudyGraph& GraphOf(const Cell& cell) const {
    return *std::find_if(graphs_.begin(), graphs_.end(),
                         [&cell](const StudyGraph& graph) { return cell.graph == graph.traits.name; });
  }

  absl::Status Split() {
    for (PlannedCell& planned : missing_) {
      const auto key = std::make_tuple(planned.cell->graph, planned.cell->split, planned.cell->seed);
      auto found = splits_.find(key);
      if (found == splits_.end()) {
        DPAR_ASSIGN_OR_RETURN(SlotSplit split,
                              SplitGraph(planned.graph->view.edges, planned.cell->split, planned.cell->seed));
        found = splits_.emplace(key, std::move(split)).first;
      }
      planned.split = &found->second;
    }
    return absl::OkStatus();
  }

  // Splits of one size share their plans.
  absl::Status Plan() {
    std::map<std::string, std::vector<PlannedCell*>> users;
    for (PlannedCell& planned : missing_) {
      users[absl::StrCat(planned.cell->graph, " ", planned.split->train.size(), " ", planned.cell->promise, " ",
                         planned.cell->spec.SerializeAsString())]
          .push_back(&planned);
    }
    std::vector<std::pair<v1::Plan*, std::vector<PlannedCell*>>> work;
    for (auto& [key, cells] : users) {
      work.emplace_back(&plans_[key], std::move(cells));
    }
    FirstError error;
    std::mutex mutex;
    int64_t done = 0;
    ParallelFor(static_cast<int64_t>(work.size()), threads_, [&](int /*worker*/, int64_t index) {
      if (!error.status().ok()) {
        return;
      }
      auto& [plan, cells] = work[static_cast<size_t>(index)];
      const PlannedCell& first = *cells.front();
      PublicSizes sizes = first.graph->view.sizes;
      sizes.node_count = static_cast<int64_t>(first.split->train.size());
      const int64_t promise = first.cell->promise > 0 ? first.cell->promise : first.graph->max_degree;
      absl::StatusOr<v1::Plan> made = MakePlan(first.cell->spec, sizes, promise);
      if (!made.ok()) {
        error.Note(made.status());
        return;
      }
      *plan = *std::move(made);
      for (PlannedCell* planned : cells) {
        planned->plan = plan;
        planned->work = WorkOf(*plan, *planned->graph);
      }
      const std::lock_guard<std::mutex> lock(mutex);
      line_.Show(absl::StrCat("plan ", ++done, " of ", work.size()));
    });
    return error.status();
  }

  absl::Status Measure() {
    std::stable_sort(missing_.begin(), missing_.end(),
                     [](const PlannedCell& a, const PlannedCell& b) { return a.work > b.work; });
    for (const PlannedCell& planned : missing_) {
      work_ += planned.work;
    }
    start_ = absl::Now();
    FirstError error;
    ParallelFor(static_cast<int64_t>(missing_.size()), threads_, [&](int /*worker*/, int64_t index) {
      if (!error.status().ok()) {
        return;
      }
      const PlannedCell& planned = missing_[static_cast<size_t>(index)];
      const absl::StatusOr<CellResult> result = lab::Measure(planned);
      error.Note(result.ok() ? Store(planned, *result) : result.status());
    });
    return error.status();
  }

  absl::Status Store(const PlannedCell& planned, const CellResult& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_done_ += planned.work;
    const absl::Duration left = (absl::Now() - start_) * ((work_ - work_done_) / work_done_);
    line_.Show(absl::StrCat("cell ", ++cells_done_, " of ", missing_.size(), ", about ",
                            absl::FormatDuration(absl::Trunc(left, absl::Seconds(1))), " left"));
    return file_.Append(*planned.cell, result);
  }

  const std::vector<StudyGraph>& graphs_;
  const int threads_;
  ResultsFile& file_;
  ProgressLine line_;
  std::vector<PlannedCell> missing_;
  std::map<std::tuple<std::string, SplitKind, int64_t>, SlotSplit> splits_;
  std::map<std::string, v1::Plan> plans_;
  absl::Time start_;
  double work_ = 0;

  std::mutex mutex_;  // guards the file, the line and what is below
  double work_done_ = 0;
  size_t cells_done_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<CellResult>> RunCells(const std::vector<Cell>& cells, const std::vector<StudyGraph>& graphs,
                                                 int threads, ResultsFile& file) {
  DPAR_RETURN_IF_ERROR(Runner(graphs, threads, file).Run(cells));
  std::vector<CellResult> results;
  results.reserve(cells.size());
  for (const Cell& cell : cells) {
    results.push_back(*file.Find(cell));
  }
  return results;
}

}  // namespace dpar::lab
