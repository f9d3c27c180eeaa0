#include <map>
#include <optional>
#include <string>

#include "client/python/native/native.h"
#include "core/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace dpar::python {
namespace {

namespace py = pybind11;

py::dict ToDict(const google::protobuf::Map<std::string, std::string>& metadata) {
  py::dict result;
  for (const auto& [key, value] : std::map<std::string, std::string>(metadata.begin(), metadata.end())) {
    result[py::str(key)] = value;
  }
  return result;
}

void Raise(const absl::Status& status) {
  std::string reason;
  py::dict metadata;
  if (const auto info = GetErrorInfo(status)) {
    reason = info->reason();
    metadata = ToDict(info->metadata());
  }
  const py::object error =
      py::module_::import("dpar.errors")
          .attr("make_error")(absl::StatusCodeToString(status.code()), reason, std::string(status.message()), metadata);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
}

// Of the bytes in a call's trailing metadata: reason, metadata, and the seconds that the server asks to wait.
py::tuple ReadDetails(const std::string& bytes) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  std::optional<double> wait;
  if (status.ParseFromString(bytes)) {
    for (const google::protobuf::Any& detail : status.details()) {
      google::rpc::RetryInfo retry;
      if (detail.Is<google::rpc::ErrorInfo>()) {
        detail.UnpackTo(&info);
      } else if (detail.UnpackTo(&retry)) {
        wait = static_cast<double>(retry.retry_delay().seconds()) + 1e-9 * retry.retry_delay().nanos();
      }
    }
  }
  return py::make_tuple(info.reason(), ToDict(info.metadata()), wait.has_value() ? py::cast(*wait) : py::none());
}

}  // namespace

void AddErrors(py::module_& module) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      Raise(error.status());
    }
  });
  module.def("read_details", [](const py::bytes& bytes) { return ReadDetails(bytes); });
}

}  // namespace dpar::python
