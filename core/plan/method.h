// The methods of training: the rows each trains on, and its description. A row is a node (its owner, whose label it
// has) with the slots whose inputs are averaged for it. A slot's identity row lists itself with weight 1. GAP and SAGE
// have a row for each slot, made of the slot and its neighbours.
#ifndef DPAR_CORE_PLAN_METHOD_H_
#define DPAR_CORE_PLAN_METHOD_H_

#include <optional>
#include <span>
#include <string>

#include "core/appr/private_rows.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

struct MethodTraits {
  v1::Method method;
  const char* name;                        // as people type it
  std::optional<ApprMechanism> structure;  // the mechanism that its rows come from; none: identity rows only
  const char* description;                 // a sentence for certificates
  bool reads_edges = false;                // its rows follow training edges: its price needs a degree promise
};

// Every method that can be planned and trained. AUTO, which becomes FEATURES, is not among them.
std::span<const MethodTraits> Methods();

const MethodTraits* FindMethod(v1::Method method);

std::string MethodNames();  // "auto, features, dpar-em0, ..."

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_METHOD_H_
