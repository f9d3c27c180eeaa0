#include "server/services/watch_stream.h"

#include <exception>
#include <utility>

#include "core/error.h"
#include "server/services/status.h"

namespace dpar {

WatchStream::WatchStream(const Rooms& rooms, grpc::CallbackServerContext& context, Admission admission)
    : rooms_(rooms),
      context_(context),
      admission_(std::move(admission)),
      watch_(std::make_shared<Watch>(static_cast<WatchSink&>(*this))) {}

WatchStream* WatchStream::Open(const Rooms& rooms, grpc::CallbackServerContext& context, Admission admission) {
  auto* stream = new WatchStream(rooms, context, std::move(admission));
  if (!rooms.admissions.Add([stream] { stream->Admit(); })) {
    rooms.hub.Refuse(stream->watch_, MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                                               "too many watches are being opened at once; try again"));
  }
  return stream;
}

void WatchStream::Admit() {
  call_.emplace(rooms_.gate, context_, "TrainingService/WatchJob");
  absl::StatusOr<WatchTicket> ticket = call_->caller().ok() ? RunGuarded() : call_->caller().status();
  // From either call on, this may be gone.
  if (!ticket.ok()) {
    rooms_.hub.Refuse(watch_, ticket.status());
    return;
  }
  slot_ = std::move(ticket->slot);
  rooms_.hub.Join(watch_, ticket->job, ticket->after_sequence);
}

// As Gate does: a call must not take the server down with it.
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
  // Whoever sees the end may open another stream at once.
  slot_.reset();
  const grpc::Status answer = call_.has_value() ? call_->End(status) : ToGrpcStatus(status);
  Finish(answer);
}

}  // namespace dpar
