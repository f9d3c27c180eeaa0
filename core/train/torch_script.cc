#include <fcntl.h>
#include <torch/script.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/train/train.h"

namespace dpar {
namespace {

absl::Status WriteError(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   absl::StrCat("cannot write ", path, ": ", why));
}

// Syncs a finished temporary file and gives it its name.
absl::Status Publish(const std::string& temporary, const std::string& path) {
  const int descriptor = open(temporary.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return WriteError(temporary, std::strerror(errno));
  }
  const int synced = fsync(descriptor);
  close(descriptor);
  if (synced != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    return WriteError(path, std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTorchScript(const std::string& path, const LinearModel& model) {
  const std::string temporary = path + ".part";
  try {
    torch::jit::Module module("LinearModel");
    const at::Tensor weights = at::from_blob(const_cast<float*>(model.weights.data()),
                                             {model.feature_count + 1, model.class_count}, at::kFloat)
                                   .clone();
    module.register_parameter("weight", weights, /*is_buffer=*/false);
    module.define("def forward(self, x):\n  return torch.matmul(x, self.weight)\n");
    module.save(temporary, {{"metadata.json", model.metadata}});
  } catch (const std::exception&) {
    std::remove(temporary.c_str());
    return WriteError(temporary, "LibTorch could not save the model");
  }
  return Publish(temporary, path);
}

}  // namespace dpar
