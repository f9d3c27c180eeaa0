#include "core/train/train.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/graph/keep_slots.h"
#include "core/graph/split.h"
#include "core/infer/edge_inputs.h"
#include "core/infer/input_rows.h"
#include "core/pace.h"
#include "core/plan/method.h"
#include "core/plan/plan_event.h"
#include "core/plan/structure_work.h"
#include "core/random/subsets.h"
#include "core/status_macros.h"
#include "core/train/aggregation.h"
#include "core/train/class_shares.h"
#include "core/train/descent.h"
#include "core/train/engine.h"
#include "core/train/evaluate.h"
#include "core/train/mean.h"
#include "core/train/rows.h"
#include "core/train/structure.h"

namespace dpar {
namespace {

// Sealing already checked the degree promise; no edge is dropped to keep it.
bool KeepsPromise(const v1::Plan& plan, const EdgesView& edges) {
  return !plan.has_max_degree() || edges.largest_degree() <= plan.max_degree();
}

absl::Status ValidatePlan(const v1::Plan& plan, const GraphView& graph, const std::string& device) {
  if (device != kPrivateDevice && !plan.non_private()) {
    return InvalidField("device", absl::StrCat("a private job runs on the cpu only, not on ", device,
                                               ": there, removing a node may change other nodes' gradients in their "
                                               "low bits, which no price covers"));
  }
  const int64_t held_out = plan.has_evaluation() ? plan.evaluation().held_out_slots() : 0;
  if (!IsOfItsMethod(plan) || plan.training_slots() + held_out != graph.sizes.node_count ||
      static_cast<int64_t>(graph.labels.size()) != graph.sizes.node_count ||
      graph.features.row_count() != graph.sizes.node_count || plan.has_event() == plan.non_private() ||
      !(plan.batch_size() > 0) || !KeepsPromise(plan, graph.edges)) {
    return InvalidField("plan", "the plan does not belong to a graph of these sizes");
  }
  return absl::OkStatus();
}

#ifdef DPAR_TEST_SEAMS
int64_t LiveRows(const RowList& rows) {
  return static_cast<int64_t>(rows.labels.size()) - std::count(rows.labels.begin(), rows.labels.end(), kUnlabelled);
}

v1::Plan WithActualBatchSize(v1::Plan plan, const RowList& rows) {
  plan.set_batch_size(std::max(1.0, static_cast<double>(LiveRows(rows)) * plan.sampling_rate()));
  return plan;
}

// For a fault: the rounded cross-entropy of all rows at weights 0.
int64_t FirstLoss(const GraphView& graph, const RowList& rows) {
  return std::llround(static_cast<double>(LiveRows(rows)) * std::log(static_cast<double>(graph.sizes.class_count)));
}
#endif

GraphView WithInputs(const GraphView& graph, int64_t input_count, const SparseRows& rows) {
  GraphView view = graph;
  view.sizes.feature_count = input_count;
  view.features = rows;
  return view;
}

// One run of a plan on the graph of the training slots.
class Run {
 public:
  Run(const v1::Plan& plan, const TrainOptions& options, RandomSource& random, const TrainingCallbacks& callbacks)
      : plan_(plan), options_(options), random_(random), callbacks_(callbacks) {}

  absl::StatusOr<Model> Train(const GraphView& graph) {
    Model model;
    model.transform = plan_.transform();
    model.feature_count = graph.sizes.feature_count;
    model.class_count = graph.sizes.class_count;
    model.hidden_size = plan_.hidden_size();
    model.logit_noise = plan_.logit_noise();
    DPAR_ASSIGN_OR_RETURN(std::vector<float> weights, TrainMethod(graph, model));
    const auto first_layer = static_cast<std::ptrdiff_t>((model.input_count() + 1) * model.width());
    model.output_weights.assign(weights.begin() + first_layer, weights.end());
    weights.resize(static_cast<size_t>(first_layer));
    model.weights = std::move(weights);
    if (plan_.has_class_shares()) {
      DPAR_ASSIGN_OR_RETURN(const std::vector<double> sums,
                            NoisyClassSums(plan_, model, graph, options_.threads, random_, callbacks_.keep_going));
      model.class_shares = ClassShares(plan_, sums);
      model.share_noise = plan_.class_shares().noise_stddev() /
                          (plan_.node_sampling_rate() * static_cast<double>(plan_.training_slots()));
    }
    std::string plan;
    if (!google::protobuf::util::MessageToJsonString(plan_, &plan).ok()) {
      return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "the plan could not be written as JSON");
    }
    model.plan = std::move(plan);
    return model;
  }

