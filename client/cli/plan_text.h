#ifndef DPAR_CLIENT_CLI_PLAN_TEXT_H_
#define DPAR_CLIENT_CLI_PLAN_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "dpar/v1/training.pb.h"

namespace dpar {

// One line: method, steps, noise, guarantee.
std::string PlanText(const v1::Plan& plan);

// What is done and what it guarantees, as pairs of a heading and a text.
std::vector<std::pair<std::string, std::string>> PlanLines(const v1::Plan& plan);

// "0.71 (95%: 0.66 to 0.76) on 400 held-out nodes, noisy, charged".
std::string EvaluationText(const v1::Plan& plan, const v1::Evaluation& evaluation);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PLAN_TEXT_H_
