#include "server/services/training_service.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/observe/metrics.h"
#include "server/queue/queue.h"
#include "server/resource_name.h"
#include "server/services/download.h"
#include "server/services/page_size.h"
#include "server/services/subject.h"
#include "server/services/tenant_exists.h"
#include "server/services/watch.h"
#include "server/services/watch_stream.h"
#include "server/store/message_text.h"
#include "server/store/once.h"
#include "server/store/read_from.h"
#include "server/witness/witness.h"

namespace dpar {
namespace {

constexpr int64_t kMaxPriority = 100;
// Plans of a tenant that are made or wait, and plans of all tenants that wait.
constexpr int64_t kMaxPlansOfTenant = 64;
constexpr size_t kMaxPlansWaiting = 256;
constexpr double kMaxPlanningSeconds = 60;
// Memory of one plan, rounded up; plans made at once take at most an eighth of that for jobs.
constexpr int64_t kPlanBytes = int64_t{512} << 20;
constexpr int64_t kShareOfPlans = 8;

size_t PlansAtOnce(const Limits& limits) {
  const int64_t by_memory = limits.max_job_bytes / kShareOfPlans / kPlanBytes;
  return static_cast<size_t>(std::clamp<int64_t>(by_memory, 2, std::max(2, HardwareThreads() / 2)));
}

std::vector<std::string> Ended(const std::vector<v1::Job>& jobs) {
  std::vector<std::string> names;
  for (const v1::Job& job : jobs) {
    if (IsTerminal(job.state())) {
      names.push_back(job.name());
    }
  }
  return names;
}

// A job's output, after what it spent is marked.
absl::StatusOr<JobOutput> TakeOutput(const ServiceParts& parts, const std::string& job) {
  std::vector<Spend> spends;
  DPAR_ASSIGN_OR_RETURN(JobOutput output,
                        ReadFrom(parts.database, [&](Transaction& transaction) -> absl::StatusOr<JobOutput> {
                          DPAR_ASSIGN_OR_RETURN(spends, SpendsOf(transaction, {job}));
                          return GetOutput(transaction, job);
                        }));
  DPAR_RETURN_IF_ERROR(parts.witness.Cover(spends));
  return output;
}

}  // namespace

TrainingServiceImpl::TrainingServiceImpl(const ServiceParts& parts)
    : parts_(parts), plans_("max_plans", kMaxPlansOfTenant), planning_(PlansAtOnce(parts.limits), kMaxPlansWaiting) {}

grpc::Status TrainingServiceImpl::CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request,
                                            v1::Job* response) {
  return parts_.gate.Admit(*context, "TrainingService/CreateJob", About(*request, *response),
                           [&](const Identity& caller) {
                             const absl::Status status = Submit(*context, caller, *request, *response);
                             NoteRefusal(*request, status);
                             return status;
                           });
}

void TrainingServiceImpl::NoteRefusal(const v1::CreateJobRequest& request, const absl::Status& status) const {
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(status);
  if (parts_.refused == nullptr || request.validate_only() || !info.has_value() ||
      (info->reason() != v1::ErrorReason_Name(v1::PRIVACY_BUDGET_EXHAUSTED) &&
       info->reason() != v1::ErrorReason_Name(v1::LIMIT_EXCEEDED))) {
    return;
  }
  parts_.refused(request.parent(), request.spec().dataset(), std::string(status.message()));
}

absl::Status TrainingServiceImpl::Submit(const grpc::ServerContext& context, const Identity& caller,
                                         const v1::CreateJobRequest& request, v1::Job& response) {
  DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTenantName("parent", request.parent()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, parent.name, parent.name));
  DPAR_ASSIGN_OR_RETURN(const ResourceName dataset, ParseDatasetName("spec.dataset", request.spec().dataset()));
  if (dataset.tenant != parent.name) {
    return ResourceNotFound(dataset.name);
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("priority", int64_t{request.priority()}, -kMaxPriority, kMaxPriority));
  if (request.validate_only()) {
    DPAR_ASSIGN_OR_RETURN(PlannedJob planned, PlanInTurn(context, request));
    DPAR_RETURN_IF_ERROR(
        parts_.database.Read([&](Transaction& transaction) { return CheckPlannedJob(transaction, planned); }));
    response = std::move(planned.stored.job);
    return absl::OkStatus();
  }
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const JobRequest asked = MakeJobRequest(request);
  DPAR_ASSIGN_OR_RETURN(std::optional<v1::Job> recalled, ReadFrom(parts_.database, [&](Transaction& transaction) {
                          return RecallJob(transaction, asked);
                        }));
  if (recalled.has_value()) {
    response = *std::move(recalled);
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(PlannedJob planned, PlanInTurn(context, request));
  planned.stored.job.set_priority(request.priority());
  // Planning took seconds. Reserve nothing for a caller that gave up and may ask again with another id.
  DPAR_RETURN_IF_ERROR(CheckWaiting(context));
  return TimeLedgerCommit(parts_.metrics, LedgerCommit::kReserve, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(response, SubmitOnce(parts_.database, planned, asked, parts_.limits.max_queued_jobs,
                                               EntryContext{caller.token, absl::Now()}));
    return absl::OkStatus();
  });
}