 private:
  // Returns the weights of the network trained last; puts the rest into `model`.
  absl::StatusOr<std::vector<float>> TrainMethod(const GraphView& graph, Model& model) {
    DPAR_ASSIGN_OR_RETURN(const RowList rows, MakeRows(graph));
    callbacks_.on_progress(TrainingStage::kTraining, 0, TotalSteps(plan_));
    if (plan_.has_aggregation()) {
      return TrainGap(graph, rows, model);
    }
    if (plan_.has_neighbours()) {
      return TrainSage(graph, rows, model);
    }
    if (plan_.has_mean()) {
      DPAR_ASSIGN_OR_RETURN(model.center, PrivateMean(plan_, graph, random_, callbacks_.keep_going));
    }
    return TrainWeights(graph, InputTransform(plan_.transform(), model.center), rows, /*steps_before=*/0);
  }

  absl::StatusOr<std::vector<float>> TrainGap(const GraphView& graph, const RowList& rows, Model& model) {
    model.reads = ModelInputs::kHops;
    model.hops = plan_.aggregation().hops();
    model.encoder_size = plan_.hidden_size();
    DPAR_ASSIGN_OR_RETURN(model.encoder_weights,
                          TrainWeights(graph, InputTransform(plan_.transform(), {}), rows, /*steps_before=*/0));
    model.encoder_weights.resize(static_cast<size_t>((model.feature_count + 1) * model.encoder_size));
    DPAR_ASSIGN_OR_RETURN(NodeMatrix encoded,
                          EncodeRows(graph.features, model.feature_count, model.transform, model.encoder_weights,
                                     model.encoder_size, options_.threads, callbacks_.keep_going));
    DPAR_ASSIGN_OR_RETURN(
        const std::vector<NodeMatrix> hops,
        AggregateHops(plan_, graph.edges, std::move(encoded), options_.threads, random_, callbacks_.keep_going));
    const SparseRows inputs = JoinBlocks(hops);
    return TrainWeights(WithInputs(graph, model.input_count(), inputs), InputTransform(v1::RAW, {}), rows,
                        plan_.steps());
  }

  absl::StatusOr<std::vector<float>> TrainSage(const GraphView& graph, const RowList& rows, Model& model) {
    model.reads = ModelInputs::kNeighbourMean;
    const NeighbourLists lists = SampleNeighbours(graph.edges, plan_.neighbours(), random_);
    DPAR_ASSIGN_OR_RETURN(const SparseRows inputs, NeighbourMeanRows(graph.features, model.feature_count, lists,
                                                                     plan_.transform(), callbacks_.keep_going));
    return TrainWeights(WithInputs(graph, model.input_count(), inputs), InputTransform(v1::RAW, {}), rows,
                        /*steps_before=*/0);
  }

  absl::StatusOr<RowList> MakeRows(const GraphView& graph) {
    RowList rows;
    if (plan_.has_structure()) {
      callbacks_.on_progress(TrainingStage::kStructure, 0, 0);
      DPAR_ASSIGN_OR_RETURN(const ApprRows appr,
                            DrawStructure(plan_, graph, options_.threads, random_, callbacks_.keep_going));
      rows = StructureRows(graph, appr, plan_.structure().rows());
    } else {
      rows = IdentityRows(graph);
    }
    ApplyNullRule(graph, rows);
    if (plan_.has_structure() && callbacks_.await_stage_age != nullptr) {
      callbacks_.await_stage_age(WorkOfStructure(plan_, options_.threads).seconds);
    }
    return rows;
  }

