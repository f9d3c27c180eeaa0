// How commands show the sizes of a graph.
#ifndef DPAR_CLIENT_CLI_GRAPH_SIZES_H_
#define DPAR_CLIENT_CLI_GRAPH_SIZES_H_

#include <string>

#include "client/cli/json.h"
#include "core/graph/graph.h"

namespace dpar {

Json SizesJson(const GraphView& graph);
std::string SizesText(const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_GRAPH_SIZES_H_
