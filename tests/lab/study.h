// What the table and the sweeps have in common: training specs measured over the same seeds, through one results file.
#ifndef DPAR_TESTS_LAB_STUDY_H_
#define DPAR_TESTS_LAB_STUDY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/infer/predict.h"
#include "core/parallel.h"
#include "tests/lab/cell.h"
#include "tests/lab/results_file.h"
#include "tests/lab/spread.h"
#include "tests/lab/study_graph.h"

namespace dpar::lab {

struct StudyFlags {
  std::string data = "../shared/data";
  std::string results = "lab-results.jsonl";
  std::vector<std::string> known;  // files of results that are only read
  std::string split = "random";
  int64_t seeds = 10;
  int threads = HardwareThreads();
  bool json = false;
};
void AddStudyFlags(CLI::App& command, StudyFlags& flags);

// The paper's values, with noise that costs `epsilon` by its own theorems; without noise for epsilon 0.
v1::TrainingSpec PublishedSpec(v1::Method method, double epsilon, double delta);
// Our rule, with noise that costs `epsilon`; without noise for epsilon 0.
v1::TrainingSpec SoundSpec(v1::Method method, double epsilon, double delta);

// One spec on one graph, over the seeds.
struct Measurement {
  Spread none;
  Spread power;
  Spread mean_field;
  // Means over the seeds, whose splits may differ in size; nothing where there is none.
  std::optional<double> sound_epsilon;
  std::optional<double> published_epsilon;
};

class Study {
 public:
  // INVALID_FIELD naming the flag that is out of range; opens the graphs and the results file.
  static absl::StatusOr<Study> Open(const StudyFlags& flags, const std::vector<std::string>& names);

  [[nodiscard]] const std::vector<StudyGraph>& graphs() const { return graphs_; }

  // Asks for a measurement; returns its number. `promise` is the cells'.
  size_t Add(const StudyGraph& graph, const v1::TrainingSpec& spec, int64_t promise = 0);
  // Every measurement that was asked for, by number.
  absl::StatusOr<std::vector<Measurement>> Run();

 private:
  Study(const StudyFlags& flags, SplitKind split, std::vector<StudyGraph> graphs, ResultsFile file)
      : flags_(flags), split_(split), graphs_(std::move(graphs)), file_(std::move(file)) {}

  StudyFlags flags_;
  SplitKind split_;
  std::vector<StudyGraph> graphs_;
  ResultsFile file_;
  std::vector<Cell> cells_;  // all seeds of a measurement in a row
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_STUDY_H_