absl::StatusOr<PlannedJob> TrainingServiceImpl::PlanInTurn(const grpc::ServerContext& context,
                                                           const v1::CreateJobRequest& request) {
  const auto wanted = [&] { return !context.IsCancelled() && !parts_.stopping.load(); };
  const auto stopped = [&](const absl::Status& status) {
    return absl::IsCancelled(status) && parts_.stopping.load()
               ? MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "the server is stopping; try again")
               : status;
  };
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<StreamLimiter::Permit> permit, plans_.Enter(request.parent()));
  FairLine::Turn turn(planning_, request.parent());
  DPAR_RETURN_IF_ERROR(stopped(turn.Await(wanted)));
  absl::StatusOr<PlannedJob> planned =
      PlanJob(parts_.database, request.spec(), {parts_.limits.max_job_bytes, parts_.job_threads},
              {kMaxPlanningSeconds, wanted});
  DPAR_RETURN_IF_ERROR(stopped(planned.status()));
  if (request.validate_only()) {
    DPAR_RETURN_IF_ERROR(DescribeStages(*planned));
  }
  return planned;
}

grpc::Status TrainingServiceImpl::GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                                         v1::Job* response) {
  return parts_.gate.Admit(*context, "TrainingService/GetJob", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseJobName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    std::vector<Spend> spends;
    DPAR_ASSIGN_OR_RETURN(*response,
                          ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<v1::Job> {
                            DPAR_ASSIGN_OR_RETURN(StoredJob stored, dpar::GetJob(transaction, name.name));
                            DPAR_ASSIGN_OR_RETURN(spends, SpendsOf(transaction, Ended({stored.job})));
                            return std::move(stored.job);
                          }));
    return parts_.witness.Cover(spends);
  });
}

grpc::Status TrainingServiceImpl::ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                                           v1::ListJobsResponse* response) {
  return parts_.gate.Admit(*context, "TrainingService/ListJobs", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTenantName("parent", request->parent()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, parent.name, parent.name));
    DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request->page_size()));
    std::vector<Spend> spends;
    DPAR_ASSIGN_OR_RETURN(
        const JobPage page, ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<JobPage> {
          DPAR_RETURN_IF_ERROR(TenantExists(transaction, parent));
          DPAR_ASSIGN_OR_RETURN(JobPage jobs,
                                dpar::ListJobs(transaction, parent.name, page_size, request->page_token()));
          DPAR_ASSIGN_OR_RETURN(spends, SpendsOf(transaction, Ended(jobs.jobs)));
          return jobs;
        }));
    // Leaves out jobs whose end may not be shown: one frozen budget does not hide other jobs. GetJob says why.
    DPAR_ASSIGN_OR_RETURN(const auto kept_back, parts_.witness.CoverEach(spends));
    for (const v1::Job& job : page.jobs) {
      if (!kept_back.contains(job.name())) {
        *response->add_jobs() = job;
      }
    }
    response->set_next_page_token(page.next_page_token);
    return absl::OkStatus();
  });
}

grpc::Status TrainingServiceImpl::CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                                            v1::Job* response) {
  return parts_.gate.Admit(*context, "TrainingService/CancelJob", About(*request, *response),
                           [&](const Identity& caller) { return Cancel(caller, *request, *response); });
}

