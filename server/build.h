// What this program was built from and with.
#ifndef DPAR_SERVER_BUILD_H_
#define DPAR_SERVER_BUILD_H_

#include <string>

namespace dpar {

// For example "commit 0123456789ab, GNU 12.2.0, Release". The commit is "unknown" where the sources are in no
// repository and the build was not told, and ends in "-modified" where they are not as they were committed.
std::string BuildDescription();

}  // namespace dpar

#endif  // DPAR_SERVER_BUILD_H_
