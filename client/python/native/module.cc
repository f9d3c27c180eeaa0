#include "client/python/native/native.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of DPAR. Use the modules of the package dpar, which are documented.";
  module.attr("version") = DPAR_VERSION;
  dpar::python::AddErrors(module);
  dpar::python::AddPrivacy(module);
  dpar::python::AddGraphs(module);
  dpar::python::AddTables(module);
  dpar::python::AddModels(module);
  dpar::python::AddCertificates(module);
}
