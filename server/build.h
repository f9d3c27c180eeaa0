#ifndef DPAR_SERVER_BUILD_H_
#define DPAR_SERVER_BUILD_H_

#include <string>

namespace dpar {

// Such as "commit 0123456789ab, GNU 12.2.0, Release"; "unknown" without a repository, "-modified" for changed sources.
std::string BuildDescription();

}  // namespace dpar

#endif  // DPAR_SERVER_BUILD_H_
