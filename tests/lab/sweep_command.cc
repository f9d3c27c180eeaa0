// dpar-lab sweep: accuracy along one parameter, under either accounting.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/graph_split.h"
#include "tests/lab/paper_table.h"
#include "tests/lab/rows_output.h"
#include "tests/lab/study.h"
#include "tests/lab/sweep_kind.h"

namespace dpar::lab {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct SweepFlags {
  StudyFlags study;
  std::string sweep;
  std::string dataset = "cora_ml";
  std::string accountant = "sound";
  std::vector<double> values;        // empty: the sweep's own
  std::vector<std::string> methods;  // empty: the sweep's own
};

struct Point {
  v1::Method method;
  double epsilon;  // that was asked for
  double value;
  v1::TrainingSpec spec;
  int64_t promise;  // of Study::Add
  std::optional<double> paper;
};

absl::StatusOr<Accounting> ParseAccounting(const std::string& typed) {
  if (typed == "sound") {
    return Accounting::kSound;
  }
  if (typed == "as-published") {
    return Accounting::kPublished;
  }
  return InvalidField("accountant", absl::StrCat("accountant is sound or as-published; not '", typed, "'"));
}

class Sweep {
 public:
  Sweep(const SweepFlags& flags, SweepKind kind, Accounting accounting, Study& study)
      : flags_(flags), kind_(std::move(kind)), accounting_(accounting), study_(study) {}

  absl::Status Run() {
    const StudyGraph& graph = study_.graphs().front();
    const std::vector<double> none = {0};
    for (const double epsilon : kind_.sweeps_epsilon() ? none : kind_.epsilons) {
      for (const v1::Method method : kind_.methods) {
        for (const double value : flags_.values.empty() ? kind_.values(accounting_) : flags_.values) {
          DPAR_RETURN_IF_ERROR(AddPoint(graph, method, epsilon, value));
        }
      }
    }
    if (!kind_.trains) {
      return PriceAll(graph);
    }
    for (const Point& point : points_) {
      study_.Add(graph, point.spec, point.promise);
    }
    DPAR_ASSIGN_OR_RETURN(measured_, study_.Run());
    return absl::OkStatus();
  }

  [[nodiscard]] OrderedJson Json() const {
    OrderedJson json;
    json["sweep"] = kind_.name;
    json["axis"] = kind_.title;
    json["graph"] = flags_.dataset;
    json["delta"] = study_.graphs().front().traits.delta;
    json["accountant"] = flags_.accountant;
    json["inference"] = InferenceOf(kind_.methods.front(), accounting_);
    json["split"] = flags_.study.split;
    json["points"] = OrderedJson::array();
    for (size_t i = 0; i < points_.size(); ++i) {
      json["points"].push_back(PointJson(points_[i], measured_[i]));
    }
    return json;
  }

  // The JSON's points, each with what all have in common.
  [[nodiscard]] std::string Csv() const {
    const OrderedJson json = Json();
    std::string text = "sweep,graph,delta,accountant,inference,split";
    for (const auto& [name, value] : json["points"].front().items()) {
      absl::StrAppend(&text, ",", name);
    }
    text += "\n";
    for (const OrderedJson& point : json["points"]) {
      absl::StrAppend(&text, kind_.name, ",", flags_.dataset, ",", json["delta"].dump(), ",", flags_.accountant, ",",
                      json["inference"].get<std::string>(), ",", flags_.study.split);
      for (const auto& [name, value] : point.items()) {
        absl::StrAppend(&text, ",",
                        value.is_null() ? "" : (value.is_string() ? value.get<std::string>() : value.dump()));
      }
      text += "\n";
    }
    return text;
  }

 private:
  [[nodiscard]] bool Published() const { return accounting_ == Accounting::kPublished; }

  absl::Status AddPoint(const StudyGraph& graph, v1::Method method, double epsilon, double value) {
    Point point;
    point.method = method;
    point.epsilon = kind_.sweeps_epsilon() ? value : epsilon;
    point.value = value;
    DPAR_ASSIGN_OR_RETURN(point.spec, SweepSpec(kind_, accounting_, method, epsilon, graph.traits.delta, value));
    DPAR_ASSIGN_OR_RETURN(point.promise, SweepPromise(kind_, graph.max_degree, value));
    if (kind_.trains && (kind_.sweeps_epsilon() || value == kind_.paper_value)) {
      point.paper = PaperAccuracy(graph.traits.name, point.epsilon, method);
    }
    points_.push_back(std::move(point));
    return absl::OkStatus();
  }

  // The two prices of every plan on the first split.
  absl::Status PriceAll(const StudyGraph& graph) {
    DPAR_ASSIGN_OR_RETURN(const SplitKind kind, ParseSplit(flags_.study.split));
    DPAR_ASSIGN_OR_RETURN(const SlotSplit split, SplitGraph(graph.view.edges, kind, /*seed=*/1));
    PublicSizes sizes = graph.view.sizes;
    sizes.node_count = static_cast<int64_t>(split.train.size());
    measured_.resize(points_.size());
    std::vector<absl::Status> failures(points_.size());
    ParallelFor(static_cast<int64_t>(points_.size()), flags_.study.threads, [&](int /*worker*/, int64_t index) {
      const auto i = static_cast<size_t>(index);
      const absl::StatusOr<v1::Plan> plan = MakePlan(points_[i].spec, sizes, graph.max_degree);
      failures[i] = plan.status();
      if (plan.ok()) {
        measured_[i].sound_epsilon = plan->epsilon();
        measured_[i].published_epsilon = plan->published_epsilon();
      }
    });
    for (const absl::Status& failure : failures) {
      DPAR_RETURN_IF_ERROR(failure);
    }
    return absl::OkStatus();
  }

