#include "server/services/watch_stream.h"

#include <exception>
#include <utility>

#include "core/error.h"
#include "server/services/status.h"

namespace dpar {

WatchStream::WatchStream(const ServiceParts& parts, grpc::CallbackServerContext& context, Admission admission)
    : parts_(parts),
      context_(context),
      admission_(std::move(admission)),
      watch_(std::make_shared<Watch>(static_cast<WatchSink&>(*this))) {}

WatchStream* WatchStream::Open(const ServiceParts& parts, grpc::CallbackServerContext& context, Admission admission) {
  auto* stream = new WatchStream(parts, context, std::move(admission));
  if (!parts.admissions.Add([stream] { stream->Admit(); })) {
    parts.hub.Refuse(stream->watch_, MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                                               "too many watches are being opened at once; try again"));
  }
  return stream;
}

void WatchStream::Admit() {
  call_.emplace(parts_.gate, context_, "TrainingService/WatchJob");
  absl::StatusOr<WatchTicket> ticket = call_->caller().ok() ? RunGuarded() : call_->caller().status();
  // Either call may destroy this.
  if (!ticket.ok()) {
    parts_.hub.Refuse(watch_, ticket.status());
    return;
  }
  permit_ = std::move(ticket->permit);
  parts_.hub.Join(watch_, ticket->job, ticket->after_sequence);
}

// As in Gate: a call must not end the server.
absl::StatusOr<WatchTicket> WatchStream::RunGuarded() const {
  try {
    return admission_(*call_->caller());
  } catch (const std::exception&) {
    return absl::InternalError("a handler threw");
  }
}

void WatchStream::Send(std::shared_ptr<const v1::WatchJobResponse> message) {
  on_its_way_ = std::move(message);
  StartWrite(on_its_way_.get());
}

void WatchStream::End(const absl::Status& status) {
  // First: the caller may open another stream as soon as it sees the end.
  permit_.reset();
  const grpc::Status answer = call_.has_value() ? call_->End(status) : ToGrpcStatus(status);
  Finish(answer);
}

}  // namespace dpar
