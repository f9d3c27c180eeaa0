// A plan as people read it.
#ifndef DPAR_CLIENT_CLI_PLAN_TEXT_H_
#define DPAR_CLIENT_CLI_PLAN_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dpar/v1/budget.pb.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// One line: method, steps, noise, guarantee.
std::string PlanText(const v1::Plan& plan);

// What is done and what it guarantees, as pairs of a heading and a text.
std::vector<std::pair<std::string, std::string>> PlanLines(const v1::Plan& plan);

// What each stage of the plan would cost alone at this order, in the order in which they run. Nothing without noise.
std::vector<v1::StageCost> PlanStages(const v1::Plan& plan, int64_t order);

// "0.71 (95%: 0.66 to 0.76) on 400 held-out nodes, noisy, charged".
std::string EvaluationText(const v1::Plan& plan, const v1::Evaluation& evaluation);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PLAN_TEXT_H_
