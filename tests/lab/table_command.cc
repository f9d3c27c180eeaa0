// dpar-lab table: the paper's Table 1 beside what we measure: its own method under its own accounting, what that noise
// really costs, and our plans under sound accounting.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/paper_table.h"
#include "tests/lab/rows_output.h"
#include "tests/lab/study.h"

namespace dpar::lab {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct TableFlags {
  StudyFlags study;
  std::vector<std::string> datasets;
  std::vector<std::string> methods;
  std::vector<double> epsilons = {1, 8};
  bool quick = false;
};

// A line of the table. Numbers are those of measurements.
struct Line {
  const StudyGraph* graph;
  double epsilon;  // 0: without privacy
  std::string method;
  std::optional<double> paper;
  std::optional<size_t> published;
  std::optional<size_t> sound;
  size_t automatic;
  bool own_edges;  // models of the method read edges themselves: nothing goes on top of their logits
};

std::vector<std::string> AllDatasets() {
  std::vector<std::string> names;
  for (const StudyGraphTraits& traits : KnownStudyGraphs()) {
    names.emplace_back(traits.name);
  }
  return names;
}

// The methods that the paper and we have both, or only those that are measured unless somebody asks for others: not its
// rivals, which take hours.
std::vector<std::string> AllMethods(bool with_rivals) {
  std::vector<std::string> names;
  for (const PaperMethod& column : PaperMethods()) {
    const MethodTraits& method = *FindMethod(column.method);
    if (with_rivals || !method.reads_edges) {
      names.emplace_back(method.name);
    }
  }
  return names;
}

// --quick is what the tests run.
void Shorten(TableFlags& flags) {
  flags.study.seeds = 2;
  flags.datasets = {"cora_ml"};
  flags.methods = {"features", "dpar-em0"};
}

absl::Status CheckFlags(const TableFlags& flags) {
  const std::vector<std::string> known = AllMethods(/*with_rivals=*/true);
  for (const std::string& method : flags.methods) {
    if (std::find(known.begin(), known.end(), method) == known.end()) {
      return InvalidField("methods",
                          absl::StrCat("methods are among ", absl::StrJoin(known, ", "), "; not '", method, "'"));
    }
  }
  for (const double epsilon : flags.epsilons) {
    DPAR_RETURN_IF_ERROR(ValidateRange("epsilons", epsilon, kMinEpsilon, kMaxEpsilon));
  }
  return absl::OkStatus();
}

class Table {
 public:
  Table(const TableFlags& flags, Study& study) : flags_(flags), study_(study) {}

  absl::Status Run() {
    for (const StudyGraph& graph : study_.graphs()) {
      for (const double epsilon : flags_.epsilons) {
        AddLines(graph, epsilon, PaperMethods());
      }
      AddLines(graph, /*epsilon=*/0, PaperMethodsNoNoise());
    }
    DPAR_ASSIGN_OR_RETURN(measured_, study_.Run());
    return absl::OkStatus();
  }

  [[nodiscard]] std::string Markdown() const {
    std::string text =
        "| dataset, delta | epsilon | method | paper | as published | its sound epsilon | SOUND, same method "
        "| SOUND, `auto` | `auto` - paper |\n"
        "|---|---|---|---|---|---|---|---|---|\n";
    for (const Line& line : lines_) {
      const auto accuracy = [&](const std::optional<size_t>& number, bool mean_field) {
        if (!number.has_value()) {
          return std::string();
        }
        const Measurement& one = measured_[*number];
        return Cell(number != line.automatic && line.own_edges ? one.none : (mean_field ? one.mean_field : one.power));
      };
      std::string sound_epsilon;
      if (line.published.has_value() && line.epsilon != 0) {
        sound_epsilon = absl::StrFormat("%.1f", measured_[*line.published].sound_epsilon.value());
      }
      const double automatic = measured_[line.automatic].mean_field.Mean();
      absl::StrAppend(&text, "| ", line.graph->traits.title, ", ", line.graph->traits.delta, " | ",
                      line.epsilon == 0 ? "none" : absl::StrCat(line.epsilon), " | ", line.method, " | ",
                      line.paper.has_value() ? absl::StrFormat("%.4f", *line.paper) : "", " | ",
                      accuracy(line.published, false), " | ", sound_epsilon, " | ", accuracy(line.sound, true), " | ",
                      accuracy(line.automatic, true), " | ",
                      line.paper.has_value() ? absl::StrFormat("%+.4f", automatic - *line.paper) : "", " |\n");
    }
    return absl::StrCat(text, "\n", Best());
  }

  [[nodiscard]] OrderedJson Json() const {
    OrderedJson json;
    json["split"] = flags_.study.split;
    json["seeds"] = flags_.study.seeds;
    json["lines"] = OrderedJson::array();
    for (const Line& line : lines_) {
      OrderedJson& out = json["lines"].emplace_back();
      out["graph"] = line.graph->traits.name;
      out["delta"] = line.graph->traits.delta;
      out["epsilon"] = line.epsilon == 0 ? OrderedJson(nullptr) : OrderedJson(line.epsilon);
      out["method"] = line.method;
      out["paper"] = line.paper.has_value() ? OrderedJson(*line.paper) : OrderedJson(nullptr);
      out["published"] = MeasurementJson(line.published);
      out["sound"] = MeasurementJson(line.sound);
      out["auto"] = MeasurementJson(line.automatic);
    }
    return json;
  }

