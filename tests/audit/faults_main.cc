// dpar-audit-faults: plants one fault after another and attacks what it spoils. Linked from the production code with
// those sources compiled again that have a seam (core/fault.h). Run by `dpar-lab audit`.
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/fault.h"
#include "tests/audit/audit.h"
#include "tests/audit/program.h"

namespace dpar::audit {
namespace {

struct PlantedFault {
  Fault fault = Fault::kNone;
  std::string name;
  // The case that finds it, or else the check.
  std::function<std::vector<Case>()> cases;
  std::string mechanism;
  std::string input;
  std::function<std::string()> check;
};

std::vector<PlantedFault> Faults() {
  return {
      {Fault::kHalfNoise, "noise scale halved", StepCases, "one step", "lone", {}},
      {Fault::kNoiseBeforeClipping, "noise before clipping", StepCases, "one Poisson step", "lone", {}},
      {Fault::kReusedBatchNoise, "noise of a batch reused", StepCases, "two Poisson steps, both seen", "lone", {}},
      {Fault::kNoClipping, "no clipping", StepCases, "one step", "outlier", {}},
      {Fault::kClippingPerLayer, "clipping per layer", StepCases, "one step, hidden layer", "lone", {}},
      {Fault::kActualBatchSize, "batch over its actual size", TrainingCases, "five steps", "outlier", {}},
      {Fault::kShuffledBatches, "batches shuffled", StepCases, "one Poisson step", "outlier", {}},
      {Fault::kNoColumnCap, "column cap ignored", ListedCases, "step on DP-APPR rows", "listed", {}},
      {Fault::kNoNullRule, "null rule ignored", ListedCases, "step on DP-APPR rows", "listed, outlier", {}},
      {Fault::kReusedRowNoise, "row noise used for two rows", RowCases, "GM rows", "lone", {}},
      {Fault::kHalfSelectionNoise, "EM noise of half scale", ExtremalRowCases, "EM0 rows", "disjoint rows", {}},
      {Fault::kFixedSeed, "a fixed seed", {}, "fresh noise", "", CheckFreshNoise},
      {Fault::kProgressLeaksLoss, "progress leaks the loss", {}, "progress", "", CheckProgress},
      {Fault::kUnchargedEvaluation, "evaluation uncharged", EvaluationCases, "charged evaluation", "hub", {}},
      {Fault::kUnchargedShares, "class shares uncharged", SharesCases, "class shares", "hub", {}},
      {Fault::kOwnSumUncharged, "GAP hop charged sqrt(D)", HopCases, "GAP hop", "hub", {}},
      {Fault::kRowsMoveOnce, "GM rows charged sqrt(M)", ExtremalRowCases, "GM rows", "disjoint rows", {}},
      {Fault::kHalfValueNoise, "EM1's Laplace noise halved", ExtremalRowCases, "EM1 rows", "full rows", {}},
      {Fault::kChangedRowsOnce, "SAGE's rows counted once", SageCases, "SAGE step", "flipped", {}},
      {Fault::kChangedRowsOnce, "the same in Poisson batches", SageCases, "SAGE Poisson step", "flipped", {}},
      {Fault::kOversampledNodes, "nodes sampled at 1.5 q'", TrainingCases, "node sampling, one step", "lone", {}},
  };
}

// Cases are made with the fault planted, since some faults are in the plan.
Case FindCase(const PlantedFault& planted) {
  for (Case& one : planted.cases()) {
    if (one.mechanism == planted.mechanism && one.input == planted.input) {
      return std::move(one);
    }
  }
  throw std::runtime_error("no case " + planted.mechanism + ", " + planted.input);
}

int Run(const AuditOptions& options) {
  const double error = kFamilyError / static_cast<double>(AllCases().size());
  std::cout << absl::StrFormat("%-28s  %-30s  %-16s  %6s  %11s  %s\n", "PLANTED FAULT", "FOUND BY", "WITHOUT", "CLAIM",
                               "LOWER BOUND", "VERDICT");
  bool passed = true;
  for (const PlantedFault& planted : Faults()) {
    planted_fault = planted.fault;
    bool caught = false;
    std::string figures = absl::StrFormat("%6s  %11s", "", "");
    if (planted.check) {
      caught = !planted.check().empty();
    } else {
      const Case one = FindCase(planted);
      const double bound = Attack(one, options, error);
      caught = bound > one.claim;
      figures = absl::StrFormat("%6.3f  %11.3f", one.claim, bound);
    }
    planted_fault = Fault::kNone;
    passed = passed && caught;
    std::cout << absl::StrFormat("%-28s  %-30s  %-16s  %s  %s\n", planted.name, planted.mechanism, planted.input,
                                 figures, caught ? "caught" : "MISSED");
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace dpar::audit

int main(int argc, char** argv) { return dpar::audit::Main("dpar-audit-faults", argc, argv, dpar::audit::Run); }
