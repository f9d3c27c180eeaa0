#include <google/protobuf/util/json_util.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/python/native/native.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/privacy/accountant.h"
#include "core/privacy/calibrate.h"
#include "core/privacy/event.h"
#include "core/privacy/published.h"
#include "core/validate.h"

namespace dpar::python {
namespace {

namespace py = pybind11;

v1::PrivacyEvent ParseEvent(const std::string& json) {
  v1::PrivacyEvent event;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &event);
  if (!parsed.ok()) {
    throw StatusError(InvalidField("event", absl::StrCat("not a privacy event: ", std::string(parsed.message()))));
  }
  Require(ValidateEvent(event));
  return event;
}

std::string EventJson(const v1::PrivacyEvent& event) { return MessageToJson(event).dump(); }

double Epsilon(const std::string& json, double delta) {
  Require(ValidateProbability("delta", delta));
  const v1::PrivacyEvent event = ParseEvent(json);
  return Take(WithoutLock([&] { return EventEpsilon(event, delta); }));
}

double Delta(const std::string& json, double epsilon) {
  const v1::PrivacyEvent event = ParseEvent(json);
  return Take(WithoutLock([&] { return EventDelta(event, epsilon); }));
}

// The factor of the noise, and the event with it.
py::tuple Calibrate(const std::string& json, double epsilon, double delta) {
  const v1::PrivacyEvent event = ParseEvent(json);
  const double noise = Take(
      WithoutLock([&] { return CalibrateNoise([&event](double x) { return ScaleNoise(event, x); }, epsilon, delta); }));
  return py::make_tuple(noise, EventJson(ScaleNoise(event, noise)));
}

ApprMethod ParseApprMethod(const std::string& name) {
  if (name == "dpar-em0") {
    return ApprMethod::kEm0;
  }
  if (name == "dpar-em1") {
    return ApprMethod::kEm1;
  }
  if (name == "dpar-gm") {
    return ApprMethod::kGm;
  }
  throw StatusError(InvalidField("method", absl::StrCat("method is dpar-em0, dpar-em1 or dpar-gm; not '", name, "'")));
}

py::dict Published(const DparPipeline& pipeline, double delta) {
  const PublishedClaim claim = Take(PublishedEpsilon(pipeline, delta));
  py::dict result;
  result["appr_epsilon"] = claim.appr_epsilon;
  result["appr_delta"] = claim.appr_delta;
  result["sgd_epsilon"] = claim.sgd_epsilon;
  result["sgd_delta"] = claim.sgd_delta;
  result["epsilon"] = claim.epsilon;
  return result;
}

}  // namespace

void AddPrivacy(py::module_& module) {
  module.def("epsilon", Epsilon, py::arg("event"), py::arg("delta"));
  module.def("delta", Delta, py::arg("event"), py::arg("epsilon"));
  module.def("calibrate", Calibrate, py::arg("event"), py::arg("epsilon"), py::arg("delta"));
  module.def("check_event", [](const std::string& json) { ParseEvent(json); });
  py::class_<DparPipeline>(module, "Pipeline")
      .def(py::init([](const std::string& method, int64_t seeds, int64_t top_k, double appr_noise, double value_noise,
                       double sampling_rate, double noise_multiplier, int64_t steps, int64_t max_occurrence,
                       double node_sampling_rate) {
             return DparPipeline{
                 ParseApprMethod(method), seeds, top_k,          appr_noise,        value_noise, sampling_rate,
                 noise_multiplier,        steps, max_occurrence, node_sampling_rate};
           }),
           py::kw_only(), py::arg("method"), py::arg("seeds"), py::arg("top_k"), py::arg("appr_noise"),
           py::arg("value_noise"), py::arg("sampling_rate"), py::arg("noise_multiplier"), py::arg("steps"),
           py::arg("max_occurrence"), py::arg("node_sampling_rate"))
      .def("published", Published, py::arg("delta"))
      .def("event", [](const DparPipeline& pipeline) { return EventJson(Take(SoundEvent(pipeline))); });
}

}  // namespace dpar::python
