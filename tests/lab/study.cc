#include "tests/lab/study.h"

#include <utility>

#include "core/status_macros.h"
#include "core/validate.h"
#include "tests/lab/cell_runner.h"
#include "tests/lab/solver_flags.h"

namespace dpar::lab {
namespace {

constexpr int64_t kMaxSeeds = 10'000;

v1::TrainingSpec SpecOf(v1::Method method, double epsilon, double delta) {
  v1::TrainingSpec spec;
  spec.set_method(method);
  if (epsilon == 0) {
    spec.set_non_private(true);
  } else {
    spec.set_epsilon(epsilon);
    spec.set_delta(delta);
  }
  return spec;
}

std::optional<double> MeanOf(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(Spread{values}.Mean());
}

}  // namespace

void AddStudyFlags(CLI::App& command, StudyFlags& flags) {
  command.add_option("--data", flags.data, "Directory with the graphs as NAME.npz")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command.add_option("--results", flags.results, "Cells that were computed; those that it has are not computed again")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--known", flags.known, "More of them, in files that are read and not written; may be repeated")
      ->type_name("FILE");
  command
      .add_option("--split", flags.split,
                  "random: 20% of the nodes are predicted; partition: one of nine parts that METIS makes, as the "
                  "paper's released code does (needs gpmetis); region: a connected ninth of the nodes")
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--seeds", flags.seeds, "Splits; each is the same in every run, noise never is")
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "Cells at a time, 1 to 1024")->default_str("all cores");
  command.add_flag("--json", flags.json, "One JSON object on stdout, prose on stderr");
}

v1::TrainingSpec PublishedSpec(v1::Method method, double epsilon, double delta) {
  v1::TrainingSpec spec = SpecOf(method, epsilon, delta);
  spec.set_preset(v1::PAPER);
  return spec;
}

v1::TrainingSpec SoundSpec(v1::Method method, double epsilon, double delta) {
  // What FEATURES and AUTO do is the same, and so shall be the cell.
  return SpecOf(method == v1::FEATURES ? v1::AUTO : method, epsilon, delta);
}

absl::StatusOr<Study> Study::Open(const StudyFlags& flags, const std::vector<std::string>& names) {
  DPAR_RETURN_IF_ERROR(ValidateRange("seeds", flags.seeds, int64_t{1}, kMaxSeeds));
  DPAR_RETURN_IF_ERROR(ValidateRange("threads", int64_t{flags.threads}, int64_t{1}, kMaxThreads));
  DPAR_ASSIGN_OR_RETURN(const SplitKind split, ParseSplit(flags.split));
  DPAR_ASSIGN_OR_RETURN(std::vector<StudyGraph> graphs, OpenStudyGraphs(flags.data, names));
  DPAR_ASSIGN_OR_RETURN(ResultsFile file, ResultsFile::Open(flags.results, flags.known));
  return Study(flags, split, std::move(graphs), std::move(file));
}

size_t Study::Add(const StudyGraph& graph, const v1::TrainingSpec& spec, int64_t promise) {
  const size_t number = cells_.size() / static_cast<size_t>(flags_.seeds);
  for (int64_t seed = 1; seed <= flags_.seeds; ++seed) {
    cells_.push_back({.graph = graph.traits.name,
                      .digest = graph.digest,
                      .split = split_,
                      .seed = seed,
                      .spec = spec,
                      .promise = promise});
  }
  return number;
}

absl::StatusOr<std::vector<Measurement>> Study::Run() {
  DPAR_ASSIGN_OR_RETURN(const std::vector<CellResult> results, RunCells(cells_, graphs_, flags_.threads, file_));
  const auto seeds = static_cast<size_t>(flags_.seeds);
  std::vector<Measurement> measurements(results.size() / seeds);
  for (size_t i = 0; i < measurements.size(); ++i) {
    Measurement& measurement = measurements[i];
    std::vector<double> sound;
    std::vector<double> published;
    for (size_t j = i * seeds; j < (i + 1) * seeds; ++j) {
      measurement.none.values.push_back(results[j].none);
      measurement.power.values.push_back(results[j].power);
      measurement.mean_field.values.push_back(results[j].mean_field);
      if (results[j].sound_epsilon.has_value()) {
        sound.push_back(*results[j].sound_epsilon);
      }
      if (results[j].published_epsilon.has_value()) {
        published.push_back(*results[j].published_epsilon);
      }
    }
    measurement.sound_epsilon = MeanOf(sound);
    measurement.published_epsilon = MeanOf(published);
  }
  return measurements;
}

}  // namespace dpar::lab