 private:
  void AddLines(const StudyGraph& graph, double epsilon, std::span<const PaperMethod> columns) {
    const double delta = graph.traits.delta;
    const size_t automatic = study_.Add(graph, SoundSpec(v1::AUTO, epsilon, delta));
    for (const PaperMethod& column : columns) {
      Line line = {.graph = &graph,
                   .epsilon = epsilon,
                   .method = column.name,
                   .paper = PaperAccuracy(graph.traits.name, epsilon, column.name),
                   .published = std::nullopt,
                   .sound = std::nullopt,
                   .automatic = automatic,
                   .own_edges = FindMethod(column.method)->reads_edges};
      const std::string name = FindMethod(column.method)->name;
      const bool asked = std::find(flags_.methods.begin(), flags_.methods.end(), name) != flags_.methods.end();
      // Without noise all of DPAR's methods are one, and every table has it.
      if (epsilon != 0 && !asked && !line.own_edges) {
        continue;
      }
      if (asked || !line.own_edges) {
        line.published = study_.Add(graph, PublishedSpec(column.method, epsilon, delta));
        line.sound =
            column.method == v1::FEATURES ? automatic : study_.Add(graph, SoundSpec(column.method, epsilon, delta));
      }
      lines_.push_back(std::move(line));
    }
  }

  [[nodiscard]] double Automatic(const Line& line) const { return measured_[line.automatic].mean_field.Mean(); }

  static std::string Cell(const Spread& accuracy) {
    return absl::StrFormat("%.4f ± %.4f", accuracy.Mean(), accuracy.Deviation());
  }

  // What `auto` is worth against the best that the paper has.
  [[nodiscard]] std::string Best() const {
    std::string text;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      const bool first_of_its_kind =
          i == 0 || lines_[i - 1].graph != line.graph || lines_[i - 1].epsilon != line.epsilon;
      const std::optional<double> best = BestPaperAccuracy(line.graph->traits.name, line.epsilon);
      if (first_of_its_kind && best.has_value()) {
        absl::StrAppendFormat(&text, "- %s at epsilon %g: `auto` %.4f, the paper's best %.4f: %+.1f points\n",
                              line.graph->traits.title, line.epsilon, Automatic(line), *best,
                              100 * (Automatic(line) - *best));
      }
    }
    return text;
  }

  [[nodiscard]] OrderedJson MeasurementJson(const std::optional<size_t>& number) const {
    if (!number.has_value()) {
      return nullptr;
    }
    const Measurement& measurement = measured_[*number];
    OrderedJson json;
    for (const auto& [name, spread] : {std::pair("none", &measurement.none), std::pair("power", &measurement.power),
                                       std::pair("mean_field", &measurement.mean_field)}) {
      json[name] = {{"mean", spread->Mean()}, {"std", spread->Deviation()}};
    }
    const auto epsilon = [](const std::optional<double>& value) {
      return value.has_value() ? OrderedJson(*value) : OrderedJson(nullptr);
    };
    json["sound_epsilon"] = epsilon(measurement.sound_epsilon);
    json["published_epsilon"] = epsilon(measurement.published_epsilon);
    return json;
  }

  const TableFlags& flags_;
  Study& study_;
  std::vector<Line> lines_;
  std::vector<Measurement> measured_;
};

absl::StatusOr<CommandOutput> RunTable(TableFlags flags) {
  if (flags.quick) {
    Shorten(flags);
  }
  DPAR_RETURN_IF_ERROR(CheckFlags(flags));
  DPAR_ASSIGN_OR_RETURN(Study study, Study::Open(flags.study, flags.datasets));
  Table table(flags, study);
  DPAR_RETURN_IF_ERROR(table.Run());
  return CommandOutput{
      "accuracies are NOT private: they are counted on the labels of held-out nodes of public graphs. `as published` "
      "is "
      "the paper's claim with its inference (power iteration), SOUND is with mean-field; plus-minus is the standard "
      "deviation over the seeds. GAP and SAGE predict by themselves. Nothing was charged to any ledger",
      flags.study.json ? JsonText(table.Json()) : table.Markdown()};
}

}  // namespace

void AddTableCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<TableFlags>();
  flags->datasets = AllDatasets();
  flags->methods = AllMethods(/*with_rivals=*/false);
  CLI::App* command = app.add_subcommand("table", "Measure the paper's Table 1, and our plans beside it. Not private");
  AddStudyFlags(*command, flags->study);
  command->add_option("--datasets", flags->datasets, "Graphs, separated by commas")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->default_str(absl::StrJoin(flags->datasets, ","));
  command->add_option("--methods", flags->methods, "Methods, separated by commas")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->default_str(absl::StrJoin(flags->methods, ","));
  command->add_option("--epsilons", flags->epsilons, "Separated by commas")
      ->type_name("NUMBER,...")
      ->delimiter(',')
      ->default_str("1,8");
  command->add_flag("--quick", flags->quick, "Cora-ML with 2 seeds, features and dpar-em0 only: seconds");
  command->footer(
      "Example:\n"
      "  dpar-lab table --data ../shared/data --results lab-results.jsonl > table.md\n"
      "Killed or run again, it goes on where it was. With --json: {\"split\", \"seeds\", \"lines\": [...]}, where a "
      "line "
      "has\n"
      "graph, delta, epsilon, method, paper, and the measurements published, sound and auto (null where there is "
      "none).");
  command->callback([flags, &chosen] { chosen = [flags] { return RunTable(*flags); }; });
}

}  // namespace dpar::lab
