#include "server/build.h"

#include "build_commit.h"

namespace dpar {

std::string BuildDescription() { return "commit " DPAR_COMMIT ", " DPAR_COMPILER ", " DPAR_BUILD_TYPE; }

}  // namespace dpar
