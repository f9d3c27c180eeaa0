// Where tensors can live on this machine.
#ifndef DPAR_CORE_TRAIN_DEVICE_H_
#define DPAR_CORE_TRAIN_DEVICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace dpar {

std::vector<std::string> AvailableDevices();  // best first: "cuda:0", ..., "cpu"

// Resolves "auto", "cpu", "cuda" or "cuda:i". FAILED_PRECONDITION / INVALID_FIELD for any that is not available.
absl::StatusOr<std::string> ChooseDevice(const std::string& wanted);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_DEVICE_H_