  absl::StatusOr<std::vector<float>> TrainWeights(const GraphView& graph, const InputTransform& transform,
                                                  const RowList& rows, int64_t steps_before) {
    const PreparedRows prepared(graph, transform, rows, plan_.hidden_size() > 0, callbacks_.keep_going);
    if (!callbacks_.keep_going()) {
      return absl::CancelledError("training was cancelled");
    }
    const WeightShape shape{graph.sizes.feature_count + 1, plan_.hidden_size(), graph.sizes.class_count};
    const std::unique_ptr<GradientEngine> engine = MakeEngine(prepared, shape, plan_.sampling_rate() == 1,
                                                              options_.device, options_.threads, callbacks_.keep_going);
    return Descend(DPAR_FAULT(kActualBatchSize, WithActualBatchSize(plan_, rows), plan_), shape, rows.count(), *engine,
                   options_.threads, random_, callbacks_.keep_going, [&](int64_t steps_done) {
                     callbacks_.on_progress(
                         TrainingStage::kTraining, steps_before + steps_done,
                         DPAR_FAULT(kProgressLeaksLoss, TotalSteps(plan_) + FirstLoss(graph, rows), TotalSteps(plan_)));
                   });
  }

  const v1::Plan& plan_;
  const TrainOptions& options_;
  RandomSource& random_;
  const TrainingCallbacks& callbacks_;
};

// An un-kept slot is null in the graph that the run sees, so no later stage can tell the two apart.
absl::StatusOr<Model> TrainOnSample(const v1::Plan& plan, const GraphView& graph, RandomSource& random,
                                    const TrainingCallbacks& callbacks, Run& run) {
  if (plan.node_sampling_rate() == 1) {
    return run.Train(graph);
  }
  const double rate = plan.node_sampling_rate();
  const std::vector<int64_t> kept =
      PoissonSubset(random, graph.sizes.node_count, DPAR_FAULT(kOversampledNodes, 1.5 * rate, rate));
  DPAR_ASSIGN_OR_RETURN(const Graph sample, KeepSlots(graph, kept, callbacks.keep_going));
  return run.Train(sample);
}

// The split is drawn over slots alone and public, so renumbering its parts reveals nothing.
absl::StatusOr<TrainedModel> TrainAndEvaluate(const v1::Plan& plan, const GraphView& graph, RandomSource& random,
                                              const TrainingCallbacks& callbacks, Run& run) {
  DPAR_ASSIGN_OR_RETURN(const SlotSplit split,
                        SplitSlots(graph.sizes.node_count, plan.evaluation().held_out_share(), random));
  TrainedModel trained;
  {
    DPAR_ASSIGN_OR_RETURN(const Graph training, InducedSubgraph(graph, split.train, callbacks.keep_going));
    DPAR_ASSIGN_OR_RETURN(trained.model, TrainOnSample(plan, training, random, callbacks, run));
  }
  callbacks.on_progress(TrainingStage::kEvaluating, 0, 0);
  DPAR_ASSIGN_OR_RETURN(const Graph held_out, InducedSubgraph(graph, split.test, callbacks.keep_going));
  DPAR_ASSIGN_OR_RETURN(trained.evaluation, Evaluate(plan, trained.model, held_out, random, callbacks.keep_going));
  return trained;
}

}  // namespace

absl::StatusOr<TrainedModel> Train(const v1::Plan& plan, const GraphView& graph, const TrainOptions& options,
                                   RandomSource& random, const TrainingCallbacks& callbacks) {
  DPAR_RETURN_IF_ERROR(ValidatePlan(plan, graph, options.device));
  KeepGoing keep_going(callbacks.keep_going);
  const TrainingCallbacks final_callbacks = {std::ref(keep_going), callbacks.on_progress, callbacks.await_stage_age};
  try {
    Run run(plan, options, random, final_callbacks);
    if (plan.has_evaluation()) {
      return TrainAndEvaluate(plan, graph, random, final_callbacks, run);
    }
    TrainedModel trained;
    DPAR_ASSIGN_OR_RETURN(trained.model, TrainOnSample(plan, graph, random, final_callbacks, run));
    return trained;
  } catch (const std::exception&) {
    // LibTorch's messages may quote sizes of the data.
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "training failed");
  }
}

}  // namespace dpar
