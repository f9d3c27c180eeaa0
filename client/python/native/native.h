// The native module of the Python package: core/ as Python sees it. Arrays go in and out as NumPy's.
#ifndef DPAR_CLIENT_PYTHON_NATIVE_NATIVE_H_
#define DPAR_CLIENT_PYTHON_NATIVE_NATIVE_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <exception>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace dpar::python {

// pybind11 turns it into an exception of dpar.errors. No other exception leaves our functions.
class StatusError final : public std::exception {
 public:
  explicit StatusError(absl::Status status) : status_(std::move(status)) {}
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

inline void Require(const absl::Status& status) {
  if (!status.ok()) {
    throw StatusError(status);
  }
}

template <typename T>
T Take(absl::StatusOr<T> result) {
  Require(result.status());
  return *std::move(result);
}

// Runs C++ code without Python's lock; threads of the caller go on meanwhile.
template <typename Function>
auto WithoutLock(const Function& function) {
  const pybind11::gil_scoped_release unlocked;
  return function();
}

// An array over memory that `owner` keeps alive. It cannot be written to.
template <typename T>
pybind11::array View(std::span<const T> entries, const pybind11::object& owner) {
  pybind11::array_t<T> array(static_cast<pybind11::ssize_t>(entries.size()), entries.data(), owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

// Moves `value` to the heap and gives it to Python, which frees it with the arrays over it.
template <typename T>
std::pair<const T*, pybind11::capsule> Keep(T value) {
  auto owned = std::make_unique<T>(std::move(value));
  pybind11::capsule capsule(owned.get(), [](void* kept) { delete static_cast<T*>(kept); });
  return {owned.release(), std::move(capsule)};
}

void AddErrors(pybind11::module_& module);
void AddPrivacy(pybind11::module_& module);
void AddGraphs(pybind11::module_& module);
void AddTables(pybind11::module_& module);
void AddModels(pybind11::module_& module);
void AddCertificates(pybind11::module_& module);

}  // namespace dpar::python

#endif  // DPAR_CLIENT_PYTHON_NATIVE_NATIVE_H_
