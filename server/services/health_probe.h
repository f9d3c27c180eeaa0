// Asks a server on this machine, as gRPC's health protocol has it, whether it serves: what `dpard health` does for a
// container or a unit.
#ifndef DPAR_SERVER_SERVICES_HEALTH_PROBE_H_
#define DPAR_SERVER_SERVICES_HEALTH_PROBE_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace dpar {

// `address` is what a server wrote to its address file; one that listens on every interface is asked on loopback.
// UNAVAILABLE when nothing answers within `timeout`, or the answer is not SERVING.
absl::Status ProbeHealth(const std::string& address, absl::Duration timeout);

// Probes the server whose address file this is and says so when it serves. UNAVAILABLE when there is no such file, too.
absl::Status ReportHealth(const std::string& address_file, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_HEALTH_PROBE_H_
