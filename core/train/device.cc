#include "core/train/device.h"

#include <torch/cuda.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error.h"

namespace dpar {

std::vector<std::string> AvailableDevices() {
  std::vector<std::string> devices;
  for (size_t i = 0; i < torch::cuda::device_count(); ++i) {
    devices.push_back(absl::StrCat("cuda:", i));
  }
  devices.emplace_back("cpu");
  return devices;
}

absl::StatusOr<std::string> ChooseDevice(const std::string& wanted) {
  const std::vector<std::string> devices = AvailableDevices();
  if (wanted == "auto") {
    return devices.front();
  }
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const std::string& device) {
    return device == wanted || absl::StartsWith(device, wanted + ":");
  });
  if (found == devices.end()) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
        absl::StrCat("device ", wanted, " is not on this machine; use auto or ", absl::StrJoin(devices, " or ")),
        {{"field", "device"}});
  }
  return *found;
}

}  // namespace dpar
