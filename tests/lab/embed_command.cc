// dpar-lab embed: where models put the nodes that they were trained on, for a picture like the paper's Figure 9.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/error.h"
#include "core/infer/logits.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/train.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/graph_split.h"
#include "tests/lab/progress_line.h"
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
  const char* accountant;
  v1::Method method;
};
constexpr Embedded kEmbedded[] = {
    {"as-published", v1::DPAR_GM}, {"as-published", v1::DPAR_EM1}, {"sound", v1::FEATURES}};

absl::StatusOr<NodeMatrix> TrainAndEmbed(const v1::TrainingSpec& spec, const Graph& training, int threads) {
  DPAR_ASSIGN_OR_RETURN(const v1::Plan plan, MakePlan(spec, training.sizes));
  SecureRandom random;
  DPAR_ASSIGN_OR_RETURN(
      const TrainedModel trained,
      Train(plan, training, {"cpu", threads}, random, {[] { return true; }, [](TrainingStage, int64_t, int64_t) {}}));
  return Logits(trained.model, training.features, threads, [] { return true; });
}

absl::StatusOr<CommandOutput> RunEmbed(const EmbedFlags& flags) {
  DPAR_RETURN_IF_ERROR(ValidateRange("nodes", flags.nodes, int64_t{1}, int64_t{2000}));
  DPAR_RETURN_IF_ERROR(ValidateRange("threads", int64_t{flags.threads}, int64_t{1}, int64_t{1024}));
  DPAR_ASSIGN_OR_RETURN(const StudyGraph graph, OpenStudyGraph(flags.data, flags.dataset));
  DPAR_ASSIGN_OR_RETURN(const SlotSplit split, SplitGraph(graph.view.edges, SplitKind::kRandom, /*seed=*/1));
  const Graph training = InducedSubgraph(graph.view, split.train);
  const int64_t count = std::min(flags.nodes, training.sizes.node_count);
  std::string text = "graph,accountant,method,epsilon,node,label";
  for (int64_t i = 0; i < training.sizes.class_count; ++i) {
    absl::StrAppend(&text, ",e", i);
  }
  text += "\n";
  ProgressLine line;
  for (const Embedded& embedded : kEmbedded) {
    const char* method = FindMethod(embedded.method)->name;
    for (const double epsilon : flags.epsilons) {
      line.Show(absl::StrCat(method, " at epsilon ", epsilon));
      const bool sound = std::string(embedded.accountant) == "sound";
      const v1::TrainingSpec spec = sound ? SoundSpec(embedded.method, epsilon, graph.traits.delta)
                                          : PublishedSpec(embedded.method, epsilon, graph.traits.delta);
      DPAR_ASSIGN_OR_RETURN(const NodeMatrix logits, TrainAndEmbed(spec, training, flags.threads));
      for (int64_t i = 0; i < count; ++i) {
        // Spread over the slots, which may be in some order.
        const int64_t node = i * training.sizes.node_count / count;
        absl::StrAppend(&text, flags.dataset, ",", embedded.accountant, ",", method, ",", epsilon, ",", node, ",",
                        training.labels[static_cast<size_t>(node)]);
        for (const float logit : logits.row(node)) {
          absl::StrAppendFormat(&text, ",%.3g", logit);
        }
        text += "\n";
      }
    }
  }
  return CommandOutput{
      "these are logits of training nodes of a public graph: NOT private. Nothing was charged to any ledger", text};
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