  [[nodiscard]] OrderedJson PointJson(const Point& point, const Measurement& measurement) const {
    const auto number = [](const std::optional<double>& value) {
      return value.has_value() ? OrderedJson(*value) : OrderedJson(nullptr);
    };
    OrderedJson json;
    json["method"] = FindMethod(point.method)->name;
    json["epsilon"] = point.epsilon;
    json["value"] = point.value;
    if (kind_.trains) {
      const Spread& mixed = Published() ? measurement.power : measurement.mean_field;
      const Spread& accuracy = FindMethod(point.method)->reads_edges ? measurement.none : mixed;
      json["seeds"] = accuracy.values.size();
      json["mean"] = accuracy.Mean();
      json["std"] = accuracy.Deviation();
      json["plain_mean"] = measurement.none.Mean();
      json["plain_std"] = measurement.none.Deviation();
      json["paper"] = number(point.paper);
    }
    json["sound_epsilon"] = number(measurement.sound_epsilon);
    json["published_epsilon"] = number(measurement.published_epsilon);
    return json;
  }

  const SweepFlags& flags_;
  const SweepKind kind_;
  const Accounting accounting_;
  Study& study_;
  std::vector<Point> points_;
  std::vector<Measurement> measured_;
};

// The methods asked for in place of the sweep's own. Those that read edges are predicted another way, so that they have
// curves of their own.
absl::Status ChooseMethods(const std::vector<std::string>& names, SweepKind& kind) {
  if (names.empty()) {
    return absl::OkStatus();
  }
  kind.methods.clear();
  for (const std::string& name : names) {
    const auto all = Methods();
    const auto found = std::find_if(all.begin(), all.end(), [&](const MethodTraits& one) { return name == one.name; });
    if (found == all.end()) {
      return InvalidField("methods", absl::StrCat("methods are among ", MethodNames(), " but auto; not '", name, "'"));
    }
    kind.methods.push_back(found->method);
    if (found->reads_edges != FindMethod(kind.methods.front())->reads_edges) {
      return InvalidField("methods", "methods gap and sage are swept apart from the others");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CommandOutput> RunSweep(const SweepFlags& flags) {
  DPAR_ASSIGN_OR_RETURN(SweepKind kind, FindSweep(flags.sweep));
  DPAR_RETURN_IF_ERROR(ChooseMethods(flags.methods, kind));
  DPAR_ASSIGN_OR_RETURN(const Accounting accounting, ParseAccounting(flags.accountant));
  if (kind.values(accounting).empty()) {
    return InvalidField("accountant",
                        "accountant must be as-published for the sweep accounting, which compares it "
                        "with the sound one");
  }
  for (const double value : kind.sweeps_epsilon() ? flags.values : std::vector<double>()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("values", value, kMinEpsilon, kMaxEpsilon));
  }
  DPAR_ASSIGN_OR_RETURN(Study study, Study::Open(flags.study, {flags.dataset}));
  Sweep sweep(flags, kind, accounting, study);
  DPAR_RETURN_IF_ERROR(sweep.Run());
  return CommandOutput{
      absl::StrCat("accuracies are NOT private: they are counted on the labels of held-out nodes of a "
                   "public graph. ",
                   accounting == Accounting::kSound
                       ? "Noise was calibrated by SOUND accounting"
                       : "Noise was calibrated by the paper's theorems; what it costs is sound_epsilon",
                   ". Nothing was charged to any ledger"),
      flags.study.json ? JsonText(sweep.Json()) : sweep.Csv()};
}

}  // namespace

void AddSweepCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<SweepFlags>();
  flags->study.seeds = 5;
  CLI::App* command = app.add_subcommand("sweep", "Measure accuracy along one parameter. Not private");
  command->add_option("--sweep", flags->sweep, absl::StrCat("One of ", SweepNames()))->type_name("NAME")->required();
  command
      ->add_option("--accountant", flags->accountant,
                   "What noise is calibrated by: sound, with our plans, or as-published, with the paper's")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--dataset", flags->dataset, absl::StrCat("One of ", StudyGraphNames()))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--values", flags->values, "Instead of the sweep's own, separated by commas")
      ->type_name("NUMBER,...")
      ->delimiter(',');
  command->add_option("--methods", flags->methods, "Instead of the sweep's own, separated by commas: gap,sage")
      ->type_name("NAME,...")
      ->delimiter(',');
  AddStudyFlags(*command, flags->study);
  command->footer(
      "Example:\n"
      "  dpar-lab sweep --sweep epsilon --accountant as-published --data ../shared/data > epsilon.csv\n"
      "CSV on stdout, a line a point; with --json one object. Killed or run again, it goes on where it was. The sweep\n"
      "accounting trains nothing: it says what noise costs that the paper's theorems price at each value.");
  command->callback([flags, &chosen] { chosen = [flags] { return RunSweep(*flags); }; });
}

}  // namespace dpar::lab
