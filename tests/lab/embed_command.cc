// dpar-lab embed: where models put the nodes that they were trained on, for a picture like the paper's Figure 9.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/infer/logits.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/privacy/gaussian.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/train.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/graph_split.h"
#include "tests/lab/progress_line.h"
#include "tests/lab/solver_flags.h"
#include "tests/lab/study.h"
#include "tests/lab/study_graph.h"

namespace dpar::lab {
namespace {

struct EmbedFlags {
  std::string data = "../shared/data";
  std::string dataset = "cora_ml";
  std::vector<double> epsilons = {1, 4, 16};
  int64_t nodes = 600;
  int threads = HardwareThreads();
};

// The paper's two under its own accounting, and what `auto` plans under ours.
struct Embedded {
  bool published;
  v1::Method method;
};
constexpr Embedded kEmbedded[] = {{true, v1::DPAR_GM}, {true, v1::DPAR_EM1}, {false, v1::FEATURES}};

absl::StatusOr<NodeMatrix> TrainAndEmbed(const v1::TrainingSpec& spec, const Graph& training, int threads) {
  DPAR_ASSIGN_OR_RETURN(const v1::Plan plan, MakePlan(spec, training.sizes));
  SecureRandom random;
  DPAR_ASSIGN_OR_RETURN(
      const TrainedModel trained,
      Train(plan, training, {"cpu", threads}, random, {[] { return true; }, [](TrainingStage, int64_t, int64_t) {}}));
  return Logits(trained.model, training.features, threads, [] { return true; });
}

// A line for each of `count` nodes, spread over the slots, which may be in some order.
void AppendNodes(const std::string& model, const Graph& training, const NodeMatrix& logits, int64_t count,
                 std::string& text) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t node = i * training.sizes.node_count / count;
    absl::StrAppend(&text, model, ",", node, ",", training.labels[static_cast<size_t>(node)]);
    for (const float logit : logits.row(node)) {
      absl::StrAppendFormat(&text, ",%.3g", logit);
    }
    text += "\n";
  }
}

absl::StatusOr<std::string> Embed(const EmbedFlags& flags, const StudyGraph& graph, const Graph& training) {
  const int64_t count = std::min(flags.nodes, training.sizes.node_count);
  std::string text = "graph,accountant,method,epsilon,node,label";
  for (int64_t i = 0; i < training.sizes.class_count; ++i) {
    absl::StrAppend(&text, ",e", i);
  }
  text += "\n";
  ProgressLine line;
  for (const Embedded& embedded : kEmbedded) {
    for (const double epsilon : flags.epsilons) {
      const std::string model = absl::StrCat(flags.dataset, ",", embedded.published ? "as-published" : "sound", ",",
                                             FindMethod(embedded.method)->name, ",", epsilon);
      line.Show(model);
      const v1::TrainingSpec spec = embedded.published ? PublishedSpec(embedded.method, epsilon, graph.traits.delta)
                                                       : SoundSpec(embedded.method, epsilon, graph.traits.delta);
      DPAR_ASSIGN_OR_RETURN(const NodeMatrix logits, TrainAndEmbed(spec, training, flags.threads));
      AppendNodes(model, training, logits, count, text);
    }
  }
  return text;
}

absl::StatusOr<CommandOutput> RunEmbed(const EmbedFlags& flags) {
  DPAR_RETURN_IF_ERROR(ValidateRange("nodes", flags.nodes, int64_t{1}, int64_t{2000}));
  DPAR_RETURN_IF_ERROR(ValidateRange("threads", int64_t{flags.threads}, int64_t{1}, kMaxThreads));
  for (const double epsilon : flags.epsilons) {
    DPAR_RETURN_IF_ERROR(ValidateRange("epsilons", epsilon, kMinEpsilon, kMaxEpsilon));
  }
  DPAR_ASSIGN_OR_RETURN(const StudyGraph graph, OpenStudyGraph(flags.data, flags.dataset));
  DPAR_ASSIGN_OR_RETURN(const SlotSplit split, SplitGraph(graph.view.edges, SplitKind::kRandom, /*seed=*/1));
  DPAR_ASSIGN_OR_RETURN(std::string text, Embed(flags, graph, InducedSubgraph(graph.view, split.train)));
  return CommandOutput{
      "these are logits of training nodes of a public graph: NOT private. Nothing was charged to any ledger",
      std::move(text)};
}

}  // namespace

void AddEmbedCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<EmbedFlags>();
  CLI::App* command = app.add_subcommand("embed", "Logits of training nodes at several epsilons. Not private");
  command->add_option("--data", flags->data, "Directory with the graphs as NAME.npz")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command->add_option("--dataset", flags->dataset, absl::StrCat("One of ", StudyGraphNames()))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--epsilons", flags->epsilons, "Separated by commas")
      ->type_name("NUMBER,...")
      ->delimiter(',')
      ->default_str("1,4,16");
  command->add_option("--nodes", flags->nodes, "Training nodes that are shown, up to 2000")->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads, 1 to 1024")->default_str("all cores");
  command->footer(
      "Example:\n"
      "  dpar-lab embed --data ../shared/data > embeddings.csv\n"
      "CSV on stdout, for dpar-lab plot: DPAR-GM and DPAR-EM1 as published, and auto under SOUND accounting.");
  command->callback([flags, &chosen] { chosen = [flags] { return RunEmbed(*flags); }; });
}

}  // namespace dpar::lab
