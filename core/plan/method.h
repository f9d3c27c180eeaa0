// The methods of training: which rows each trains on, and what it says of itself. What it releases and the event tree
// of that follow from its plan (plan_event.h).
//
// A row is a node (its owner, whose label it has) with the slots whose inputs are averaged for it. The identity row of
// a slot lists itself with weight 1. GAP and SAGE train on rows of their own, one for each slot, that are made of what
// the slot and its neighbours have.
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

// Every method that this release can plan and train. AUTO is none of them: it becomes FEATURES.
std::span<const MethodTraits> Methods();

// nullptr for a method that is not among them.
const MethodTraits* FindMethod(v1::Method method);

// "auto, features, dpar-em0, ..."
std::string MethodNames();

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_METHOD_H_
