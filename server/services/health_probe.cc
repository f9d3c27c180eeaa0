#include "server/services/health_probe.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/files.h"

namespace dpar {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(4);
constexpr char kMethod[] = "/grpc.health.v1.Health/Check";
// HealthCheckResponse: field 1 is the status, and SERVING is 1.
constexpr absl::string_view kServing = "\x08\x01";

std::string ReachableAddress(const std::string& address) {
  constexpr absl::string_view kEvery4 = "0.0.0.0:";
  constexpr absl::string_view kEvery6 = "[::]:";
  if (absl::StartsWith(address, kEvery4)) {
    return absl::StrCat("127.0.0.1:", address.substr(kEvery4.size()));
  }
  if (absl::StartsWith(address, kEvery6)) {
    return absl::StrCat("[::1]:", address.substr(kEvery6.size()));
  }
  return address;
}

// Does not verify the certificate: one from elsewhere need not name this address, and the request holds no secret.
std::shared_ptr<grpc::ChannelCredentials> UnverifiedTls() {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  return buffer.DumpToSingleSlice(&slice).ok() ? std::string(slice.begin(), slice.end()) : "";
}

}  // namespace

absl::Status ProbeHealth(const std::string& address, absl::Duration timeout) {
  const std::string target = ReachableAddress(address);
  grpc::GenericStub stub(grpc::CreateChannel(target, UnverifiedTls()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  grpc::CompletionQueue queue;
  // An empty HealthCheckRequest asks for the whole server.
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(&context, kMethod, request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  if (!status.ok()) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat(target, " does not answer: ", status.error_message()));
  }
  if (Bytes(response) != kServing) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat(target, " answers that it does not serve"));
  }
  return absl::OkStatus();
}

absl::Status ReportHealth(const std::string& address_file, std::ostream& out) {
  const absl::StatusOr<std::string> address = ReadWholeFile(address_file);
  if (!address.ok()) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat("no server accepts calls here: there is no address in ", address_file));
  }
  DPAR_RETURN_IF_ERROR(ProbeHealth(*address, kPatience));
  out << *address << " serves\n";
  return absl::OkStatus();
}

}  // namespace dpar
