// `dpard health`: asks a local server by gRPC's health protocol whether it serves.
#ifndef DPAR_SERVER_SERVICES_HEALTH_PROBE_H_
#define DPAR_SERVER_SERVICES_HEALTH_PROBE_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace dpar {

// A server on all interfaces is asked on loopback. UNAVAILABLE when nothing answers SERVING within `timeout`.
absl::Status ProbeHealth(const std::string& address, absl::Duration timeout);

// Probes the server of this address file. UNAVAILABLE also without a file.
absl::Status ReportHealth(const std::string& address_file, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_HEALTH_PROBE_H_
