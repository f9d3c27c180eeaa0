#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "client/python/native/graph_handle.h"
#include "core/certificate/certificate.h"
#include "core/certificate/key_list.h"
#include "core/certificate/statement.h"
#include "core/certificate/training_graph.h"
#include "core/certificate/unverified.h"

namespace dpar::python {
namespace {

namespace py = pybind11;

py::dict Verify(const py::bytes& envelope, const std::vector<std::string>& key_lists,
                const std::vector<std::string>& files) {
  std::vector<KnownKey> keys;
  for (const std::string& list : key_lists) {
    MergeKeys(Take(ParseKeyList(list)), keys);
  }
  const std::string bytes = envelope;
  const Verification verification = Take(WithoutLock([&] { return VerifyCertificate(bytes, keys, files); }));
  py::list checks;
  for (const Check& check : verification.checks) {
    checks.append(py::make_tuple(check.name, check.passed, check.detail));
  }
  py::dict result;
  result["key_id"] = verification.key_id;
  result["checks"] = std::move(checks);
  result["recomputed_epsilon"] = verification.recomputed_epsilon;
  // Unsigned content is not shown: it could say anything.
  result["statement"] = py::none();
  if (verification.has_statement()) {
    result["statement"] = StatementToJson(verification.statement);
  }
  return result;
}

}  // namespace

void AddCertificates(py::module_& module) {
  module.def("verify_certificate", Verify, py::arg("envelope"), py::arg("keys"), py::arg("files"));
  module.def("dataset_digest", [](const py::bytes& envelope) { return Take(DatasetDigest(std::string(envelope))); });
  module.def("is_graph_of_digest", [](const GraphHandle& graph, const std::string& key, const std::string& digest) {
    return WithoutLock([&] { return Take(IsGraphOfDigest(graph.View(), key, digest)); });
  });
}

}  // namespace dpar::python
