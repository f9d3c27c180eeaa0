// For tests: a generated graph in the place of Cora-ML, large enough for the paper's batches.
#ifndef DPAR_TESTS_LAB_STUDY_RUN_H_
#define DPAR_TESTS_LAB_STUDY_RUN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/generate.h"
#include "core/random/testing/fixed_random.h"
#include "tests/lab/lab_run.h"

namespace dpar::lab {

class StudyTest : public LabTest {
 protected:
  // Features that tell the class, mostly. A sample of 9 % of its training part has more than 60 nodes.
  void WriteStudyGraph() {
    dpar::testing::FixedRandom random(7);
    const auto graph = GenerateGraph({.nodes = 1000,
                                      .classes = 4,
                                      .features = 100,
                                      .average_degree = 6,
                                      .homophily = 0.8,
                                      .features_per_node = 20,
                                      .signal = 0.3},
                                     random);
    ASSERT_TRUE(graph.ok()) << graph.status();
    largest_degree_ = graph->edges().largest_degree();
    Write("cora_ml.npz", *graph);
  }

  [[nodiscard]] std::string Results() const { return directory_.File("results.jsonl"); }

  // The command on the generated graph.
  [[nodiscard]] std::vector<std::string> Study(const std::string& command, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {command, "--data", directory_.path(), "--results", Results()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  int64_t largest_degree_ = 0;  // of the generated graph
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_STUDY_RUN_H_
