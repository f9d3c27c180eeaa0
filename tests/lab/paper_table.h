// What the DPAR paper reports: its Table 1 for the graphs that we have.
//
// Source: "DPAR: Decoupled Graph Neural Networks with Node-Level Differential Privacy" (WWW 2024), table "Privacy
// budget and test accuracy on each graph dataset" (label tab:main_results), means of 10 trials. It gives no deviations.
#ifndef DPAR_TESTS_LAB_PAPER_TABLE_H_
#define DPAR_TESTS_LAB_PAPER_TABLE_H_

#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "dpar/v1/training.pb.h"

namespace dpar::lab {

// A column of the table.
struct PaperMethod {
  const char* name;   // as the paper writes it
  v1::Method method;  // ours
};
std::span<const PaperMethod> PaperMethods();         // at some epsilon
std::span<const PaperMethod> PaperMethodsNoNoise();  // without privacy

// The paper's accuracy, if it reports one. Epsilon 0 is without privacy.
std::optional<double> PaperAccuracy(absl::string_view graph, double epsilon, absl::string_view method);

// Of the method of ours, for plots.
std::optional<double> PaperAccuracy(absl::string_view graph, double epsilon, v1::Method method);

// The best private figure at this epsilon, whoever's method it is.
std::optional<double> BestPaperAccuracy(absl::string_view graph, double epsilon);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_PAPER_TABLE_H_