absl::Status TrainingServiceImpl::Cancel(const Identity& caller, const v1::CancelJobRequest& request,
                                         v1::Job& response) {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseJobName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const EntryContext entry{caller.token, absl::Now()};
  const RequestKey key = MakeRequestKey(name.tenant, "CancelJob", request.request_id(), request);
  const absl::Status cancelled = TimeLedgerCommit(parts_.metrics, LedgerCommit::kCancel, [&] {
    return Once(parts_.database, key, entry.time, response, [&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(response, dpar::CancelJob(transaction, name.name, entry));
      return absl::OkStatus();
    });
  });
  if (absl::IsFailedPrecondition(cancelled) || (cancelled.ok() && IsTerminal(response.state()))) {
    // The answer reveals how the job ended; a cancel may have posted.
    DPAR_RETURN_IF_ERROR(parts_.witness.CoverJobs({name.name}));
  }
  DPAR_RETURN_IF_ERROR(cancelled);
  // A job with another end time was not ended by this call.
  if (parts_.metrics != nullptr && ToMicroseconds(response.end_time()) == absl::ToUnixMicros(entry.time)) {
    parts_.metrics->JobEnded(response.state());
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::WatchJobResponse>* TrainingServiceImpl::WatchJob(grpc::CallbackServerContext* context,
                                                                              const v1::WatchJobRequest* request) {
  return WatchStream::Open(
      parts_, *context, [this, request = *request](const Identity& caller) -> absl::StatusOr<WatchTicket> {
        DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseJobName("name", request.name()));
        DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
        DPAR_RETURN_IF_ERROR(ValidateRange("after_sequence", request.after_sequence(), int64_t{0},
                                           std::numeric_limits<int64_t>::max() / 2));
        DPAR_ASSIGN_OR_RETURN(std::unique_ptr<StreamLimiter::Permit> permit, parts_.watches.Enter(caller.tenant));
        return WatchTicket{name.name, request.after_sequence(), std::move(permit)};
      });
}

namespace {

std::string FileOf(v1::DownloadModelRequest::Artifact artifact) {
  switch (artifact) {
    case v1::DownloadModelRequest::TORCHSCRIPT:
      return kScriptName;
    case v1::DownloadModelRequest::SAFETENSORS:
      return kSafetensorsName;
    case v1::DownloadModelRequest::ONNX:
      return kOnnxName;
    default:
      return kWeightsName;
  }
}

// Of the files, ONNX alone may be missing.
absl::Status NoSuchFile(const std::string& job, const std::string& file) {
  return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                   absl::StrCat(job, " has no ", file,
                                ": a model of 2 GiB or more does not fit into one. Take WEIGHTS "
                                "or SAFETENSORS"),
                   {{"resource", absl::StrCat(job, "/", file)}});
}

}  // namespace

grpc::Status TrainingServiceImpl::DownloadModel(grpc::ServerContext* context, const v1::DownloadModelRequest* request,
                                                grpc::ServerWriter<v1::DownloadModelResponse>* writer) {
  return parts_.gate.Admit(*context, "TrainingService/DownloadModel", About(request->name()),
                           [&](const Identity& caller) { return SendModel(*context, caller, *request, *writer); });
}

absl::Status TrainingServiceImpl::SendModel(grpc::ServerContext& context, const Identity& caller,
                                            const v1::DownloadModelRequest& request,
                                            grpc::ServerWriter<v1::DownloadModelResponse>& writer) {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseJobName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  if (!v1::DownloadModelRequest::Artifact_IsValid(request.artifact())) {
    return InvalidField("artifact", "artifact must be WEIGHTS, TORCHSCRIPT, CERTIFICATE, SAFETENSORS, ONNX or unset");
  }
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<StreamLimiter::Permit> permit, parts_.streams.Enter(caller.tenant));
  DPAR_ASSIGN_OR_RETURN(const JobOutput output, TakeOutput(parts_, name.name));
  const std::unique_ptr<StreamWatchdog::Handle> idle = parts_.watchdog.Enter(context);
  const SendChunk send = [&](const v1::DownloadModelResponse& message) {
    idle->Touch();
    return writer.Write(message);
  };
  const DownloadRange range{request.offset(), request.length()};
  absl::Status sent;
  if (request.artifact() == v1::DownloadModelRequest::CERTIFICATE) {
    sent = DownloadBytes(output.envelope, name.name, range, send);
  } else {
    const std::string file = FileOf(request.artifact());
    const auto stored = output.files.find(file);
    sent = stored == output.files.end() ? NoSuchFile(name.name, file)
                                        : Download({parts_.directory.ModelFile(name.name, output.lease, file),
                                                    stored->second.bytes, stored->second.sha256},
                                                   name.name, range, send);
  }
  DPAR_RETURN_IF_ERROR(idle->status());
  return sent;
}

grpc::Status TrainingServiceImpl::GetCertificate(grpc::ServerContext* context, const v1::GetCertificateRequest* request,
                                                 v1::Certificate* response) {
  const Gate::SubjectOf about = About(*request, *response);
  return parts_.gate.Admit(*context, "TrainingService/GetCertificate", about,
                           [&](const Identity& caller) { return Answer(caller, *request, *response); });
}

absl::Status TrainingServiceImpl::Answer(const Identity& caller, const v1::GetCertificateRequest& request,
                                         v1::Certificate& response) const {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseJobName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(const JobOutput output, TakeOutput(parts_, name.name));
  response.set_envelope(output.envelope);
  return absl::OkStatus();
}

}  // namespace dpar
