#include "client/cli/watching.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/cli/plan_text.h"
#include "client/sdk/names.h"
#include "client/sdk/watch.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr absl::string_view kStructureNote = " (no progress is shown: its speed follows the data)";

bool IsAfterTraining(absl::string_view stage) { return stage == "evaluating" || stage == "saving"; }

class Follower {
 public:
  explicit Follower(Session& session) : session_(session), line_(session.err(), session.terminal()) {}

  void OnEvent(const v1::WatchJobResponse& event) {
    if (session_.json() && !event.terminal()) {
      session_.PrintJson(ResourceJson(event));
    }
    CompleteTraining(event);
    if (!event.terminal()) {
      line_.Update(ProgressOf(event));
    }
    last_ = event;
  }

  void OnRetry(const absl::Status& status, absl::Duration delay) {
    if (!waiting_) {
      line_.Say(absl::StrCat("lost the server (", std::string(status.message()), "); trying again in ",
                             absl::FormatDuration(delay), " and after, the job is not affected"));
    }
    waiting_ = true;
  }

  void Finish() { line_.Finish(); }

 private:
  // Messages are samples: those that say "all steps done", or that training runs at all, may have been skipped.
  void CompleteTraining(const v1::WatchJobResponse& event) {
    waiting_ = false;
    const bool succeeded = event.state() == v1::Job::SUCCEEDED;
    const bool was_training = last_.has_value() && last_->stage() == "training";
    if (event.stage() == "training") {
      bar_complete_ = event.completed() == event.total();
    } else if (!bar_complete_ && (succeeded || (was_training && IsAfterTraining(event.stage())))) {
      v1::WatchJobResponse done = was_training ? *last_ : event;
      done.set_stage("training");
      done.set_completed(done.total());
      done.clear_rate();
      done.clear_eta();
      done.set_epsilon_so_far(std::max(done.epsilon_so_far(), event.epsilon_so_far()));
      line_.Update(ProgressOf(done));
      bar_complete_ = true;
    }
  }

  Session& session_;
  ProgressLine line_;
  std::optional<v1::WatchJobResponse> last_;
  bool bar_complete_ = false;
  bool waiting_ = false;
};

int LeaveRunning(Session& session, const std::string& job) {
  session.err() << "stopped watching; the job goes on\n"
                << "  come back:  dpar job watch " << IdOf(job) << "\n"
                << "  stop it:    dpar job cancel " << IdOf(job) << std::endl;
  if (session.json()) {
    // The last object of the stream, although the job goes on.
    session.PrintJson({{"job", job}, {"interrupted", true}, {"terminal", true}});
  }
  return kInterrupted;
}

void PrintEnd(Session& session, const v1::Job& job) {
  const std::string id = IdOf(job.name());
  session.out() << "job       " << job.name() << "\n"
                << "state     " << StateLabel(job.state()) << "\n";
  if (job.state() == v1::Job::SUCCEEDED) {
    if (job.plan().non_private()) {
      session.out() << "privacy   none: no noise was drawn\n";
    } else {
      session.out() << "epsilon   " << FormatNumberUp(job.plan().epsilon()) << "\n"
                    << "delta     " << FormatNumberUp(job.plan().delta()) << "\n";
    }
    if (job.has_evaluation()) {
      session.out() << "accuracy  " << EvaluationText(job.plan(), job.evaluation()) << "\n";
    }
    session.out() << "next      dpar download " << id << " -o " << id << "\n";
    return;
  }
  if (!job.failure().empty()) {
    session.out() << "why       " << job.failure() << "\n";
  }
  session.out() << "next      dpar population " << IdOf(job.spec().dataset()) << " --entries   (what it cost)\n";
}

}  // namespace

ProgressState ProgressOf(const v1::WatchJobResponse& event) {
  ProgressState state;
  state.stage = absl::StrCat(event.stage(), event.stage() == "structure" ? kStructureNote : "");
  state.completed = event.completed();
  state.total = event.total();
  if (event.total() > 0) {
    state.amount = absl::StrCat(event.completed(), "/", event.total(), event.stage() == "training" ? " steps" : "");
  }
  if (event.has_rate()) {
    state.rate = absl::StrFormat("%.1f/s", event.rate());
  }
  if (event.has_eta()) {
    state.eta = absl::Seconds(event.eta().seconds()) + absl::Nanoseconds(event.eta().nanos());
  }
  if (event.epsilon_so_far() > 0) {
    state.note = absl::StrFormat("epsilon %.3f", event.epsilon_so_far());
  }
  return state;
}

absl::StatusOr<int> FollowJob(Session& session, const std::string& job, Cancellation& cancellation) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  session.error_context().job = IdOf(job);
  Follower follower(session);
  WatchOptions options;
  options.job = job;
  const auto last = WatchJob(
      *connection, options, [&](const v1::WatchJobResponse& event) { follower.OnEvent(event); },
      [&](const absl::Status& status, absl::Duration delay) { follower.OnRetry(status, delay); }, cancellation);
  follower.Finish();
  if (cancellation.cancelled() && !last.ok()) {
    return LeaveRunning(session, job);
  }
  DPAR_RETURN_IF_ERROR(last.status());
  DPAR_ASSIGN_OR_RETURN(const v1::Job ended, connection->GetJob(job));
  if (session.json()) {
    Json json = {{"job", ResourceJson(ended)}, {"state", StateLabel(ended.state())}, {"terminal", true}};
    session.PrintJson(json);
  } else {
    PrintEnd(session, ended);
  }
  return ended.state() == v1::Job::SUCCEEDED ? kDone : kFailed;
}

}  // namespace dpar
