#include "client/sdk/watch.h"

#include <optional>

#include "absl/time/clock.h"
#include "client/sdk/status.h"

namespace dpar {
namespace {

bool WasShown(const v1::WatchJobResponse& shown, const v1::WatchJobResponse& event) {
  const bool same = event.state() == shown.state() && event.stage() == shown.stage() &&
                    event.completed() == shown.completed() && event.total() == shown.total();
  return event.sequence() <= shown.sequence() || (same && !event.terminal());
}

struct Stream {
  absl::Status status;
  bool alive = false;
};

Stream ReadStream(Connection& connection, const std::string& job, const WatchEvent& on_event,
                  Cancellation& cancellation, std::optional<v1::WatchJobResponse>& shown) {
  grpc::ClientContext context;
  connection.Authorise(context);
  const Cancellation::Attachment attachment(cancellation, context);
  v1::WatchJobRequest request;
  request.set_name(job);
  request.set_after_sequence(shown.has_value() ? shown->sequence() : 0);
  const auto reader = connection.training().WatchJob(&context, request);
  Stream stream;
  v1::WatchJobResponse event;
  while (reader->Read(&event)) {
    stream.alive = true;
    if (!shown.has_value() || !WasShown(*shown, event)) {
      on_event(event);
      shown = event;
    }
  }
  stream.status = FromGrpcStatus(reader->Finish());
  return stream;
}

}  // namespace

absl::StatusOr<v1::WatchJobResponse> WatchJob(Connection& connection, const WatchOptions& options,
                                              const WatchEvent& on_event, const WatchRetry& on_retry,
                                              Cancellation& cancellation) {
  std::optional<v1::WatchJobResponse> last;
  absl::Time alive = absl::Now();
  for (int attempt = 0;; ++attempt) {
    const Stream stream = ReadStream(connection, options.job, on_event, cancellation, last);
    if (last.has_value() && last->terminal()) {
      return *last;
    }
    if (cancellation.cancelled()) {
      return absl::CancelledError("stopped watching");
    }
    if (stream.alive) {
      alive = absl::Now();
      attempt = 0;
    }
    const absl::Status status =
        stream.status.ok() ? absl::UnavailableError("the server ended the stream") : stream.status;
    if (!IsTransportFailure(status)) {
      return status;
    }
    const absl::Duration delay = connection.DelayBefore(status, attempt);
    if (absl::Now() + delay > alive + options.patience) {
      return absl::UnavailableError(status.message());
    }
    on_retry(status, delay);
    connection.Pause(delay, cancellation);
  }
}

}  // namespace dpar
