// Where tensors can live on this machine.
#ifndef DPAR_CORE_TRAIN_DEVICE_H_
#define DPAR_CORE_TRAIN_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace dpar {

// Devices on this machine, best first: "cuda:0", ..., "cpu".
std::vector<std::string> AvailableDevices();

// The device that "auto", "cpu", "cuda" or "cuda:i" stands for here. FAILED_PRECONDITION / INVALID_FIELD when it is not
// on this machine, with those that are.
absl::StatusOr<std::string> ChooseDevice(const std::string& wanted);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_DEVICE_H_
