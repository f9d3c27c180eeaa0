#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/named_graph.h"
#include "client/cli/prediction_file.h"
#include "core/error.h"
#include "core/infer/model.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

struct EvaluateArguments {
  std::string predictions;
  std::string graph;  // with the labels; or
  std::string nodes;  // a table with the labels
  std::string model;  // has the schema of the table, and the names of classes
};

// Of one class.
struct Score {
  int64_t nodes = 0;      // that have it
  int64_t predicted = 0;  // that are said to have it
  int64_t right = 0;      // both

  // A share of nothing is 0, because tables and JSON have no NaN.
  static double Share(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
  [[nodiscard]] double precision() const { return Share(right, predicted); }
  [[nodiscard]] double recall() const { return Share(right, nodes); }
  [[nodiscard]] double f1() const { return Share(2 * right, nodes + predicted); }
};

struct Evaluation {
  int64_t labelled = 0;
  int64_t right = 0;
  std::vector<Score> classes;

  [[nodiscard]] double accuracy() const { return Score::Share(right, labelled); }
  // The mean of the F1 of the classes that occur.
  [[nodiscard]] double macro_f1() const {
    double sum = 0;
    int64_t count = 0;
    for (const Score& score : classes) {
      if (score.nodes > 0) {
        sum += score.f1();
        ++count;
      }
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }
};

absl::StatusOr<Evaluation> Evaluate(const std::vector<Prediction>& predictions, const GraphView& graph) {
  Evaluation evaluation;
  evaluation.classes.resize(static_cast<size_t>(graph.sizes.class_count));
  for (size_t node = 0; node < predictions.size(); ++node) {
    const int32_t label = graph.labels[node];
    const int32_t predicted = predictions[node].label;
    if (predicted >= graph.sizes.class_count) {
      return absl::InvalidArgumentError(absl::StrCat("class ", predicted, " is predicted for node ", node,
                                                     ", and the graph has ", graph.sizes.class_count, " classes"));
    }
    if (label == kUnlabelled) {
      continue;
    }
    ++evaluation.labelled;
    ++evaluation.classes[static_cast<size_t>(label)].nodes;
    ++evaluation.classes[static_cast<size_t>(predicted)].predicted;
    if (label == predicted) {
      ++evaluation.right;
      ++evaluation.classes[static_cast<size_t>(label)].right;
    }
  }
  if (evaluation.labelled == 0) {
    return absl::InvalidArgumentError("no node of the graph has a label, so there is nothing to compare with");
  }
  return evaluation;
}

// By name, or else by number.
Json ClassOf(const std::vector<std::string>& names, size_t label) {
  return label < names.size() ? Json(names[label]) : Json(label);
}

void PrintEvaluation(Session& session, const Evaluation& evaluation, const std::vector<std::string>& names) {
  session.out() << absl::StrFormat("accuracy  %.4f on %s labelled nodes\n", evaluation.accuracy(),
                                   FormatCount(evaluation.labelled))
                << absl::StrFormat("macro F1  %.4f\n", evaluation.macro_f1());
  Table table({"CLASS", "NODES", "PREDICTED", "PRECISION", "RECALL", "F1"}, {});
  for (size_t label = 0; label < evaluation.classes.size(); ++label) {
    const Score& score = evaluation.classes[label];
    table.Add({label < names.size() ? names[label] : absl::StrCat(label), FormatCount(score.nodes),
               FormatCount(score.predicted), absl::StrFormat("%.4f", score.precision()),
               absl::StrFormat("%.4f", score.recall()), absl::StrFormat("%.4f", score.f1())});
  }
  session.out() << table.Render(session.TableWidth());
}

Json EvaluationJson(const Evaluation& evaluation, const std::vector<std::string>& names) {
  Json json = {{"labelled", evaluation.labelled},
               {"accuracy", evaluation.accuracy()},
               {"macro_f1", evaluation.macro_f1()},
               {"classes", Json::array()}};
  for (size_t label = 0; label < evaluation.classes.size(); ++label) {
    const Score& score = evaluation.classes[label];
    json["classes"].push_back({{"class", ClassOf(names, label)},
                               {"nodes", score.nodes},
                               {"predicted", score.predicted},
                               {"precision", score.precision()},
                               {"recall", score.recall()},
                               {"f1", score.f1()}});
  }
  return json;
}

absl::StatusOr<NamedGraph> OpenLabels(Session& session, const EvaluateArguments& arguments) {
  if (arguments.nodes.empty()) {
    if (arguments.graph.empty()) {
      return InvalidField("graph", "give --graph, or --nodes with --model");
    }
    DPAR_RETURN_IF_ERROR(CheckGraphInput("graph", arguments.graph));
    if (arguments.model.empty()) {
      return NamedGraph::OfFile(arguments.graph);
    }
  } else if (!arguments.graph.empty() || arguments.model.empty()) {
    return InvalidField("nodes", "--nodes needs --model, whose schema names the label, and no --graph");
  } else {
    DPAR_RETURN_IF_ERROR(CheckInputFile("nodes", arguments.nodes));
  }
  DPAR_RETURN_IF_ERROR(CheckInputFile("model", arguments.model));
  const auto model = ReadModelFile(arguments.model);
  DPAR_RETURN_IF_ERROR(AsLocal(model.status()));
  return arguments.nodes.empty() ? NamedGraph::OfFile(arguments.graph, *model)
                                 : NamedGraph::OfTables(session, *model, {arguments.nodes, ""});
}

absl::StatusOr<int> RunEvaluate(Session& session, const EvaluateArguments& arguments) {
  DPAR_RETURN_IF_ERROR(CheckInputFile("predictions", arguments.predictions));
  DPAR_ASSIGN_OR_RETURN(const NamedGraph named, OpenLabels(session, arguments));
  DPAR_ASSIGN_OR_RETURN(const GraphView graph, named.View());
  const auto predictions = ReadPredictions(arguments.predictions, graph.sizes.node_count, named.names());
  DPAR_RETURN_IF_ERROR(predictions.status());
  DPAR_ASSIGN_OR_RETURN(const Evaluation evaluation, Evaluate(*predictions, graph));
  session.err() << "note: figures about private labels are not covered by any guarantee; dpar train\n"
                   "--evaluate releases an accuracy that is.\n";
  if (session.json()) {
    session.PrintJson(EvaluationJson(evaluation, named.names().classes));
  } else {
    PrintEvaluation(session, evaluation, named.names().classes);
  }
  return kDone;
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* command = app.add_subcommand("evaluate", "Compare predictions with the labels of a graph: accuracy, F1");
  command->group(kLocalGroup);
  command->add_option("--predictions", arguments->predictions, "What dpar predict wrote (csv, npz or jsonl)")
      ->required();
  command->add_option("--graph", arguments->graph, "The graph that was predicted on, with labels; or");
  command->add_option("--nodes", arguments->nodes, "the table of nodes that was predicted on, with labels");
  command->add_option("--model", arguments->model,
                      "The model, whose schema names the columns and classes;\n--nodes needs it");
  command->footer(
      Examples("  dpar evaluate --predictions labels.csv --graph other.npz\n"
               "  dpar evaluate --predictions labels.csv --nodes new.csv --model out/model.npz"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunEvaluate(s, *arguments); }; });
}

}  // namespace dpar
