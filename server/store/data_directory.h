// Paths of all files in the data directory.
//
//   dpar.sqlite               the store, unless it is a PostgreSQL
//   lock                      held by the one running dpard when the store is here
//   tls/ca.pem tls/ca.key tls/server.pem tls/server.key
//   keys/signing.key keys/signing.pub keys/signing-keys.pem
//   keys/lock                 held while keys are changed
//   operator.token            the first operator token
//   address                   host:port that the running server listens on
//   metrics-address, page-address   the same of metrics and health, and of the operator's page
//   audit.log                 who did what
//   uploads/{tenant}/{id}     bytes of an open upload
//   datasets/{tenant}/{id}/graph.sealed
//   jobs/{tenant}/{id}/{lease}/model.npz, model.pt, model.safetensors, model.onnx
#ifndef DPAR_SERVER_STORE_DATA_DIRECTORY_H_
#define DPAR_SERVER_STORE_DATA_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dpar {

// The files of a model. kScriptName is TorchScript.
inline constexpr const char* kWeightsName = "model.npz";
inline constexpr const char* kScriptName = "model.pt";
inline constexpr const char* kSafetensorsName = "model.safetensors";
inline constexpr const char* kOnnxName = "model.onnx";

// Tenant, dataset, job and upload arguments are validated resource names, so a path never leaves the directory.
class DataDirectory {
 public:
  explicit DataDirectory(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::string Database() const { return root_ + "/dpar.sqlite"; }
  [[nodiscard]] std::string Lock() const { return root_ + "/lock"; }
  [[nodiscard]] std::string Address() const { return root_ + "/address"; }
  [[nodiscard]] std::string AuditLog() const { return root_ + "/audit.log"; }
  [[nodiscard]] std::string OperatorToken() const { return root_ + "/operator.token"; }
  [[nodiscard]] std::string CaCertificate() const { return root_ + "/tls/ca.pem"; }
  [[nodiscard]] std::string CaKey() const { return root_ + "/tls/ca.key"; }
  [[nodiscard]] std::string ServerCertificate() const { return root_ + "/tls/server.pem"; }
  [[nodiscard]] std::string ServerKey() const { return root_ + "/tls/server.key"; }
  [[nodiscard]] std::string SigningKey() const { return root_ + "/keys/signing.key"; }
  [[nodiscard]] std::string SigningPublicKey() const { return root_ + "/keys/signing.pub"; }
  [[nodiscard]] std::string SigningKeyList() const { return root_ + "/keys/signing-keys.pem"; }
  [[nodiscard]] std::string SigningKeyLock() const { return root_ + "/keys/lock"; }
  [[nodiscard]] std::string UploadFile(absl::string_view upload_name) const;
  [[nodiscard]] std::string DatasetFile(absl::string_view dataset_name) const;
  // One for each lease: a worker that lost its lease cannot spoil the files of the next.
  [[nodiscard]] std::string AttemptDirectory(absl::string_view job_name, int64_t lease) const;
  // `name` is that of a file of a model.
  [[nodiscard]] std::string ModelFile(absl::string_view job_name, int64_t lease, absl::string_view name) const;

  // Visits all of a collection ("uploads", "datasets", "jobs"), known to the store or not. UNAVAILABLE on failure.
  using Visit = std::function<absl::Status(const std::string& name, const std::string& path)>;
  absl::Status ForEachResource(absl::string_view collection, const Visit& visit) const;

 private:
  std::string root_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_DATA_DIRECTORY_H_
